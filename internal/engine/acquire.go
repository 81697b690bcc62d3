package engine

import (
	"context"
	"errors"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/heartbeat"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/scriptkit"
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
	c.begins(e.clock.Now())
	if ctx.Err() != nil {
		return nil, e.refused(c, e.leaving(ctx, ctx))
	}
	if err := e.enter(c); err != nil {
		return nil, e.refused(c, &berth.AcquireError{Reason: berth.ReasonClosed, Cause: err})
	}
	defer e.work.Done()

	wait, cancel := patience(ctx, maxWait, c.Attempts)
	defer cancel()
	e.noteSiblings(c)
	refusal := e.ask(wait, c)
	if refusal == nil {
		refusal = e.await(wait, c)
	}
	if refusal != nil {
		if e.cfg.Settle != nil && (refusal.Reason == berth.ReasonGone || errors.Is(refusal.Cause, berth.ErrReleased)) {
			refusal = e.settle(wait, refusal)
		}
		if refusal.Reason == "" {
			refusal = e.leaving(ctx, wait)
			c.blame(refusal, e.clock.Now())
		}
		e.giveUp(c, refusal)
		return nil, e.refused(c, refusal)
	}
	hold := e.handle(ctx, c)
	if hold == nil {
		refusal = &berth.AcquireError{Reason: berth.ReasonClosed, Cause: e.closedBy()}
		e.giveUp(c, refusal)
		return nil, e.refused(c, refusal)
	}
	e.granted(hold)
	return hold, nil
}

// granted tells the observer of a grant, and the owner's other entries of what it
// lengthened.
func (e *Engine) granted(h *Hold) {
	c := h.c
	entry := c.reentry()
	if entry == nil {
		e.event(observe.Granted, c, func(ev *observe.Event) {
			ev.Fence, ev.Waited, ev.Lease, ev.Capacity = h.Fence(), h.waited, c.Record.Lease, c.capacity()
		})
		return
	}
	e.lengthenSiblings(c, entry)
	e.event(observe.Reentered, c, func(ev *observe.Event) {
		ev.Fence, ev.Waited, ev.Lease, ev.Left = h.Fence(), h.waited, entry.Extends, h.left()
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

// left is the refusal of a wait that its context or the engine's end cut short;
// leaving fills it in.
var left = &berth.AcquireError{}

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
		r.Capacity = c.capacity()
	}
	e.event(observe.ForReason(r.Reason), c, func(ev *observe.Event) {
		told := *r // the caller's may yet be added to
		ev.Reason, ev.Waited, ev.Capacity, ev.Err = r.Reason, r.Waited, r.Capacity, &told
	})
	return r
}

// queued takes the answer that the claim waits in line.
func (e *Engine) queued(c *Claim, start time.Duration, a Answer, epoch int64) {
	c.mu.Lock()
	if c.phase != asking {
		c.mu.Unlock()
		return
	}
	c.mayRun = false
	c.phase, c.ticket, c.place, c.signal = waiting, a.Ticket, a.Place, make(chan struct{}, 1)
	c.heard, c.left = start, a.Left
	// An earlier attempt that went unanswered may have waited, been granted and
	// expired since: then a push is not about this place.
	c.doubt = c.doubt || c.lost
	pushed := c.pushes > 0
	c.mu.Unlock()
	e.joinLine(c)
	spec := e.waits
	spec.Lease, spec.Deadline = c.Record.Wait, heartbeat.Deadline(start, a.Left, c.Record.Wait)
	e.beats.Add(&c.lease, c.Name, spec)
	if p, _ := c.current(); p == ended {
		e.forget(c) // given up in between
		return
	}
	e.hub.Start()
	if epoch != e.hub.Epoch() {
		// A subscription came in between: a push may have been lost before it.
		e.beats.Hurry(&c.lease)
	}
	if pushed {
		c.wake()
	}
	e.event(observe.Queued, c, func(ev *observe.Event) { ev.Ahead, ev.Capacity = a.Ahead, a.Capacity })
}

// waitEnded is called when the heartbeat has learned that a waiting claim is
// over. Whoever said so has ended the claim already.
func waitEnded(l *heartbeat.Lease, err error) {
	var refusal *berth.AcquireError
	if errors.As(err, &refusal) {
		l.Claim.(*Claim).endWaiting(refusal)
	}
}

// giveUp ends a claim whose caller has got an error, and removes it from the
// server in whatever state it is there, in the background.
func (e *Engine) giveUp(c *Claim, refusal *berth.AcquireError) {
	c.end(refusal)
	e.forget(c)
	c.mu.Lock()
	asked, lost := c.asked, c.lost
	c.mu.Unlock()
	if !asked {
		return
	}
	switch refusal.Reason {
	case berth.ReasonTooHeavy, berth.ReasonGone, berth.ReasonCapacity, berth.ReasonFull, berth.ReasonResting, berth.ReasonEmpty, berth.ReasonHeld,
		berth.ReasonQueuedAhead, berth.ReasonDeadlock, berth.ReasonTooManyEntries:
		if !lost {
			return // the server has just said that it has nothing of this claim
		}
	case berth.ReasonAttempts:
		if !lost && !c.MayWait {
			return // likewise
		}
	}
	e.spawn(func() { e.cleanUp(c) })
}

// cleanUp waits for the claim's call in flight, and then removes the claim. Only
// where an acquire went unanswered does it leave a tombstone.
func (e *Engine) cleanUp(c *Claim) {
	c.calls.Lock()
	defer c.calls.Unlock()
	ctx, cancel := scriptkit.Limit(context.Background(), e.cfg.CleanupTimeout)
	defer cancel()
	_, err := e.sendRelease(ctx, c)
	if err != nil {
		e.event(observe.CleanupFailed, c, func(ev *observe.Event) { ev.Err = err })
	}
}

// sendRelease sends the release. It is called with c.calls held.
func (e *Engine) sendRelease(ctx context.Context, c *Claim) (Parting, error) {
	c.mu.Lock()
	lost := c.lost
	c.mu.Unlock()
	stays := time.Duration(0)
	if lost {
		stays = tombstone
	}
	rise := e.lowerSiblings(c)
	parting, err := e.cfg.Scripts.Release(ctx, c, stays)
	rise(err)
	return parting, err
}
