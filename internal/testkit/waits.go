package testkit

import (
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/observe"
)

// Waiters counts who waits in line, as a gauge of metrics would, and holds what a client tells
// against the law of observe.Event.WasQueued.
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
