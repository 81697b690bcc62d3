package allocator

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/caller"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/values"
	"github.com/berth-go/berth/pkg/observe"
)

// HealthReport is the result of CheckHealth. After a complete run, Checked plus Skipped is the
// number of all resources.
type HealthReport struct {
	// Checked is how many resources were checked.
	Checked int `json:"checked"`
	// Healthy is how many of the checked resources work.
	Healthy int `json:"healthy"`
	// Unhealthy is how many of the checked resources do not work, and rest now.
	Unhealthy int `json:"unhealthy"`
	// Skipped is how many resources were not checked: they were leased, rested, were awaited by a claim, belonged to a paused
	// pool, or had left the pool meanwhile. A resource whose hold was lost before an answer also counts as skipped.
	Skipped int `json:"skipped"`
}

// CheckHealth leases each free resource in turn, opens its value and calls Healthy. Parameter
// workers, at least 1, is how many resources are checked at once. A resource that cannot be
// opened or is not healthy rests for FailureRest, with the error's text, up to 512 bytes, as
// the reason, and its value is closed. A panic of Open or Healthy counts as their error. A
// resource that is leased, rests or is waited for is left alone. Progress goes to the observer.
//
// CheckHealth returns its results even with an error. The error matches ctx.Err() and
// context.Cause(ctx) if ctx ended first; it is berth.ErrInvalidConfig for a bad workers,
// berth.ErrClosed, or the server's error. CheckHealth returns when all checks have ended: a
// Healthy that ignores its ctx delays the return.
func (p *Pool[T]) CheckHealth(ctx context.Context, workers int) (HealthReport, error) {
	if err := p.core.usable(); err != nil {
		return HealthReport{}, err
	}
	if workers < 1 {
		return HealthReport{}, berth.Invalid("workers", "%d is not at least 1", workers)
	}
	h := health[T]{
		values: p.values, healthy: p.cfg.Healthy, rest: p.cfg.FailureRest, tell: p.core.tell, limited: p.limited,
		lease: func(ctx context.Context, resource string) (trial, error) {
			hold, err := p.core.allocateOnly(ctx, resource)
			if err != nil {
				return nil, err
			}
			return poolTrial{p.core, hold}, nil
		},
	}
	return h.run(ctx, p.core.pools.face().all(ctx, p.core.name), workers)
}

// poolTrial is a trial in a pool.
type poolTrial struct {
	core *core
	*engine.Hold
}

func (t poolTrial) release(ctx context.Context, rest time.Duration, reason string) error {
	return t.core.releaseResting(ctx, t.Hold, rest, reason)
}

// trial is a hold on a resource that is checked.
type trial interface {
	Within(ctx context.Context) (context.Context, context.CancelFunc)
	release(ctx context.Context, rest time.Duration, reason string) error
}

// health is what checks the resources of a pool.
type health[T any] struct {
	values  *values.Store[T]
	healthy func(context.Context, T) error // nil: all are
	rest    time.Duration
	tell    func(observe.Event)
	// limited bounds one Open or one Healthy.
	limited func(context.Context) (context.Context, context.CancelFunc)
	// lease takes a resource if it is free and nobody waits; otherwise its error matches
	// berth.ErrBusy.
	lease func(ctx context.Context, resource string) (trial, error)
}

// verdict is the result for one resource.
type verdict struct {
	resource string // that was asked, "" for none
	fault    error  // what is wrong with it, nil if it works
	skipped  bool
	err      error // what ends the whole run
}

// run checks resources, workers of them at once. It counts the results and tells of
// them on the caller's goroutine.
func (h *health[T]) run(ctx context.Context, resources iter.Seq2[ResourceInfo, error], workers int) (report HealthReport, err error) {
	more, enough := context.WithCancel(ctx)
	defer enough()
	verdicts := make(chan verdict)
	go func() {
		defer close(verdicts)
		h.checkAll(ctx, more, resources, workers, verdicts)
	}()
	for v := range verdicts {
		if v.err != nil && err == nil {
			err = v.err // later ones are like the first, or of the end of more
			enough()
		}
		switch {
		case v.skipped:
			report.Skipped++
			continue
		case v.resource == "":
			continue
		case v.fault != nil:
			report.Unhealthy++
			h.tell(observe.Event{Kind: observe.Unhealthy, Context: ctx, Resource: v.resource, Err: v.fault})
		default:
			report.Healthy++
		}
		report.Checked++
		h.tell(observe.Event{Kind: observe.HealthProgress, Context: ctx, Count: report.Checked})
	}
	if err != nil && ctx.Err() != nil {
		err = caller.EndOf(ctx)
	}
	h.tell(observe.Event{Kind: observe.HealthChecked, Context: ctx, Count: report.Checked, Err: err})
	return report, err
}

// checkAll begins checks until more ends, and returns when all checks have ended. Each
// check has its own goroutine.
func (h *health[T]) checkAll(ctx, more context.Context, resources iter.Seq2[ResourceInfo, error], workers int, verdicts chan<- verdict) {
	var checks sync.WaitGroup
	defer checks.Wait()
	slots := make(chan struct{}, workers)
	for info, err := range resources {
		switch {
		case more.Err() != nil:
			err = caller.EndOf(more)
			fallthrough
		case err != nil:
			verdicts <- verdict{err: err}
			return
		case info.State != Free:
			verdicts <- verdict{skipped: true}
			continue
		}
		select {
		case slots <- struct{}{}:
		case <-more.Done():
			verdicts <- verdict{err: caller.EndOf(more)}
			return
		}
		checks.Go(func() {
			defer func() { <-slots }()
			verdicts <- h.check(ctx, info.Resource)
		})
	}
}

// check leases one resource, tries it, and gives it back.
func (h *health[T]) check(ctx context.Context, resource string) verdict {
	hold, err := h.lease(ctx, resource)
	switch {
	case err == nil:
	case ctx.Err() != nil: // before ErrBusy: a deadline that passed matches that too
		return verdict{err: caller.EndOf(ctx)}
	case errors.Is(err, berth.ErrBusy), errors.Is(err, berth.ErrAbsent):
		return verdict{skipped: true}
	default:
		return verdict{err: err}
	}
	within, cancel := hold.Within(ctx)
	v := h.try(ctx, within, resource)
	cancel()
	rest, reason := time.Duration(0), ""
	if v.fault != nil {
		rest, reason = h.rest, cutReason(v.fault.Error())
	}
	err = hold.release(ctx, rest, reason)
	if v.err == nil && err != nil && !errors.Is(err, berth.ErrNotHeld) && !errors.Is(err, berth.ErrReleased) {
		v.err = err
	}
	return v
}

// try opens a resource under a hold, whose context is within, and asks whether the
// resource works. An error after the end of the hold, of ctx or of the pool says
// nothing about the resource.
func (h *health[T]) try(ctx, within context.Context, resource string) verdict {
	fault := h.ask(within, resource)
	switch {
	case fault == nil:
	case ctx.Err() != nil:
		return verdict{err: caller.EndOf(ctx)}
	case h.values.Closed():
		return verdict{err: berth.ErrClosed}
	case within.Err() != nil:
		return verdict{skipped: true}
	}
	return verdict{resource: resource, fault: fault}
}

// ask returns what is wrong with a resource; then it drops the resource's value.
func (h *health[T]) ask(within context.Context, resource string) error {
	var value T
	if err := caller.Catch("Open", func() (err error) {
		limited, stop := h.limited(within)
		defer stop()
		value, err = h.values.Take(limited, resource)
		return err
	}); err != nil {
		return err
	}
	defer h.values.Give(resource)
	if h.healthy == nil {
		return nil
	}
	fault := caller.Catch("Healthy", func() error {
		limited, stop := h.limited(within)
		defer stop()
		return h.healthy(limited, value)
	})
	if fault != nil && within.Err() == nil {
		h.values.Drop(resource)
	}
	return fault
}
