package once

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/fence"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/scriptkit"
	"github.com/berth-go/berth/scripts/composed"
)

// The statuses of the scripts; a test compares them with the headers.
const (
	statusBegun        = "begun"
	statusDone         = "done"
	statusFailed       = "failed"
	statusUsedUp       = "used_up"
	statusChanged      = "changed"
	statusLate         = "late"
	statusEnded        = "ended"
	statusStale        = "stale"
	statusIncompatible = "incompatible"
)

// unreadable is the scripts' word for stored data that no release has written.
const unreadable = "0"

// mostChanged is how often a call asks again if its reading of the last run is outdated. The call holds the lock under
// which runs begin, so Berth itself never changes the run so often.
const mostChanged = 10

// decide asks the server to begin the run under the lock, and asks again if another run has begun since the call's last
// reading.
func (q *call) decide(ctx context.Context, lock *qlock.Lock) (d decision) {
	for range mostChanged {
		changed := false
		if d, changed = q.decideOnce(ctx, lock); !changed {
			return d
		}
	}
	d.err = fmt.Errorf("berth: the last run of %q has changed %d times under its lock", q.j.name, mostChanged)
	return d
}

// decideOnce asks once, with the call's last reading. The request goes on when the caller or the hold ends, since the
// call must learn whether the run has begun.
func (q *call) decideOnce(ctx context.Context, lock *qlock.Lock) (d decision, changed bool) {
	j := q.j
	d.result = Result{Info: Info{Period: q.period}}
	if ctx.Err() != nil {
		d.err = q.left(ctx)
		return d, false
	}
	args := append(q.args(lock.Fence()), strconv.Itoa(q.Attempts), lock.Node(), j.p.Settings.Label, q.middle(), "0", "0")
	if last := q.last.Run; last != nil {
		args = append(args[:len(args)-2], millis(last.Period.Start), strconv.FormatInt(q.between(last.Period.End, q.period.Start), 10))
	}
	r, err := j.p.Runner.Run(context.WithoutCancel(ctx), composed.OnceBegin, scriptkit.Bounded, []string{j.key()}, args)
	if err != nil {
		d.err = errors.Join(err, lock.Err())
		return d, false
	}
	switch r.Status() {
	case statusChanged:
		q.last.Run, d.err = parseInfo(r.Str(1))
		return d, d.err == nil
	case statusBegun:
		if d.run, d.err = q.begun(ctx, lock, &r); d.err == nil {
			d.result = Result{Ran, d.run.info}
		}
	case statusDone, statusUsedUp, statusFailed:
		info, err := parseInfo(r.Str(1))
		if d.err = errors.Join(r.Err(), err); d.err != nil || info == nil {
			return d, false
		}
		if r.Status() == statusFailed {
			d.rest = time.Duration(r.Int(2)) * time.Millisecond
		}
		d.result, d.err = q.seen(r.Status(), *info)
	case statusLate:
		d.err = fmt.Errorf("%w %s of %q", ErrLate, q.period, q.j.name)
	case statusStale:
		d.result.Status = Running
	default:
		d.err = unexpected(q.j.name, &r)
	}
	return d, false
}

// begun returns the run that has begun. If its hold was lost meanwhile, begun stops the run before
// anything has run.
func (q *call) begun(ctx context.Context, lock *qlock.Lock, r *scriptkit.Reply) (*Run, error) {
	run := &Run{call: q, lock: lock, since: q.j.p.Clock.Now(), info: Info{
		Period: q.period, Attempt: int(r.Int(1)), Fence: lock.Fence(), Node: lock.Node(), Label: q.j.p.Settings.Label,
		Outcome: Begun, Begun: time.UnixMilli(r.Int(2)).UTC(), Missed: int(r.Int(3)),
	}}
	if err := errors.Join(r.Err(), lock.Err()); err != nil {
		run.end(ctx, Stopped, err)
		return nil, err
	}
	if run.info.Missed > 0 {
		run.send(ctx, observe.Event{Kind: observe.Missed, Count: run.info.Missed})
	}
	return run, nil
}

// ask runs the script that stores the outcome.
func (r *Run) ask(ctx context.Context, mode scriptkit.Mode) error {
	j, i := r.call.j, &r.info
	reply, err := j.p.Runner.Run(ctx, composed.OnceEnd, mode, []string{j.key()}, append(r.call.args(i.Fence),
		strconv.Itoa(i.Attempt), strconv.FormatInt(i.Begun.UnixMilli(), 10), i.Node, i.Label, string(i.Outcome), i.Error,
		strconv.FormatInt(r.rest().Milliseconds(), 10)))
	if err != nil {
		return err
	}
	switch reply.Status() {
	case statusEnded:
		return nil
	case statusStale:
		stale := &fence.StaleError{Name: r.call.j.name, Fence: i.Fence, Greatest: reply.Int(1)}
		return errors.Join(stale, reply.Err())
	}
	return unexpected(r.call.j.name, &reply)
}

// args returns the first arguments of both scripts.
func (q *call) args(fence int64) []string {
	return []string{
		strconv.FormatInt(fence, 10), millis(q.period.Start), millis(q.period.End), millis(q.due), millis(q.keep),
	}
}

// middle returns the middle of a period around a moment, "0" for other periods.
func (q *call) middle() string {
	if q.Schedule == nil {
		return "0"
	}
	return millis(middle(q.period.Start, q.period.End))
}

func millis(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }

// unexpected returns the error for an unexpected reply.
func unexpected(name string, r *scriptkit.Reply) error {
	if r.Status() == statusIncompatible && r.Str(1) == unreadable {
		return fmt.Errorf("berth: what is kept of the runs of %q is %w: it cannot be read", name, state.ErrDamaged)
	} else if r.Status() == statusIncompatible {
		return state.IncompatibleRuns(name, r.Str(1))
	}
	return fmt.Errorf("berth: unexpected status %q for %q", r.Status(), name)
}
