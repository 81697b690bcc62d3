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

// Reaffirm sends a beat of each hold without end, so that the server has of them what a
// beat that begins now says. It returns the error of one that was not answered, or
// ctx's; nil from an engine that is closed, which gives them back.
func (e *Engine) Reaffirm(ctx context.Context) error {
	if !e.begin() {
		return nil
	}
	defer e.work.Done()
	claims := e.endless()
	answers := make(chan error, len(claims))
	e.spawn(func() {
		slots := make(chan struct{}, releasesAtOnce)
		for _, c := range claims {
			slots <- struct{}{}
			e.spawn(func() {
				defer func() { <-slots }()
				err := ctx.Err()
				if err == nil {
					err = e.call(c, ModeBeat, nil)
				}
				if m := c.see(); m.over() {
					err = nil
				}
				answers <- err
			})
		}
	})
	for range claims {
		select {
		case err := <-answers:
			if err != nil {
				return err
			}
		case <-ctx.Done():
			return causeOf(ctx)
		}
	}
	return nil
}

// endless are the claims that are granted without an end.
func (e *Engine) endless() []*Claim {
	e.mu.Lock()
	defer e.mu.Unlock()
	var claims []*Claim
	for _, c := range e.claims {
		if m := c.see(); m.holds() && c.Endless() {
			claims = append(claims, c)
		}
	}
	return claims
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
		if p := c.see().phase; p == held || p == loose {
			holds = append(holds, &c.handle)
		}
	}
	return holds
}
