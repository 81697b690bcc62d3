package engine

import (
	"context"
	"errors"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/pace"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// A grant that a server has just told of may be one that was not to be: the client was cut off while all names were
// paused, or its process was told to drain. So Config.Stands is asked before the caller has the handle.

// fallen is the refusal of a claim whose grant does not stand.
var fallen = &berth.AcquireError{}

// A grant may also end before the caller has the handle: its process stood still, the server has lost the grant, or no
// heartbeat was answered. A caller never had that hold, and its end ends no wait. A lease that is too short for the
// network loses every grant so, which mostSlips grants in one call tell.
const mostSlips = 10

// slipped says whether a refusal is the end of a hold that the caller has never had.
func slipped(r *berth.AcquireError) bool {
	return r != nil && (errors.Is(r.Cause, berth.ErrLost) || errors.Is(r.Cause, berth.ErrExpired))
}

// due says whether the next look may give the handle.
func (c *Claim) due() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.m.phase == granted || c.m.phase == waiting && c.m.news.fresh
}

// AtOnce says whether the claim was granted without having waited in line, as the first of its owner, and its caller has
// not got the handle.
func (c *Claim) AtOnce() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.m.phase == granted && !c.m.place.stood && c.m.terms.entry == nil
}

// stands reports whether the caller may have what a claim was granted, if it was. In a process that has heard just now
// that it drains the next look says so.
func (e *Engine) stands(ctx context.Context, c *Claim) bool {
	if e.cfg.Stands == nil || !c.due() {
		return true
	}
	if !e.cfg.Stands(ctx, c) {
		return false
	}
	if e.drains() && !c.inside.Load() && c.entry() == nil {
		e.on(c, &event{kind: evDrained, cause: e.drained()})
	}
	return true
}

// takeBack removes a claim whose grant does not stand, or has ended, before another one asks for the same. It waits for the
// removal: the next claim would be one more entry of an owner's that is still there.
func (e *Engine) takeBack(wait context.Context, old *Claim) *berth.AcquireError {
	old.doing.Lock()
	old.on(&event{kind: evLeave, cause: fallen})
	e.forget(old)
	old.doing.Unlock()
	for pauses := pace.New(e.cfg.Retry); ; {
		removed := make(chan error, 1)
		e.spawn(func() { removed <- e.remove(old) })
		var err error
		select {
		case err = <-removed:
		case <-wait.Done():
			return cutShort
		case <-old.Closing:
			return cutShort
		case <-e.closing:
			return cutShort
		}
		if err == nil {
			return nil
		}
		if !scriptkit.Repeatable(err) || !pauses.Next(old.MayWait) {
			return &berth.AcquireError{Reason: berth.ReasonFailed, Cause: err}
		}
		if !pauses.Pause(wait, e.closing) {
			return cutShort
		}
	}
}

// anew has another claim ask for the same.
func (e *Engine) anew(ctx, wait context.Context, old *Claim) (*Claim, *berth.AcquireError) {
	now := e.clock.Now()
	c := &Claim{
		ID: e.ClaimID(), Kind: old.Kind, Name: old.Name, key: old.key, Record: old.Record, MayWait: old.MayWait,
		Capacity: old.Capacity, Attrs: old.Attrs, WarnAfter: old.WarnAfter, Closing: old.Closing,
		Request: old.Request, Attempts: old.Attempts, RequeueEvery: old.RequeueEvery, WantAfter: old.WantAfter,
		Extends: old.Extends, Before: old.waited(now),
	}
	c.begins(ctx, now, false)
	if err := e.enter(c); err != nil {
		return c, refusalBy(err)
	}
	defer e.work.Done() // Acquire counts for both
	e.joinGroup(c)
	return c, e.asks(wait, c)
}
