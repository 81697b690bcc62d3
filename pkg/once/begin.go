package once

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/caller"
	"github.com/berth-go/berth/internal/guard"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/qlock"
)

// Status is the result of a call.
type Status string

// The results of a call. If a call returns an error, its Status is Ran if f ran, else empty.
const (
	// Ran: this call has run the period; for Begin, the run has begun.
	Ran Status = "ran"
	// Done: the period was done before the call, or while the call waited.
	Done Status = "done"
	// FiredTwice: nothing ran for this call, and an earlier Firing of this process was for the same period: two firings
	// of a schedule fall into one period.
	FiredTwice Status = "fired_twice"
	// Running: another call runs the period, and this call did not wait; or another call has taken
	// the lock first.
	Running Status = "running"
	// HasFailed: the last run of the period has failed, its RetryAfter has not passed, and the call did
	// not wait.
	HasFailed Status = "failed"
)

// Result is the status of a call and the run that the status is about: for Done the successful run, for
// Running the run under way, if known, and for HasFailed and ErrUsedUp the last run. Period is filled
// whenever the server could be asked.
type Result struct {
	Status Status `json:"status"`
	Info
}

// call is one call of Begin or Do, or one round of Run.
type call struct {
	j      *Job
	Config // Every is the length of the period, even with a Schedule
	span
	over     time.Duration // by the node's clock, when the period is certainly over; 0 while no period is known
	fires    time.Duration // by the node's clock, when the moment of the period is
	punctual bool          // the run begins at the moment, not earlier
	asked    time.Duration // by the node's clock, when the call came
	last     Last          // as this call has read it
	known    time.Time     // the start of the newest period that this process knows to be done
}

// call returns a new call with these options.
func (j *Job) call(cfg Config) (*call, error) {
	if j.bad != nil {
		return nil, j.bad
	}
	q := &call{j: j, Config: cfg, asked: j.p.Clock.Now()}
	err := q.fix(time.Now()) //nolint:forbidigo // what is as long as a period goes by this one until the server has said its time
	q.span = span{}
	return q, err
}

// fix fixes the period.
func (q *call) fix(now time.Time) (err error) {
	if q.span, err = q.at(now); err != nil {
		return err
	}
	cfg := q.j.cfg
	cfg.Wait, cfg.Every = q.Wait, q.period.length()
	q.Config = cfg.complete()
	return nil
}

type firing struct{}

// Firing returns a context that marks calls as firings of a scheduler. If two firings of a process fall into one
// period, and nothing runs for the second, the second has the status FiredTwice, and an event of that kind is
// sent.
func Firing(ctx context.Context) context.Context { return context.WithValue(ctx, firing{}, true) }

// Begin begins a run of the current period, by the server's clock. Begin is for callers that cannot
// pass a function; Do is safer. The caller must call End of the returned Run, whose hold renews by
// itself.
//
// The Run is nil if nothing may run; the Result or the error says why. Begin returns ErrUsedUp and
// ErrLate, a *berth.ConfigError for a job with bad arguments, and the errors of
// qlock.Locks.TryLock or, with Wait, of Lock: for example berth.ErrBusy if the name is paused,
// berth.ErrDraining and berth.ErrClosed. It returns a *berth.AcquireError if ctx has ended, a
// *berth.EndError if the hold was lost before the run could begin, berth.ErrIncompatible for data
// of a newer release, and the server's error.
//
// A call without an answer is repeated within node.Config.Retry. If that call had begun a run, the
// attempt counts.
func (j *Job) Begin(ctx context.Context) (*Run, Result, error) {
	q, err := j.call(j.cfg)
	if err != nil {
		return nil, Result{}, err
	}
	return q.begin(ctx)
}

func (q *call) begin(ctx context.Context) (*Run, Result, error) {
	if q.Wait && q.j.Fence(ctx) > 0 { // the call would wait for itself
		return nil, Result{}, fmt.Errorf("%w: %q runs", berth.ErrDeadlock, q.j.name)
	}
	if !q.j.enter(0) {
		return nil, Result{}, berth.ErrClosed
	}
	defer q.j.exit(0)
	for {
		if q.j.isClosed() {
			return nil, Result{Info: Info{Period: q.period}}, berth.ErrClosed
		}
		if err := q.look(ctx); err != nil {
			if ctx.Err() != nil {
				err = q.left(ctx)
			} else if q.j.isClosed() {
				err = berth.ErrClosed
			}
			return nil, Result{Info: Info{Period: q.period}}, err
		}
		if result, err := q.decided(); err != nil || result.Status != "" {
			return nil, q.compare(ctx, result), err
		}
		if q.punctual && q.fires > q.j.p.Clock.Now() {
			if q.j.sleep(ctx, q.fires); ctx.Err() != nil {
				return nil, Result{Info: Info{Period: q.period}}, q.left(ctx)
			}
			continue
		}
		d := q.try(ctx)
		if d.result.Status != HasFailed || !q.Wait {
			return d.run, q.compare(ctx, d.result), d.err
		}
		if q.j.sleep(ctx, q.j.p.Clock.Now()+d.rest); ctx.Err() != nil {
			return nil, Result{Info: Info{Period: q.period}}, q.left(ctx)
		}
	}
}

// decided returns the result if the known runs say that nothing may run, so that the call need not
// stand in line.
func (q *call) decided() (Result, error) {
	ahead := q.known.Sub(q.period.Start) // the server has lost that success, or its clock was set back
	switch s, r := q.last.Success, q.last.Run; {
	case s != nil && q.overlaps(s.Period, q.period):
		return Result{Done, *s}, nil
	case ahead >= 0 && ahead <= q.Every+slack:
		return Result{Done, Info{Period: q.period}}, nil
	case r != nil && r.Period.Start.Equal(q.period.Start) && r.Outcome == Failed && r.Attempt >= q.Attempts:
		return q.seen(statusUsedUp, *r)
	}
	return Result{}, nil
}

// compare reports, once in the period, that a run with other settings has done the period, and reports a second
// firing in the period.
func (q *call) compare(ctx context.Context, result Result) Result {
	if differ := q.differs(result); differ != "" && q.j.differs(q.over) {
		q.j.tell.Send(observe.Event{Kind: observe.SettingsDiffer, Context: ctx, Name: q.j.name, Detail: differ})
	}
	if ctx.Value(firing{}) != nil && q.j.firedIn(q.period) && result.Status != "" && result.Status != Ran {
		result.Status = FiredTwice
		q.j.tell.Send(observe.Event{Kind: observe.FiredTwice, Context: ctx, Name: q.j.name, Detail: q.period.String()})
	}
	return result
}

// differs returns the differences between the settings of the run that has done the period and this call's; ""
// for none.
func (q *call) differs(result Result) string {
	stored := result.Period
	if every := stored.length(); result.Status != Done || result.Fence == 0 || every <= 0 {
		return ""
	} else if q.Schedule == nil {
		var differ []string
		if every != q.Every {
			differ = append(differ, fmt.Sprintf("Every %s, stored %s", q.Every, every))
		}
		offset := time.Duration(stored.Start.UnixMilli()%every.Milliseconds()) * time.Millisecond
		if offset != q.Offset {
			differ = append(differ, fmt.Sprintf("Offset %s, stored %s", q.Offset, offset))
		}
		return strings.Join(differ, "; ")
	}
	if own, err := q.at(stored.Start); err != nil || own.period != stored {
		return fmt.Sprintf("Schedule %s to %s, stored %s to %s", q.period, Period{Start: q.period.End}, stored, Period{Start: stored.End})
	}
	return ""
}

// slack is how much more than a period the server's clock may go back before stored times ahead are
// ignored, as in scripts/once/open.lua.
const slack = time.Minute

// left returns the error of a call whose ctx ended before a run could begin.
func (q *call) left(ctx context.Context) error {
	reason := berth.ReasonCancelled
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		reason = berth.ReasonTimedOut
	}
	return &berth.AcquireError{Name: q.j.name, Reason: reason, Waited: q.j.p.Clock.Now() - q.asked, Cause: caller.EndOf(ctx)}
}

// decision is the result of a try.
type decision struct {
	run    *Run
	result Result
	rest   time.Duration // for HasFailed: the remaining time
	err    error
}

// try takes the lock and lets the server decide. If ctx ends, try returns at once, and in the
// background a run that has begun is stopped and the lock is released.
func (q *call) try(ctx context.Context) decision {
	lock, err := q.lock(ctx)
	if err != nil {
		result, err := q.notLocked(ctx, err)
		return decision{result: result, err: err}
	}
	if !q.j.enter(1) {
		_ = lock.Release(ctx) // nothing ran under it; a release that fails is an event
		return decision{err: berth.ErrClosed}
	}
	decided := make(chan decision) // unbuffered: the caller either takes the decision or has left
	go func() {
		var d decision
		if err := guard.Run("a decision", q.j.tell, func() error {
			d = q.decide(ctx, lock)
			return nil
		}); err != nil {
			d = decision{err: err}
		}
		if d.run == nil {
			_ = lock.Release(ctx)
			q.j.exit(1)
		}
		select {
		case decided <- d:
		case <-ctx.Done():
			if d.run != nil {
				d.run.end(ctx, Stopped, q.left(ctx))
				q.j.exit(1)
			}
		}
	}()
	select {
	case d := <-decided:
		return d
	case <-ctx.Done():
		return decision{result: Result{Info: Info{Period: q.period}}, err: q.left(ctx)}
	}
}

// look reads the stored runs. The first look of a call fixes its period: the current one.
func (q *call) look(ctx context.Context) error {
	ctx, cancel := caller.Until(ctx, q.j.life)
	defer cancel()
	last, now, err := q.j.look(ctx)
	if err != nil {
		return err
	}
	at, clock := time.UnixMilli(now), q.j.p.Clock.Now()
	if q.last = last; q.over == 0 {
		if err := q.fix(at); err != nil {
			return err
		}
		q.over = clock + q.period.End.Sub(at)
	}
	q.fires = clock + q.moment.Sub(at)
	return nil
}

// lock takes the lock of the name, and waits for it while the period lasts. An owner who holds the
// lock may not re-enter, since each hold is a run.
func (q *call) lock(ctx context.Context) (*qlock.Lock, error) {
	ctx, cancel := caller.Until(berth.WithOwner(ctx, ""), q.j.life)
	defer cancel()
	if !q.Wait {
		return q.j.locks.TryLock(ctx, q.j.name, nil)
	}
	return q.j.locks.Lock(ctx, q.j.name, &qlock.LockOptions{MaxWait: max(q.over-q.j.p.Clock.Now(), time.Millisecond)})
}

// notLocked returns the result of a call that did not get the lock.
func (q *call) notLocked(ctx context.Context, err error) (Result, error) {
	result := Result{Info: Info{Period: q.period}}
	var refused *berth.AcquireError
	switch {
	case !errors.As(err, &refused):
	case ctx.Err() == nil && q.j.isClosed():
		refused.Reason, refused.Cause = berth.ReasonClosed, berth.ErrClosed
	case !q.Wait && (refused.Reason == berth.ReasonHeld || refused.Reason == berth.ReasonQueuedAhead):
		result.Status, err = Running, nil
		if r := q.last.Run; r != nil && r.Outcome == Begun {
			result.Info = *r
		}
	case refused.Reason == berth.ReasonTimedOut && ctx.Err() == nil:
		err = fmt.Errorf("%w %s of %q: %w", ErrLate, q.period, q.j.name, err)
	}
	return result, err
}

// seen returns the result about another call's run.
func (q *call) seen(status string, info Info) (Result, error) {
	switch status {
	case statusDone:
		return Result{Done, info}, nil
	case statusFailed:
		return Result{HasFailed, info}, nil
	}
	return Result{Info: info}, fmt.Errorf("%w: %d of %d for %s of %q: %s", ErrUsedUp, info.Attempt, q.Attempts, q.period, q.j.name,
		cmp.Or(info.Error, "the process of the last one died"))
}
