package engine

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/observe"
)

// The causes of the engine's own ends of a wait.
var (
	errMaxWait  = errors.New("engine: MaxWait has passed")
	errAttempts = errors.New("engine: the attempts are used up")
)

// ErrReplaced is the cause of a refusal by an engine that was abandoned: what was
// not acquired here may be asked for under the next node.
var ErrReplaced = errors.New("berth: the node was replaced")

// Acquire takes a claim from its first script to its hold. It returns when the
// claim is granted or refused, when ctx ends, when maxWait has passed (0 = no
// limit) or when the engine is closed. Every error is a *berth.AcquireError.
func (e *Engine) Acquire(ctx context.Context, c *Claim, maxWait time.Duration) (*Hold, error) {
	if refusal := e.starts(ctx, c); refusal != nil {
		return nil, e.refused(c, refusal)
	}
	defer e.work.Done()
	wait, cancel := patience(ctx, maxWait, c.Attempts)
	defer cancel()
	if refusal := e.asks(wait, c); refusal != nil {
		return e.slips(ctx, wait, c, refusal)
	}
	return e.hands(c), nil
}

// starts has the engine know of a claim. Unless it is refused, it counts as work.
func (e *Engine) starts(ctx context.Context, c *Claim) *berth.AcquireError {
	c.key = e.cfg.Scripts.Key(c.line())
	c.begins(ctx, e.clock.Now(), false)
	if ctx.Err() != nil || isClosed(c.Closing) {
		return e.leaving(ctx, ctx)
	}
	if err := e.enter(c); err != nil {
		return refusalBy(err)
	}
	e.joinGroup(c)
	return nil
}

// hands tells of a grant, and gives its handle.
func (e *Engine) hands(c *Claim) *Hold {
	e.granted(&c.handle)
	e.wantedBefore(c)
	return &c.handle
}

// slips goes on after a refusal: another claim asks for the same where the grant of the first was none, else the call is over.
func (e *Engine) slips(ctx, wait context.Context, c *Claim, refusal *berth.AcquireError) (*Hold, error) {
	for slips := 1; refusal == fallen || c.MayWait && slipped(refusal) && slips < mostSlips; {
		ended := refusal
		if refusal = e.takeBack(wait, c); refusal != nil {
			break
		}
		if ended != fallen {
			slips++
			_ = e.refused(c, ended) // the observer hears of the end of each claim, once
		}
		c, refusal = e.anew(ctx, wait, c)
	}
	if refusal == nil {
		return e.hands(c), nil
	}
	if e.cfg.Settle != nil && (refusal.Reason == berth.ReasonGone || errors.Is(refusal.Cause, berth.ErrReleased)) {
		refusal = e.settle(wait, refusal)
	}
	if refusal.Reason == "" {
		refusal = e.leaving(ctx, wait)
		m := c.see()
		m.blame(refusal, e.clock.Now())
		e.tellPaused(c, refusal)
	}
	e.on(c, &event{kind: evLeave, cause: refusal})
	return nil, e.refused(c, refusal)
}

// asks takes a claim from its first script to its caller's handle.
func (e *Engine) asks(wait context.Context, c *Claim) *berth.AcquireError {
	if refusal := e.ask(wait, c); refusal != nil {
		return refusal
	}
	return e.await(wait, c)
}

// refusalBy is the refusal of a claim that ended for a reason.
func refusalBy(err error) *berth.AcquireError {
	if refusal, ok := errors.AsType[*berth.AcquireError](err); ok {
		return refusal
	}
	switch {
	case errors.Is(err, berth.ErrClosed) || errors.Is(err, ErrReplaced):
		return &berth.AcquireError{Reason: berth.ReasonClosed, Cause: err}
	case errors.Is(err, berth.ErrDraining):
		return &berth.AcquireError{Reason: berth.ReasonDraining, Cause: err}
	}
	return &berth.AcquireError{Reason: berth.ReasonFailed, Cause: err}
}

// granted tells the observer of a grant, and the owner's other entries of what it
// extended.
func (e *Engine) granted(h *Hold) {
	c := h.c
	m := c.see()
	entry := m.terms.entry
	if entry == nil {
		e.acquired(observe.Granted, c, func(ev *observe.Event) {
			ev.Fence, ev.Waited, ev.Lease, ev.Capacity = m.grant.fence, h.waited, c.Record.Lease, m.terms.capacity
		})
		return
	}
	e.extendSiblings(c, entry)
	e.acquired(observe.Reentered, c, func(ev *observe.Event) {
		ev.Fence, ev.Waited, ev.Lease, ev.Left = m.grant.fence, h.waited, entry.Extends, h.left()
	})
}

// wantedBefore tells the observer of a hold that was wanted back before its caller had the handle.
func (e *Engine) wantedBefore(c *Claim) {
	if c.see().grant.wanted {
		e.holdEvent(c.caller, observe.Wanted, c, nil)
	}
}

// acquired tells the observer of the end of an acquire, after the claim's observe.Queued: that may
// still be on its way, on another goroutine.
func (e *Engine) acquired(kind observe.Kind, c *Claim, fill func(*observe.Event)) {
	if e.cfg.Observe == nil {
		return
	}
	c.queued.Wait()
	e.event(kind, c, func(ev *observe.Event) {
		m := c.see()
		ev.WasQueued = m.queued()
		fill(ev)
	})
}

// patience bounds a wait by what comes first.
func patience(ctx context.Context, maxWait, attempts time.Duration) (context.Context, context.CancelFunc) {
	switch {
	case attempts > 0 && (maxWait == 0 || attempts < maxWait):
		return context.WithTimeoutCause(ctx, attempts, errAttempts)
	case maxWait > 0:
		return context.WithTimeoutCause(ctx, maxWait, errMaxWait)
	}
	return ctx, func() {}
}

// cutShort is the refusal of a wait that its context or the engine's end cut short;
// leaving fills it in.
var cutShort = &berth.AcquireError{}

// leaving says why a wait was cut short: the caller left, MaxWait passed or the
// engine is closed.
func (e *Engine) leaving(ctx, wait context.Context) *berth.AcquireError {
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &berth.AcquireError{Reason: berth.ReasonTimedOut, Cause: causeOf(ctx)}
	case ctx.Err() != nil:
		return &berth.AcquireError{Reason: berth.ReasonCancelled, Cause: causeOf(ctx)}
	case errors.Is(context.Cause(wait), errAttempts):
		return &berth.AcquireError{Reason: berth.ReasonAttempts}
	case wait.Err() != nil:
		return &berth.AcquireError{Reason: berth.ReasonTimedOut}
	default:
		return &berth.AcquireError{Reason: berth.ReasonClosed, Cause: e.closedBy()}
	}
}

// refused completes a refusal and tells the observer.
func (e *Engine) refused(c *Claim, r *berth.AcquireError) error {
	r.Name, r.Claim, r.Waited = c.Name, c.ID, c.waited(e.clock.Now())
	if r.Capacity == 0 {
		r.Capacity = c.see().terms.capacity
	}
	e.acquired(kindOf(r.Reason), c, func(ev *observe.Event) {
		told := *r // the caller's may yet be added to
		ev.Reason, ev.Waited, ev.Capacity, ev.Err = r.Reason, r.Waited, r.Capacity, &told
	})
	return r
}

// kindOf is the kind of the event for an acquire that ended with the
// given reason: TimedOut, AttemptsUsedUp, Deadlock and Failed for the reason of that
// name, Cancelled for cancelled and closed, and Refused for all that the server found,
// or an operator wants.
// A reason that is not known gives Failed.
func kindOf(reason berth.Reason) observe.Kind {
	switch reason {
	case berth.ReasonFull, berth.ReasonResting, berth.ReasonEmpty, berth.ReasonHeld, berth.ReasonQueuedAhead, berth.ReasonPaused,
		berth.ReasonTooHeavy, berth.ReasonAbsent, berth.ReasonGone, berth.ReasonCapacity, berth.ReasonTooManyEntries,
		berth.ReasonDiffers, berth.ReasonLimited, berth.ReasonDraining:
		return observe.Refused
	case berth.ReasonTimedOut:
		return observe.TimedOut
	case berth.ReasonCancelled, berth.ReasonClosed:
		return observe.Cancelled
	case berth.ReasonAttempts:
		return observe.AttemptsUsedUp
	case berth.ReasonDeadlock:
		return observe.Deadlock
	default:
		return observe.Failed
	}
}

// settle looks at a refusal that says that somebody has ended the claim: that may be
// because the node was found dead, of which it hears with its next probe only, or because the
// process is to drain.
func (e *Engine) settle(ctx context.Context, refusal *berth.AcquireError) *berth.AcquireError {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	known := make(chan struct{})
	e.spawn(func() {
		defer close(known)
		e.cfg.Settle(ctx)
	})
	select {
	case <-known:
	case <-ctx.Done():
	case <-e.closing:
	}
	switch {
	case e.outdated():
		refusal.Cause = ErrReplaced
	case e.drains():
		return refusalBy(cmp.Or(e.drained(), berth.ErrDraining))
	case ctx.Err() != nil || e.isClosing():
		return cutShort
	}
	return refusal
}
