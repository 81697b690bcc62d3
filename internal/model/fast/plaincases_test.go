package fast

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/state"
)

// plainCase is a call in a situation of its own. The name is fat, has been held just now, is calm,
// and expires four seconds after the test began; or it is thin and idle, or not there yet.
type plainCase struct {
	only   string // the primitive, "" for both
	before func(w *world)
	ask    func(a *ask)                               // what n.1 asks otherwise than plainly
	call   func(w *world) (status string, plain bool) // instead of that acquire
	want   string                                     // of a lock, and of a semaphore if that is another
	plain  bool
}

const linger = 2 * time.Second

// holds has a claim of the node n hold, changed as given.
func holds(claim string, change ...func(*ask)) func(w *world) {
	return func(w *world) {
		a := w.plainly(claim)
		for _, c := range change {
			c(&a)
		}
		status, _ := w.acquire(w.T, a)
		require.Equal(w.T, "granted", status)
		w.Advance(time.Microsecond)
	}
}

// queues has a claim of the node n wait in line, changed as given.
func queues(claim string, change ...func(*ask)) func(w *world) {
	return func(w *world) {
		a := w.plainly(claim)
		a.waits = 1
		for _, c := range change {
			c(&a)
		}
		status, _ := w.acquire(w.T, a)
		require.Equal(w.T, "queued", status)
		w.Advance(time.Millisecond) // else its ticket is what the next one meets
	}
}

// waits has a claim wait for all that there is, and n.2 hold.
func waits(w *world) { then(holds("n.2"), queues("n.waits", all))(w) }

// lined has n.2 hold all that there is, and a claim wait for that.
func lined(w *world) { then(holds("n.2", all), queues("n.waits", all))(w) }

// withDead has one more wait who is dead half a second later.
func withDead(w *world) {
	then(holds("n.2", all, lasts(4*time.Second)), queues("n.3", all), queues("n.4", all, briefly))(w)
}

// all has a claim ask for all that there is.
func all(a *ask) { a.Weight = a.capacity }

// number has the name keep another number than it does.
func number(name string, n func(now time.Time) int64) func(w *world) {
	return func(w *world) { w.setValue(w.T, name, n(time.Now())) }
}

func micros(by int64) func(time.Time) int64 {
	return func(now time.Time) int64 { return now.UnixMicro() + by }
}

func millisAnd(by int64) func(time.Time) int64 {
	return func(now time.Time) int64 { return now.UnixMilli() + by }
}

// newer has a newer release write the name.
func newer(w *world) { w.setValue(w.T, "fmt", 4) }

// uncounted has the name count nothing as held.
func uncounted(w *world) {
	w.damaged = true
	w.setValue(w.T, "used", 0)
}

// unlined has the name lose its line.
func unlined(w *world) {
	w.damaged = true
	w.do(w.T, "DEL", w.line)
}

// forgets has the state lose a claim's record.
func forgets(claim string) func(w *world) {
	return func(w *world) {
		w.damaged = true
		w.do(w.T, "HDEL", w.state, "c:"+ofNode(claim))
	}
}

// long is a hold that moves the expiry ten seconds on.
func long(a *ask) { a.Lease, a.Wait = 10*time.Second, 10*time.Second }

// then does one thing after another.
func then(all ...func(w *world)) func(w *world) {
	return func(w *world) {
		for _, do := range all {
			do(w)
		}
	}
}

func after(d time.Duration) func(w *world) { return func(w *world) { w.Advance(d) } }

// asks is the acquire of n.1, changed as given.
func asks(change func(*ask)) func(w *world) (string, bool) {
	return func(w *world) (string, bool) {
		a := w.plainly("n.1")
		if change != nil {
			change(&a)
		}
		return w.acquire(w.T, a)
	}
}

// frees is a call of release; see world.release.
func frees(claim, node string, stays time.Duration) func(w *world) (string, bool) {
	return func(w *world) (string, bool) { return w.release(w.T, claim, node, stays, linger) }
}

var own = frees("n.1", "n", 0)

// freesLate is a release of n.1 by a node whose linger is as long as leases are.
func freesLate(w *world) (string, bool) { return w.release(w.T, "n.1", "n", 0, 11*time.Second) }

// plainGrants are acquires that are plain, plain but for one thing, or have to wait.
var plainGrants = map[string]plainCase{
	"it is plain":                                     {want: "granted", plain: true},
	"the expiry may just stay":                        {ask: func(a *ask) { a.Lease = 2 * time.Second }, want: "granted", plain: true},
	"the expiry has to move":                          {ask: func(a *ask) { a.Lease = 2*time.Second + time.Millisecond }, want: "granted", plain: true},
	"the lease is as long as the wait":                {ask: func(a *ask) { a.Wait = time.Second }, want: "granted", plain: true},
	"the lease is longer than the wait":               {ask: func(a *ask) { a.Wait = 999 * time.Millisecond }, want: "granted", plain: true},
	"the lease is shorter by a digit":                 {ask: func(a *ask) { a.Lease, a.Wait = 900*time.Millisecond, 1000*time.Millisecond }, want: "granted", plain: true},
	"it holds without end":                            {ask: forever, want: "granted", plain: true},
	"it has a maximum hold":                           {ask: func(a *ask) { a.MaxHold = 500 * time.Millisecond }, want: "granted", plain: true},
	"it has a label of any bytes":                     {ask: func(a *ask) { a.Label = "%d \x00\xff 1" }, want: "granted", plain: true},
	"nobody has used the name":                        {before: func(w *world) { w.do(w.T, "DEL", w.state, w.line) }, want: "granted"},
	"a newer release wrote the state":                 {before: newer, want: "incompatible"},
	"the claim waits":                                 {before: waits, ask: func(a *ask) { a.claim = "n.waits" }, want: "queued"},
	"it is paused":                                    {before: pauses("5000"), want: "paused"},
	"it is paused, and held":                          {before: then(holds("n.2", all), pauses("5000")), want: "paused"},
	"its pause has ended":                             {before: then(pauses("500"), after(500*time.Millisecond)), want: "granted"},
	"its pause was ended":                             {before: then(pauses("5000"), pauses("0")), want: "granted", plain: true},
	"it waits, and it is paused":                      {before: pauses("5000"), ask: comes, want: "queued"},
	"it waits for what is held, and it is paused":     {before: then(holds("n.2", all), pauses("5000")), ask: comes, want: "queued"},
	"it waits, and the pause has ended":               {before: then(holds("n.2", all), pauses("500"), after(500*time.Millisecond)), ask: comes, want: "queued"},
	"it does not fit":                                 {before: holds("n.2", all), want: "held full"},
	"somebody waits":                                  {before: waits, want: "held ahead"},
	"a tombstone is left":                             {before: func(w *world) { frees("n.late", "n", time.Second)(w) }, want: "granted"},
	"its tombstone is left":                           {before: func(w *world) { frees("n.1", "n", time.Second)(w) }, want: "gone"},
	"the last fence is of this microsecond":           {before: number("fence", micros(0)), want: "granted"},
	"the last fence is ahead":                         {before: number("fence", micros(1)), want: "granted"},
	"the last fence is just before":                   {before: number("fence", micros(-1)), want: "granted", plain: true},
	"the last ticket is of this ms":                   {before: number("ticket", millisAnd(0)), want: "granted"},
	"the last ticket is ahead":                        {before: number("ticket", millisAnd(1)), want: "granted"},
	"the last ticket is just before":                  {before: number("ticket", millisAnd(-1)), want: "granted", plain: true},
	"what is left of a group":                         {only: "lock", before: then(enters, after(time.Second), sweeps), want: "granted", plain: true},
	"the same claim again":                            {before: holds("n.1"), want: "granted"},
	"the claim of another node":                       {before: holds("n.1"), ask: func(a *ask) { a.Node = "m" }, want: "foreign"},
	"an entry of the owner that holds":                {only: "lock", before: holds("n.2", mine), ask: func(a *ask) { mine(a); a.conflict = "work" }, want: "reentered"},
	"it is the second":                                {only: "semaphore", before: holds("n.2"), want: "granted", plain: true},
	"it takes all":                                    {only: "semaphore", ask: all, want: "granted", plain: true},
	"it is too heavy":                                 {only: "semaphore", ask: func(a *ask) { a.Weight = 3 }, want: "too_heavy"},
	"it names a larger capacity":                      {only: "semaphore", ask: func(a *ask) { a.capacity = 3 }, want: "granted"},
	"it names a smaller capacity":                     {only: "semaphore", ask: func(a *ask) { a.capacity = 1 }, want: "granted"},
	"the capacity is to be kept":                      {only: "semaphore", before: keeps, want: "granted"},
	"one of two holds without end":                    {only: "semaphore", before: endless, want: "granted"},
	"it waits as the first":                           {before: then(holds("n.2", all), after(time.Millisecond)), ask: comes, want: "queued", plain: true},
	"it waits behind another":                         {before: lined, ask: comes, want: "queued", plain: true},
	"it waits ahead of another":                       {before: lined, ask: func(a *ask) { comes(a); a.claim, a.Node, a.Priority = "m.1", "m", 1 }, want: "queued", plain: true},
	"whoever is ahead dies sooner":                    {before: then(holds("n.2", all), queues("n.3", all, lives(500*time.Millisecond))), ask: comes, want: "queued", plain: true},
	"what it waits for has no end":                    {before: then(holds("n.2", all, forever), func(w *world) { w.call(w.T, w.kind+"_renew", writes("2000", "n", "n.2", "beat")...) }), ask: comes, want: "queued"},
	"the sum was below nothing":                       {only: "lock", before: then(holds("n.2"), uncounted, func(w *world) { frees("n.2", "n", 0)(w) }), ask: func(a *ask) { comes(a); a.Wait = time.Second }, want: "granted", plain: true},
	"it has lost its record and its place":            {before: then(holds("n.2", all), queues("n.1", all), queues("m.3", all, lives(500*time.Millisecond), ofM), forgets("n.1")), ask: comes, want: "queued"},
	"it is drawn the place of another":                {only: "lock", before: waits, ask: func(a *ask) { comes(a); a.claim, a.Node, a.access = "m.1", "m", "random" }, want: "queued"},
	"all that ends is handed on as it comes":          {before: then(holds("n.3", all, func(a *ask) { a.Lease = 100 * time.Millisecond }), queues("n.4", all, lives(600*time.Millisecond)), after(200*time.Millisecond)), ask: comes, want: "queued"},
	"a hold without a record ends":                    {before: then(holds("n.3", all, func(a *ask) { a.Lease = 100 * time.Millisecond }), forgets("n.3"), after(200*time.Millisecond)), ask: comes, want: "granted"},
	"what ends is handed on as it comes":              {only: "semaphore", before: then(holds("n.2", func(a *ask) { a.Lease = 4 * time.Second }), holds("n.3", func(a *ask) { a.Lease = 100 * time.Millisecond }), queues("n.4", lives(600*time.Millisecond)), after(200*time.Millisecond)), ask: comes, want: "queued"},
	"it waits, and its ticket is the sixteenth":       {before: then(holds("n.2", all), after(16*time.Millisecond)), ask: comes, want: "queued", plain: true},
	"it waits, and the last ticket is ahead":          {before: then(holds("n.2", all), number("ticket", millisAnd(4))), ask: comes, want: "queued", plain: true},
	"it waits, and the ticket ahead is the fifteenth": {before: then(holds("n.2", all), number("ticket", millisAnd(15))), ask: comes, want: "queued", plain: true},
	"it waits, and does not look at the dead":         {before: then(withDead, after(607*time.Millisecond)), ask: comes, want: "queued", plain: true},
	"it waits, and looks at the dead":                 {before: then(withDead, after(606*time.Millisecond)), ask: comes, want: "queued"},
	"it waits, and looks at the lost":                 {before: then(lined, forgets("n.waits"), queues("n.4", all, func(a *ask) { a.Priority = 1 }), after(14*time.Millisecond)), ask: comes, want: "queued"},
	"it waits no longer than the expiry":              {before: then(holds("n.2", all), after(time.Millisecond)), ask: func(a *ask) { comes(a); a.Wait = time.Second }, want: "queued", plain: true},
	"it waits for a hold without end":                 {before: then(holds("n.2", all), after(time.Millisecond)), ask: func(a *ask) { comes(a); forever(a) }, want: "queued", plain: true},
	"it waits, with a maximum hold":                   {before: then(holds("n.2", all), after(time.Millisecond)), ask: func(a *ask) { comes(a); a.MaxHold = time.Second }, want: "queued", plain: true},
	"it waits ahead of who dies sooner":               {before: then(holds("n.2", all), queues("n.3", all, lives(500*time.Millisecond))), ask: func(a *ask) { comes(a); a.claim, a.Node, a.Priority = "m.1", "m", 1 }, want: "queued", plain: true},
	"it waits as the last of all":                     {before: lined, ask: func(a *ask) { comes(a); a.Priority = -128 }, want: "queued", plain: true},
	"it waits behind who has died":                    {before: then(holds("n.2", all), queues("n.3", all, lives(500*time.Millisecond)), after(600*time.Millisecond)), ask: comes, want: "queued"},
	"it waits behind who has no record":               {before: then(waits, forgets("n.waits")), ask: comes, want: "queued"},
	"it waits, and a tombstone is left":               {before: then(func(w *world) { frees("n.late", "n", time.Second)(w) }, waits), ask: comes, want: "queued"},
	"it waits, and a newer release wrote the state":   {before: then(waits, newer), ask: comes, want: "incompatible"},
	"it waits, and what holds has ended":              {before: then(holds("n.2", all), after(time.Second)), ask: comes, want: "granted"},
	"it waits for an owner":                           {only: "lock", before: waits, ask: func(a *ask) { comes(a); mine(a) }, want: "queued"},
	"it waits as the last that came":                  {only: "lock", before: waits, ask: func(a *ask) { comes(a); a.access = "lifo" }, want: "queued"},
	"it would fit, and waits behind another":          {only: "semaphore", before: waits, ask: func(a *ask) { a.waits = 1 }, want: "queued"},
	"it waits, and some of it is free":                {only: "semaphore", before: then(holds("n.2"), after(time.Millisecond)), ask: comes, want: "queued"},
	"it would wait, and is too heavy":                 {only: "semaphore", before: waits, ask: func(a *ask) { comes(a); a.Weight = 3 }, want: "too_heavy"},
	"it waits, and the capacity is to be kept":        {only: "semaphore", before: then(keeps, waits), ask: comes, want: "queued"},
}

// comes has a claim wait where it cannot hold.
func comes(a *ask) { a.waits = 1; all(a) }

// lives has a claim live by a wait lease.
func lives(wait time.Duration) func(a *ask) { return func(a *ask) { a.Wait = wait } }

// mine is a claim of the owner me.
func mine(a *ask) { a.Owner = "me" }

// enters has an owner hold, by n.2, and enter once more, by n.3.
func enters(w *world) {
	holds("n.2", mine)(w)
	status, _ := w.acquire(w.T, w.plainly("n.3").with(func(a *ask) { mine(a); a.conflict = "work" }))
	require.Equal(w.T, "reentered", status)
}

func sweeps(w *world) { w.call(w.T, w.kind+"_sweep", writes("2000", "n", "0")...) }

// renews is a call of renew of n.1.
func renews(mode string) func(w *world) {
	return func(w *world) { w.call(w.T, w.kind+"_renew", writes("2000", "n", "n.1", mode)...) }
}

// beats is a call of renew by a node.
func beats(node string, claims ...string) func(w *world) (string, bool) {
	return func(w *world) (string, bool) {
		return w.both(w.T, w.kind+"_renew", written(writes("2000", append([]string{node}, claims...)...)))
	}
}

var beat = beats("n", "n.1", "beat")

// lingers is a heartbeat of n.1 with another linger (ms).
func lingers(linger string) func(w *world) (string, bool) {
	return func(w *world) (string, bool) {
		return w.both(w.T, w.kind+"_renew", written(writes(linger, "n", "n.1", "beat")))
	}
}

func noRenew(a *ask) { a.NoRenew = true }

func lasts(lease time.Duration) func(*ask) {
	return func(a *ask) { a.Lease, a.Wait = lease, lease }
}

// plainRenews are heartbeats of n.1 that are plain but for one thing, or plain.
var plainRenews = map[string]plainCase{
	"it is plain":                      {before: then(holds("n.1"), after(300*time.Millisecond)), want: "renewed", plain: true},
	"the expiry has to move":           {before: then(holds("n.1", lasts(4*time.Second)), after(3*time.Second)), want: "renewed", plain: true},
	"it is paused":                     {before: then(holds("n.1"), pauses("5000")), want: "renewed"},
	"its pause has ended":              {before: then(holds("n.1"), pauses("500"), after(500*time.Millisecond)), want: "renewed"},
	"it is beaten again":               {before: then(holds("n.1"), renews("beat"), after(300*time.Millisecond)), want: "renewed", plain: true},
	"it ends in a millisecond":         {before: then(holds("n.1"), after(999*time.Millisecond-time.Microsecond)), want: "renewed", plain: true},
	"it ends now":                      {before: then(holds("n.1"), after(time.Second-time.Microsecond)), want: "renewed"},
	"the linger alone moves it":        {before: holds("n.1"), call: lingers("6000"), want: "renewed", plain: true},
	"it is renewed by a call":          {before: holds("n.1"), call: beats("n", "n.1", "renew"), want: "renewed"},
	"it is looked at":                  {before: holds("n.1"), call: beats("n", "n.1", "check"), want: "renewed"},
	"it does not renew":                {before: holds("n.1", noRenew), want: "renewed"},
	"it has a maximum hold":            {before: holds("n.1", func(a *ask) { a.MaxHold = time.Second }), want: "renewed"},
	"it is not confirmed":              {before: holds("n.1", func(a *ask) { a.Wait = 999 * time.Millisecond }), want: "renewed"},
	"it holds without end":             {before: then(holds("n.1", forever), renews("beat")), want: "renewed"},
	"it is detached":                   {before: then(holds("n.1"), renews("detach")), want: "renewed"},
	"it was extended":                  {only: "lock", before: then(holds("n.1"), renews("extend 700 x")), want: "renewed"},
	"another node has it":              {before: holds("n.1"), call: beats("m", "n.1", "beat"), want: "renewed"},
	"nobody knows it":                  {want: "renewed"},
	"its tombstone is left":            {before: func(w *world) { frees("n.1", "n", time.Second)(w) }, want: "renewed"},
	"a tombstone is left":              {before: then(func(w *world) { frees("n.late", "n", time.Second)(w) }, holds("n.1")), want: "renewed"},
	"somebody waits":                   {before: then(holds("n.1", all), queues("n.2")), want: "renewed"},
	"it waits":                         {before: waits, call: beats("n", "n.waits", "beat"), want: "renewed"},
	"two beat":                         {before: holds("n.1"), call: beats("n", "n.1", "beat", "n.2", "beat"), want: "renewed"},
	"a newer release wrote the state":  {before: then(holds("n.1"), newer), want: "incompatible"},
	"the line is lost":                 {before: then(holds("n.1"), unlined), want: "renewed"},
	"an entry is within it":            {only: "lock", before: enters, call: beats("n", "n.2", "beat"), want: "renewed"},
	"another holds too":                {only: "semaphore", before: then(holds("n.1"), holds("n.2")), want: "renewed", plain: true},
	"another has ended":                {only: "semaphore", before: then(holds("n.2"), after(500*time.Millisecond), holds("n.1"), after(600*time.Millisecond)), want: "renewed"},
	"it holds all":                     {only: "semaphore", before: holds("n.1", all), want: "renewed", plain: true},
	"the capacity is to be kept":       {only: "semaphore", before: then(keeps, holds("n.1")), want: "renewed"},
	"another holds too, for longer":    {only: "semaphore", before: then(holds("n.1"), holds("n.2", long)), want: "renewed", plain: true},
	"the line lacks it":                {before: then(holds("n.1"), unheld("n.1")), want: "renewed"},
	"it beats twice at once":           {before: then(holds("n.1"), after(300*time.Millisecond), renews("beat")), want: "renewed", plain: true},
	"two hold":                         {only: "semaphore", before: then(holds("n.1"), holds("n.2"), after(300*time.Millisecond)), call: both, want: "renewed", plain: true},
	"two hold, with other leases":      {only: "semaphore", before: then(holds("n.1", lasts(4*time.Second)), holds("n.2"), after(300*time.Millisecond)), call: both, want: "renewed", plain: true},
	"two beat twice at once":           {only: "semaphore", before: then(holds("n.1"), holds("n.2"), func(w *world) { both(w) }), call: both, want: "renewed", plain: true},
	"two hold, beside a sooner one":    {only: "semaphore", before: then(resizes("3"), holds("n.1", lasts(4*time.Second)), holds("n.2", lasts(4*time.Second)), holds("n.3")), call: both, want: "renewed", plain: true},
	"one of two renews by a call":      {only: "semaphore", before: then(holds("n.1"), holds("n.2")), call: beats("n", "n.1", "beat", "n.2", "renew"), want: "renewed"},
	"one of two does not renew":        {only: "semaphore", before: then(holds("n.1"), holds("n.2", noRenew)), call: both, want: "renewed"},
	"one of two is of another node":    {only: "semaphore", before: then(holds("n.1"), holds("m.2", func(a *ask) { a.Node = "m" })), call: beats("n", "n.1", "beat", "m.2", "beat"), want: "renewed"},
	"one of two was never known":       {only: "semaphore", before: then(holds("n.1"), holds("n.3")), call: both, want: "renewed"},
	"the line lacks one of two":        {only: "semaphore", before: then(holds("n.1"), holds("n.2"), after(300*time.Millisecond), unheld("n.2")), call: both, want: "renewed"},
	"the line lacks one, at once":      {only: "semaphore", before: then(holds("n.1"), holds("n.2"), unheld("n.2")), call: both, want: "renewed"},
	"somebody waits behind two":        {only: "semaphore", before: then(holds("n.1"), holds("n.2"), queues("n.3")), call: both, want: "renewed"},
	"two beat, of which one has ended": {only: "semaphore", before: then(holds("n.2", func(a *ask) { a.Lease = 300 * time.Millisecond }), holds("n.1"), after(300*time.Millisecond)), call: both, want: "renewed"},
	"another ends sooner":              {only: "semaphore", before: then(holds("n.1"), holds("n.2", func(a *ask) { a.Lease = 500 * time.Millisecond }), after(300*time.Millisecond)), want: "renewed", plain: true},
}

// both is a heartbeat of n.1 and n.2.
var both = beats("n", "n.1", "beat", "n.2", "beat")

// unheld has the line lose a hold.
func unheld(claim string) func(w *world) {
	return func(w *world) {
		w.damaged = true
		w.do(w.T, "ZREM", w.line, "h:"+ofNode(claim))
	}
}

func keeps(w *world) {
	w.call(w.T, "semaphore_resize", writes("2000", "2", "1", "1", latest, "n.keeps")...)
}

// pauses has nothing granted for so long (ms), or ends that.
func pauses(lasts string) func(w *world) {
	return func(w *world) {
		w.call(w.T, w.kind+"_pause", writes("2000", lasts, "", latest, "n.pauses"+lasts, "0")...)
		w.Advance(time.Microsecond)
	}
}

// endless has a claim hold without end, confirmed.
func endless(w *world) {
	holds("n.2", forever)(w)
	w.call(w.T, "semaphore_renew", writes("2000", "n", "n.2", "beat")...)
}

// plainReleases are releases of n.1 that are plain but for one thing, or plain.
var plainReleases = map[string]plainCase{
	"it is plain":                           {before: holds("n.1"), call: own, want: "released", plain: true},
	"it has a maximum hold":                 {before: holds("n.1", func(a *ask) { a.MaxHold = 500 * time.Millisecond }), call: own, want: "released", plain: true},
	"it is not confirmed":                   {before: holds("n.1", func(a *ask) { a.Wait = 999 * time.Millisecond }), call: own, want: "released", plain: true},
	"it is paused":                          {before: then(holds("n.1"), pauses("5000")), call: own, want: "released"},
	"its pause has ended":                   {before: then(holds("n.1"), pauses("500"), after(500*time.Millisecond)), call: own, want: "released"},
	"it is detached":                        {before: then(holds("n.1"), renews("detach")), call: own, want: "released"},
	"it was renewed":                        {before: then(holds("n.1"), renews("beat")), call: own, want: "released", plain: true},
	"it ends in a millisecond":              {before: then(holds("n.1"), after(999*time.Millisecond)), call: own, want: "released", plain: true},
	"it has ended":                          {before: then(holds("n.1", func(a *ask) { a.Lease = 20 * time.Millisecond }), after(time.Second)), call: own, want: "expired", plain: true},
	"it ends now":                           {before: then(holds("n.1"), after(time.Second-time.Microsecond)), call: own, want: "expired", plain: true},
	"a newer release wrote the state":       {before: then(holds("n.1"), newer), call: own, want: "incompatible"},
	"nobody knows it":                       {call: own, want: "not_held"},
	"it was released":                       {before: then(holds("n.1"), func(w *world) { own(w) }), call: own, want: "not_held"},
	"its tombstone is left":                 {before: func(w *world) { frees("n.1", "n", time.Second)(w) }, call: own, want: "not_held"},
	"another node has it":                   {before: holds("n.1"), call: frees("n.1", "m", 0), want: "taken"},
	"a node with a longer id has it":        {before: holds("n.1", func(a *ask) { a.Node = "nh" }), call: own, want: "taken"},
	"its acquire is on its way":             {before: holds("n.1"), call: frees("n.1", "n", time.Second), want: "released"},
	"a tombstone is left":                   {before: then(func(w *world) { frees("n.late", "n", time.Second)(w) }, holds("n.1")), call: own, want: "released"},
	"it waits":                              {before: waits, call: frees("n.waits", "n", 0), want: "cancelled"},
	"somebody waits":                        {before: waits, call: frees("n.2", "n", 0), want: "released", plain: true},
	"the line is lost":                      {before: then(holds("n.1"), unlined), call: own, want: "cancelled"},
	"the expiry is left as it is":           {before: then(holds("n.1"), after(2*time.Second-time.Microsecond)), call: own, want: "expired", plain: true},
	"the expiry has to move":                {before: then(holds("n.1"), after(2*time.Second-time.Microsecond+time.Millisecond)), call: own, want: "expired", plain: true},
	"it expires later than it need":         {before: holds("n.1", long), call: own, want: "released"},
	"it waited by a longer lease":           {before: then(holds("n.2", all), queues("n.1", all, func(a *ask) { a.Wait = 5 * time.Second }), func(w *world) { frees("n.2", "n", 0)(w) }), call: own, want: "released"},
	"it expires as late as it may":          {before: holds("n.1", lasts(2*time.Second)), call: own, want: "released", plain: true},
	"an entry is within it":                 {only: "lock", before: enters, call: frees("n.2", "n", 0), want: "released"},
	"what is left of a group":               {only: "lock", before: then(enters, after(time.Second), sweeps, holds("n.1")), call: own, want: "released"},
	"one of two":                            {only: "semaphore", before: then(holds("n.1"), holds("n.2")), call: own, want: "released", plain: true},
	"one of two, and it expires late":       {only: "semaphore", before: then(holds("n.1", long), holds("n.2")), call: own, want: "released", plain: true},
	"all at once":                           {only: "semaphore", before: holds("n.1", all), call: own, want: "released", plain: true},
	"one of two holds without end":          {only: "semaphore", before: then(holds("n.1"), endless), call: own, want: "released"},
	"the capacity is to be kept":            {only: "semaphore", before: then(keeps, holds("n.1")), call: own, want: "released"},
	"the sum counts as nothing":             {only: "semaphore", before: then(holds("n.1", long), uncounted), call: own, want: "released"},
	"it has been calm, almost":              {before: then(holds("n.1", lasts(11*time.Second), func(a *ask) { a.linger = 11 * time.Second }), after(10*time.Second-time.Millisecond)), call: freesLate, want: "released", plain: true},
	"it has been calm":                      {only: "lock", before: then(holds("n.1", lasts(11*time.Second), func(a *ask) { a.linger = 11 * time.Second }), after(10*time.Second)), call: freesLate, want: "released"},
	"it has been calm of two":               {only: "semaphore", before: then(holds("n.1", lasts(11*time.Second), func(a *ask) { a.linger = 11 * time.Second }), after(10*time.Second)), call: freesLate, want: "released", plain: true},
	"one of two, and the other ends sooner": {only: "semaphore", before: then(holds("n.1"), holds("n.2", func(a *ask) { a.Lease = 500 * time.Millisecond })), call: own, want: "released", plain: true},
	"one of two, and both end at once":      {only: "semaphore", before: then(func(w *world) { w.acquire(w.T, w.plainly("n.2")) }, after(time.Microsecond), holds("n.1")), call: own, want: "released", plain: true},
}

// ofM has a claim be of another node.
func ofM(a *ask) { a.Node, a.claim = "m:1%d00000000000", "m:1%d00000000000.1" }

// briefly has a claim wait for half a second, if nobody hears of it again.
func briefly(a *ask) { a.Wait, a.Lease = 500*time.Millisecond, 400*time.Millisecond }

// heavy has a claim weigh two.
func heavy(a *ask) { a.Weight = 2 }

func resizes(capacity string) func(w *world) {
	return func(w *world) {
		w.call(w.T, "semaphore_resize", writes("2000", capacity, "0", "1", latest, "n.to"+capacity)...)
	}
}

// plainHandoffs are releases of n.1, which holds all, while somebody waits, that are
// plain but for one thing, or plain.
var plainHandoffs = map[string]plainCase{
	"one waits for all":                   {before: queues("n.2", all), want: "released", plain: true},
	"it has ended":                        {before: then(queues("n.2", all), after(time.Second)), want: "expired"},
	"it is paused":                        {before: then(queues("n.2", all), pauses("5000")), want: "released"},
	"its pause ends before the next beat": {before: then(queues("n.2", all), pauses("100")), want: "released"},
	"its pause has ended":                 {before: then(queues("n.2", all), pauses("500"), after(500*time.Millisecond)), want: "released"},
	"its pause was ended":                 {before: then(queues("n.2", all), pauses("5000"), pauses("0")), want: "released", plain: true},
	"it is of another node":               {before: queues("n.2", all, ofM), want: "released", plain: true},
	"it has a maximum hold":               {before: queues("n.2", all, func(a *ask) { a.MaxHold = time.Second }), want: "released", plain: true},
	"it will hold without end":            {before: queues("n.2", all, forever), want: "released", plain: true},
	"two wait for all":                    {before: then(queues("n.2", all), queues("n.3", all)), want: "released", plain: true},
	"the second is to hear of the first":  {before: then(queues("n.2", all, briefly), queues("n.3", all, ofM)), want: "released"},
	"it lives for a millisecond more":     {before: then(queues("n.2", all, briefly), after(498*time.Millisecond)), want: "released", plain: true},
	"it died just now":                    {before: then(queues("n.2", all, briefly), after(499*time.Millisecond)), want: "released"},
	"the first of two has died":           {before: then(queues("n.2", all, briefly), queues("n.3", all), after(time.Second)), want: "expired"},
	"the second of two has died":          {before: then(queues("n.2", all), queues("n.3", all, briefly), after(time.Second)), want: "expired"},
	"the last fence is ahead":             {before: then(queues("n.2", all), number("fence", micros(1))), want: "released"},
	"the last fence is of now":            {before: then(queues("n.2", all), number("fence", micros(0))), want: "released"},
	"the line is lost":                    {before: then(queues("n.2", all), unlined), want: "cancelled"},
	"its record is lost":                  {before: then(queues("n.2", all), forgets("n.2")), want: "released"},
	"it leaves room":                      {only: "semaphore", before: queues("n.2"), want: "released"},
	"two fit":                             {only: "semaphore", before: then(queues("n.2"), queues("n.3")), want: "released"},
	"the second is to hear of another":    {only: "semaphore", before: then(resizes("3"), holds("n.2", func(a *ask) { a.Lease = 300 * time.Millisecond }), queues("n.3", all), queues("n.4", all, ofM)), want: "released"},
	"it does not fit":                     {only: "semaphore", before: then(resizes("3"), holds("n.2"), queues("n.3", func(a *ask) { a.Weight = 3 })), want: "released"},
	"it has become too heavy":             {only: "semaphore", before: then(queues("n.2"), queues("n.3", heavy), resizes("1"), func(w *world) { own(w) }, after(time.Millisecond)), call: frees("n.2", "n", 0), want: "released"},
	"the second has become too heavy":     {only: "semaphore", before: then(queues("n.2"), queues("n.3", heavy), resizes("1")), want: "released", plain: true},
}

// one has a claim find a name that may be thin.
func one(w *world) { w.capacity = 1 }

// slight has a thin name be held by a claim, and given back.
func slight(w *world) {
	holds("n.0")(w)
	require.True(w.T, w.thin)
	_, _ = frees("n.0", "n", 0)(w)
	require.True(w.T, w.thin)
}

// labelled has a claim's fixed terms have so many bytes.
func labelled(terms int) func(a *ask) {
	return func(a *ask) {
		for a.Label = "x"; len(state.FixedTerms(&a.Record)) < terms; {
			a.Label += "x"
		}
	}
}

// thinGrants are acquires that the script of thin names answers, or does not.
var thinGrants = map[string]plainCase{
	"nobody has used the name":              {want: "granted", plain: true},
	"the name is idle":                      {before: slight, want: "granted", plain: true},
	"the name was idle for long":            {before: then(slight, after(3*time.Second)), want: "granted", plain: true},
	"it waits where it cannot hold":         {before: slight, ask: func(a *ask) { a.waits = 1 }, want: "granted", plain: true},
	"it has a priority":                     {before: slight, ask: func(a *ask) { a.Priority = 5 }, want: "granted", plain: true},
	"the lease is as long as the wait":      {before: slight, ask: func(a *ask) { a.Wait = time.Second }, want: "granted", plain: true},
	"the lease is longer than the wait":     {before: slight, ask: func(a *ask) { a.Wait = 999 * time.Millisecond }, want: "granted"},
	"the lease is as long as the linger":    {before: slight, ask: func(a *ask) { a.Lease, a.Wait = linger, linger }, want: "granted", plain: true},
	"the lease is longer than the linger":   {before: slight, ask: func(a *ask) { a.Lease = linger + time.Millisecond }, want: "granted"},
	"it holds without end":                  {before: slight, ask: forever, want: "granted"},
	"it does not renew":                     {before: slight, ask: noRenew, want: "granted", plain: true},
	"it has a maximum hold":                 {before: slight, ask: func(a *ask) { a.MaxHold = 500 * time.Millisecond }, want: "granted", plain: true},
	"it has a label of any bytes":           {before: slight, ask: func(a *ask) { a.Label = "%d \x00\xff 1" }, want: "granted", plain: true},
	"its fixed terms have 512 bytes":        {before: slight, ask: labelled(512), want: "granted", plain: true},
	"its fixed terms have 513 bytes":        {before: slight, ask: labelled(513), want: "granted"},
	"its id is not of its node":             {before: slight, ask: func(a *ask) { a.claim = "m.1" }, want: "granted"},
	"its id has a dot more":                 {before: slight, ask: func(a *ask) { a.claim = "n.1.1" }, want: "granted"},
	"the last fence is of this microsecond": {before: then(slight, number("fence", micros(0))), want: "granted"},
	"the last fence is ahead":               {before: then(slight, number("fence", micros(1))), want: "granted"},
	"the last fence is just before":         {before: then(slight, number("fence", micros(-1))), want: "granted", plain: true},
	"a newer release wrote it":              {before: then(slight, newer), want: "incompatible"},
	"it is paused":                          {before: then(slight, pauses("5000")), want: "paused"},
	"its pause has ended":                   {before: then(slight, pauses("500"), after(500*time.Millisecond)), want: "granted"},
	"it is held":                            {before: holds("n.2"), want: "held full"},
	"it is held by the claim":               {before: holds("n.1"), want: "granted"},
	"it is held by another node":            {before: holds("n.1"), ask: func(a *ask) { a.Node = "m" }, want: "foreign"},
	"what held it has ended":                {before: then(holds("n.2"), after(time.Second)), want: "granted"},
	"it was held by the claim until now":    {before: then(holds("n.1"), after(time.Second)), want: "granted"},
	"its tombstone is left":                 {before: func(w *world) { frees("n.1", "n", time.Second)(w) }, want: "gone"},
	"it is fat":                             {before: then(fat), want: "granted"},
	"it is for an owner":                    {only: "lock", before: slight, ask: mine, want: "granted", plain: true},
	"the owner holds":                       {only: "lock", before: holds("n.2", mine), ask: func(a *ask) { mine(a); a.conflict = "work" }, want: "reentered"},
	"it names another capacity":             {only: "semaphore", before: slight, ask: func(a *ask) { a.capacity = 2 }, want: "granted"},
	"it insists on another capacity":        {only: "semaphore", before: slight, ask: func(a *ask) { a.capacity, a.policy = 2, "override" }, want: "granted"},
	"it insists on the capacity":            {only: "semaphore", before: slight, ask: func(a *ask) { a.policy = "strict" }, want: "granted", plain: true},
	"it is too heavy":                       {only: "semaphore", before: slight, ask: heavy, want: "too_heavy"},
	"the capacity was set to what it is":    {only: "semaphore", before: then(slight, resizes("1")), want: "granted"},
	"the capacity was set to another":       {only: "semaphore", before: then(slight, resizes("2"), resizes("1")), want: "granted"},
}

// thinRenews are heartbeats of n.1 that the script of thin names answers, or does not.
var thinRenews = map[string]plainCase{
	"it is plain":              {before: then(holds("n.1"), after(300*time.Millisecond)), want: "renewed", plain: true},
	"it ends in a millisecond": {before: then(holds("n.1"), after(999*time.Millisecond-time.Microsecond)), want: "renewed", plain: true},
	"it is paused":             {before: then(holds("n.1"), pauses("5000")), want: "renewed"},
	"it ends now":              {before: then(holds("n.1"), after(time.Second-time.Microsecond)), want: "renewed"},
	"the linger is another":    {before: holds("n.1"), call: lingers("6000"), want: "renewed", plain: true},
	"it is renewed by a call":  {before: holds("n.1"), call: beats("n", "n.1", "renew"), want: "renewed"},
	"it does not renew":        {before: then(holds("n.1", noRenew), after(300*time.Millisecond)), want: "renewed", plain: true},
	"it has a maximum hold":    {before: then(holds("n.1", func(a *ask) { a.MaxHold = 1200 * time.Millisecond }), after(300*time.Millisecond)), want: "renewed", plain: true},
	"its maximum hold is over": {before: then(holds("n.1", func(a *ask) { a.MaxHold = 1200 * time.Millisecond }), after(600*time.Millisecond), renews("beat"), after(600*time.Millisecond)), want: "renewed"},
	"it is not confirmed":      {before: holds("n.1", func(a *ask) { a.Wait = 999 * time.Millisecond }), want: "renewed"},
	"it was detached":          {before: then(holds("n.1"), renews("detach")), want: "renewed"},
	"it was extended":          {only: "lock", before: then(holds("n.1"), renews("extend 700 x")), want: "renewed"},
	"another node has it":      {before: holds("n.1"), call: beats("m", "n.1", "beat"), want: "renewed"},
	"another claim has it":     {before: holds("n.2"), want: "renewed"},
	"a longer id has it":       {before: holds("n.12"), want: "renewed"},
	"nobody has it":            {before: slight, want: "renewed"},
	"nobody knows it":          {want: "renewed"},
	"two beat":                 {before: holds("n.1"), call: beats("n", "n.1", "beat", "n.2", "beat"), want: "renewed"},
	"a newer release wrote it": {before: then(holds("n.1"), newer), want: "incompatible"},
	"somebody waits":           {before: then(holds("n.1"), queues("n.2")), want: "renewed"},
	"it is fat":                {before: then(fat, holds("n.1")), want: "renewed"},
}

// thinReleases are releases of n.1 that the script of thin names answers, or does not.
var thinReleases = map[string]plainCase{
	"it is plain":                     {before: holds("n.1"), want: "released", plain: true},
	"it was renewed":                  {before: then(holds("n.1"), after(300*time.Millisecond), renews("beat")), want: "released", plain: true},
	"it ends in a millisecond":        {before: then(holds("n.1"), after(999*time.Millisecond-time.Microsecond)), want: "released", plain: true},
	"it ends now":                     {before: then(holds("n.1"), after(time.Second-time.Microsecond)), want: "expired", plain: true},
	"it is paused":                    {before: then(holds("n.1"), pauses("5000")), want: "released"},
	"its acquire may be on its way":   {before: holds("n.1"), call: frees("n.1", "n", time.Second), want: "released"},
	"another node has it":             {before: holds("n.1"), call: frees("n.1", "m", 0), want: "taken"},
	"another claim has it":            {before: holds("n.2"), want: "not_held"},
	"a longer id has it":              {before: holds("n.12"), want: "not_held"},
	"it was released":                 {before: then(holds("n.1"), func(w *world) { own(w) }), want: "not_held"},
	"nobody knows it":                 {want: "not_held"},
	"nobody knows it, and it stays":   {call: frees("n.1", "n", time.Second), want: "not_held"},
	"a newer release wrote it":        {before: then(holds("n.1"), newer), want: "incompatible"},
	"somebody waits":                  {before: then(holds("n.1"), queues("n.2")), want: "released"},
	"it was detached":                 {before: then(holds("n.1"), renews("detach")), want: "released"},
	"it is fat, and becomes thin":     {before: then(fat, holds("n.1", lasts(12*time.Second)), after(10*time.Second)), want: "released"},
	"it was fat, and has become it":   {before: then(fat, holds("n.2", lasts(12*time.Second)), after(10*time.Second), func(w *world) { frees("n.2", "n", 0)(w) }, holds("n.1")), want: "released", plain: true},
	"it is fat, and has had to be it": {before: then(fat, holds("n.1", lasts(12*time.Second)), after(10*time.Second-time.Millisecond)), want: "released"},
}

// fat has the name be in its fat form, and idle: an id without a dot is for no thin one.
func fat(w *world) {
	holds("zero", func(a *ask) { a.Lease = 2 * time.Second })(w)
	status, _ := frees("zero", "n", 0)(w)
	require.Equal(w.T, "released", status)
	_, thin := w.text(w.T)
	require.False(w.T, thin)
}

// In each situation it is known whether the plain case is taken, or a script of thin names
// answers, and what is answered; what is kept and answered is what the general way does.
func TestWhatIsPlain(t *testing.T) {
	plain := func(w *world, taken bool) bool { return taken }
	thin := func(w *world, _ bool) bool { return w.thin }
	for what, group := range map[string]struct {
		before func(w *world)
		call   func(c plainCase) func(w *world) (string, bool)
		took   func(w *world, plain bool) bool
		cases  map[string]plainCase
	}{
		"acquire":      {fat, func(c plainCase) func(w *world) (string, bool) { return asks(c.ask) }, plain, plainGrants},
		"release":      {fat, nil, plain, plainReleases},
		"handoff":      {then(fat, holds("n.1", all)), func(plainCase) func(w *world) (string, bool) { return own }, plain, plainHandoffs},
		"renew":        {fat, func(plainCase) func(w *world) (string, bool) { return beat }, plain, plainRenews},
		"thin acquire": {one, func(c plainCase) func(w *world) (string, bool) { return asks(c.ask) }, thin, thinGrants},
		"thin release": {one, func(plainCase) func(w *world) (string, bool) { return own }, thin, thinReleases},
		"thin renew":   {one, func(plainCase) func(w *world) (string, bool) { return beat }, thin, thinRenews},
	} {
		for about, c := range group.cases {
			for i, kind := range []string{"lock", "semaphore"} {
				if c.only != "" && c.only != kind {
					continue
				}
				t.Run(kind+" "+what+"/"+about, func(t *testing.T) {
					inWorld(t, kind, func(t *testing.T, named func(name string) *world) {
						w := named("gpu")
						group.before(w)
						if c.before != nil {
							c.before(w)
						}
						call := c.call
						if call == nil {
							call = group.call(c)
						}
						status, plain := call(w)
						want := strings.Fields(c.want)
						require.Equal(t, want[min(i, len(want)-1)], status)
						require.Equal(t, c.plain, group.took(w, plain), "whether it is plain")
					})
				})
			}
		}
	}
}
