package allocator

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/caller"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/pkg/observe"
)

// errNoReturn is the error of an Open that has ended its goroutine.
var errNoReturn = errors.New("berth: Open did not return")

// errHealthyPanicked is the error of a resource whose Healthy panicked; the panic goes
// on to the caller.
var errHealthyPanicked = errors.New("berth: Healthy panicked")

// errOpenTimeout is the cause of a context that has ended because Open or Healthy took
// too long.
var errOpenTimeout = fmt.Errorf("berth: OpenTimeout has passed: %w", context.DeadlineExceeded)

// limited returns the context of one Open or one Healthy.
func (p *Pool[T]) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, p.cfg.OpenTimeout, errOpenTimeout)
}

// open makes the handle of a hold, or the error of the call.
func (p *Pool[T]) open(ctx context.Context, hold *engine.Hold) (*Allocation[T], error) {
	a, err := p.handle(ctx, hold)
	if err != nil {
		return nil, p.failed(ctx, hold, err)
	}
	return a, nil
}

// handle makes the handle of a hold, with its value, or Open's error.
func (p *Pool[T]) handle(ctx context.Context, hold *engine.Hold) (*Allocation[T], error) {
	value, err := p.value(ctx, hold)
	if err != nil {
		return nil, err
	}
	a := &Allocation[T]{pool: p, hold: hold, value: value, taken: hold.Resource()}
	a.watch()
	return a, nil
}

// opened is the result of an Open.
type opened[T any] struct {
	value    T
	err      error
	panicked any // what Open panicked with, nil if it returned
	stack    []byte
}

// value returns the value of a held resource, for as long as it is held. Without a
// value the hold is given back: at once, or, if the caller did not wait for Open, when
// Open has returned. So a resource that hangs is found out even if its callers leave
// soon.
func (p *Pool[T]) value(ctx context.Context, hold *engine.Hold) (T, error) {
	if p.core.usable() != nil { // a Close came first
		hold.Drop()
		return *new(T), berth.ErrClosed
	}
	if kept, there := p.values.TryTake(hold.Resource()); there {
		return p.usable(ctx, hold, opened[T]{value: kept})
	}
	var none T
	done, ok := p.core.pools.work()
	if !ok {
		hold.Drop()
		return none, berth.ErrClosed
	}
	var first atomic.Bool // set by the first of two: Open has returned, or the caller has left
	result := make(chan opened[T], 1)
	go func() {
		defer done()
		var o opened[T]
		defer func() { // also where Open ends the goroutine
			if first.CompareAndSwap(false, true) {
				result <- o
			} else {
				p.leave(hold, o)
			}
		}()
		p.take(context.WithoutCancel(ctx), hold, &o)
	}()
	select {
	case o := <-result:
		return p.usable(ctx, hold, o)
	case <-ctx.Done():
		if first.CompareAndSwap(false, true) {
			return none, fmt.Errorf("%w while Open ran", caller.EndOf(ctx))
		}
		return p.usable(ctx, hold, <-result)
	}
}

// take opens the held resource, within the hold and OpenTimeout.
func (p *Pool[T]) take(ctx context.Context, hold *engine.Hold, o *opened[T]) {
	within, cancel := hold.Within(ctx)
	defer cancel()
	limited, stop := p.limited(within)
	defer stop()
	o.err = errNoReturn
	defer func() {
		if o.panicked = recover(); o.panicked != nil {
			o.stack = debug.Stack() // the caller panics elsewhere
		}
	}()
	o.value, o.err = p.values.Take(limited, hold.Resource())
}

// usable returns the value that an Open made. If there is none it gives the hold back,
// and goes on with a panic of Open.
func (p *Pool[T]) usable(ctx context.Context, hold *engine.Hold, o opened[T]) (T, error) {
	ended := hold.Err()
	switch {
	case o.panicked != nil:
		bad := fmt.Errorf("berth: Open panicked: %v\n\n%s", o.panicked, o.stack)
		if ended == nil {
			p.blame(ctx, hold, bad, observe.OpenFailed)
		} else {
			hold.Drop()
		}
		panic(o.panicked)
	case o.err == nil && ended == nil:
		return o.value, nil
	case ended == nil:
		p.blame(ctx, hold, o.err, observe.OpenFailed)
		return o.value, o.err
	case o.err == nil:
		p.values.Give(hold.Resource())
	default:
		ended = fmt.Errorf("%w while Open ran: %v", ended, o.err) //nolint:errorlint // that Open was told to stop is not the caller's doing
	}
	hold.Drop()
	return o.value, ended
}

// leave is usable for a caller who has left.
func (p *Pool[T]) leave(hold *engine.Hold, o opened[T]) {
	if o.panicked != nil {
		o.err, o.panicked = fmt.Errorf("berth: Open panicked: %v", o.panicked), nil
	}
	if _, err := p.usable(context.Background(), hold, o); err == nil {
		p.values.Give(hold.Resource())
		hold.Drop()
	}
}

// unhealthy asks Healthy, and gives back a resource that is not healthy.
func (p *Pool[T]) unhealthy(ctx context.Context, a *Allocation[T]) error {
	if p.cfg.Healthy == nil {
		return nil
	}
	within, cancel := a.Within(ctx)
	limited, stop := p.limited(within)
	bad, done := error(nil), false
	defer func() {
		stop()
		cancel()
		switch {
		case !done:
			p.reject(ctx, a.hold, errHealthyPanicked, observe.Unhealthy)
		case bad != nil:
			p.reject(ctx, a.hold, bad, observe.Unhealthy)
		}
	}()
	if bad = p.cfg.Healthy(limited, a.Value()); bad == nil {
		bad = a.Err()
	}
	done = true
	return bad
}

// reject blames a resource, unless the resource is of no use only because the caller
// left.
func (p *Pool[T]) reject(ctx context.Context, hold *engine.Hold, bad error, kind observe.Kind) {
	if ctx.Err() != nil || hold.Err() != nil {
		hold.Drop()
		return
	}
	p.blame(ctx, hold, bad, kind)
}

// blame gives a useless resource back to rest, and has its value closed.
func (p *Pool[T]) blame(ctx context.Context, hold *engine.Hold, bad error, kind observe.Kind) {
	resource := hold.Resource()
	hold.Claim().Event(kind, func(ev *observe.Event) { ev.Err = bad })
	p.values.Drop(resource)
	_ = p.core.releaseResting(ctx, hold, p.cfg.FailureRest, cutReason(bad.Error())) // the observer is told where it fails
}

// failed is the error of an allocating call whose resource was of no use: other claims
// did not keep the call waiting.
func (p *Pool[T]) failed(ctx context.Context, hold *engine.Hold, cause error) error {
	refusal := &berth.AcquireError{
		Name: p.core.name, Claim: hold.Claim().ID, Reason: berth.ReasonFailed, Cause: cause, Waited: hold.Waited(),
	}
	switch {
	case ctx.Err() == nil && p.core.usable() != nil:
		refusal.Reason, refusal.Cause = berth.ReasonClosed, errors.Join(berth.ErrClosed, cause)
	case ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded):
		refusal.Reason = berth.ReasonCancelled
		fallthrough
	case ctx.Err() != nil && !errors.Is(cause, ctx.Err()):
		refusal.Cause = errors.Join(caller.EndOf(ctx), cause)
	}
	return refusal
}

// gaveUp is the error of a try whose caller did not wait for the Source of an empty
// pool.
func (p *Pool[T]) gaveUp(ctx context.Context, refusal *berth.AcquireError, waited time.Duration) error {
	refusal.Reason, refusal.Waited = berth.ReasonCancelled, waited
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		refusal.Reason = berth.ReasonTimedOut
	}
	refusal.Cause = caller.EndOf(ctx)
	return refusal
}

// outOfTime is the error of an AllocateHealthy that found nothing healthy in time.
func (p *Pool[T]) outOfTime(hold *engine.Hold, waited time.Duration, last error) error {
	return &berth.AcquireError{
		Name: p.core.name, Claim: hold.Claim().ID, Reason: berth.ReasonTimedOut, Cause: last, Waited: waited,
	}
}

// unfilled adds to a refusal why the pool is empty, if its Source has failed.
func (p *Pool[T]) unfilled(err error) error {
	refusal, ok := errors.AsType[*berth.AcquireError](err)
	last := p.refresher.LastError()
	if !ok || refusal.Capacity > 0 || last == nil || refusal.Reason == berth.ReasonFailed || refusal.Reason == berth.ReasonClosed {
		return err
	}
	refusal.Cause = errors.Join(refusal.Cause, fmt.Errorf("the pool could not be refreshed: %w", last))
	return refusal
}
