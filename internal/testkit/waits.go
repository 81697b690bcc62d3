package testkit

import (
	"errors"
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/observe"
)

// Waiters counts who waits in line and who holds, as gauges of metrics would, and holds what a
// node tells against the laws of observe.Event.WasQueued and of WasHeld.
type Waiters struct {
	claims        map[string]*waiter
	waiting, held int
}

type waiter struct {
	queued, ended bool
	holds         int // below 0 where the end was told before the grant
}

// Take takes the next event, and says how it breaks a law.
func (w *Waiters) Take(e observe.Event) error {
	if w.claims == nil {
		w.claims = make(map[string]*waiter)
	}
	c := w.claims[e.Claim]
	if c == nil {
		c = &waiter{}
		w.claims[e.Claim] = c
	}
	return errors.Join(w.waits(c, e), w.holds(c, e))
}

func (w *Waiters) waits(c *waiter, e observe.Event) error {
	switch {
	case e.Kind == observe.Queued:
		if c.queued || c.ended {
			return fmt.Errorf("claim %s is queued twice, or after its end", e.Claim)
		}
		c.queued = true
		w.waiting++
	case e.Kind.EndsAcquire():
		if c.ended || c.queued != e.WasQueued {
			return fmt.Errorf("claim %s: ended before: %t, queued: %t, and %s says %t", e.Claim, c.ended, c.queued, e.Kind, e.WasQueued)
		}
		c.ended = true
		if e.WasQueued {
			w.waiting--
		}
	default:
		if e.WasQueued {
			return fmt.Errorf("%s ends no acquire", e.Kind)
		}
	}
	return nil
}

func (w *Waiters) holds(c *waiter, e observe.Event) error {
	by := 0
	switch e.Kind {
	case observe.Granted, observe.Reentered, observe.Resumed:
		by = 1
	}
	if e.WasHeld {
		by--
	}
	c.holds += by
	w.held += by
	if c.holds < -1 || c.holds > 1 {
		return fmt.Errorf("claim %s is held %d times after %s", e.Claim, c.holds, e.Kind)
	}
	return nil
}

// Waiting is how many wait.
func (w *Waiters) Waiting() int { return w.waiting }

// Held is how many hold.
func (w *Waiters) Held() int { return w.held }

// Waiting is how many claims of the node wait, by the events so far.
func (p *Process) Waiting() int {
	p.W.T.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	require.Empty(p.W.T, p.wrong)
	return p.waiters.Waiting()
}

// Held is how many holds the node has, by the events so far.
func (p *Process) Held() int {
	p.W.T.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiters.Held()
}
