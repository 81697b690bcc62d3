package engine

import (
	"context"

	"github.com/berth-go/berth"
)

// look is a context that ends with a hold. Whoever asks it, by Err or Done, has the hold's Err look at
// the clock first: after a suspension a timer has not fired yet, and the work under the context must not go on.
// A context that is made from this one ends in the same moment, but does not look itself.
type look struct {
	context.Context
	h      *Hold
	cancel context.CancelCauseFunc
}

func (l *look) Err() error {
	l.look()
	return l.Context.Err()
}

func (l *look) Done() <-chan struct{} {
	l.look()
	return l.Context.Done()
}

func (l *look) look() {
	if l.Context.Err() != nil {
		return
	}
	if err := l.h.Err(); err != nil {
		l.cancel(err)
	}
}

// Context ends with the hold.
func (h *Hold) Context() context.Context {
	h.mu.Lock()
	if h.ctx == nil {
		var held context.Context
		held, h.cancel = context.WithCancelCause(h.Mark(context.WithoutCancel(h.c.caller)))
		h.ctx = &look{held, h, h.cancel}
	}
	ctx := h.ctx
	h.mu.Unlock()
	_ = h.Err() // ends it where the end is known: from before it was made, or by the clock
	return ctx
}

// Mark returns a context with the hold and its owner.
func (h *Hold) Mark(ctx context.Context) context.Context {
	return berth.WithOwner(context.WithValue(ctx, heldKey{h.e, h.c.Name}, h), h.c.owner())
}

// Within returns a context with the hold and its owner that ends with ctx or
// with the hold, whichever comes first.
func (h *Hold) Within(ctx context.Context) (context.Context, context.CancelFunc) {
	inner, cancel := context.WithCancelCause(h.Mark(ctx))
	held := h.Context()
	if held.Err() != nil {
		cancel(context.Cause(held)) // at once: AfterFunc takes its time
	}
	stop := context.AfterFunc(held, func() { cancel(context.Cause(held)) })
	return &look{inner, h, cancel}, func() {
		stop()
		cancel(nil)
	}
}
