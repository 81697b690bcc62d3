package engine

import (
	"context"
	"errors"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// Release gives the hold back. What the caller holds ends before anything is
// sent. Where ctx has ended already, or ends before the answer, Release waits for
// CleanupTimeout at most; the call goes on in the background for as long as
// Config.Retry allows, and Close waits for it. On an engine that is closed nothing
// goes on, and the call ends with the wait. A hold that was released or detached here,
// or that somebody else has released or taken up, is not this handle's to release.
func (h *Hold) Release(ctx context.Context) error {
	if h.settle() {
		return nil
	}
	mine, before := h.retire()
	if !mine {
		return before
	}
	counts := h.e.begin()
	if counts {
		defer h.e.work.Done()
	}
	if ctx.Done() == nil {
		return h.release(ctx, before)
	}
	if !counts {
		inner, cancel := h.e.Overtime(ctx)
		defer cancel()
		return h.release(inner, before)
	}
	reply := make(chan error, 1)
	h.e.spawn(func() { reply <- h.release(context.WithoutCancel(ctx), before) })
	if ctx.Err() == nil {
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
		return causeOf(ctx)
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

// retire ends what the caller holds before a release is sent, and returns why it
// had ended before, nil if it lived. mine is false where there is nothing for
// this handle to release: then the error is what Release returns.
func (h *Hold) retire() (mine bool, before error) {
	before = h.Err()
	h.mu.Lock()
	h.own = h.c.end(berth.ErrReleased) || h.own
	own, parted, result := h.own, h.parted, h.result
	h.mu.Unlock()
	h.e.forget(h.c)
	if parted {
		return false, result
	}
	if own {
		return true, nil // also for a Release that follows one that got no answer
	}
	return !errors.Is(before, berth.ErrReleased), before
}

// release sends the release and keeps what the server says of it.
func (h *Hold) release(ctx context.Context, before error) error {
	kind, then, err := h.releaseOnce(ctx, before)
	if kind != "" {
		h.e.holdEvent(kind, h, err)
	}
	if then != nil {
		then()
	}
	return err
}

// releaseOnce also says which event is to be sent, and what is to be called then.
func (h *Hold) releaseOnce(ctx context.Context, before error) (observe.Kind, func(), error) {
	h.c.calls.Lock()
	defer h.c.calls.Unlock()
	h.mu.Lock()
	parted, result := h.parted, h.result
	h.mu.Unlock()
	if parted {
		return "", nil, result
	}
	if before != nil {
		h.c.Thin.Store(false) // the script of thin names would not look at the clock
	}
	parting, err := h.e.sendRelease(ctx, h.c)
	if err != nil {
		h.mu.Lock()
		h.unanswered = h.unanswered || scriptkit.MaybeRan(err)
		h.mu.Unlock()
		return observe.ReleaseFailed, nil, err
	}
	if parting.More {
		h.e.sweepSoon(h.c.Name)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	parting.Unanswered = parting.Unanswered || h.unanswered
	h.parted, h.result = true, h.outcome(parting, before)
	switch {
	case before != nil:
		return "", parting.Then, h.result // its end has been told
	case h.result != nil:
		return endOf(h.result), parting.Then, h.result
	case parting.Entries > 0:
		return observe.ReentryEnded, parting.Then, nil
	}
	return observe.Released, parting.Then, nil
}

// outcome is what a release returns, by what the server says and by what was
// known before it was sent.
func (h *Hold) outcome(p Parting, before error) error {
	mine := p.Fence == h.Fence() // else the claim had lost its grant, and got another
	cause := before
	switch {
	case p.Word == GivenBack && mine:
		return nil
	case p.Word == ForceReleased || p.Word == TakenOver:
		cause = berth.ErrReleased
	case before != nil:
	case p.Word == NotHeld && p.Unanswered:
		return nil // an earlier attempt to release it has done so
	case p.Word == HadExpired && mine:
		cause = h.c.overdue(nil)
	default:
		cause = berth.ErrLost // forgotten before its time, or in line again
	}
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	return h.ending(cause)
}

// Drop ends a hold whose caller has left, and gives it back in the background.
func (h *Hold) Drop() {
	if h.settle() {
		return
	}
	if mine, before := h.retire(); mine {
		h.part(before)
	}
}

// lose ends a hold of which the server says something else than is believed here, or
// may, and gives back whatever the claim is there.
func (e *Engine) lose(c *Claim) {
	e.endHold(c, berth.ErrLost)
	c.mu.Lock()
	hold := c.hold
	c.mu.Unlock()
	if hold != nil {
		hold.part(berth.ErrLost)
	} else if e.begin() {
		e.spawn(func() { e.cleanUp(c) })
		e.work.Done()
	}
}

// part gives back a hold that has ended here and that the server may still count.
// Nothing is protected by it any more, so nobody has to wait for the answer.
func (h *Hold) part(ended error) {
	if !h.e.begin() {
		return
	}
	defer h.e.work.Done()
	h.e.spawn(func() { _ = h.release(context.Background(), ended) }) // the observer is told where it fails
}
