package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rs/xid"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/heartbeat"
	"github.com/berth-go/berth/internal/pace"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// Renew sets the end of the lease anew, counted from now.
func (h *Hold) Renew(ctx context.Context) error {
	if err := h.call(ctx, ModeRenew, nil); err != nil {
		return err
	}
	return h.Err()
}

// ErrLimited is what RenewFor returns for a lease that the server refuses. The hold goes on as before.
var ErrLimited = errors.New("berth: the lease is longer than is allowed")

// RenewFor gives the hold another lease, counted from now. The deadline that the hold has stays
// where it is further off. After an error the lease is what it was: all later calls name it. A copy
// that was not answered may still run, in the wrong order too. It takes no deadline back: at the
// most it moves the deadline to its own lease from then on, until the hold is released.
func (h *Hold) RenewFor(ctx context.Context, lease time.Duration) error {
	if err := h.Err(); err != nil {
		return err
	}
	if h.Lease() == berth.Forever && lease != berth.Forever {
		return berth.Invalid("d", "the hold has no end, and no renewal brings an end nearer")
	}
	if err := h.call(ctx, modeFor(renewFor, lease), nil); err != nil {
		return err
	}
	return h.Err()
}

// mostExtended is how far off Extend may move an end: no further than a lease may be, see settings.Longest.
const mostExtended = 200 * 365 * 24 * time.Hour

// MayExtend refuses an extension beyond what can be told of a hold.
func (h *Hold) MayExtend(by time.Duration) error {
	most := time.Duration(0)
	h.e.beats.Update(&h.c.lease, func(spec *heartbeat.Spec) { most = spec.Beyond })
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
	if err := h.call(ctx, modeExtend(by, xid.New().String()), nil); err != nil {
		return err
	}
	if err := h.Err(); err != nil {
		return err
	}
	h.e.beats.Update(&h.c.lease, func(spec *heartbeat.Spec) { spec.Beyond = sum(spec.Beyond, by) })
	h.e.beats.Kick(h.c.key) // for the owner's other entries
	h.e.event(observe.Extended, h.c, func(ev *observe.Event) {
		ev.Context, ev.Fence, ev.Lease, ev.Left = ctx, h.Fence(), by, h.left()
	})
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
	err := h.call(ctx, ModeDetach, func() {
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
		h.e.tell(ctx, h.c, ev, &fx)
		return nil
	}
	if err == nil {
		err = h.Err() // it has ended, or Release or Close was first and gives it back
	}
	return err
}

// call sends an own call of the holder, repeated by Config.Retry. Where the server
// answers that it holds, held is called, unless it is nil, before another call of the
// claim can begin; ctx may have ended by then.
func (h *Hold) call(ctx context.Context, mode Mode, held func()) error {
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
	return h.e.within(ctx, func() error { return h.e.repeat(ctx, h.c, mode, false, held) })
}

// lower brings a hold's local deadline down to what a call that begins at start
// will leave of it on the server, at the least: the answer may be lost. beyond is how much more
// than its lease that is, where a longer one has set the deadline.
func (e *Engine) lower(c *Claim, start, beyond time.Duration) {
	e.beats.Update(&c.lease, func(spec *heartbeat.Spec) {
		least := heartbeat.Deadline(start, sum(spec.Lease, beyond), spec.Lease)
		if least != 0 && (spec.Deadline == 0 || least < spec.Deadline) {
			spec.Deadline, spec.Bounded = least, false
		}
	})
}

// call sends one own call of a claim and takes its answer; see Hold.call for held. An
// answer that a newer one has overtaken says nothing of the deadline, and what the
// newer one said may not count either: the call asks again.
func (e *Engine) call(c *Claim, mode Mode, held func()) error {
	c.calls.Lock()
	defer c.calls.Unlock()
	for {
		if m := c.see(); m.done() {
			return m.end.err
		}
		overtaken, err := e.callOnce(c, mode)
		if err != nil {
			return err
		}
		if m := c.see(); !m.holds() {
			return nil
		}
		if overtaken {
			continue
		}
		if held != nil {
			held()
		}
		return nil
	}
}

// callOnce is one round of call.
func (e *Engine) callOnce(c *Claim, mode Mode) (overtaken bool, err error) {
	ctx := context.Background() // every attempt has its own limit
	start, lease := e.clock.Now(), mode.asksFor()
	seen := c.on(&event{kind: evCall, start: start, lease: lease}).seen
	m := c.see()
	if m.holds() && (mode == ModeRenew || mode == ModeDetach || !m.grant.confirmed) {
		e.lower(c, start, m.terms.beyond)
	}
	round, err := e.cfg.Scripts.Beat(ctx, c.Name, mode, []*Claim{c})
	if err != nil {
		e.on(c, &event{kind: evFailed, start: start, mayRun: scriptkit.MaybeRan(err), cause: err})
		return false, err
	}
	e.nextDeadline(c.line(), start, round.NextDeadline, 1)
	limited := round.Status[0].Word == WordLimited
	if limited {
		round.Status[0].Word, lease = WordHeld, 0
	}
	fx := e.hear(c, start, lease, seen, round.Status[0])
	switch {
	case fx.has(doRestore):
		_, err := e.restore(ctx, c.Name, []*Claim{c})
		return false, err
	case fx.has(doUse) && c.holds():
		e.retime(c, timing{start: start, left: fx.left, confirmed: true, version: seen.version, renews: true})
	default:
		overtaken = m.holds()
	}
	if limited {
		return false, ErrLimited
	}
	return overtaken, nil
}

// confirm sends the claimant's confirming call until it is answered, and
// returns nil when the answer has been taken, whatever it was.
func (e *Engine) confirm(ctx context.Context, c *Claim) *berth.AcquireError {
	reply := make(chan error, 1)
	e.spawn(func() { reply <- e.repeat(ctx, c, ModeBeat, true, nil) })
	select {
	case err := <-reply:
		if m := c.see(); err == nil || m.done() {
			return nil // await says why
		}
		return &berth.AcquireError{Reason: berth.ReasonFailed, Cause: err}
	case <-ctx.Done():
	case <-c.Closing:
	case <-e.closing:
	}
	return cutShort
}

// repeat sends an own call of a claim until it is answered, within Config.Retry or without
// an end.
func (e *Engine) repeat(ctx context.Context, c *Claim, mode Mode, endless bool, held func()) error {
	pauses := pace.New(e.cfg.Retry)
	for attempt := 1; ; attempt++ {
		err := e.call(c, mode, held)
		if err == nil || !scriptkit.Repeatable(err) || !pauses.Next(endless) {
			return err
		}
		e.repeats(ctx, c, attempt, err)
		if !pauses.Pause(ctx, e.closing) {
			return err
		}
	}
}
