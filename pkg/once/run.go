package once

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/caller"
	"github.com/berth-go/berth/internal/settings"
	"github.com/berth-go/berth/pkg/fence"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// Run is a run of a period that has begun. It is safe for concurrent use.
type Run struct {
	call  *call
	lock  *qlock.Lock
	since time.Duration // when it began, by the node's clock

	once  sync.Once
	info  Info  // Outcome, Error and Ended are set by once
	ended error // set by once: what End returns
	told  error // set by once: why the outcome is not kept
}

// Name is the name that runs.
func (r *Run) Name() string { return r.call.j.name }

// Period is the period that the run is for.
func (r *Run) Period() Period { return r.info.Period }

// Attempt is the number of the run in its period, from 1.
func (r *Run) Attempt() int { return r.info.Attempt }

// Fence is the number of the run's hold, greater than that of each run before, as long as the server keeps
// its data. Pass it on to whatever the run writes, and refuse smaller ones there: see package fence.
func (r *Run) Fence() int64 { return r.info.Fence }

// Context ends when the run's hold does: with End, or because the hold was lost. It has the values of
// the context of Begin, but not its end.
func (r *Run) Context() context.Context { return r.lock.Context() }

// Hold is the lock that the run is under. Do not release or detach it: End does.
func (r *Run) Hold() berth.Hold { return r.lock }

// End says how the run ended, with failure nil for success, and then releases the lock. A failure
// after ctx was cancelled, or after the job was closed, is a stop: see Stopped.
//
// Until the server has answered, or the hold is over, End asks again, whether ctx has ended or not,
// and the lock stays held, so that nobody begins again after a success. That may take as long as the
// lease. If the hold is over, End still tells the server, within Retry of node.Config, or within its
// CleanupTimeout once ctx has ended: the outcome counts unless another run has begun meanwhile.
//
// End returns nil if the outcome is kept. Otherwise it returns a *fence.StaleError, which matches
// fence.ErrStale, if another run has begun since, under a greater fence, so that the period may run
// twice; or the server's error. Both come with the *berth.EndError of the hold if that has ended.
// End may be called more than once: the first call counts, and the others wait and return the same. Of a nil Run it
// returns berth.ErrNotHeld.
func (r *Run) End(ctx context.Context, failure error) error {
	if r == nil {
		return berth.ErrNotHeld
	}
	r.once.Do(func() {
		outcome := Succeeded
		switch lost, closed := r.lock.Err(), r.call.j.isClosed(); {
		case failure != nil && lost == nil && (closed || ctx.Err() == context.Canceled),
			failure != nil && closed && errors.Is(lost, berth.ErrReleased): // by a Close that may not wait
			outcome = Stopped
		case failure != nil:
			outcome = Failed
		}
		r.end(ctx, outcome, failure)
		r.report(ctx, failure)
		r.call.j.exit(1)
	})
	return r.ended
}

func (r *Run) end(ctx context.Context, outcome Outcome, failure error) {
	if r.info.Outcome = outcome; failure != nil {
		r.info.Error = short(failure.Error())
	}
	r.info.Ended = r.info.Begun.Add(r.call.j.p.Clock.Now() - r.since)
	if r.told = r.tell(ctx); r.told != nil {
		r.ended = errors.Join(r.told, r.lock.Err())
	}
	_ = r.lock.Release(ctx) // a release that fails is an event
}

// report tells how it ended.
func (r *Run) report(ctx context.Context, failure error) {
	event := observe.Event{Kind: observe.Ran, Count: r.info.Attempt, Held: r.info.Took(), Err: errors.Join(failure, r.ended)}
	switch {
	case r.info.Outcome == Stopped && r.ended == nil:
		event.Kind = observe.RunStopped
	case event.Err != nil:
		event.Kind = observe.RunFailed
	}
	r.send(ctx, event)
}

// tell has the server keep the outcome: under the hold for as long as that lasts, then without it.
func (r *Run) tell(ctx context.Context) error {
	within, cancel := r.lock.Within(context.WithoutCancel(ctx))
	err := r.ask(within, scriptkit.UntilDone)
	cancel()
	if err == nil || r.lock.Err() == nil {
		return err
	}
	last := context.WithoutCancel(ctx)
	if ctx.Err() != nil {
		last, cancel = scriptkit.Limit(last, r.call.j.p.Settings.CleanupTimeout)
		defer cancel()
	}
	return r.ask(last, scriptkit.Bounded)
}

// succeeded says that the period is done, as far as this process knows. The run has ended.
func (r *Run) succeeded() bool {
	return r.info.Outcome == Succeeded && !errors.Is(r.ended, fence.ErrStale)
}

// unkept says that it succeeded and the server was not reached to be told. The run has ended.
func (r *Run) unkept() bool {
	return r.info.Outcome == Succeeded && errors.Is(r.ended, berth.ErrUnavailable)
}

// retell tells of a success once more, and says whether that was answered.
func (r *Run) retell(ctx context.Context) bool {
	ctx, cancel := caller.Until(ctx, r.call.j.life)
	defer cancel()
	return !errors.Is(r.ask(ctx, scriptkit.Bounded), berth.ErrUnavailable)
}

// rest is how long nobody is to begin again.
func (r *Run) rest() time.Duration {
	if r.info.Outcome != Failed {
		return 0
	}
	return r.call.RetryAfter
}

// send tells of the run.
func (r *Run) send(ctx context.Context, e observe.Event) {
	e.Context, e.Name, e.Node, e.Claim = ctx, r.call.j.name, r.info.Node, r.lock.ID()
	e.Fence, e.Detail = r.info.Fence, r.info.Period.String()
	r.call.j.tell.Send(e)
}

// short is a text in the bytes that are kept of it.
func short(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), settings.MaxText)], "")
}
