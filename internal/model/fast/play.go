package fast

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/model"
	"github.com/berth-go/berth/internal/model/pool"
)

// Play takes a name through random histories, as one of each kind. Whatever it has come to, an
// acquire and a release do the same with and without their plain case.
func Play(w World, name string, kinds ...string) {
	w.T.Helper()
	named := w.names()
	for _, kind := range kinds {
		if kind == "pool" {
			playPool(named(kind, name))
			continue
		}
		history := func(rt *rapid.T, capacity int) {
			p := &play{world: named(kind, name)}
			p.capacity = capacity
			p.linger = rapid.SampledFrom([]time.Duration{time.Second, 2 * time.Second, 30 * time.Second}).Draw(rt, "linger")
			p.do(rt, "DEL", p.state, p.line, p.backup[0], p.backup[1])
			rt.Repeat(map[string]func(*rapid.T){
				"":        p.list,
				"acquire": p.anyAcquire, "acquire more": p.anyAcquire, "come and go": p.comeAndGo,
				"come and go more": p.comeAndGo, "come and go again": p.comeAndGo,
				"acquire plainly": p.plainAcquire, "release": p.ownRelease, "release more": p.ownRelease,
				"release anything": p.anyRelease, "again": p.again, "renew": p.renew, "renew all": p.renewAll, "force": p.force, "sweep": p.sweep,
				"resize": p.resize, "pause": p.pause, "want": p.want, "advance": p.advance, "advance more": p.advance, "run ahead": p.runAhead,
				"hand on": p.handOn, "hand on more": p.handOn, "newer": p.newer, "calm": p.calm,
				"long calm": p.longCalm, "copy": p.keep, "fail over": p.failOver,
			})
		}
		rapid.Check(struct{ testing.TB }{w.T}, func(rt *rapid.T) { history(rt, 1) }) // it may be thin
		rapid.Check(struct{ testing.TB }{w.T}, func(rt *rapid.T) {
			capacity := 1
			if kind == "semaphore" {
				capacity = rapid.SampledFrom([]int{2, 3, 5, 1 << 40}).Draw(rt, "capacity")
			}
			history(rt, capacity)
		})
	}
}

// poolPlains are the functions that are the plain case of a pool.
var poolPlains = []string{"fast_pool_acquire", "fast_pool_wait", "fast_pool_release", "fast_pool_handoff", "fast_pool_renew"}

func playPool(w *world) {
	w.T.Helper()
	rapid.Check(struct{ testing.TB }{w.T}, func(rt *rapid.T) {
		pool.Run(rt, pool.World{
			Redis: w.Redis, Scripts: w.whole, General: w.general, Space: space, Name: w.name,
			Heard: w.heard, Now: w.Now, Advance: w.World.Advance,
		})
	})
	taken := w.taken(w.T, []string{poolPlains[0], poolPlains[2]})
	// The cases prove of each of them when it is taken; of the rest it is left to chance here.
	require.NotContains(w.T, taken, "nil", "who asks and who gives back, where it is calm")
}

// play is one history.
type play struct {
	*world
	linger time.Duration
	asks   []ask // all that were made
}

// longCalm has somebody hold the name for as long as a fat one needs to be calm, so that the release may
// leave it thin.
func (p *play) longCalm(t *rapid.T) {
	if mostly(t, "of nobody else's") {
		p.calm(t)
	}
	p.Advance(time.Microsecond)
	p.ask(t, p.plainly(fmt.Sprintf("n.%d", len(p.asks))).with(func(a *ask) {
		a.Lease, a.Wait, a.linger = 12*time.Second, 12*time.Second, p.linger
	}))
	p.Advance(10*time.Second - rapid.SampledFrom([]time.Duration{0, 0, time.Millisecond}).Draw(t, "less"))
	p.releaseOwn(t, p.asks[len(p.asks)-1])
}

// keep keeps a copy of the name, and failOver has the server go back to it, as one does whose
// replica had fallen behind.
func (p *play) keep(t *rapid.T) { p.copyTo(t, [2]string{p.state, p.line}, p.backup) }

func (p *play) failOver(t *rapid.T) {
	p.copyTo(t, p.backup, [2]string{p.state, p.line})
	p.fence = 0
}

func (p *play) copyTo(t *rapid.T, from, to [2]string) {
	for i := range from {
		p.do(t, "DEL", to[i])
		p.do(t, "COPY", from[i], to[i])
	}
}

// list reads the name after each step, which writes nothing.
func (p *play) list(t *rapid.T) {
	if p.Library != nil {
		return // the readers ask the server for the time
	}
	was := p.dump(t, p.state, p.line)
	model.Reads(t, p.Redis, space, kinds[p.kind], p.name)
	require.Equal(t, was, p.dump(t, p.state, p.line), "a listing writes nothing")
}

// pick draws one of those that have asked.
func (p *play) pick(t *rapid.T) ask {
	if len(p.asks) == 0 {
		t.Skip("nobody has asked")
	}
	// The last ones are those that may still hold.
	return p.asks[len(p.asks)-1-rapid.IntRange(0, min(len(p.asks), 6)-1).Draw(t, "which")]
}

func (p *play) lingers(t *rapid.T) time.Duration {
	return rapid.SampledFrom([]time.Duration{p.linger, p.linger, p.linger, p.linger / 2, 3 * p.linger}).Draw(t, "linger")
}

// lingerOf is the linger of a node: it has one.
func (p *play) lingerOf(node string) time.Duration {
	return map[string]time.Duration{"n": p.linger, "nn": p.linger / 2, "n-1": 3 * p.linger}[node]
}

// mostly is true three times out of four.
func mostly(t *rapid.T, label string) bool {
	return rapid.SampledFrom([]bool{true, true, true, false}).Draw(t, label)
}

// node draws a node; the id of the first one begins like that of the other.
func node(t *rapid.T) string {
	return rapid.SampledFrom([]string{"n", "n", "n", "nn", "n-1"}).Draw(t, "node")
}

func (p *play) ask(t *rapid.T, a ask) {
	if mostly(t, "later than another") {
		p.Advance(time.Microsecond) // two grants in one are nothing plain
	}
	p.asks = append(p.asks, a)
	_, _ = p.acquire(t, a)
}

func (p *play) anyAcquire(t *rapid.T) {
	seconds := func(name string, of ...float64) time.Duration {
		return time.Duration(rapid.SampledFrom(of).Draw(t, name) * float64(time.Second))
	}
	on := node(t)
	a := ask{
		Record: engine.Record{
			Weight: 1, Node: on, Wait: seconds("wait", 2, 2, 1, 0.1), Lease: seconds("lease", 0.02, 0.5, 1, 1, 2, 4, 0),
			MaxHold: seconds("max", 0, 0, 0, 0, 0.5, 6), NoRenew: !mostly(t, "renews"),
			Priority: rapid.SampledFrom([]int{0, 0, 0, 5, -128}).Draw(t, "priority"),
			Owner:    rapid.SampledFrom([]string{"", "", "me"}).Draw(t, "owner"),
			Label:    rapid.SampledFrom([]string{"", "%d \x00 1 2"}).Draw(t, "label"),
		},
		claim:    fmt.Sprintf("%s.%d", on, len(p.asks)),
		capacity: p.capacity,
		policy:   rapid.SampledFrom([]string{"stored", "stored", "strict", "override"}).Draw(t, "policy"),
		conflict: rapid.SampledFrom([]string{"fail", "wait", "work", "extend"}).Draw(t, "conflict"),
		access:   rapid.SampledFrom([]string{"queued", "queued", "random", "lifo"}).Draw(t, "access"),
		waits:    rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "waits"),
		linger:   p.lingerOf(on),
	}
	if a.Lease == 0 {
		forever(&a)
	}
	if p.kind == "semaphore" {
		a.capacity = rapid.SampledFrom([]int{p.capacity, p.capacity, p.capacity, p.capacity + 1}).Draw(t, "capacity")
		a.Weight = min(rapid.SampledFrom([]int{1, 1, 1, 2, 5, 1 << 40}).Draw(t, "weight"), p.capacity+1)
	}
	p.ask(t, a)
}

func (p *play) plainAcquire(t *rapid.T) {
	p.ask(t, p.plainly(fmt.Sprintf("n.%d", len(p.asks))).with(func(a *ask) {
		a.Lease = time.Duration(rapid.IntRange(20, 500).Draw(t, "lease")) * time.Millisecond
		a.linger = p.linger
	}))
}

// comeAndGo acquires and releases with nothing in between but perhaps some time.
func (p *play) comeAndGo(t *rapid.T) {
	if mostly(t, "where it is calm") {
		p.calm(t)
	}
	p.plainAcquire(t)
	if rapid.Bool().Draw(t, "later") {
		p.advance(t)
	}
	last := p.asks[len(p.asks)-1]
	if rapid.Bool().Draw(t, "beats") {
		p.both(t, p.kind+"_renew", written(writes(millis(p.linger), last.Node, last.claim, "beat")))
	}
	if !mostly(t, "plainly") {
		p.releaseAnyhow(t, last.claim)
	}
	p.releaseOwn(t, last)
}

// handOn has one claim hold, others wait, and the first one released.
func (p *play) handOn(t *rapid.T) {
	p.calm(t)
	p.Advance(time.Microsecond)
	weight := 1
	if p.kind == "semaphore" {
		weight = p.capacity
	}
	first := len(p.asks)
	for n := range rapid.IntRange(2, 4).Draw(t, "claims") {
		p.ask(t, p.plainly(fmt.Sprintf("n.%d", len(p.asks))).with(func(a *ask) {
			a.linger, a.waits = p.linger, 1
			a.Wait = rapid.SampledFrom([]time.Duration{time.Second, 20 * time.Millisecond, 4 * time.Second}).Draw(t, "wait")
			if a.Weight = weight; n > 0 && !mostly(t, "wants all") {
				a.Weight = max(weight-1, 1)
			}
		}))
	}
	if rapid.Bool().Draw(t, "later") {
		p.advance(t)
	}
	if p.kind == "semaphore" && !mostly(t, "the capacity stays") {
		p.resize(t)
	}
	p.releaseOwn(t, p.asks[first])
}

// calm has the server forget the name, and somebody hold it for a while: as a thin one, or by an
// id that only a fat one takes.
func (p *play) calm(t *rapid.T) {
	p.do(t, "DEL", p.state, p.line)
	p.fence = 0
	form := rapid.SampledFrom([]string{"n.%d", "n%d"}).Draw(t, "id")
	p.ask(t, p.plainly(fmt.Sprintf(form, len(p.asks))).with(func(a *ask) {
		a.Lease = rapid.SampledFrom([]time.Duration{p.linger, p.linger, 4 * time.Second}).Draw(t, "lease")
		a.linger = p.linger
	}))
	p.releaseOwn(t, p.asks[len(p.asks)-1])
}

// again repeats a call, perhaps on another node.
func (p *play) again(t *rapid.T) {
	a := p.pick(t)
	if kept := p.dump(t, p.state, p.line); strings.Contains(kept, ofNode(a.claim)) && !mostly(t, "the same") {
		a.Node = node(t) // what is not known any more is of the node that its id names
	}
	_, _ = p.acquire(t, a)
}

func (p *play) ownRelease(t *rapid.T) { p.releaseOwn(t, p.pick(t)) }

func (p *play) releaseOwn(t *rapid.T, a ask) {
	_, _ = p.release(t, a.claim, a.Node, 0, p.lingerOf(a.Node))
}

func (p *play) anyRelease(t *rapid.T) {
	if mostly(t, "known") {
		p.releaseAnyhow(t, p.pick(t).claim)
		return
	}
	p.releaseAnyhow(t, "unknown")
}

func (p *play) releaseAnyhow(t *rapid.T, claim string) {
	stays := rapid.SampledFrom([]time.Duration{0, 0, time.Millisecond, time.Second}).Draw(t, "tombstone")
	by := node(t)
	_, _ = p.release(t, claim, by, stays, p.lingerOf(by))
}

func (p *play) renew(t *rapid.T) {
	modes := []string{"beat", "beat", "renew", "detach"}
	if p.kind == "lock" {
		modes = append(modes, fmt.Sprint("extend 700 call", rapid.IntRange(0, 3).Draw(t, "call")))
	}
	a := p.pick(t)
	p.both(t, p.kind+"_renew", written(writes(millis(p.lingerOf(a.Node)), a.Node, a.claim, rapid.SampledFrom(modes).Draw(t, "mode"))))
}

// renewAll beats for several claims at once, mostly for two that hold.
func (p *play) renewAll(t *rapid.T) {
	if p.kind == "semaphore" && p.capacity > 1 && mostly(t, "of two that hold") {
		p.calm(t)
		p.plainAcquire(t)
		p.plainAcquire(t)
		p.advance(t)
	}
	args := []string{"n"}
	for _, a := range p.asks[max(len(p.asks)-rapid.IntRange(1, 3).Draw(t, "claims"), 0):] {
		args = append(args, a.claim, "beat")
	}
	if len(args) > 1 {
		p.both(t, p.kind+"_renew", written(writes(millis(p.lingerOf("n")), args...)))
	}
}

func (p *play) force(t *rapid.T) {
	stays := rapid.SampledFrom([]string{"1", "500"}).Draw(t, "tombstone")
	if p.kind == "lock" {
		p.call(t, "lock_force_hold", writes(millis(p.lingers(t)), "0", stays)...)
		return
	}
	claim := p.pick(t).claim
	p.call(t, "semaphore_force_release", writes(millis(p.lingers(t)), "", claim, stays, "0")...)
}

// want asks for somebody's hold back: from then on no plain case knows its record.
func (p *play) want(t *rapid.T) {
	p.call(t, p.kind+"_want", writes(millis(p.lingers(t)), rapid.SampledFrom([]string{"", "", "n"}).Draw(t, "of"), p.pick(t).claim)...)
}

func (p *play) sweep(t *rapid.T) {
	p.call(t, p.kind+"_sweep", writes(millis(p.lingers(t)), "n", "0")...)
}

func (p *play) resize(t *rapid.T) {
	if p.kind == "lock" {
		t.Skip("a lock has no capacity")
	}
	to := max(p.capacity+rapid.IntRange(-1, 1).Draw(t, "more"), 1)
	keep := rapid.SampledFrom([]string{"0", "0", "1"}).Draw(t, "keep")
	seen := rapid.SampledFrom([]string{latest, latest, "0"}).Draw(t, "seen")
	call := fmt.Sprint("n.to", to, rapid.IntRange(0, 3).Draw(t, "call"))
	p.call(t, "semaphore_resize", writes(millis(p.lingers(t)), strconv.Itoa(to), keep, "1", seen, call)...)
}

// pause pauses the name, or ends that, perhaps late or once more, or as part of a pause of all names.
func (p *play) pause(t *rapid.T) {
	lasts := rapid.SampledFrom([]string{"0", "0", "20", "500", "2000", "5000"}).Draw(t, "lasts")
	seen := rapid.SampledFrom([]string{latest, latest, "0"}).Draw(t, "seen")
	call := rapid.SampledFrom([]string{"n.p1", "n.p2", "n.p3", "walk", "first"}).Draw(t, "call")
	notice := rapid.SampledFrom([]string{"1", "2", "3"}).Draw(t, "notice")
	p.call(t, p.kind+"_pause", writes(millis(p.lingers(t)), lasts, "why", seen, call, notice)...)
}

// advance lets time pass, mostly so that deadlines and the expiry are met to the
// millisecond, and now and then by parts of one.
func (p *play) advance(t *rapid.T) {
	p.Advance(rapid.SampledFrom([]time.Duration{
		time.Microsecond, 999 * time.Microsecond, time.Millisecond, 19 * time.Millisecond, 20 * time.Millisecond,
		500 * time.Millisecond, time.Second - time.Millisecond, time.Second, 2 * time.Second, p.linger, 4 * time.Second,
	}).Draw(t, "by"))
}

// runAhead has the last fence or ticket be before, at or after the server's clock, as
// after one that went back, or have fewer digits, and the next calls meet that.
func (p *play) runAhead(t *rapid.T) {
	if p.do(t, "EXISTS", p.state) == int64(0) {
		t.Skip("nothing is kept")
	}
	field := rapid.SampledFrom([]string{"fence", "ticket"}).Draw(t, "field")
	n := p.Now().UnixMicro()
	if field == "ticket" {
		n = p.Now().UnixMilli()
	}
	n += int64(rapid.IntRange(-2, 2).Draw(t, "by"))
	switch rapid.IntRange(0, 5).Draw(t, "digits") {
	case 0:
		n += 1000000
	case 1:
		if _, thin := p.text(t); thin {
			t.Skip("its fence has 16 digits, as every microsecond since 2001 has")
		}
		if n /= 10; n > 1e13 { // as in the year 2000: with 09 before it, or the embedded server takes it for an octal number
			n = 9e14 + n%1e14
		} else {
			n = 9e11 + n%1e11
		}
	}
	was := p.value(t, field)
	p.setValue(t, field, n)
	p.fence = 0
	p.plainAcquire(t)
	p.ownRelease(t)
	if field == "ticket" || p.value(t, field) == n { // each hold has a greater fence than those before
		p.setValue(t, field, was) // what runs ahead does so for long
	}
	p.fence = 0
}

// newer has a newer release write the state, and the next call meet it.
func (p *play) newer(t *rapid.T) {
	if len(p.asks) == 0 || p.do(t, "EXISTS", p.state) == int64(0) {
		t.Skip("nothing is kept")
	}
	p.setValue(t, "fmt", 4)
	if rapid.Bool().Draw(t, "acquire") {
		p.plainAcquire(t)
	} else {
		p.ownRelease(t)
	}
	p.setValue(t, "fmt", 3)
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
