package engine

import (
	"context"
	"sync"
	"time"

	"github.com/berth-go/berth"
)

// Hold is a granted claim in the caller's hands. The handles of the primitives
// wrap it. It is safe for concurrent use.
type Hold struct {
	e      *Engine
	c      *Claim
	waited time.Duration

	mu     sync.Mutex
	ctx    context.Context         // guarded by mu: nil until somebody asks for it
	cancel context.CancelCauseFunc // guarded by mu: of ctx
	asked  context.Context         // guarded by mu: nil until somebody asks for it; ends when the hold is wanted back
	ask    context.CancelFunc      // guarded by mu: of asked
}

// look looks whether a claim's caller can have the handle, and gives it to him. A closed
// engine gives no handle: then the caller has the claim removed. Close releases all claims that
// have a handle.
func (e *Engine) look(c *Claim) effects {
	h, ev := &c.handle, &event{kind: evLook, now: e.clock.Now()}
	h.e, h.c, h.waited = e, c, c.waited(ev.now)
	if cause := c.lease.Err(ev.now); cause != nil { // before any timer has fired: the process may have stood still
		e.leaseEnded(c, cause)
	}
	outdated := e.outdated()
	c.doing.Lock()
	defer c.doing.Unlock()
	e.mu.Lock()
	if e.closed || outdated {
		e.mu.Unlock()
		return effects{do: doReturn, result: e.closedBy()}
	}
	fx := c.on(ev)
	e.mu.Unlock()
	e.perform(c, ev, &fx)
	return fx
}

// heldKey is where a context keeps the hold of a name that it was made for.
type heldKey struct{ process, of any }

func (e *Engine) heldKey(of Line) heldKey {
	if e.cfg.Process != nil {
		return heldKey{e.cfg.Process, of}
	}
	return heldKey{e, of}
}

// Held returns the hold of a name under which ctx was made, nil for none: also for one of a node that was replaced, unless it
// is loose, and so lives on.
func (e *Engine) Held(ctx context.Context, of Line) *Hold {
	hold, _ := ctx.Value(e.heldKey(of)).(*Hold)
	if hold != nil && hold.e != e && !hold.Loose() {
		return nil
	}
	return hold
}

// Claim returns the hold's claim.
func (h *Hold) Claim() *Claim { return h.c }

// Fence is the number of the grant.
func (h *Hold) Fence() int64 { return h.c.Fence() }

// Resource is what is held, "" where the primitive has no resources.
func (h *Hold) Resource() string { return h.c.Resource() }

// Ticket is when the claim came.
func (h *Hold) Ticket() int64 { return h.c.Ticket() }

// Reentered says whether the owner held the name already.
func (h *Hold) Reentered() bool { return h.c.entry() != nil }

// Waited is how long the acquiring call took.
func (h *Hold) Waited() time.Duration { return h.waited }

// Node is the id of the node that holds it.
func (h *Hold) Node() string { return h.c.Record.Node }

// Lease is the lease that was asked for.
func (h *Hold) Lease() time.Duration { return h.c.see().terms.Lease }

// Granted is when this process heard of the grant, by its wall clock.
func (h *Hold) Granted() time.Time {
	ago := h.e.clock.Now() - h.c.see().grant.since
	return time.Now().Add(-ago) //nolint:forbidigo // a wall clock's time, for people
}

// finish ends the context, if there is one.
func (h *Hold) finish(cause error) {
	h.mu.Lock()
	cancel := h.cancel
	h.mu.Unlock()
	if cancel != nil {
		cancel(cause)
	}
}

// Wanted is closed when somebody has asked for the hold back, or the process drains. The hold goes on.
func (h *Hold) Wanted() <-chan struct{} { return h.Asked().Done() }

// Asked is a context that ends then. Who wants to know hears a
// push, too: the node subscribes, if it has never waited.
func (h *Hold) Asked() context.Context {
	h.e.hub.Start()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.asked == nil {
		h.asked, h.ask = context.WithCancel(context.Background())
	}
	if h.c.see().wanted || h.e.drains() { // from before it was made
		h.ask()
	}
	return h.asked
}

// want ends that context, if there is one.
func (h *Hold) want() {
	h.mu.Lock()
	ask := h.ask
	h.mu.Unlock()
	if ask != nil {
		ask()
	}
}

// Err says why the hold ended, nil while it lives. It trusts no timer: after a
// suspension the clock knows before any timer has fired. Where it says that the hold has ended,
// the context has ended too: another goroutine may have recorded the end, and not yet have told
// the context.
func (h *Hold) Err() error {
	err := h.at(h.e.clock.Now())
	if err != nil {
		h.finish(err)
	}
	return err
}

// at is why the hold has ended at a moment, which is now.
func (h *Hold) at(now time.Duration) error {
	m := h.c.see()
	switch cause := h.c.lease.Err(now); {
	case m.done():
		return m.end.err
	case cause != nil:
		h.e.leaseEnded(h.c, cause)
	case h.e.outdated() && m.phase != loose:
		h.e.endHold(h.c, berth.ErrLost)
	default:
		return nil
	}
	return h.c.see().end.err
}

// Left is how long the holder may still believe in the hold if nothing renews
// it; berth.Forever for no end, 0 once it has ended.
func (h *Hold) Left() time.Duration {
	if h.Err() != nil {
		return 0
	}
	return h.left()
}

// left is how long the lease lasts, also after the hold has ended.
func (h *Hold) left() time.Duration { return h.c.left(h.e.clock.Now()) }

// left is how long the claim's lease lasts from a moment on.
func (c *Claim) left(now time.Duration) time.Duration {
	deadline := c.lease.Deadline()
	if deadline == 0 {
		return berth.Forever
	}
	return max(0, deadline-now)
}

// leaseEnded ends a hold whose deadline has passed.
func (e *Engine) leaseEnded(c *Claim, cause error) {
	if e.outdated() {
		e.endHold(c, berth.ErrLost) // whoever has ended it there: the node had lost it before
	} else {
		e.on(c, &event{kind: evTimeUp, cause: cause})
	}
}

// endHold ends a hold, once, and tells the observer.
func (e *Engine) endHold(c *Claim, cause error) {
	if e.outdated() {
		cause = berth.ErrLost // likewise
	}
	e.on(c, &event{kind: evEnd, cause: cause})
}
