package fast

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/internal/state"
)

// poolWorld is a pool on a server in virtual time, and its twin.
type poolWorld struct {
	*world
	keys, twins []string
}

func newPoolWorld(w *world) *poolWorld {
	p := &poolWorld{world: w}
	for _, part := range []string{"state", "line", "items", "free", "bindings"} {
		p.keys, p.twins = append(p.keys, "berth:pool:{gpu}:"+part), append(p.twins, "twin:berth:pool:{gpu}:"+part)
	}
	return p
}

// play runs a script on the pool and, in its general form, on the twin, and both do the same. It
// returns the status, and whether the plain case was taken.
func (p *poolWorld) play(script string, args ...string) (status string, plain bool) {
	p.T.Helper()
	return p.played(script, nil, writes("2000", args...))
}

// played is play with all arguments, of an acquire by r.
func (p *poolWorld) played(script string, r *engine.Record, args []string) (status string, plain bool) {
	p.T.Helper()
	for n, key := range p.keys {
		p.do(p.T, "DEL", p.twins[n])
		p.do(p.T, "COPY", key, p.twins[n])
	}
	eval := func(source string, keys []string) any {
		words := append([]string{"EVAL", source, "5"}, keys...)
		return p.do(p.T, append(words, args...)...)
	}
	before := p.taken(p.T, poolPlains)
	_ = p.heard.Texts(p.T)
	want := eval(p.general.Script(script).Source(), p.twins)
	heard := p.heard.Texts(p.T)
	got := p.toldInFull(r, eval(p.whole.Script(script).Source(), p.keys))
	told := p.heard.Texts(p.T)
	require.Equal(p.T, heard, told, "what %s %q publishes", script, args)
	require.Equal(p.T, trimmed(p.T, want), trimmed(p.T, got), "the reply of %s %q", script, args)
	require.Equal(p.T, p.kept(p.twins), p.kept(p.keys), "what %s %q makes", script, args)
	return fmt.Sprint(said(p.T, got)[0]), before != p.taken(p.T, poolPlains)
}

// toldInFull is what a plain case says in one text, as the general way says it to a claim that asks, nil for a release.
func (p *poolWorld) toldInFull(r *engine.Record, got any) any {
	text, ok := got.(string)
	if !ok {
		return got
	}
	words, numbers := strings.Fields(text), make([]int64, 6)
	for i, word := range words {
		numbers[i], _ = strconv.ParseInt(word, 10, 64)
	}
	switch n := numbers[0]; {
	case r == nil:
		return []any{"released", int64(0), n, int64(1)}
	case len(words) == 3:
		return []any{"granted", n / 1000, n, r.Lease.Milliseconds(), int64(1), numbers[1] - state.Base, words[2]}
	default:
		require.Len(p.T, words, 5)
		return []any{
			"queued", n, int64(0), r.Wait.Milliseconds(), 8 + 4*numbers[1], numbers[4] - state.Base, "",
			fmt.Sprintf("%s %013d", line.Lane(r.Priority), n), numbers[3], numbers[2],
		}
	}
}

// kept is all that the server has of a pool.
func (p *poolWorld) kept(keys []string) string {
	var all []any
	for n, key := range keys {
		all = append(all, p.do(p.T, "PEXPIRETIME", key))
		if n == 1 || n == 3 {
			all = append(all, p.do(p.T, "ZRANGE", key, "0", "-1", "WITHSCORES"))
		} else {
			fields, err := p.Redis.Do(context.Background(), p.Redis.B().Hgetall().Key(key).Build()).AsStrMap()
			require.NoError(p.T, err)
			all = append(all, fields)
		}
	}
	return fmt.Sprint(all...)
}

type (
	poolStep = func(p *poolWorld)
	poolCall = func(p *poolWorld) (status string, plain bool)
)

// puts has the pool get a resource for so long, 0 = for good, for so many holders at once.
func puts(key string, lasts time.Duration, most int) poolStep {
	return func(p *poolWorld) { p.play("pool_add", millis(lasts), fmt.Sprint(most), "0", "1", "", key) }
}

// seeks is an acquire of n.1: plain, but for what is changed.
func seeks(change ...func(r *engine.Record)) poolCall { return seeksAs("n.1", "1", "", change...) }

func seeksAs(claim, waits, only string, change ...func(r *engine.Record)) poolCall {
	return func(p *poolWorld) (string, bool) {
		r := engine.Record{Weight: 1, Wait: 2 * time.Second, Lease: time.Second, Node: "n", Extra: "o 0 - 0 0:"}
		if only != "" {
			r.Extra = fmt.Sprintf("a 0 0 0 %d:%s", len(only), only)
		}
		for _, c := range change {
			c(&r)
		}
		r.Secret = secret
		status, plain := p.played("pool_acquire", &r, asking(r.Node, 2*time.Second).Acquire(ofNode(claim), &r, waits, "-", "", ""))
		p.Advance(time.Millisecond)
		return status, plain
	}
}

// says is an acquire of n.1 by a process that says something of the settings.
func says(opinions, told string) poolCall {
	return func(p *poolWorld) (string, bool) {
		r := engine.Record{Weight: 1, Wait: 2 * time.Second, Lease: time.Second, Node: "n", Extra: "o 0 - 0 0:"}
		r.Secret = secret
		status, plain := p.played("pool_acquire", &r, asking("n", 2*time.Second).Acquire(ofNode("n.1"), &r, "1", "-", opinions, told))
		p.Advance(time.Millisecond)
		return status, plain
	}
}

// sets is an operator's call.
func sets(resource, words string) poolStep {
	return func(p *poolWorld) {
		p.play("pool_set", resource, words, "what", millis(time.Since(time.UnixMilli(0))), "n.set"+resource)
	}
}

// wants has a claim ask for a resource in another way; see scripts/pool/wants.lua.
func wants(text string) func(r *engine.Record) { return func(r *engine.Record) { r.Extra = text } }

// has is a call as a step.
func has(call poolCall) poolStep { return func(p *poolWorld) { call(p) } }

// runs is any script.
func runs(script string, args ...string) poolCall {
	return func(p *poolWorld) (string, bool) { return p.play(script, args...) }
}

// ends is a release of a claim that leaves a tombstone for so many ms.
func ends(node, claim string, stays int64, asks ...string) poolCall {
	return func(p *poolWorld) (string, bool) {
		r := engine.Record{Weight: 1, Wait: 2 * time.Second, Lease: time.Second, Secret: secret}
		return p.played("pool_release", nil, asking(node, 2*time.Second).Release(ofNode(claim), &r, stays, asks...))
	}
}

// gives is a release of n.1 that leaves a tombstone for so many ms, and asks for a rest.
func gives(node, stays, rest string) poolCall {
	return func(p *poolWorld) (string, bool) {
		ms, err := strconv.ParseInt(stays, 10, 64)
		require.NoError(p.T, err)
		if rest == "0" {
			return ends(node, "n.1", ms)(p)
		}
		return ends(node, "n.1", ms, rest, "why", "1", "0")(p)
	}
}

func lapse(d time.Duration) poolStep { return func(p *poolWorld) { p.Advance(d) } }

// loses has somebody change what is stored.
func loses(words ...string) poolStep { return func(p *poolWorld) { p.do(p.T, words...) } }

// pausesPool has nothing granted for so long (ms), or ends that.
func pausesPool(lasts string) poolStep {
	return has(runs("pool_pause", lasts, "", latest, "n.pauses"+lasts, "0"))
}

var (
	gives1     = gives("n", "0", "0")
	fills      = has(seeksAs("n.2", "1", "", func(r *engine.Record) { r.Lease, r.Wait = 4*time.Second, 5*time.Second }))
	mine1      = has(seeks())
	sweepsPool = has(runs("pool_sweep", "n", "0"))
	waits2     = has(seeksAs("n.2", "1", ""))
	waits3     = has(seeksAs("n.3", "1", ""))
)

// leases has a claim ask for a lease.
func leases(d time.Duration) func(r *engine.Record) { return func(r *engine.Record) { r.Lease = d } }

// dies has a claim that waits live by a wait lease.
func dies(d time.Duration) func(r *engine.Record) { return func(r *engine.Record) { r.Wait = d } }

func ofNodeM(r *engine.Record) { r.Node = "m" }

// In each situation it is known whether the plain case of a pool is taken.
func TestWhatIsPlainOfAPool(t *testing.T) {
	some := slices.Clip([]poolStep{puts("a", 0, 1), puts("b", 0, 1)})
	full := slices.Clip([]poolStep{puts("a", 0, 1), fills})
	held := slices.Clip([]poolStep{puts("a", 0, 1), mine1})
	mine5 := has(seeks(leases(5 * time.Second)))
	restsB := has(runs("pool_rest", "b", "1000", "x", latest, "n.rests"))
	for about, c := range map[string]struct {
		before []poolStep
		call   poolCall
		want   string
		plain  bool
	}{
		"acquire: it is plain":                      {some, seeks(), "granted", true},
		"acquire: one is held":                      {append(some, fills), seeks(), "granted", true},
		"acquire: all are held":                     {append(some[:1:1], fills), seeks(), "queued", true},
		"acquire: somebody waits":                   {append(some[:1:1], fills, mine1), seeksAs("n.3", "0", ""), "full", false},
		"acquire: it tries":                         {some, seeksAs("n.1", "0", ""), "granted", true},
		"acquire: it tries for one":                 {some, seeksAs("n.1", "0", "b"), "granted", false},
		"acquire: the last that came back":          {append(some, sets("", "m . . . . .")), seeks(), "granted", true},
		"acquire: any":                              {append(some[:1:1], sets("", "r . . . . .")), seeks(), "granted", false},
		"acquire: its process agrees":               {append(some, sets("", "l 50 . . . .")), says("%S l 50 %S+ %S+ %S+ %S+$", ""), "granted", true},
		"acquire: it says what is unset":            {append(some, sets("", "l . . . . .")), says("%S l 50 %S+ %S+ %S+ %S+$", ""), "granted", false},
		"acquire: its process says otherwise":       {append(some, sets("", "l 50 . . . .")), says("%S m %S+ %S+ %S+ %S+ %S+$", ""), "granted", false},
		"acquire: it was told of that":              {append(some, sets("", "l 50 . . . .")), says("%S m %S+ %S+ %S+ %S+ %S+$", "o l 50 - - - -"), "granted", true},
		"acquire: its process is strict":            {append(some, sets("", "l 50 . . . .")), says("[-op] m %S+ %S+ %S+ %S+ %S+$", ""), "differs", false},
		"acquire: it is within the limits":          {append(some, sets("", ". . . . 1000 0")), seeks(), "granted", true},
		"acquire: its lease is above the limit":     {append(some, sets("", ". . . . 999 .")), seeks(), "limited", false},
		"acquire: it has no maximum hold":           {append(some, sets("", ". . . . . 5000")), seeks(), "limited", false},
		"acquire: it is bound as the pool says":     {append(some, sets("", ". . . 900 . .")), seeks(wants("o 0 - 0 0:me")), "granted", true},
		"acquire: the resource has its own":         {append(some, sets("a", "900 . .")), seeks(), "granted", false},
		"acquire: it is shared":                     {some, seeks(wants("s 0 0 0 0:")), "granted", true},
		"acquire: it will rest":                     {some, seeks(wants("o 700 0 0 0:")), "granted", true},
		"acquire: it is bound":                      {some, seeks(wants("o 0 0 0 0:me")), "granted", true},
		"acquire: a binding that looks plain":       {some, seeks(wants("o 0 0 0 0:0:0:0:10:o 0 0 0 0:")), "granted", true},
		"acquire: it is bound to that":              {append(some, has(runs("pool_bind", "me", "b", "0"))), seeks(wants("o 0 700 0 0:me")), "granted", true},
		"acquire: it is bound to what is held":      {append(some, fills, has(runs("pool_bind", "me", "a", "900"))), seeks(wants("o 0 700 0 0:me")), "granted", false},
		"acquire: its binding has ended":            {append(some, has(runs("pool_bind", "me", "b", "900")), lapse(900*time.Millisecond)), seeks(wants("o 0 700 0 0:me")), "granted", true},
		"acquire: it has a label":                   {some, seeks(func(r *engine.Record) { r.Label = "%d \x00 0:0:0:10:o 0 0 0 0:" }), "granted", true},
		"acquire: it has an owner":                  {some, seeks(func(r *engine.Record) { r.Owner = "me" }), "granted", true},
		"acquire: it has a maximum hold":            {some, seeks(func(r *engine.Record) { r.MaxHold = 500 * time.Millisecond }), "granted", true},
		"acquire: the maximum hold is longer":       {some, seeks(func(r *engine.Record) { r.MaxHold = 3 * time.Second }), "granted", true},
		"acquire: the lease is longer":              {some, seeks(func(r *engine.Record) { r.Wait = 900 * time.Millisecond }), "granted", false},
		"acquire: again":                            {append(some, mine1), seeks(), "granted", false},
		"acquire: the pool is empty":                {nil, seeks(), "queued", false},
		"acquire: the line is lost":                 {append(some, loses("DEL", "berth:pool:{gpu}:line")), seeks(), "granted", false},
		"acquire: a tombstone is left":              {append(some, has(ends("n", "n.9", 900))), seeks(), "granted", false},
		"acquire: it is paused":                     {append(some, pausesPool("5000")), seeks(), "queued", false},
		"acquire: it tries, and it is paused":       {append(some, pausesPool("5000")), seeksAs("n.1", "0", ""), "paused", false},
		"acquire: its pause has ended":              {append(some, pausesPool("500"), lapse(500*time.Millisecond)), seeks(), "granted", false},
		"acquire: its pause was ended":              {append(some, pausesPool("500"), pausesPool("0")), seeks(), "granted", true},
		"acquire: a hold has ended":                 {append(some, fills, lapse(4*time.Second)), seeks(), "granted", false},
		"acquire: one rests":                        {append(some, has(runs("pool_rest", "a", "500", "x", latest, "n.rests"))), seeks(), "granted", true},
		"acquire: one has rested":                   {append(some, has(runs("pool_rest", "a", "500", "x", latest, "n.rests")), lapse(500*time.Millisecond)), seeks(), "granted", false},
		"acquire: one leaves":                       {append(some, fills, has(runs("pool_remove", latest, "n.removes", "a"))), seeks(), "granted", false},
		"acquire: it expires":                       {append([]poolStep{puts("x", time.Second, 1)}, some...), seeks(), "granted", true},
		"acquire: it has expired":                   {append([]poolStep{puts("x", time.Second, 1)}, append(some, lapse(time.Second))...), seeks(), "granted", false},
		"acquire: three may hold it":                {[]poolStep{puts("a", 0, 3), puts("b", 0, 1)}, seeks(), "granted", true},
		"acquire: a third may hold it":              {[]poolStep{puts("a", 0, 3), has(seeksAs("n.2", "1", "")), has(seeksAs("n.3", "1", ""))}, seeks(), "granted", true},
		"acquire: it is damaged":                    {append(some, loses("HSET", "berth:pool:{gpu}:items", "ia", "1 0 0 0 0 0 0 ?")), seeks(), "granted", false},
		"acquire: it says too much":                 {append(some, loses("HSET", "berth:pool:{gpu}:items", "ia", "1 0 0 0 99999999999999 0 0 ")), seeks(), "granted", false},
		"release: it is plain":                      {append(some, mine1), gives1, "released", true},
		"release: one of two":                       {append(some, fills, mine1), gives1, "released", true},
		"release: it has ended":                     {append(some, mine1, lapse(2*time.Second)), gives1, "expired", false},
		"release: it expires late":                  {append(some, has(seeks(func(r *engine.Record) { r.Lease = 5 * time.Second }))), gives1, "released", true},
		"release: it is paused":                     {append(some, mine1, pausesPool("5000")), gives1, "released", false},
		"release: its pause has ended":              {append(some, mine1, pausesPool("500"), lapse(500*time.Millisecond)), gives1, "released", false},
		"release: it rests then":                    {append(some, has(seeks(wants("o 700 0 0 0:")))), gives1, "released", true},
		"release: it has rested":                    {append(some, has(seeks(wants("o 700 0 0 0:"))), lapse(2*time.Second)), gives1, "expired", false},
		"release: it says that it asks for nothing": {append(some, mine1), ends("n", "n.1", 0, "0", "", "1", "0"), "released", false},
		"release: it rests by the pool":             {append(some, sets("", ". 700 . . . ."), mine1), gives1, "released", true},
		"release: the pool has no cooldown":         {append(some, sets("", ". 0 . . . ."), mine1), gives1, "released", true},
		"release: it rests by the longer one":       {append(some, sets("", ". 100 . . . ."), has(seeks(wants("o 700 0 0 0:")))), gives1, "released", true},
		"release: the resource has its own":         {append(some, mine1, sets("a", "900 . .")), gives1, "released", false},
		"release: it was a check":                   {append(some, sets("", ". 700 . . . ."), has(seeksAs("n.1", "0", "a"))), gives1, "released", true},
		"release: it was bound":                     {append(some, has(seeks(wants("o 0 0 0 0:me")))), gives1, "released", true},
		"release: it was shared":                    {append(some, has(seeks(wants("s 700 0 0 0:")))), gives1, "released", true},
		"release: a rest is asked for":              {append(some, mine1), gives("n", "0", "300"), "released", false},
		"release: an expiry is asked for":           {append(some, mine1), ends("n", "n.1", 0, "0", "", "1", "300"), "released", false},
		"release: it leaves a tombstone":            {append(some, mine1), gives("n", "900", "0"), "released", false},
		"release: another node has it":              {append(some, mine1), gives("m", "0", "0"), "taken", false},
		"release: nobody has it":                    {some, gives1, "not_held", false},
		"release: it waits":                         {append(some[:1:1], fills, mine1), gives1, "cancelled", false},
		"release: it is to rest":                    {append(some, mine1, has(runs("pool_rest", "a", "500", "x", latest, "n.rests"))), gives1, "released", false},
		"release: it is leaving":                    {append(some, mine1, has(runs("pool_remove", latest, "n.removes", "a"))), gives1, "released", false},
		"release: it has expired":                   {append([]poolStep{puts("x", time.Second, 1)}, append(some, mine1, lapse(time.Second))...), gives1, "expired", false},
		"release: it is detached":                   {append(some, mine1, has(runs("pool_renew", "n", "n.1", "detach"))), gives1, "released", false},
		"release: the line is lost":                 {append(some, mine1, loses("DEL", "berth:pool:{gpu}:line"), fills), gives1, "cancelled", false},
		"release: others hold it too":               {[]poolStep{puts("a", 0, 3), fills, mine1, has(seeksAs("n.3", "1", ""))}, gives1, "released", true},
		"release: others hold it, and it rests":     {[]poolStep{puts("a", 0, 3), fills, has(seeks(wants("o 700 0 0 0:")))}, gives1, "released", false},
		"release: more hold it than may":            {[]poolStep{puts("a", 0, 3), fills, mine1, has(seeksAs("n.3", "1", "")), puts("a", 0, 1)}, gives1, "released", true},
		"release: somebody else holds it":           {append(some, mine1, loses("HSET", "berth:pool:{gpu}:items", "ia", "1 0 0 0 0 0 1 n.2 ")), gives1, "released", false},
		"join: behind another":                      {append(full, waits2), seeks(), "queued", true},
		"join: ahead of another":                    {append(full, waits2), seeks(func(r *engine.Record) { r.Priority = 1 }), "queued", true},
		"join: nobody ends before it does":          {append(full, waits2), seeks(dies(500 * time.Millisecond)), "queued", true},
		"join: its hold will have no end":           {full, seeks(func(r *engine.Record) { r.Lease = berth.Forever }), "queued", true},
		"join: its process agrees":                  {append(full, sets("", "l 50 . . . ."), lapse(time.Minute), sweepsPool, fills), says("%S l 50 %S+ %S+ %S+ %S+$", ""), "queued", true},
		"join: the pool was just set":               {append(full, sets("", "l 50 . . . .")), says("%S l 50 %S+ %S+ %S+ %S+$", ""), "queued", false},
		"join: its process says otherwise":          {append(full, sets("", "l 50 . . . ."), lapse(time.Minute), sweepsPool, fills), says("%S m %S+ %S+ %S+ %S+ %S+$", ""), "queued", false},
		"join: its lease is above the limit":        {append(full, sets("", ". . . . 999 .")), seeks(), "limited", false},
		"join: it asks for no end":                  {append(full, sets("", ". . . . 2000 .")), seeks(func(r *engine.Record) { r.Lease = berth.Forever }), "limited", false},
		"join: it asks for one":                     {full, seeks(wants("o 0 - 9000 1:a")), "queued", false},
		"join: it is bound":                         {full, seeks(wants("o 0 - 0 0:me")), "queued", false},
		"join: it is shared":                        {full, seeks(wants("s 0 - 0 0:")), "queued", false},
		"join: somebody waits for one":              {append(full, has(seeksAs("n.3", "1", "", wants("o 0 - 0 1:a")))), seeks(), "queued", false},
		"join: a binding lasts":                     {append(full, has(runs("pool_bind", "me", "a", "900"))), seeks(), "queued", true},
		"join: a binding has ended":                 {append(full, has(runs("pool_bind", "me", "a", "900")), lapse(900*time.Millisecond)), seeks(), "queued", false},
		"join: one rests":                           {append(full, puts("b", 0, 1), has(runs("pool_rest", "b", "500", "x", latest, "n.rests"))), seeks(), "queued", false},
		"join: one expires":                         {append(full, puts("x", time.Second, 1), has(seeksAs("n.3", "1", ""))), seeks(), "queued", false},
		"join: one leaves":                          {append(full, has(runs("pool_remove", latest, "n.removes", "a"))), seeks(), "queued", false},
		"join: all rest":                            {append(some[:1:1], has(runs("pool_rest", "a", "500", "x", latest, "n.rests"))), seeks(), "queued", false},
		"join: what is held has ended":              {append(full, lapse(4*time.Second)), seeks(), "granted", false},
		"join: the first has died":                  {append(full, has(seeksAs("n.3", "1", "", dies(500*time.Millisecond))), lapse(500*time.Millisecond)), seeks(), "queued", false},
		"join: it is paused":                        {append(full, pausesPool("5000")), seeks(), "queued", false},
		"join: a tombstone is left":                 {append(full, has(ends("n", "n.9", 900))), seeks(), "queued", false},
		"join: the line is lost":                    {append(full, loses("DEL", "berth:pool:{gpu}:line")), seeks(), "queued", false},
		"handoff: it is plain":                      {append(held, waits2), gives1, "released", true},
		"handoff: two wait":                         {append(held, waits2, waits3), gives1, "released", true},
		"handoff: another is held":                  {append(some, fills, mine1, has(seeksAs("n.3", "1", ""))), gives1, "released", true},
		"handoff: another ends before the next":     {append(some, has(seeksAs("n.9", "1", "", leases(300*time.Millisecond))), mine1, waits2, has(seeksAs("m.3", "1", "", ofNodeM))), gives1, "released", false},
		"handoff: the second is to hear of it":      {append(held, has(seeksAs("n.2", "1", "", dies(500*time.Millisecond))), has(seeksAs("m.3", "1", "", ofNodeM))), gives1, "released", false},
		"handoff: the first has died":               {append(held, has(seeksAs("n.2", "1", "", dies(500*time.Millisecond))), lapse(500*time.Millisecond)), gives1, "released", false},
		"handoff: another rests":                    {append(some, restsB, mine1, waits2), gives1, "released", true},
		"handoff: another rests, and two wait":      {append(some, restsB, mine1, waits2, waits3), gives1, "released", false},
		"handoff: another rests for long":           {append(some, has(runs("pool_rest", "b", "9000", "x", latest, "n.rests")), mine1, waits2, waits3), gives1, "released", true},
		"handoff: it has a label":                   {append(held, has(seeksAs("n.2", "1", "", func(r *engine.Record) { r.Label = "%d \x00 0:0:0:10:o 0 - 0 0:" }))), gives1, "released", true},
		"handoff: the first is bound":               {append(held, has(seeksAs("n.2", "1", "", wants("o 0 - 0 0:me")))), gives1, "released", false},
		"handoff: the first is shared":              {append(held, has(seeksAs("n.2", "1", "", wants("s 0 - 0 0:")))), gives1, "released", false},
		"handoff: its binding looks plain":          {append(held, has(seeksAs("n.2", "1", "", wants("o 0 - 0 0:0:0:0:10:o 0 - 0 0:")))), gives1, "released", false},
		"handoff: it will rest":                     {append(held, has(seeksAs("n.2", "1", "", wants("o 700 - 0 0:")))), gives1, "released", true},
		"handoff: somebody waits for another":       {append(held, waits2, has(seeksAs("n.3", "1", "", wants("o 0 - 0 1:a")))), gives1, "released", false},
		"handoff: somebody waits for it":            {append(held, has(seeksAs("n.3", "1", "", wants("o 0 - 0 1:a")))), gives1, "released", false},
		"handoff: it rests then":                    {append(some[:1:1], has(seeks(wants("o 700 - 0 0:"))), waits2), gives1, "released", false},
		"handoff: it rests by the pool":             {append(held, waits2, sets("", ". 700 . . . .")), gives1, "released", false},
		"handoff: the resource has its own":         {append(held, waits2, sets("a", "900 . .")), gives1, "released", false},
		"handoff: two may hold it":                  {[]poolStep{puts("a", 0, 2), mine1, has(seeksAs("n.8", "1", "")), waits2}, gives1, "released", false},
		"handoff: it was shared":                    {append(some[:1:1], has(seeks(wants("s 0 - 0 0:"))), fills, waits3), gives1, "released", false},
		"handoff: it is leaving":                    {append(held, waits2, has(runs("pool_remove", latest, "n.removes", "a"))), gives1, "released", false},
		"handoff: it expires":                       {append([]poolStep{puts("x", 9*time.Second, 1)}, mine1, waits2), gives1, "released", true},
		"handoff: it has expired":                   {append([]poolStep{puts("x", time.Second, 1)}, mine5, waits2, lapse(time.Second)), gives1, "released", false},
		"handoff: it is damaged":                    {append(held, waits2, loses("HSET", "berth:pool:{gpu}:items", "ia", "1 0 0 0 0 0 1 ?")), gives1, "released", false},
		"handoff: it has ended":                     {append(held, waits2, lapse(time.Second)), gives1, "expired", false},
		"handoff: it is paused":                     {append(held, waits2, pausesPool("5000")), gives1, "released", false},
		"handoff: a rest is asked for":              {append(held, waits2), gives("n", "0", "300"), "released", false},
		"handoff: another node has it":              {append(held, waits2), gives("m", "0", "0"), "taken", false},
		"handoff: it leaves a tombstone":            {append(held, waits2), gives("n", "900", "0"), "released", false},
		"handoff: it is wanted":                     {append(held, waits2, has(runs("pool_want", "n", "n.1"))), gives1, "released", false},
		"renew: it is plain":                        {append(some, mine1), runs("pool_renew", "n", "n.1", "beat"), "renewed", true},
		"renew: it is paused":                       {append(some, mine1, pausesPool("5000")), runs("pool_renew", "n", "n.1", "beat"), "renewed", false},
		"renew: by hand":                            {append(some, fills, mine1), runs("pool_renew", "n", "n.1", "renew"), "renewed", true},
		"renew: it names its lease":                 {append(some, fills, mine1), runs("pool_renew", "n", "n.1", "renew 1000"), "renewed", true},
		"renew: it keeps its lease":                 {append(some, mine1), runs("pool_renew", "n", "n.1", "keep 1000"), "renewed", true},
		"renew: it names a longer lease":            {append(some, mine1), runs("pool_renew", "n", "n.1", "renew 1001"), "renewed", false},
		"renew: it names a shorter lease":           {append(some, mine1), runs("pool_renew", "n", "n.1", "keep 999"), "renewed", false},
		"renew: its lease was longer":               {append(some, mine1, has(runs("pool_renew", "n", "n.1", "renew 900"))), runs("pool_renew", "n", "n.1", "keep 900"), "renewed", false},
		"renew: its lease was shorter":              {append(some, mine1, has(runs("pool_renew", "n", "n.1", "renew 1001"))), runs("pool_renew", "n", "n.1", "keep 1001"), "renewed", true},
		"renew: it is detached":                     {append(some, mine1), runs("pool_renew", "n", "n.1", "detach"), "renewed", false},
		"renew: it has a maximum hold":              {append(some, has(seeks(func(r *engine.Record) { r.MaxHold = 3 * time.Second }))), runs("pool_renew", "n", "n.1", "beat"), "renewed", false},
		"renew: two beat":                           {append(some, fills, mine1), runs("pool_renew", "n", "n.1", "beat", "n.2", "beat"), "renewed", false},
		"renew: it has ended":                       {append(some, mine1, lapse(time.Second)), runs("pool_renew", "n", "n.1", "beat"), "renewed", false},
		"renew: another has ended":                  {append(some, fills, lapse(3500*time.Millisecond), mine1, lapse(500*time.Millisecond)), runs("pool_renew", "n", "n.1", "beat"), "renewed", false},
		"renew: one rests":                          {append(some, mine1, has(runs("pool_rest", "b", "500", "x", latest, "n.rests"))), runs("pool_renew", "n", "n.1", "beat"), "renewed", false},
		"renew: one expires":                        {append(some, mine1, puts("x", time.Second, 1)), runs("pool_renew", "n", "n.1", "beat"), "renewed", false},
		"renew: somebody waits":                     {append(some[:1:1], mine1, fills), runs("pool_renew", "n", "n.1", "beat"), "renewed", false},
		"renew: it was not confirmed":               {append(some, has(seeks(func(r *engine.Record) { r.Wait = 900 * time.Millisecond }))), runs("pool_renew", "n", "n.1", "beat"), "renewed", false},
	} {
		t.Run(strings.ReplaceAll(about, ": ", "/"), func(t *testing.T) {
			inWorld(t, "pool", func(t *testing.T, named func(name string) *world) {
				p := newPoolWorld(named("gpu"))
				for _, do := range c.before {
					do(p)
					p.Advance(time.Microsecond)
				}
				status, plain := c.call(p)
				require.Equal(t, c.want, status)
				require.Equal(t, c.plain, plain, "whether it is plain")
			})
		})
	}
}
