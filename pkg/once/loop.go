package once

import (
	"context"
	"errors"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/caller"
	"github.com/berth-go/berth/internal/settings"
	"github.com/berth-go/berth/pkg/observe"
)

// Run runs f once in each period, across all processes that call Run or Do for the name, until ctx ends or the job or the
// node is closed. When a period starts by the server's clock, or at the period's moment with a Schedule, all callers stand
// in line as by Do with Wait. One caller runs f, and the others wait for the outcome. If f fails, all wait for
// Config.RetryAfter, and then the first in line runs f.
//
// Failures are events, not errors: run_failed, or not_begun if Run could not begin a run. Run goes on even if the server
// does not answer or refuses.
//
// Run returns ctx's error with its cause, berth.ErrClosed, or berth.ErrInvalidConfig for a nil f or a job with
// bad arguments.
func (j *Job) Run(ctx context.Context, f Func) error {
	if j.bad != nil {
		return j.bad
	}
	if err := settings.Function(f != nil); err != nil {
		return err
	}
	if !j.enter(0) {
		return berth.ErrClosed
	}
	defer j.exit(0)
	cfg := j.cfg
	cfg.Wait = true
	known, unkept := time.Time{}, (*Run)(nil)
	for ctx.Err() == nil && !j.isClosed() {
		if unkept != nil && unkept.retell(ctx) {
			unkept = nil
		}
		q, err := j.call(cfg)
		if err != nil {
			return err
		}
		q.known, q.punctual = known, true
		run, result, err := q.do(ctx, f)
		if run != nil && run.unkept() {
			unkept = run
		}
		if result.Status == Done || run != nil && run.succeeded() {
			known = q.period.Start // even if the server does not know the success yet, or has lost it
		}
		j.sleep(ctx, q.next(ctx, result, err))
		if result.Status != Ran && errors.Is(err, berth.ErrDraining) {
			q.stayOut(ctx)
		}
	}
	if ctx.Err() != nil {
		return caller.EndOf(ctx)
	}
	return berth.ErrClosed
}

// next returns when the next round is due, by the node's clock.
func (q *call) next(ctx context.Context, result Result, err error) time.Duration {
	soon := q.j.p.Clock.Now() + min(q.Every/10, time.Minute)
	// f's own failure has been reported, and the process of the last run reports that no attempts
	// are left.
	others := errors.Is(err, ErrUsedUp) && result.Outcome == Failed && result.Node != q.j.p.Node().ID
	told := result.Status == Ran || others
	if err != nil && !told && ctx.Err() == nil && !q.j.isClosed() {
		q.j.tell.Send(observe.Event{Kind: observe.NotBegun, Context: ctx, Name: q.j.name, Detail: q.begins(), Err: err})
	}
	switch {
	case q.over == 0: // the server was not reached
		return soon
	case result.Status == Ran && err != nil:
		soon = q.j.p.Clock.Now() + q.RetryAfter
	case result.Status == Running:
	case err == nil, errors.Is(err, ErrUsedUp),
		errors.Is(err, ErrLate) && q.last.Run != nil && q.last.Run.Period.Start.After(q.period.Start): // with other settings
		return q.over
	case errors.Is(err, berth.ErrDraining):
		return 0
	}
	return min(soon, q.over)
}

// stayOut waits while the process drains, up to the end of the period.
func (q *call) stayOut(ctx context.Context) {
	for again := true; again && ctx.Err() == nil && !q.j.isClosed(); {
		q.j.sleep(ctx, min(q.j.p.Clock.Now()+out, q.over))
		again = q.j.p.Clock.Now() < q.over && q.j.p.Notice.Drains()
	}
}

// out is how often a loop that stays out checks, without I/O, whether it may go on.
const out = time.Second

// begins returns the start of the period, "" if no period is known.
func (q *call) begins() string {
	if q.over == 0 {
		return ""
	}
	return q.period.String()
}

// nap limits one sleep: a timer stops while the machine is suspended, but the clock does not.
const nap = time.Minute

// sleep waits for a moment of the node's clock, or for the end of ctx, the job or the node.
func (j *Job) sleep(ctx context.Context, until time.Duration) {
	for left := until - j.p.Clock.Now(); left > 0; left = until - j.p.Clock.Now() {
		timer := time.NewTimer(min(left, nap))
		select {
		case <-timer.C:
			continue
		case <-ctx.Done():
		case <-j.life.Done():
		case <-j.p.Closing():
		}
		timer.Stop()
		return
	}
}
