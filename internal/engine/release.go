package engine

import (
	"cmp"
	"context"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// What sends a release, and what does not: Hold.Release, Drop and releaseEnded send that of a hold,
// Engine.remove that of a claim without a handle to release; all by sendRelease.
// Loosen leaves the handle without a hold to release, and Detach the hold without a handle.

// Release gives the hold back. What the caller holds ends before anything is
// sent. Where ctx has ended already, or ends before the answer, Release waits for CleanupTimeout at most; on
// an engine that is open also where the hold had ended by itself, as it protects nothing any more. The call goes
// on in the background for as long as Config.Retry allows, and Close waits for it. On an engine that is closed
// nothing goes on, and the call ends with the wait. A hold that was released or detached here,
// or that somebody else has released or taken up, is not this handle's to release.
func (h *Hold) Release(ctx context.Context) error {
	counts := h.e.begin() // before retire: what Close does not find it waits for
	if counts {
		defer h.e.work.Done()
	}
	mine, over := h.retire(ctx, berth.ErrReleased)
	if !mine {
		return over
	}
	if ctx.Done() == nil && (over == nil || !counts) {
		return h.release(ctx, false)
	}
	if !counts {
		inner, cancel := h.e.Overtime(ctx)
		defer cancel()
		return h.release(inner, false)
	}
	reply := make(chan error, 1)
	h.e.spawn(func() { reply <- h.release(context.WithoutCancel(ctx), false) })
	if ctx.Err() == nil && over == nil {
		select {
		case err := <-reply:
			return err
		case <-ctx.Done():
		}
	}
	patience := time.NewTimer(h.e.cfg.CleanupTimeout)
	defer patience.Stop()
	select {
	case err := <-reply:
		return err
	case <-patience.C:
		return cmp.Or(over, causeOf(ctx))
	}
}

// Overtime returns a context that ends CleanupTimeout after ctx.
func (e *Engine) Overtime(ctx context.Context) (context.Context, context.CancelFunc) {
	inner, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		patience := time.NewTimer(e.cfg.CleanupTimeout)
		defer patience.Stop()
		select {
		case <-patience.C:
			cancel(causeOf(ctx))
		case <-inner.Done():
		}
	})
	return inner, func() {
		stop()
		cancel(nil)
	}
}

// retire ends what the caller holds before a release is sent. mine is false where there is
// nothing for this handle to release: then the error is what Release returns. Else the error says
// why the hold had ended before, nil where it had not. A handle
// that is loose ends with the cause. ctx is that of the call that releases it.
func (h *Hold) retire(ctx context.Context, cause error) (mine bool, result error) {
	now := h.e.clock.Now()
	_ = h.at(now) // what has ended by the clock was not released
	fx := h.e.onCall(ctx, h.c, &event{kind: evRelease, now: now, cause: cause})
	return fx.has(doSend), fx.result
}

// release sends the release and keeps what the server says of it. Only where an acquire or
// a restore went unanswered does it leave a tombstone. unasked says that its holder has not called Release.
func (h *Hold) release(ctx context.Context, unasked bool) error {
	ev := event{kind: evReleased, unasked: unasked}
	fx, then := h.releaseOnce(ctx, &ev)
	h.e.tell(ctx, h.c, &ev, &fx)
	if then != nil {
		then(ctx)
	}
	return fx.result
}

// releaseOnce returns what release is to tell, which takes as long as the observer likes.
func (h *Hold) releaseOnce(ctx context.Context, ev *event) (fx effects, then func(context.Context)) {
	e, c := h.e, h.c
	c.calls.Lock()
	defer c.calls.Unlock()
	m := c.see()
	if m.end.final {
		return effects{result: m.end.result}, nil
	}
	if !m.end.own {
		c.Thin.Store(false) // the script of thin names would not look at the clock
	}
	parting, err := e.sendRelease(ctx, c)
	ev.now = e.clock.Now()
	if err != nil {
		ev.kind, ev.mayRun, ev.cause = evReleaseFailed, scriptkit.MaybeRan(err), err
		return c.on(ev), nil
	}
	if ev.cause = c.lease.Err(ev.now); parting.Word == ForceReleased { // the clock knows what the server may have seen
		ev.cause = e.released()
	}
	ev.fence, ev.text, ev.again, ev.stays = parting.Fence, string(parting.Word), parting.Unanswered, parting.Entries > 0
	return c.on(ev), parting.Then
}

// sendRelease sends the release. It is called with c.calls held.
func (e *Engine) sendRelease(ctx context.Context, c *Claim) (Parting, error) {
	stays := time.Duration(0)
	if c.see().news.lost {
		stays = Tombstone
	}
	rise := e.lowerSiblings(c)
	parting, err := e.cfg.Scripts.Release(ctx, c, stays)
	if err == nil && parting.More {
		e.sweepSoon(c.line())
	}
	rise(err)
	e.remember(c)
	return parting, err
}

// remove removes a claim without a handle to release, in any state. It waits for the claim's
// call in flight.
func (e *Engine) remove(c *Claim) error {
	c.calls.Lock()
	defer c.calls.Unlock()
	ctx, cancel := scriptkit.Limit(context.Background(), e.cfg.CleanupTimeout)
	defer cancel()
	_, err := e.sendRelease(ctx, c)
	return err
}

// Drop ends a hold whose caller has left, and gives it back in the background.
func (h *Hold) Drop() {
	if h.e.begin() {
		defer h.e.work.Done()
	}
	if mine, _ := h.retire(h.c.caller, berth.ErrReleased); mine {
		h.releaseEnded()
	}
}

// releaseEnded releases a hold that has ended here and that the server may still count.
// Nothing is protected by it any more, so nobody has to wait for the answer.
func (h *Hold) releaseEnded() {
	if !h.e.begin() {
		return
	}
	defer h.e.work.Done()
	h.e.spawn(func() { _ = h.release(context.WithoutCancel(h.c.caller), true) }) // the observer is told where it fails
}

// Loosen gives a hold's claim back to the server, in the background, and leaves the
// handle without a lease: nothing ends it but Release, which sends nothing then, and
// the engine's end. It is for what is only told to a claim, and kept from nobody.
func (h *Hold) Loosen() {
	if !h.e.begin() {
		return // Close gives it back
	}
	defer h.e.work.Done()
	h.e.on(h.c, &event{kind: evLoosen})
}

// Loose says whether the hold was loosened.
func (h *Hold) Loose() bool { return h.c.Loose() }
