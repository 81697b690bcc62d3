package engine

import (
	"context"
	"errors"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// await waits until the claim is granted, and returns nil then.
func (e *Engine) await(ctx context.Context, c *Claim) *berth.AcquireError {
	var turn <-chan time.Time
	if c.QueueTTL > 0 {
		ticker := time.NewTicker(c.QueueTTL)
		defer ticker.Stop()
		turn = ticker.C
	}
	for {
		p, err := c.current()
		switch p {
		case granted:
			if c.unconfirmed() {
				break // its own reply brought a grant that has yet to be confirmed
			}
			return nil
		case ended:
			var refusal *berth.AcquireError
			if errors.As(err, &refusal) {
				return refusal
			}
			return &berth.AcquireError{Reason: berth.ReasonFailed, Cause: err}
		}
		if p == granted || e.believes(c) {
			if refusal := e.confirm(ctx, c); refusal != nil {
				return refusal
			}
			continue
		}
		select {
		case <-c.signal:
		case <-turn:
			e.spawn(func() { e.requeue(c) })
		case <-ctx.Done():
			return left
		case <-e.closing:
			return left
		}
	}
}

// requeue sends a waiting claim to the end of the line. Where that fails, the
// next period tries again.
func (e *Engine) requeue(c *Claim) {
	if !c.calls.TryLock() {
		return // its last one is still on its way
	}
	answer, ok := e.requeueOnce(c)
	c.calls.Unlock()
	if ok {
		e.event(observe.Requeued, c, func(ev *observe.Event) { ev.Waited, ev.Ahead = c.waited(e.clock.Now()), answer.Ahead })
	}
}

func (e *Engine) requeueOnce(c *Claim) (answer Answer, ok bool) {
	if p, _ := c.current(); p != waiting {
		return answer, false
	}
	start := e.clock.Now()
	answer, ok, err := e.cfg.Scripts.(Requeuer).Requeue(context.Background(), c)
	if err != nil {
		e.failed(c, start, err)
		e.repeats(c, 1, err)
		return answer, false
	}
	c.mu.Lock()
	c.answered(start)
	c.mu.Unlock()
	if !ok {
		return answer, false
	}
	c.mu.Lock()
	c.ticket, c.place, c.heard, c.left = answer.Ticket, answer.Place, start, answer.Left
	c.mu.Unlock()
	e.tide(c.Name, start, answer.Tide)
	return answer, true
}

// believes looks at a push. It takes the grant where the claim's own last
// answered call vouches for it, and reports true where a confirming call has to
// come first.
func (e *Engine) believes(c *Claim) (confirm bool) {
	now := e.clock.Now()
	c.mu.Lock()
	if c.phase != waiting || c.pushes == c.denied {
		c.mu.Unlock()
		return false
	}
	if c.bounded() || c.doubt || now-c.heard > c.Record.Wait/2 {
		c.mu.Unlock()
		return true
	}
	// The deadline stays that of the last own answered call: the hand-off gave
	// the grant what the claim had left.
	g := grant{fence: c.pushedFence, resource: c.pushedGift, start: c.heard, left: c.left}
	c.mu.Unlock()
	e.takes(c, g)
	c.wake()
	return false
}

// confirm sends the claimant's confirming call until it is answered, and
// returns nil when the answer has been taken, whatever it was.
func (e *Engine) confirm(ctx context.Context, c *Claim) *berth.AcquireError {
	reply := make(chan error, 1)
	e.spawn(func() { reply <- e.repeatConfirm(ctx, c) })
	select {
	case err := <-reply:
		if err != nil {
			return &berth.AcquireError{Reason: berth.ReasonFailed, Cause: err}
		}
		return nil
	case <-ctx.Done():
	case <-e.closing:
	}
	return left
}

func (e *Engine) repeatConfirm(ctx context.Context, c *Claim) error {
	pace := scriptkit.NewPace(e.cfg.Retry)
	for attempt := 1; ; attempt++ {
		err := e.call(c, ModeBeat, nil)
		if err == nil {
			return nil
		}
		if p, _ := c.current(); p == ended {
			return nil // await says why
		}
		if !scriptkit.Repeatable(err) || !pace.Next(true) {
			return err
		}
		e.repeats(c, attempt, err)
		if !pace.Pause(ctx, e.closing) {
			return err
		}
	}
}
