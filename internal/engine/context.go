package engine

import (
	"context"

	"github.com/berth-go/berth"
)

// clocked is a context that ends with a hold. Whoever asks it, by Err or Done, has the hold's Err compare
// the clock first: after a suspension a timer has not fired yet, and the work under the context must not go on.
// A context that is made from this one ends in the same moment. It does not compare the clock itself, unless it is
// clocked too: then the clock is first compared for the outer hold.
type clocked struct {
	context.Context
	outer  *clocked // the nearest one that the context was made from, nil for none
	of     interface{ Err() error }
	cancel context.CancelCauseFunc
}

// clockedKey is where a clocked context finds the one that it was made from.
type clockedKey struct{}

// Clocked returns ctx as a context that ends with a hold. of is the hold, or several as one; cancel is that of ctx.
func Clocked(ctx context.Context, of interface{ Err() error }, cancel context.CancelCauseFunc) context.Context {
	outer, _ := ctx.Value(clockedKey{}).(*clocked)
	return &clocked{ctx, outer, of, cancel}
}

func (c *clocked) Err() error {
	c.compare()
	return c.Context.Err()
}

func (c *clocked) Done() <-chan struct{} {
	c.compare()
	return c.Context.Done()
}

func (c *clocked) Value(key any) any {
	if key == (clockedKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// compare ends the context if a hold is over by the clock. The end of an outer hold comes first, and ends this context
// with its cause; but not where context.WithoutCancel stands between them.
func (c *clocked) compare() {
	if c.Context.Err() != nil {
		return
	}
	if c.outer != nil {
		c.outer.compare()
	}
	if err := c.of.Err(); err != nil {
		c.cancel(err)
	}
}

// Context ends with the hold.
func (h *Hold) Context() context.Context {
	h.mu.Lock()
	if h.ctx == nil {
		var held context.Context
		held, h.cancel = context.WithCancelCause(h.Mark(context.WithoutCancel(h.c.caller)))
		h.ctx = Clocked(held, h, h.cancel)
	}
	ctx := h.ctx
	h.mu.Unlock()
	_ = h.Err() // ends it where the end is known: from before it was made, or by the clock
	return ctx
}

// Mark returns a context with the hold and its owner.
func (h *Hold) Mark(ctx context.Context) context.Context {
	return berth.WithOwner(context.WithValue(ctx, h.e.heldKey(h.c.line()), h), h.c.owner())
}

// Within returns a context with the hold and its owner that ends with ctx or
// with the hold, whichever comes first.
func (h *Hold) Within(ctx context.Context) (context.Context, context.CancelFunc) {
	return Within(h.Mark(ctx), h.Context(), h)
}

// Within returns a context that ends with ctx or with held, whichever comes first; held is the context
// of a hold, or of several as one.
func Within(ctx, held context.Context, of interface{ Err() error }) (context.Context, context.CancelFunc) {
	inner, cancel := context.WithCancelCause(ctx)
	if held.Err() != nil {
		cancel(context.Cause(held)) // at once: AfterFunc takes its time
	}
	stop := context.AfterFunc(held, func() { cancel(context.Cause(held)) })
	return Clocked(inner, of, cancel), func() {
		stop()
		cancel(nil)
	}
}
