package engine

import (
	"context"

	"github.com/berth-go/berth"
)

// outdated says whether the node has outlived its time in a swarm: whatever it
// holds may have been given to others.
func (e *Engine) outdated() bool {
	return e.replaced.Load() || e.cfg.Passed != nil && e.cfg.Passed()
}

// closedBy is why nothing can be acquired here any more.
func (e *Engine) closedBy() error {
	if e.outdated() {
		return ErrReplaced
	}
	return berth.ErrClosed
}

// settle looks at a refusal that says that somebody has ended the claim: that may be
// because the node was found dead, of which it hears with its next probe only.
func (e *Engine) settle(ctx context.Context, refusal *berth.AcquireError) *berth.AcquireError {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	known := make(chan struct{})
	e.spawn(func() {
		defer close(known)
		e.cfg.Settle(ctx)
	})
	select {
	case <-known:
	case <-ctx.Done():
	case <-e.closing:
	}
	switch {
	case e.outdated():
		refusal.Cause = ErrReplaced
	case ctx.Err() != nil || e.isClosing():
		return left
	}
	return refusal
}

// Abandon closes an engine whose node must not be believed any more, and does not
// wait: its handles end with ErrLost at once, its waits with ErrReplaced, and what
// it held is given back in the background. It returns how many handles ended.
func (e *Engine) Abandon() int {
	e.replaced.Store(true)
	holds := e.holds()
	for _, h := range holds {
		e.endHold(h.c, berth.ErrLost)
	}
	e.shut(holds)
	return len(holds)
}

// holds are the handles that live.
func (e *Engine) holds() []*Hold {
	e.mu.Lock()
	defer e.mu.Unlock()
	var holds []*Hold
	for _, c := range e.claims {
		c.mu.Lock()
		if c.hold != nil && c.phase == granted {
			holds = append(holds, c.hold)
		}
		c.mu.Unlock()
	}
	return holds
}
