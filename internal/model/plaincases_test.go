package model_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// plainCase is a call in a situation of its own. The name has been held a microsecond
// before, is calm, and expires four seconds after the test began.
type plainCase struct {
	only   string // the primitive, "" for both
	before func(s *stage)
	ask    func(a *ask)                               // what n.1 asks otherwise than plainly
	call   func(s *stage) (status string, plain bool) // instead of that acquire
	want   string                                     // of a lock, and of a semaphore if that is another
	plain  bool
}

const linger = 2 * time.Second

// holds has a claim of the node n hold, changed as given.
func holds(claim string, change ...func(*ask)) func(s *stage) {
	return func(s *stage) {
		a := plainly(claim)
		for _, c := range change {
			c(&a)
		}
		status, _ := s.acquire(s.T, a)
		require.Equal(s.T, "granted", status)
		s.Advance(time.Microsecond)
	}
}

// queues has a claim of the node n wait in line, changed as given.
func queues(claim string, change ...func(*ask)) func(s *stage) {
	return func(s *stage) {
		a := plainly(claim)
		a.waits = 1
		for _, c := range change {
			c(&a)
		}
		status, _ := s.acquire(s.T, a)
		require.Equal(s.T, "queued", status)
		s.Advance(time.Millisecond) // else its ticket is what the next one meets
	}
}

// waits has a claim wait for all that there is, and n.2 hold.
func waits(s *stage) { then(holds("n.2"), queues("n.waits", all))(s) }

// all has a claim ask for all that there is.
func all(a *ask) { a.Weight = a.capacity }

// field has the state hold another text than it does.
func field(name string, text func(now time.Time) string) func(s *stage) {
	return func(s *stage) { s.do(s.T, "HSET", s.state, name, text(time.Now())) }
}

func fixed(text string) func(time.Time) string { return func(time.Time) string { return text } }

func micros(by int64) func(time.Time) string {
	return func(now time.Time) string { return strconv.FormatInt(now.UnixMicro()+by, 10) }
}

func millisAnd(by int64) func(time.Time) string {
	return func(now time.Time) string { return strconv.FormatInt(now.UnixMilli()+by, 10) }
}

// long is a hold that moves the expiry ten seconds on.
func long(a *ask) { a.Lease, a.Wait = 10*time.Second, 10*time.Second }

// then does one thing after another.
func then(all ...func(s *stage)) func(s *stage) {
	return func(s *stage) {
		for _, do := range all {
			do(s)
		}
	}
}

func after(d time.Duration) func(s *stage) { return func(s *stage) { s.Advance(d) } }

// asks is the acquire of n.1, changed as given.
func asks(change func(*ask)) func(s *stage) (string, bool) {
	return func(s *stage) (string, bool) {
		a := plainly("n.1")
		if change != nil {
			change(&a)
		}
		return s.acquire(s.T, a)
	}
}

// frees is a call of release; see stage.release.
func frees(claim, node string, stays time.Duration) func(s *stage) (string, bool) {
	return func(s *stage) (string, bool) { return s.release(s.T, claim, node, stays, linger) }
}

var own = frees("n.1", "n", 0)

// plainGrants are acquires that are plain, plain but for one thing, or have to wait.
var plainGrants = map[string]plainCase{
	"it is plain":                            {want: "granted", plain: true},
	"the expiry may just stay":               {ask: func(a *ask) { a.Lease = 2 * time.Second }, want: "granted", plain: true},
	"the expiry has to move":                 {ask: func(a *ask) { a.Lease = 2*time.Second + time.Millisecond }, want: "granted"},
	"the lease is as long as the wait":       {ask: func(a *ask) { a.Wait = time.Second }, want: "granted", plain: true},
	"the lease is longer than the wait":      {ask: func(a *ask) { a.Wait = 999 * time.Millisecond }, want: "granted"},
	"the lease is shorter by a digit":        {ask: func(a *ask) { a.Lease, a.Wait = 900*time.Millisecond, 1000*time.Millisecond }, want: "granted", plain: true},
	"it holds without end":                   {ask: forever, want: "granted"},
	"it has a maximum hold":                  {ask: func(a *ask) { a.MaxHold = 500 * time.Millisecond }, want: "granted"},
	"it has a label of any bytes":            {ask: func(a *ask) { a.Label = "%d \x00\xff 1" }, want: "granted", plain: true},
	"nobody has used the name":               {before: func(s *stage) { s.do(s.T, "DEL", s.state, s.line) }, want: "granted"},
	"a newer release wrote the state":        {before: field("fmt", fixed("2")), want: "incompatible"},
	"the claim waits":                        {before: waits, ask: func(a *ask) { a.claim = "n.waits" }, want: "queued"},
	"it does not fit":                        {before: holds("n.2", all), want: "held full"},
	"somebody waits":                         {before: waits, want: "held ahead"},
	"a tombstone is left":                    {before: func(s *stage) { frees("n.late", "n", time.Second)(s) }, want: "granted"},
	"its tombstone is left":                  {before: func(s *stage) { frees("n.1", "n", time.Second)(s) }, want: "gone"},
	"the last fence is of this microsecond":  {before: field("fence", micros(0)), want: "granted"},
	"the last fence is ahead":                {before: field("fence", micros(1)), want: "granted"},
	"the last fence is just before":          {before: field("fence", micros(-1)), want: "granted", plain: true},
	"the last fence has a digit more":        {before: field("fence", fixed("1000000000000000")), want: "granted"},
	"the last ticket is of this ms":          {before: field("ticket", millisAnd(0)), want: "granted"},
	"the last ticket is ahead":               {before: field("ticket", millisAnd(1)), want: "granted"},
	"the last ticket is just before":         {before: field("ticket", millisAnd(-1)), want: "granted", plain: true},
	"the last ticket has a digit more":       {before: field("ticket", fixed("1000000000000")), want: "granted"},
	"the last ticket has a digit less":       {before: field("ticket", fixed("99999999999")), want: "granted", plain: true},
	"what is left of a stem":                 {only: "lock", before: then(enters, after(time.Second), sweeps), want: "granted", plain: true},
	"the same claim again":                   {before: holds("n.1"), want: "granted"},
	"the claim of another node":              {before: holds("n.1"), ask: func(a *ask) { a.Node = "m" }, want: "foreign"},
	"an entry of the owner that holds":       {only: "lock", before: holds("n.2", mine), ask: func(a *ask) { mine(a); a.conflict = "work" }, want: "reentered"},
	"it is the second":                       {only: "semaphore", before: holds("n.2"), want: "granted", plain: true},
	"it takes all":                           {only: "semaphore", ask: all, want: "granted", plain: true},
	"it is too heavy":                        {only: "semaphore", ask: func(a *ask) { a.Weight = 3 }, want: "too_heavy"},
	"it names a larger capacity":             {only: "semaphore", ask: func(a *ask) { a.capacity = 3 }, want: "granted"},
	"it names a smaller capacity":            {only: "semaphore", ask: func(a *ask) { a.capacity = 1 }, want: "granted"},
	"the capacity is to be kept":             {only: "semaphore", before: keeps, want: "granted"},
	"one of two holds without end":           {only: "semaphore", before: endless, want: "granted"},
	"it waits as the first":                  {before: holds("n.2", all), ask: comes, want: "queued"},
	"it waits behind another":                {before: waits, ask: comes, want: "queued"},
	"it waits ahead of another":              {before: waits, ask: func(a *ask) { comes(a); a.claim, a.Node, a.Priority = "m.1", "m", 1 }, want: "queued"},
	"whoever is ahead dies sooner":           {before: then(holds("n.2", all), queues("n.3", all, lives(500*time.Millisecond))), ask: comes, want: "queued"},
	"what it waits for has no end":           {before: then(holds("n.2", all, forever), func(s *stage) { s.call(s.T, s.kind+"_renew", writes("2000", "n", "n.2", "beat")...) }), ask: comes, want: "queued"},
	"the sum is below nothing":               {only: "lock", before: then(holds("n.2"), field("counts", fixed("1 0 0 0 0 0")), func(s *stage) { frees("n.2", "n", 0)(s) }), ask: func(a *ask) { comes(a); a.Wait = time.Second }, want: "granted"},
	"it has lost its record and its place":   {before: then(holds("n.2", all), queues("n.1", all), queues("m.3", all, lives(500*time.Millisecond), ofM), func(s *stage) { s.do(s.T, "HDEL", s.state, "c:n.1") }), ask: comes, want: "queued"},
	"it is drawn the place of another":       {only: "lock", before: waits, ask: func(a *ask) { comes(a); a.claim, a.Node, a.access = "m.1", "m", "random" }, want: "queued"},
	"all that ends is handed on as it comes": {before: then(holds("n.3", all, func(a *ask) { a.Lease = 100 * time.Millisecond }), queues("n.4", all, lives(600*time.Millisecond)), after(200*time.Millisecond)), ask: comes, want: "queued"},
	"a hold without a record ends":           {before: then(holds("n.3", all, func(a *ask) { a.Lease = 100 * time.Millisecond }), func(s *stage) { s.do(s.T, "HDEL", s.state, "c:n.3") }, after(200*time.Millisecond)), ask: comes, want: "granted"},
	"what ends is handed on as it comes":     {only: "semaphore", before: then(holds("n.2", func(a *ask) { a.Lease = 4 * time.Second }), holds("n.3", func(a *ask) { a.Lease = 100 * time.Millisecond }), queues("n.4", lives(600*time.Millisecond)), after(200*time.Millisecond)), ask: comes, want: "queued"},
}

// comes has a claim wait where it cannot hold.
func comes(a *ask) { a.waits = 1; all(a) }

// lives has a claim live by a wait lease.
func lives(wait time.Duration) func(a *ask) { return func(a *ask) { a.Wait = wait } }

// mine is a claim of the owner me.
func mine(a *ask) { a.Owner = "me" }

// enters has an owner hold, by n.2, and enter once more, by n.3.
func enters(s *stage) {
	holds("n.2", mine)(s)
	status, _ := s.acquire(s.T, plainly("n.3").with(func(a *ask) { mine(a); a.conflict = "work" }))
	require.Equal(s.T, "reentered", status)
}

func sweeps(s *stage) { s.call(s.T, s.kind+"_sweep", writes("2000", "n")...) }

// renews is a call of renew of n.1.
func renews(mode string) func(s *stage) {
	return func(s *stage) { s.call(s.T, s.kind+"_renew", writes("2000", "n", "n.1", mode)...) }
}

// beats is a call of renew by a node.
func beats(node string, claims ...string) func(s *stage) (string, bool) {
	return func(s *stage) (string, bool) {
		return s.both(s.T, s.kind+"_renew", append(writes("2000", node), claims...)...)
	}
}

var beat = beats("n", "n.1", "beat")

// lingers is a heartbeat of n.1 with another linger (ms).
func lingers(linger string) func(s *stage) (string, bool) {
	return func(s *stage) (string, bool) {
		return s.both(s.T, s.kind+"_renew", writes(linger, "n", "n.1", "beat")...)
	}
}

func noRenew(a *ask) { a.NoRenew = true }

func lasts(lease time.Duration) func(*ask) {
	return func(a *ask) { a.Lease, a.Wait = lease, 2*lease }
}

// plainRenews are heartbeats of n.1 that are plain but for one thing, or plain.
var plainRenews = map[string]plainCase{
	"it is plain":                     {before: then(holds("n.1"), after(300*time.Millisecond)), want: "renewed", plain: true},
	"the expiry has to move":          {before: then(holds("n.1", lasts(4*time.Second)), after(3*time.Second)), want: "renewed", plain: true},
	"it is beaten again":              {before: then(holds("n.1"), renews("beat"), after(300*time.Millisecond)), want: "renewed", plain: true},
	"it ends in a millisecond":        {before: then(holds("n.1"), after(999*time.Millisecond-time.Microsecond)), want: "renewed", plain: true},
	"it ends now":                     {before: then(holds("n.1"), after(time.Second-time.Microsecond)), want: "renewed"},
	"the linger alone moves it":       {before: holds("n.1"), call: lingers("6000"), want: "renewed", plain: true},
	"it is renewed by a call":         {before: holds("n.1"), call: beats("n", "n.1", "renew"), want: "renewed"},
	"it is looked at":                 {before: holds("n.1"), call: beats("n", "n.1", "check"), want: "renewed"},
	"it does not renew":               {before: holds("n.1", noRenew), want: "renewed"},
	"it has a maximum hold":           {before: holds("n.1", func(a *ask) { a.MaxHold = time.Second }), want: "renewed"},
	"it is not confirmed":             {before: holds("n.1", func(a *ask) { a.Wait = 999 * time.Millisecond }), want: "renewed"},
	"it holds without end":            {before: then(holds("n.1", forever), renews("beat")), want: "renewed"},
	"it is detached":                  {before: then(holds("n.1"), renews("detach")), want: "renewed"},
	"it was extended":                 {only: "lock", before: then(holds("n.1"), renews("extend 700 x")), want: "renewed"},
	"another node has it":             {before: holds("n.1"), call: beats("m", "n.1", "beat"), want: "renewed"},
	"nobody knows it":                 {want: "renewed"},
	"its tombstone is left":           {before: func(s *stage) { frees("n.1", "n", time.Second)(s) }, want: "renewed"},
	"a tombstone is left":             {before: then(func(s *stage) { frees("n.late", "n", time.Second)(s) }, holds("n.1")), want: "renewed"},
	"somebody waits":                  {before: then(holds("n.1", all), queues("n.2")), want: "renewed"},
	"it waits":                        {before: waits, call: beats("n", "n.waits", "beat"), want: "renewed"},
	"two beat":                        {before: holds("n.1"), call: beats("n", "n.1", "beat", "n.2", "beat"), want: "renewed"},
	"a newer release wrote the state": {before: then(holds("n.1"), field("fmt", fixed("2"))), want: "incompatible"},
	"the line is lost":                {before: then(holds("n.1"), func(s *stage) { s.do(s.T, "DEL", s.line) }), want: "renewed"},
	"an entry is within it":           {only: "lock", before: enters, call: beats("n", "n.2", "beat"), want: "renewed"},
	"another holds too":               {only: "semaphore", before: then(holds("n.1"), holds("n.2")), want: "renewed"},
	"another has ended":               {only: "semaphore", before: then(holds("n.2"), after(500*time.Millisecond), holds("n.1"), after(600*time.Millisecond)), want: "renewed"},
	"it holds all":                    {only: "semaphore", before: holds("n.1", all), want: "renewed", plain: true},
	"the capacity is to be kept":      {only: "semaphore", before: then(keeps, holds("n.1")), want: "renewed"},
}

func keeps(s *stage) { s.call(s.T, "semaphore_resize", writes("2000", "2", "1", "1")...) }

// endless has a claim hold without end, confirmed.
func endless(s *stage) {
	holds("n.2", forever)(s)
	s.call(s.T, "semaphore_renew", writes("2000", "n", "n.2", "beat")...)
}

// plainReleases are releases of n.1 that are plain but for one thing, or plain.
var plainReleases = map[string]plainCase{
	"it is plain":                     {before: holds("n.1"), call: own, want: "released", plain: true},
	"it has a maximum hold":           {before: holds("n.1", func(a *ask) { a.MaxHold = 500 * time.Millisecond }), call: own, want: "released", plain: true},
	"it is not confirmed":             {before: holds("n.1", func(a *ask) { a.Wait = 999 * time.Millisecond }), call: own, want: "released", plain: true},
	"it is detached":                  {before: then(holds("n.1"), renews("detach")), call: own, want: "released"},
	"it was renewed":                  {before: then(holds("n.1"), renews("beat")), call: own, want: "released", plain: true},
	"it ends in a millisecond":        {before: then(holds("n.1"), after(999*time.Millisecond)), call: own, want: "released", plain: true},
	"it has ended":                    {before: then(holds("n.1", func(a *ask) { a.Lease = 20 * time.Millisecond }), after(time.Second)), call: own, want: "expired", plain: true},
	"it ends now":                     {before: then(holds("n.1"), after(time.Second-time.Microsecond)), call: own, want: "expired", plain: true},
	"a newer release wrote the state": {before: then(holds("n.1"), field("fmt", fixed("2"))), call: own, want: "incompatible"},
	"nobody knows it":                 {call: own, want: "not_held"},
	"it was released":                 {before: then(holds("n.1"), func(s *stage) { own(s) }), call: own, want: "not_held"},
	"its tombstone is left":           {before: func(s *stage) { frees("n.1", "n", time.Second)(s) }, call: own, want: "not_held"},
	"another node has it":             {before: holds("n.1"), call: frees("n.1", "m", 0), want: "taken"},
	"a node with a longer id has it":  {before: holds("n.1", func(a *ask) { a.Node = "nh 1" }), call: own, want: "taken"},
	"its acquire is on its way":       {before: holds("n.1"), call: frees("n.1", "n", time.Second), want: "released"},
	"a tombstone is left":             {before: then(func(s *stage) { frees("n.late", "n", time.Second)(s) }, holds("n.1")), call: own, want: "released"},
	"it waits":                        {before: waits, call: frees("n.waits", "n", 0), want: "cancelled"},
	"somebody waits":                  {before: waits, call: frees("n.2", "n", 0), want: "released", plain: true},
	"the line is lost":                {before: then(holds("n.1"), func(s *stage) { s.do(s.T, "DEL", s.line) }), call: own, want: "cancelled"},
	"the expiry is left as it is":     {before: then(holds("n.1"), after(2*time.Second-time.Microsecond)), call: own, want: "expired", plain: true},
	"the expiry has to move":          {before: then(holds("n.1"), after(2*time.Second-time.Microsecond+time.Millisecond)), call: own, want: "expired"},
	"it expires later than it need":   {before: holds("n.1", long), call: own, want: "released"},
	"it expires as late as it may":    {before: then(holds("n.1", long), after(8*time.Second)), call: own, want: "released", plain: true},
	"an entry is within it":           {only: "lock", before: enters, call: frees("n.2", "n", 0), want: "released"},
	"what is left of a stem":          {only: "lock", before: then(enters, after(time.Second), sweeps, holds("n.1")), call: own, want: "released"},
	"one of two":                      {only: "semaphore", before: then(holds("n.1"), holds("n.2")), call: own, want: "released", plain: true},
	"one of two, and it expires late": {only: "semaphore", before: then(holds("n.1", long), holds("n.2")), call: own, want: "released", plain: true},
	"all at once":                     {only: "semaphore", before: holds("n.1", all), call: own, want: "released", plain: true},
	"one of two holds without end":    {only: "semaphore", before: then(holds("n.1"), endless), call: own, want: "released"},
	"the capacity is to be kept":      {only: "semaphore", before: then(keeps, holds("n.1")), call: own, want: "released"},
	"the sum counts as nothing":       {only: "semaphore", before: then(holds("n.1", long), field("counts", fixed("2 0 0 0 0 0"))), call: own, want: "released"},
}

// ofM has a claim be of another node.
func ofM(a *ask) { a.Node = "m:1 %d" }

// briefly has a claim wait for half a second, if nobody hears of it again.
func briefly(a *ask) { a.Wait, a.Lease = 500*time.Millisecond, 400*time.Millisecond }

// heavy has a claim weigh two.
func heavy(a *ask) { a.Weight = 2 }

func resizes(capacity string) func(s *stage) {
	return func(s *stage) { s.call(s.T, "semaphore_resize", writes("2000", capacity, "0", "1")...) }
}

// plainHandoffs are releases of n.1, which holds all, while somebody waits, that are
// plain but for one thing, or plain.
var plainHandoffs = map[string]plainCase{
	"one waits for all":                  {before: queues("n.2", all), want: "released", plain: true},
	"it has ended":                       {before: then(queues("n.2", all), after(time.Second)), want: "expired", plain: true},
	"it is of another node":              {before: queues("n.2", all, ofM), want: "released", plain: true},
	"it has a maximum hold":              {before: queues("n.2", all, func(a *ask) { a.MaxHold = time.Second }), want: "released", plain: true},
	"it will hold without end":           {before: queues("n.2", all, forever), want: "released", plain: true},
	"two wait for all":                   {before: then(queues("n.2", all), queues("n.3", all)), want: "released", plain: true},
	"the second is to hear of the first": {before: then(queues("n.2", all, briefly), queues("n.3", all, ofM)), want: "released", plain: true},
	"it lives for a millisecond more":    {before: then(queues("n.2", all, briefly), after(498*time.Millisecond)), want: "released", plain: true},
	"it died just now":                   {before: then(queues("n.2", all, briefly), after(499*time.Millisecond)), want: "released"},
	"the first of two has died":          {before: then(queues("n.2", all, briefly), queues("n.3", all), after(time.Second)), want: "expired"},
	"the second of two has died":         {before: then(queues("n.2", all), queues("n.3", all, briefly), after(time.Second)), want: "expired", plain: true},
	"the last fence is ahead":            {before: then(queues("n.2", all), field("fence", micros(1))), want: "released"},
	"the last fence is of now":           {before: then(queues("n.2", all), field("fence", micros(0))), want: "released"},
	"the last fence has a digit more":    {before: then(queues("n.2", all), field("fence", fixed("1000000000000000"))), want: "released"},
	"the line is lost":                   {before: then(queues("n.2", all), func(s *stage) { s.do(s.T, "DEL", s.line) }), want: "cancelled"},
	"its record is lost":                 {before: then(queues("n.2", all), func(s *stage) { s.do(s.T, "HDEL", s.state, "c:n.2") }), want: "released"},
	"it leaves room":                     {only: "semaphore", before: queues("n.2"), want: "released"},
	"two fit":                            {only: "semaphore", before: then(queues("n.2"), queues("n.3")), want: "released"},
	"the second is to hear of another":   {only: "semaphore", before: then(resizes("3"), holds("n.2", func(a *ask) { a.Lease = 300 * time.Millisecond }), queues("n.3", all), queues("n.4", all, ofM)), want: "released", plain: true},
	"it does not fit":                    {only: "semaphore", before: then(resizes("3"), holds("n.2"), queues("n.3", func(a *ask) { a.Weight = 3 })), want: "released"},
	"it has become too heavy":            {only: "semaphore", before: then(queues("n.2"), queues("n.3", heavy), resizes("1"), func(s *stage) { own(s) }, after(time.Millisecond)), call: frees("n.2", "n", 0), want: "released"},
	"the second has become too heavy":    {only: "semaphore", before: then(queues("n.2"), queues("n.3", heavy), resizes("1")), want: "released", plain: true},
}

// In each situation it is known whether the plain case is taken, and what is answered;
// what is kept and answered is what the general way does.
func TestWhatIsPlain(t *testing.T) {
	for what, cases := range map[string]map[string]plainCase{"acquire": plainGrants, "release": plainReleases, "handoff": plainHandoffs, "renew": plainRenews} {
		for about, c := range cases {
			for i, kind := range []string{"lock", "semaphore"} {
				if c.only != "" && c.only != kind {
					continue
				}
				t.Run(kind+" "+what+"/"+about, func(t *testing.T) {
					onStage(t, kind, func(t *testing.T, stage func(name string) *stage) {
						s := stage("gpu")
						holds("n.0", func(a *ask) { a.Lease = 2 * time.Second })(s)
						_, _ = frees("n.0", "n", 0)(s)
						call := c.call
						switch {
						case what == "acquire" && call == nil:
							call = asks(c.ask)
						case what == "renew" && call == nil:
							call = beat
						case what == "handoff":
							holds("n.1", all)(s)
							if call == nil {
								call = own
							}
						}
						if c.before != nil {
							c.before(s)
						}
						status, plain := call(s)
						want := strings.Fields(c.want)
						require.Equal(t, want[min(i, len(want)-1)], status)
						require.Equal(t, c.plain, plain, "whether it is plain")
					})
				})
			}
		}
	}
}
