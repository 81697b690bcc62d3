package engine

import (
	"context"
	"time"

	"github.com/berth-go/berth"
)

// sight is what a look at a claim says of its wait.
type sight uint8

const (
	goesOn sight = iota
	again        // the next look says more
	over         // with a refusal, or the caller has the handle
)

// idles says whether a look would change nothing: the claim waits, and no push has come.
func (c *Claim) idles() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.m.phase == waiting && !c.m.news.fresh
}

// sees looks at a claim whose caller waits. Its frame is not the caller's, whose stack stays small: see await.
func (e *Engine) sees(ctx context.Context, c *Claim) (*berth.AcquireError, sight) {
	if !e.stands(ctx, c) {
		return fallen, over
	}
	switch fx := e.look(c); {
	case fx.has(doConfirm):
		if refusal := e.confirm(ctx, c); refusal != nil {
			return refusal, over
		}
		return nil, again
	case fx.has(doReturn) && fx.result != nil:
		return refusalBy(fx.result), over
	case fx.has(doReturn):
		return nil, over
	case fx.has(doKeep): // the grant of a push: the next look gives the handle
		return nil, again
	}
	return nil, goesOn
}

// await waits until the claim is granted, and returns nil then: the caller has the handle.
// Ten thousand may wait here, each with a stack. It takes 4 kB as long as nothing before the wait, nor its own frames,
// needs more: what is large has a function of its own, and those who only wait do not look.
func (e *Engine) await(ctx context.Context, c *Claim) *berth.AcquireError {
	var turn <-chan time.Time
	if c.RequeueEvery > 0 {
		ticker := time.NewTicker(c.RequeueEvery)
		defer ticker.Stop()
		turn = ticker.C
	}
	var late *time.Timer
	var waited <-chan time.Time
	if c.WantAfter > 0 {
		late = time.NewTimer(c.WantAfter - c.waited(e.clock.Now()))
		defer late.Stop()
		waited = late.C
	}
	nearEnd, stop := e.nearEnd(ctx)
	defer stop()
	for {
		if e.outdated() || !c.idles() {
			switch refusal, sight := e.sees(ctx, c); sight {
			case over:
				return refusal
			case again:
				continue
			}
		}
		select {
		case <-c.signal:
		case <-turn:
			e.spawn(func() { e.requeue(c) })
		case <-waited:
			e.spawn(func() { e.on(c, &event{kind: evWaited}) })
			late.Reset(c.WantAfter)
		case <-nearEnd:
			e.spawn(func() { e.askPaused(ctx, c) })
		case <-ctx.Done():
			return cutShort
		case <-c.Closing:
			return cutShort
		case <-e.closing:
			return cutShort
		}
	}
}

// A wait that ends by its own time says whether its name is paused. The server is asked shortly before, so that nobody has
// to wait for the answer.
const pausedBefore = time.Second

// pausedAt is a pause, and when it was asked for.
type pausedAt struct {
	*berth.Pause
	at time.Duration
}

// nearEnd tells when a wait with a bound comes near its end.
func (e *Engine) nearEnd(ctx context.Context) (near <-chan time.Time, stop func() bool) {
	end, bounded := ctx.Deadline()
	if !bounded || e.cfg.Paused == nil {
		return nil, func() bool { return false }
	}
	left := time.Until(end) //nolint:forbidigo // a context ends by this clock
	timer := time.NewTimer(left - min(pausedBefore, left/2))
	return timer.C, timer.Stop
}

// askPaused asks whether the claim's name is paused, where the server is not late with more important calls.
func (e *Engine) askPaused(ctx context.Context, c *Claim) {
	door := e.doors.to(c)
	if !door.Try() {
		return
	}
	at := e.clock.Now()
	defer door.Leave(unasked)
	if pause := e.cfg.Paused(ctx, c.line()); pause != nil {
		c.paused.Store(&pausedAt{pause, at})
	}
}

// tellPaused says of a wait that has ended by its own time that its name is paused.
func (e *Engine) tellPaused(c *Claim, r *berth.AcquireError) {
	if r.Reason != berth.ReasonTimedOut && r.Reason != berth.ReasonAttempts {
		return
	}
	if p := c.paused.Load(); p != nil {
		pause := *p.Pause
		if pause.Left -= e.clock.Now() - p.at; pause.Left > 0 {
			r.Pause = &pause
		}
	}
}

// requeue sends a waiting claim to the end of the line. Where that fails, the
// next period tries again, as where the server is late with other calls.
func (e *Engine) requeue(c *Claim) {
	door := e.doors.to(c)
	if !door.Try() {
		return
	}
	defer door.Leave(unasked)
	if !c.calls.TryLock() {
		return // its last one is still on its way
	}
	ev, fx := e.requeueOnce(c)
	c.calls.Unlock()
	e.tell(c.caller, c, ev, &fx)
}

func (e *Engine) requeueOnce(c *Claim) (ev *event, fx effects) {
	ev = &event{start: e.clock.Now()}
	if c.see().phase != waiting {
		return ev, fx
	}
	answer, ok, err := e.cfg.Scripts.Requeue(context.Background(), c)
	ev.now = e.clock.Now()
	if err != nil {
		ev.kind, ev.cause = evFailed, err
		fx = c.on(ev)
		e.repeats(c.caller, c, 1, err)
		return ev, fx
	}
	ev.kind = evRequeued
	if ok {
		ev.ticket, ev.text, ev.ahead, ev.left = answer.Ticket, answer.Place, answer.Ahead, answer.Left
		e.nextDeadline(c.line(), ev.start, answer.NextDeadline, 1)
	}
	return ev, c.on(ev)
}
