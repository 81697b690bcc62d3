package testkit

import (
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/observe"
)

// Waiters counts who waits in line, as a gauge of metrics would, and holds what a client tells
// against the law of observe.Event.Queued.
type Waiters struct {
	claims  map[string]*waiter
	waiting int
}

type waiter struct{ queued, ended bool }

// Take takes the next event, and says how it breaks the law.
func (w *Waiters) Take(e observe.Event) error {
	if w.claims == nil {
		w.claims = make(map[string]*waiter)
	}
	c := w.claims[e.Claim]
	if c == nil {
		c = &waiter{}
		w.claims[e.Claim] = c
	}
	switch e.Kind {
	case observe.Queued:
		if c.queued || c.ended {
			return fmt.Errorf("claim %s is queued twice, or after its end", e.Claim)
		}
		c.queued = true
		w.waiting++
	case observe.Granted, observe.Reentered, observe.Refused, observe.TimedOut, observe.Cancelled,
		observe.AttemptsUsedUp, observe.Deadlock, observe.Failed:
		if c.ended || c.queued != e.Queued {
			return fmt.Errorf("claim %s: ended before: %t, queued: %t, and %s says %t", e.Claim, c.ended, c.queued, e.Kind, e.Queued)
		}
		c.ended = true
		if e.Queued {
			w.waiting--
		}
	default:
		if e.Queued {
			return fmt.Errorf("%s ends no acquire", e.Kind)
		}
	}
	return nil
}

// Waiting is how many wait.
func (w *Waiters) Waiting() int { return w.waiting }

// Waiting is how many claims of the client wait, by the events so far.
func (p *Process) Waiting() int {
	p.W.T.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	require.Empty(p.W.T, p.wrong)
	return p.waiters.Waiting()
}
