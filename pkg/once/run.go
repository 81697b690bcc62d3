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

// Run is a run that has begun. A Run is safe for concurrent use.
type Run struct {
	call  *call
	lock  *qlock.Lock
	since time.Duration // when the run began, by the node's clock

	once  sync.Once
	info  Info  // Outcome, Error and Ended are set by once
	ended error // set by once: the result of End
	told  error // set by once: why the outcome is not stored
}

// Name returns the name of the job.
func (r *Run) Name() string { return r.call.j.name }

// Period returns the period of the run.
func (r *Run) Period() Period { return r.info.Period }

// Attempt returns the number of the run in its period, from 1.
func (r *Run) Attempt() int { return r.info.Attempt }

// Fence returns the fencing token of the run's hold, greater than those of all earlier runs as long as the
// server keeps its data. Pass the token to the systems that the run writes to, and refuse smaller tokens
// there; see package fence.
func (r *Run) Fence() int64 { return r.info.Fence }

// Context returns a context with the values, but not the end, of the context of Begin. The returned
// context ends with the run's hold: by End, or because the hold was lost.
func (r *Run) Context() context.Context { return r.lock.Context() }

// Hold returns the lock of the run. Do not release or detach the lock; End releases it.
func (r *Run) Hold() berth.Hold { return r.lock }

// End stores how the run ended, with a nil failure for success, and then releases the lock. A
// failure after ctx was cancelled, or after the job was closed, is a stop; see Stopped.
//
// End repeats the call until the server has answered or the hold is over, whether ctx has ended or
// not. The lock stays held meanwhile, so that no other run begins after a success. The repeats may
// take as long as the lease. If the hold is over, End still tries to store the outcome within
// node.Config.Retry, or within node.Config.CleanupTimeout once ctx has ended; the outcome counts
// unless another run has begun meanwhile.
//
// End returns nil if the outcome is stored. If another run has begun since, under a greater fence, so that the
// period may run twice, End returns a *fence.StaleError, which matches fence.ErrStale. Otherwise End returns the
// server's error. Both errors are joined with the hold's *berth.EndError if the hold has ended.
//
// End may be called more than once: the first call counts, and later calls wait and return the same. End of a nil
// Run returns berth.ErrNotHeld.
func (r *Run) End(ctx context.Context, failure error) error {
	if r == nil {
		return berth.ErrNotHeld
	}
	r.once.Do(func() {
		outcome := Succeeded
		switch lost, closed := r.lock.Err(), r.call.j.isClosed(); {
		case failure != nil && lost == nil && (closed || ctx.Err() == context.Canceled),
			failure != nil && closed && errors.Is(lost, berth.ErrReleased): // by a Close that does not wait
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
	_ = r.lock.Release(ctx) // a failed release is an event
}

// report sends the event of the run's end.
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

// tell stores the outcome on the server: under the hold while it lasts, then without it.
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

// succeeded reports whether the period is done, as far as this process knows. The run must have
// ended.
func (r *Run) succeeded() bool {
	return r.info.Outcome == Succeeded && !errors.Is(r.ended, fence.ErrStale)
}

// unkept reports whether the run succeeded but the server could not be told. The run must have
// ended.
func (r *Run) unkept() bool {
	return r.info.Outcome == Succeeded && errors.Is(r.ended, berth.ErrUnavailable)
}

// retell sends a success again, and reports whether the server answered.
func (r *Run) retell(ctx context.Context) bool {
	ctx, cancel := caller.Until(ctx, r.call.j.life)
	defer cancel()
	return !errors.Is(r.ask(ctx, scriptkit.Bounded), berth.ErrUnavailable)
}

// rest returns how long no other run may begin.
func (r *Run) rest() time.Duration {
	if r.info.Outcome != Failed {
		return 0
	}
	return r.call.RetryAfter
}

// send sends an event about the run.
func (r *Run) send(ctx context.Context, e observe.Event) {
	e.Context, e.Name, e.Node, e.Claim = ctx, r.call.j.name, r.info.Node, r.lock.ID()
	e.Fence, e.Detail = r.info.Fence, r.info.Period.String()
	r.call.j.tell.Send(e)
}

// short returns the part of a text that is stored.
func short(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), settings.MaxText)], "")
}
