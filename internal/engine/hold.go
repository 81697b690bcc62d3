package engine

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/rs/xid"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/heartbeat"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// Hold is a granted claim in the caller's hands. The handles of the primitives
// wrap it. It is safe for concurrent use.
type Hold struct {
	e      *Engine
	c      *Claim
	caller context.Context // of the acquiring call, for its values
	waited time.Duration

	mu     sync.Mutex
	ctx    context.Context         // guarded by mu: nil until somebody asks for it
	cancel context.CancelCauseFunc // guarded by mu: of ctx
}

// handle makes the hold of a claim that was granted, nil where nothing may be held here any
// more, or its time has passed meanwhile: then the claim is its caller's to give back, and
// why says so. Of what has a hold, Close gives back all.
func (e *Engine) handle(ctx context.Context, c *Claim) (h *Hold, why error) {
	h = &c.handle
	h.e, h.c, h.caller = e, c, ctx
	now := e.clock.Now()
	h.waited = c.waited(now)
	outdated := e.outdated()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || outdated {
		return nil, e.closedBy()
	}
	if fx := c.on(&event{kind: evHanded, now: now}); fx.err != nil {
		return nil, fx.err
	}
	return h, nil
}

// heldKey is where a context keeps the hold of a name that it was made for.
type heldKey struct {
	e    *Engine
	name string
}

// Held returns the hold of a name under which ctx was made, nil for none.
func (e *Engine) Held(ctx context.Context, name string) *Hold {
	hold, _ := ctx.Value(heldKey{e, name}).(*Hold)
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
func (h *Hold) Reentered() bool { return h.c.see().lease.entry != nil }

// Waited is how long the acquiring call took.
func (h *Hold) Waited() time.Duration { return h.waited }

// Context ends with the hold.
func (h *Hold) Context() context.Context {
	h.mu.Lock()
	if h.ctx == nil {
		h.ctx, h.cancel = context.WithCancelCause(h.Mark(context.WithoutCancel(h.caller)))
	}
	ctx := h.ctx
	h.mu.Unlock()
	_ = h.Err() // ends it where the end is known: from before it was made, or by the clock
	return ctx
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

// Err says why the hold ended, nil while it lives. It trusts no timer: after a
// suspension the clock knows before any timer has fired. The context of a hold of
// which Err says that it has ended, has ended too: whoever found the end may have
// recorded it, and not yet have told the context.
func (h *Hold) Err() error {
	err := h.look()
	if err != nil {
		h.finish(err)
	}
	return err
}

func (h *Hold) look() error {
	m := h.c.see()
	switch {
	case m.over():
		return m.end.err
	case h.c.lease.Err(h.e.clock.Now()) != nil:
		h.e.leaseEnded(h.c, h.c.lease.Err(h.e.clock.Now()))
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

// Renew sets the end of the lease anew, counted from now.
func (h *Hold) Renew(ctx context.Context) error {
	if err := h.ask(ctx, ModeRenew, nil); err != nil {
		return err
	}
	return h.Err()
}

// mostExtended is how far off Extend may move an end: a Duration carries 292 years, and
// what is told of a hold, margins included, must stay within.
const mostExtended = 250 * 365 * 24 * time.Hour

// MayExtend refuses an extension beyond what can be told of a hold.
func (h *Hold) MayExtend(by time.Duration) error {
	most := h.c.extended()
	if left := h.left(); left != berth.Forever {
		most = max(most, left)
	}
	if by > mostExtended-most {
		return berth.Invalid("by", "%s more than the %s that are left is further off than %s", by, most.Round(time.Millisecond), mostExtended)
	}
	return nil
}

// Extend moves the end of the lease further off, once.
func (h *Hold) Extend(ctx context.Context, by time.Duration) error {
	if err := h.Err(); err != nil {
		return err
	}
	if err := h.MayExtend(by); err != nil {
		return err
	}
	if err := h.ask(ctx, modeExtend(by, xid.New().String()), nil); err != nil {
		return err
	}
	if err := h.Err(); err != nil {
		return err
	}
	h.e.beats.Update(&h.c.lease, func(spec *heartbeat.Spec) { h.c.extends(spec, by) })
	h.e.beats.Kick(h.c.Name) // for the owner's other entries
	h.e.event(observe.Extended, h.c, func(ev *observe.Event) { ev.Fence, ev.Lease, ev.Left = h.Fence(), by, h.left() })
	return nil
}

// Detach marks the hold as one that nobody renews any more, and ends the handle. Where
// it returns an error the hold stays the handle's, detached or not: nobody else can
// know how to take it up.
func (h *Hold) Detach(ctx context.Context) error {
	var mu sync.Mutex
	detached, left := false, false // guarded by mu
	var fx effects                 // guarded by mu
	ev := &event{kind: evDetached}
	err := h.ask(ctx, ModeDetach, func() {
		mu.Lock()
		defer mu.Unlock()
		if !left && !detached {
			fx = h.e.act(h.c, ev)
			detached = fx.has(doFinish)
		}
	})
	mu.Lock()
	left = true
	mine := detached
	mu.Unlock()
	if mine {
		h.e.tell(h.c, ev, &fx)
		return nil
	}
	if err == nil {
		err = h.Err() // it has ended, or Release or Close was first and gives it back
	}
	return err
}

// ask sends an own call of the holder, repeated by Config.Retry. Where the server
// answers that it holds, held is called, unless it is nil, before another call of the
// claim can begin; ctx may have ended by then.
func (h *Hold) ask(ctx context.Context, mode Mode, held func()) error {
	if err := h.Err(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return causeOf(ctx)
	}
	if !h.e.begin() {
		return berth.ErrClosed
	}
	defer h.e.work.Done()
	reply := make(chan error, 1)
	h.e.spawn(func() {
		pace := scriptkit.NewPace(h.e.cfg.Retry)
		for attempt := 1; ; attempt++ {
			err := h.e.call(h.c, mode, held)
			if err == nil || !scriptkit.Repeatable(err) || !pace.Next(false) {
				reply <- err
				return
			}
			h.e.repeats(h.c, attempt, err)
			if !pace.Pause(ctx, h.e.closing) {
				reply <- err
				return
			}
		}
	})
	select {
	case err := <-reply:
		return err
	case <-ctx.Done():
		return causeOf(ctx)
	}
}

// Begin counts a call that Adopt is to follow. End must follow it, unless Begin
// returns why nothing can be taken up here any more.
func (e *Engine) Begin() error {
	if e.outdated() || !e.begin() {
		return e.closedBy()
	}
	e.mu.Lock()
	e.adopting++
	e.mu.Unlock()
	return nil
}

// End ends what Begin has begun.
func (e *Engine) End() {
	e.mu.Lock()
	if e.adopting--; e.adopting == 0 {
		maps.DeleteFunc(e.removals, func(_ *Claim, r *removal) bool { return r.answered })
	}
	e.mu.Unlock()
	e.work.Done()
}

// MayAdopt reports whether a hold that is attached to this node already may be
// taken up here: no handle keeps it.
func (e *Engine) MayAdopt(id string) bool {
	return e.find(id) == nil
}

// Adopt takes up a hold that this or another node had detached, between Begin and
// End.
func (e *Engine) Adopt(ctx context.Context, c *Claim, start time.Duration, fence int64, resource string, left time.Duration) (*Hold, error) {
	c.begins(start)
	c.m.news.asked = true // by the node that had it
	all := left
	if left < 0 {
		all = berth.Forever
	}
	terms := c.m.lease.Terms
	deadline := heartbeat.Deadline(start, all, terms.lease())
	if old := e.find(c.ID); old != nil {
		e.endHold(old, berth.ErrReleased) // before what is taken back from it is inherited
	}
	e.mu.Lock()
	most := e.inherits(c, start, deadline)
	e.claims[c.ID] = c
	e.mu.Unlock()
	e.on(c, &event{
		kind: evGranted, start: start, entry: &Entry{Terms: terms}, // it may be one: then others renew it
		given: given{fence: fence, resource: resource, start: start, left: left, most: most, confirmed: true},
	})
	h, err := e.handle(ctx, c)
	if err != nil {
		// Close and Abandon give back what is held.
		e.on(c, &event{kind: evLeave, cause: &berth.AcquireError{Reason: berth.ReasonFailed}})
		if e.outdated() {
			err = berth.ErrLost // this node had taken it up, as the server sees it
		}
		return nil, err
	}
	if most != 0 {
		e.beats.Hurry(&c.lease)
	}
	e.prime()
	e.holdEvent(observe.Resumed, c, nil)
	return h, nil
}

// Now is the engine's clock, for the start of a request.
func (e *Engine) Now() time.Duration { return e.clock.Now() }

// Mark returns a context with the hold and its owner.
func (h *Hold) Mark(ctx context.Context) context.Context {
	return berth.WithOwner(context.WithValue(ctx, heldKey{h.e, h.c.Name}, h), h.c.owner())
}

// Within returns a context with the hold and its owner that ends with ctx or
// with the hold, whichever comes first.
func (h *Hold) Within(ctx context.Context) (context.Context, context.CancelFunc) {
	inner, cancel := context.WithCancelCause(h.Mark(ctx))
	held := h.Context()
	stop := context.AfterFunc(held, func() { cancel(context.Cause(held)) })
	return inner, func() {
		stop()
		cancel(nil)
	}
}

// Do runs f under the hold and gives it back, also when f panics. Do returns f's
// error, joined with the hold's where that ended before f did, and not by f itself.
func (h *Hold) Do(ctx context.Context, f func(context.Context) error) (err error) {
	inner, cancel := h.Within(ctx)
	defer func() {
		cancel()
		ended := h.Err()
		over := ended != nil
		if m := h.c.see(); !over || m.end.parted && m.end.result == nil { // or released or detached by f
			ended = nil
			if released := h.Release(ctx); errors.Is(released, berth.ErrNotHeld) {
				ended = released // it had ended, and nobody here had heard of it yet
			}
		} else {
			h.part()
		}
		err = Outcome(ctx, err, ended, over)
	}()
	return f(inner)
}

// Outcome is the error of a Do: that of f, err, and why the hold ended before f did,
// nil where it did not or where f itself has ended it; over says that it has ended. Who
// looks for an error of package context wants to know whether the caller has left: where
// it may be the hold's end that f met, err matches none, unless ctx, the caller's, has
// ended too.
func Outcome(ctx context.Context, err, ended error, over bool) error {
	told := ended != nil && errors.Is(err, ended)
	if over && ctx.Err() == nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		err = &stopped{err}
	}
	if err == nil || ended == nil {
		return cmp.Or(err, ended)
	}
	if told {
		return err
	}
	return errors.Join(err, ended)
}

// stopped is an error of a function that was told to stop. It matches what err does,
// but for the errors of package context.
type stopped struct{ err error }

func (e *stopped) Error() string { return e.err.Error() }

func (e *stopped) Is(target error) bool {
	return target != context.Canceled && target != context.DeadlineExceeded && errors.Is(e.err, target)
}

func (e *stopped) As(target any) bool { return errors.As(e.err, target) }
