package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/test/torture/history"
	"github.com/berth-go/berth/test/torture/job"
)

// hand is one goroutine of a crew: it acquires, holds and releases, again and
// again.
type hand struct {
	*dice
	w    *worker
	name string
	all  [][]plan // by primitive
	runs int
	past []ended // claims that it has released, some
	owed *moved  // what it has taken out of a pool, and not put back
}

// moved is a resource that is out of its pool.
type moved struct {
	plan
	resource string
}

// ended is a claim that a release has ended.
type ended struct {
	plan
	claim string
}

// hands remember this many claims that they have released.
const memory = 8

func newHand(w *worker, n uint64) *hand {
	return &hand{
		dice: &dice{rand.New(rand.NewPCG(uint64(w.job.Seed), n))}, w: w,
		name: fmt.Sprintf("%s/%d", w.job.Process, n), all: plans(w.job),
	}
}

// work works as one of the crew, until that begins nothing more.
func (h *hand) work(c *crew) {
	for {
		select {
		case <-c.over:
			return
		default:
		}
		if !h.w.job.Calm && h.oneIn(30) {
			h.force(c)
		}
		if h.owed != nil {
			h.putBack(c)
		}
		if h.w.job.Pauses > 0 && h.oneIn(h.w.job.Pauses) {
			h.decide(c)
		}
		if h.w.job.Wants > 0 && h.oneIn(h.w.job.Wants) {
			h.want(c)
		}
		h.once(c)
		pause(h.between(0, 5), c.over)
	}
}

// once acquires, holds and releases.
func (h *hand) once(c *crew) {
	h.runs++
	p := h.plan()
	if p.pool.Moves && h.owed == nil && h.oneIn(40) {
		h.takeOut(c, p)
		return
	}
	ctx := context.Background()
	if p.kind == job.Reentrant {
		ctx = berth.WithOwner(ctx, fmt.Sprintf("%s/%d", h.name, h.runs))
	}
	if held := h.acquire(ctx, c, p); held != nil {
		h.keep(c, held)
		h.release(c, held)
	}
}

// held is a hold, as its goroutine knows it.
type held struct {
	berth.Hold
	plan
	owner context.Context // it was acquired under
	event history.Event   // what all events about it have in common
	over  bool            // Ended was written
	told  bool            // Wanted was written
}

// acquire returns nil if it did not get what the plan is for.
func (h *hand) acquire(ctx context.Context, c *crew, p plan) *held {
	owner := ctx
	e := p.event()
	e.Node, e.Crew, e.Bounded = c.node.ID(), c.number, p.leaves > 0 || p.maxWait > 0 || p.maxHold > 0 || ctx.Done() != nil
	e = h.w.log.begin(e)
	if p.leaves > 0 {
		var leave context.CancelFunc
		if h.oneIn(3) {
			ctx, leave = context.WithTimeout(ctx, p.leaves)
		} else {
			ctx, leave = context.WithCancel(ctx)
			defer time.AfterFunc(p.leaves, leave).Stop()
		}
		defer leave()
	}
	got, err := p.acquire(ctx, c, e.Op)
	if err != nil {
		kind, reason, claim := outcome(err, ctx.Err())
		e.Reason, e.Claim = string(reason), claim
		h.w.log.end(e, kind, err)
		if kind == history.Unknown || full(err) || errors.Is(err, berth.ErrDraining) {
			h.recover()
		}
		return nil
	}
	e.Claim, e.Fence = got.ID(), got.Fence()
	if a, ok := got.(*allocator.Allocation[string]); ok {
		e.Resource = a.Resource()
	}
	if l, ok := got.(*qlock.Lock); ok && p.again {
		e.Detail = string(l.Via())
	}
	h.w.log.end(e, history.OK, nil)
	return &held{Hold: got, plan: p, owner: owner, event: history.Event{
		Primitive: e.Primitive, Name: e.Name, Hold: e.Op, Claim: e.Claim, Node: e.Node, Fence: e.Fence,
		Resource: e.Resource, Weight: e.Weight,
	}}
}

// recover waits a little after an error that no wait is behind, so that a server
// that refuses is not asked all the time.
func (h *hand) recover() { pause(h.between(20, 50), h.w.draining) }

// alive writes that the hold is believed in, or once that it has ended by itself;
// then it is false.
func (h *hand) alive(held *held) bool {
	e := held.event
	e.Kind = history.Alive
	e.At, e.Real = history.Now() // before the handle is asked
	err := held.Err()
	if err == nil && held.Context().Err() != nil {
		err = context.Cause(held.Context())
	}
	if err == nil {
		h.w.log.write(e)
		h.wanted(held)
		return true
	}
	if !held.over {
		held.over = true
		e.At, e.Kind, e.Err, e.Is = 0, history.Ended, err.Error(), is(err)
		h.w.log.write(e)
	}
	return false
}

// wanted writes, once, that the handle says that the hold is wanted back.
func (h *hand) wanted(held *held) {
	select {
	case <-held.Wanted():
	default:
		return
	}
	if !held.told {
		held.told = true
		e := held.event
		e.Kind = history.Wanted
		h.w.log.write(e)
	}
}

// long draws how long a hold is to last: half of them next to nothing.
func (h *hand) long(p plan) time.Duration {
	switch {
	case h.w.long.Load() && h.oneIn(3):
		return h.between(2*h.w.job.Lease, 4*h.w.job.Lease)
	case h.w.long.Load():
		return h.between(0, h.w.job.Lease/2) // so that there are hand-offs
	case h.w.job.Calm:
	case h.oneIn(200):
		return p.lease + p.lease/2 // renewals matter, and a fixed lease ends
	case h.oneIn(2):
		return h.moment(time.Duration(h.w.job.HoldMax) * time.Millisecond)
	}
	return h.between(0, h.w.job.HoldMax)
}

// keep holds for a while, and looks all the time whether it still does.
func (h *hand) keep(c *crew, held *held) {
	began, since, long := time.Now(), history.Monotonic(), h.w.long.Load()
	end := began.Add(h.long(held.plan))
	for h.alive(held) {
		left := time.Until(end)
		if left <= 0 || h.w.drains() || long && !h.w.long.Load() || since < h.w.part.Load() {
			return
		}
		step := 5 * time.Millisecond
		if time.Since(began) > 50*time.Millisecond {
			step = 50 * time.Millisecond
			if h.oneIn(3) {
				h.look(c, held)
			}
		}
		timer := time.NewTimer(min(step, left))
		select {
		case <-timer.C:
		case <-held.Done():
		case <-h.w.draining:
		}
		timer.Stop()
		if !h.w.job.Calm {
			h.meanwhile(c, held)
		}
	}
}

// meanwhile does now and then what a holder may do.
func (h *hand) meanwhile(c *crew, held *held) {
	lk, isLock := held.Hold.(*qlock.Lock)
	switch h.IntN(40) {
	case 0:
		h.call(held, history.Renew, held.Renew)
		return
	case 1:
		if isLock && !held.again {
			by := h.between(50, 500)
			h.call(held, history.Extend, func(ctx context.Context) error { return lk.Extend(ctx, by) })
			return
		}
	}
	if held.kind == job.Reentrant && !held.again && h.oneIn(5) && !h.w.drains() {
		h.reenter(c, held)
	}
}

// glance bounds a look: the holder goes on to write down what it believes.
const glance = 300 * time.Millisecond

// look writes down what the server shows of the hold.
func (h *hand) look(c *crew, held *held) {
	e := held.event
	e.Do, e.Fence, e.Resource, e.Bounded = history.Look, 0, "", true
	e = h.w.log.begin(e)
	ctx, cancel := context.WithTimeout(context.Background(), glance)
	defer cancel()
	list, err := held.list(ctx, c)
	if err != nil {
		h.w.log.end(e, history.Unknown, err)
		return
	}
	kind := history.Fail
	for _, shown := range list {
		if shown.ID == held.ID() {
			kind, e.Fence, e.Resource = history.OK, shown.Fence, shown.Resource
		}
	}
	h.w.log.end(e, kind, nil)
}

// reenter enters the lock again, and leaves before the outer hold does.
func (h *hand) reenter(c *crew, outer *held) {
	ctx := outer.owner
	if h.oneIn(2) {
		ctx = outer.Context() // so that the end of the outer hold ends the wait
	}
	inner := h.acquire(ctx, c, h.inside(outer.plan))
	if inner == nil {
		return
	}
	end := time.Now().Add(h.between(0, 10))
	for h.alive(inner) && h.alive(outer) && !h.w.drains() && pause(min(3*time.Millisecond, time.Until(end)), h.w.draining) {
		if time.Now().After(end) {
			break
		}
	}
	h.release(c, inner)
}

// call makes a call about a hold, writes it down and returns what became of it.
func (h *hand) call(held *held, do string, call func(context.Context) error) history.Kind {
	e := held.event
	e.Do = do
	e = h.w.log.begin(e)
	ctx := context.Background()
	if do == history.Release && !h.w.job.Calm && h.oneIn(10) {
		ended, cancel := context.WithCancel(ctx)
		cancel()
		ctx = ended // a release works all the same
	}
	err := call(ctx)
	kind := answer(err)
	h.w.log.end(e, kind, err)
	if kind == history.Unknown {
		h.recover()
	}
	return kind
}

// release gives the hold back. One that has ended by itself is given back all the
// same, most of the time.
func (h *hand) release(c *crew, held *held) {
	if !h.alive(held) {
		if c.abrupt.Load() && errors.Is(held.Err(), berth.ErrReleased) {
			return // the close has given it back
		}
		if h.oneIn(10) {
			c.excuse(held.ID(), "ended, and not released")
			return
		}
	}
	kind := h.call(held, history.Release, held.Release)
	if kind == history.Unknown && h.oneIn(2) {
		kind = h.call(held, history.Release, held.Release)
	}
	switch {
	case kind == history.Unknown:
		c.excuse(held.ID(), "not known to be released")
	case kind == history.OK && held.primitive != lock && len(h.past) < memory:
		h.past = append(h.past, ended{held.plan, held.ID()})
	}
}

// takeOut takes a resource out of its pool, and puts it back after a while.
func (h *hand) takeOut(c *crew, p plan) {
	h.owed = &moved{p, p.pool.Resources[h.IntN(len(p.pool.Resources))]}
	h.move(c, history.Remove, c.pool[p.name].Remove)
	after := h.between(0, 200)
	if h.oneIn(5) {
		after = h.between(1000, 2000)
	}
	pause(after, h.w.draining)
	h.putBack(c)
}

// putBack puts back what was taken out. Where that is not answered it is tried again later;
// at the end of a round the driver does so.
func (h *hand) putBack(c *crew) {
	add := func(ctx context.Context, resources []string) (allocator.Change, error) {
		return c.pool[h.owed.name].Add(ctx, resources, nil)
	}
	if h.move(c, history.Add, add) == history.OK {
		h.owed = nil
	}
}

// move makes a call about the resource, and writes it down.
func (h *hand) move(c *crew, do string, call func(context.Context, []string) (allocator.Change, error)) history.Kind {
	e := h.w.log.begin(history.Event{
		Do: do, Primitive: pool, Name: h.owed.name, Node: c.node.ID(), Resource: h.owed.resource,
	})
	_, err := call(context.Background(), []string{h.owed.resource})
	kind := answer(err)
	h.w.log.end(e, kind, err)
	if kind == history.Unknown {
		h.recover()
	}
	return kind
}

// decide pauses a name, or ends its pause, and writes it down. One that another has overtaken may have
// run before.
func (h *hand) decide(c *crew) {
	p := h.plan()
	do, lasts := history.Pause, h.between(50, 800)
	switch h.IntN(12) {
	case 0, 1, 2, 3:
		do, lasts = history.Unpause, 0
	case 4, 5:
		lasts = h.between(2000, 4000)
	}
	e := h.w.log.begin(history.Event{
		Do: do, Primitive: p.primitive, Name: p.name, Node: c.node.ID(), Lasts: lasts.Milliseconds(),
	})
	err := p.pause(context.Background(), c, lasts)
	kind := answer(err)
	h.w.log.end(e, kind, err)
	if kind == history.Unknown {
		h.recover()
	}
}

// want asks a hold back, or all of a name. Most of those that are listed end soon, so it is
// mostly the oldest.
func (h *hand) want(c *crew) {
	p := h.plan()
	e := history.Event{Do: history.Want, Primitive: p.primitive, Name: p.name, Node: c.node.ID()}
	if !h.oneIn(4) {
		ctx, cancel := context.WithTimeout(context.Background(), glance)
		list, err := p.list(ctx, c)
		cancel()
		if err != nil || len(list) == 0 {
			return
		}
		one := list[h.IntN(len(list))]
		if h.oneIn(2) {
			one = slices.MinFunc(list, func(a, b berth.Holder) int { return cmp.Compare(a.Fence, b.Fence) })
		}
		e.Claim = one.ID
	}
	e = h.w.log.begin(e)
	err := p.want(context.Background(), c, e.Claim)
	kind := answer(err)
	h.w.log.end(e, kind, err)
	if kind == history.Unknown {
		h.recover()
	}
}

// force ends, by its id, a claim that has ended: that must be refused.
func (h *hand) force(c *crew) {
	if len(h.past) == 0 {
		return
	}
	i := h.IntN(len(h.past))
	past := h.past[i]
	h.past = append(h.past[:i], h.past[i+1:]...)
	e := h.w.log.begin(history.Event{
		Do: history.Force, Primitive: past.primitive, Name: past.name, Claim: past.claim,
	})
	err := past.force(context.Background(), c, past.claim)
	kind := answer(err)
	h.w.log.end(e, kind, err)
	if kind == history.Unknown {
		h.recover()
	}
}
