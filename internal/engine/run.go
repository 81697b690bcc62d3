package engine

import (
	"cmp"
	"context"
	"time"

	"github.com/berth-go/berth/internal/heartbeat"
	"github.com/berth-go/berth/pkg/observe"
)

// on takes an event of a claim to its machine, and does what follows. What only the caller
// can do, as to send the call that the event is about, is left to it.
func (e *Engine) on(c *Claim, ev *event) effects { return e.onCall(c.caller, c, ev) }

// onCall is on for an event that a call with that context has caused.
func (e *Engine) onCall(ctx context.Context, c *Claim, ev *event) effects {
	fx := e.act(c, ev)
	e.tell(ctx, c, ev, &fx)
	if fx.has(doReleaseEnded) {
		c.handle.releaseEnded()
	}
	return fx
}

// act is on, but for telling the observer, which takes as long as that likes.
func (e *Engine) act(c *Claim, ev *event) effects {
	if ev.now == 0 {
		ev.now = e.clock.Now()
	}
	if ev.kind == evGranted && e.given.above(c.line(), ev.fence) {
		e.LostData()
	}
	c.doing.Lock()
	defer c.doing.Unlock()
	fx := c.on(ev)
	e.perform(c, ev, &fx)
	return fx
}

// perform does what the effects of an event say, but for telling the observer.
func (e *Engine) perform(c *Claim, ev *event, fx *effects) {
	switch {
	case fx.has(doJoin):
		e.join(c, ev)
	case fx.has(doKeep):
		e.keep(c, fx.start, fx.left)
	case fx.has(doFinish):
		c.handle.finish(fx.end)
	}
	if fx.has(doWanted) {
		c.handle.want()
		if e.cfg.Wanted != nil {
			e.cfg.Wanted()
		}
	}
	if fx.has(doWake) {
		c.wake()
	}
	if fx.has(doEcho) {
		e.hub.Doubt(c.key, c.Record.Wait)
	}
	if fx.has(doHurry) {
		e.beats.Hurry(&c.lease)
	}
	if fx.has(doForget) {
		e.forget(c)
	}
	if fx.has(doLoosen) {
		e.retime(c, timing{})
		e.beats.Remove(&c.lease)
	}
	if fx.has(doRemove) {
		e.spawn(func() {
			if err := e.remove(c); err != nil {
				e.event(observe.CleanupFailed, c, func(ev *observe.Event) { ev.Err = err })
			}
		})
	}
}

// join counts a claim among those that wait here, and has its place kept.
func (e *Engine) join(c *Claim, ev *event) {
	e.joinLine(c)
	spec := e.waits
	spec.Lease, spec.Deadline = c.Record.Wait, heartbeat.Deadline(ev.start, ev.left, c.Record.Wait)
	e.beats.Add(&c.lease, c.key, spec)
	e.hub.Start()
	if ev.epoch != e.hub.Epoch() {
		// A subscription came in between: a push may have been lost before it.
		e.beats.Hurry(&c.lease)
	}
}

// keep gives the lease of a hold to the heartbeat.
func (e *Engine) keep(c *Claim, start, left time.Duration) {
	m := c.see()
	if m.queued() {
		e.mu.Lock()
		e.leaveLine(c)
		e.mu.Unlock()
	}
	spec := e.held
	if after := cmp.Or(c.WarnAfter, e.cfg.WarnAfter); after > 0 {
		spec.Warn = start + after
	}
	c.time(&spec, timing{start: start, left: left, most: c.most, confirmed: m.grant.confirmed})
	e.beats.Add(&c.lease, c.key, spec)
}

// retime gives the heartbeat a hold's new deadlines.
func (e *Engine) retime(c *Claim, g timing) {
	e.beats.Update(&c.lease, func(spec *heartbeat.Spec) { c.time(spec, g) })
}

// relimit tells a hold's group what an answer says, and sets what that leaves of the hold. The
// deadline is for the heartbeat to set.
func (e *Engine) relimit(c *Claim, g timing) {
	e.beats.Update(&c.lease, func(spec *heartbeat.Spec) {
		all := *spec
		c.time(&all, g)
		spec.Limit = all.Limit
	})
}

// tell tells the observer what became of a claim, if anything; ctx is that of the call that has
// caused it.
func (e *Engine) tell(ctx context.Context, c *Claim, ev *event, fx *effects) {
	if fx.has(doJoin) {
		defer c.queued.Done()
	}
	if fx.tell == "" || e.cfg.Observe == nil {
		return
	}
	m := c.see()
	e.event(fx.tell, c, func(o *observe.Event) {
		o.Context, o.WasHeld = ctx, fx.over
		switch fx.tell {
		case observe.Queued, observe.Requeued, observe.Restored:
			o.Ahead, o.Capacity = ev.ahead, ev.counts.capacity
			if ev.apart {
				o.Resource = ev.resource
			}
			if fx.tell != observe.Queued {
				o.Waited = c.waited(ev.now)
			}
		case observe.Unavailable:
			s := fx.silence
			o.Silent, o.Count, o.Detail, o.Err = ev.now-s.since, s.calls, m.does(), s.err
			o.Waited = c.waited(ev.now)
			if m.phase == held {
				o.Fence, o.Waited, o.Held, o.Lease, o.Left = m.grant.fence, c.handle.waited, ev.now-m.grant.since, m.terms.Lease, c.left(ev.now)
			}
		default:
			e.describe(o, c, &m, fx.told)
		}
	})
}

// describe fills in what events about a hold share.
func (e *Engine) describe(o *observe.Event, c *Claim, m *machine, err error) {
	now := e.clock.Now()
	o.Fence, o.Held, o.Waited, o.Lease, o.Err = m.grant.fence, now-m.grant.since, c.handle.waited, m.terms.Lease, err
	switch o.Kind {
	case observe.Detached, observe.Resumed, observe.RenewRefused, observe.ReleaseFailed:
		o.Left = c.left(now)
	}
}

// holdEvent tells the observer of a hold; ctx is that of the call that has caused it.
func (e *Engine) holdEvent(ctx context.Context, kind observe.Kind, c *Claim, err error) {
	m := c.see()
	e.event(kind, c, func(o *observe.Event) {
		o.Context = ctx
		e.describe(o, c, &m, err)
	})
}

// heldLong tells the observer of a hold that lasts longer than its WarnAfter.
func (e *Engine) heldLong(c *Claim) {
	if c.see().phase == held {
		e.holdEvent(c.caller, observe.HeldLong, c, nil)
	}
}
