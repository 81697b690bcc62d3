package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/berth-go/berth"
)

// Close ends all waits with ErrClosed, gives back what is held, within what Retry
// allows for all of it together, and a CallTimeout more where some releases are answered and others are not, and returns when
// nothing of the engine runs any more.
// When ctx ends, or has ended already, it waits for CleanupTimeout more before it
// returns ctx's error; what it has begun goes on. A later call waits again.
func (e *Engine) Close(ctx context.Context) error {
	e.shut(context.WithoutCancel(ctx), func() []*Claim { return slices.Collect(maps.Values(e.claims)) })
	for _, c := range e.those(isLoose) { // that Abandon has left
		_, _ = c.handle.retire(ctx, berth.ErrClosed)
	}
	late, cancel := e.Overtime(ctx)
	defer cancel()
	select {
	case <-e.gone:
		return e.parting
	case <-late.Done():
		return causeOf(ctx)
	}
}

// shut begins to close the engine, once. What it gives back is found with mu held. ctx is that of who closes it.
func (e *Engine) shut(ctx context.Context, find func() []*Claim) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	e.closed = true
	close(e.closing)
	claims := find()
	e.stopTimers()
	go func() {
		defer close(e.gone)
		_, e.parting = e.releaseAll(ctx, claims, berth.ErrClosed)
		close(e.back)
		e.work.Wait()
		close(e.jobs)
		e.crew.Wait()
		e.beats.Stop()
		e.hub.Stop()
	}()
}

// ReleaseAll gives back all holds, within what Retry allows for all of them together,
// and returns how many those were. What waits goes on. It returns 0 and ctx's error when
// ctx ends; what it has begun goes on.
func (e *Engine) ReleaseAll(ctx context.Context) (int, error) {
	if !e.begin() {
		return 0, berth.ErrClosed
	}
	defer e.work.Done()
	return e.giveBack(ctx, e.those((*machine).alive), berth.ErrReleased)
}

// Leave gives back the holds of the claims that have this Closing, as Close does. An engine that is closed gives them back:
// of that Leave waits for the end, and returns nil.
func (e *Engine) Leave(ctx context.Context, closing <-chan struct{}) error {
	for _, c := range e.those(isLoose) {
		if c.Closing == closing {
			_, _ = c.handle.retire(ctx, berth.ErrClosed) // an engine that is closed may have these
		}
	}
	if !e.begin() {
		<-e.back
		return nil
	}
	defer e.work.Done()
	mine := slices.DeleteFunc(e.those((*machine).alive), func(c *Claim) bool { return c.Closing != closing })
	_, err := e.giveBack(ctx, mine, berth.ErrClosed)
	return err
}

// giveBack is releaseAll for who waits no longer than ctx lasts. It returns how many were given back.
func (e *Engine) giveBack(ctx context.Context, claims []*Claim, cause error) (int, error) {
	failed := 0
	err := e.within(ctx, func() (err error) {
		failed, err = e.releaseAll(context.WithoutCancel(ctx), claims, cause)
		return err
	})
	if err != nil && ctx.Err() != nil {
		return 0, err
	}
	return len(claims) - failed, err
}

// within runs f in the background, and returns its error, or ctx's where that ends first.
func (e *Engine) within(ctx context.Context, f func() error) error {
	reply := make(chan error, 1)
	e.spawn(func() { reply <- f() })
	select {
	case err := <-reply:
		return err
	case <-ctx.Done():
		return causeOf(ctx)
	}
}

// Ended says whether the engine is closed and nothing of it runs any more.
func (e *Engine) Ended() bool {
	select {
	case <-e.gone:
		return true
	default:
		return false
	}
}

// few joins errors that are much alike: the first of them, and how many more.
func few(errs []error) error {
	const enough = 10
	if more := len(errs) - enough; more > 1 {
		errs = append(errs[:enough], fmt.Errorf("berth: %d more holds could not be given back", more))
	}
	return errors.Join(errs...)
}

// Reaffirm sends a beat of each hold without end, so that the server has of them what a
// beat that begins now says. It returns the error of one that was not answered, or
// ctx's; nil from an engine that is closed, which gives them back.
func (e *Engine) Reaffirm(ctx context.Context) error {
	if !e.begin() {
		return nil
	}
	defer e.work.Done()
	claims := e.those(func(m *machine) bool { return m.holds() && m.endless() })
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
				if m := c.see(); m.done() {
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

// Abandon closes an engine whose node must not be believed any more, and does not
// wait: its handles end with ErrLost at once, its waits with ErrReplaced, and what
// it held is given back in the background. Handles without a hold live on, until Close ends them: the server has nothing of
// theirs that others could get. It returns how many handles ended.
func (e *Engine) Abandon() int {
	e.replaced.Store(true)
	holds := e.those(func(m *machine) bool { return m.phase == held })
	for _, c := range holds {
		e.endHold(c, berth.ErrLost)
	}
	e.shut(context.Background(), func() []*Claim {
		claims := slices.Clone(holds) // they have left e.claims
		for _, c := range e.claims {
			if m := c.see(); !isLoose(&m) {
				claims = append(claims, c)
			}
		}
		return claims
	})
	return len(holds)
}

// Left says whether handles without a hold are left.
func (e *Engine) Left() bool { return len(e.those(isLoose)) > 0 }

// those are the claims of which what is known fits.
func (e *Engine) those(fits func(*machine) bool) (found []*Claim) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, c := range e.claims {
		if m := c.see(); fits(&m) {
			found = append(found, c)
		}
	}
	return found
}
