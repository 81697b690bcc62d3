package once

import (
	"context"
	"errors"

	"github.com/berth-go/berth/internal/caller"
	"github.com/berth-go/berth/internal/settings"
)

// Func is the function that runs in a period. Its ctx carries the owner of the hold, and ends
// with the caller's context or with the hold, whichever ends first. A Func must then return:
// otherwise another run may begin meanwhile. Pass run.Fence to the systems that the Func writes
// to.
type Func func(ctx context.Context, run *Run) error

// Do runs f if the current period, by the server's clock, is not done yet and no other call runs
// it. If the period is done, Do returns Done; if another call runs it, Do returns Running or, with
// Config.Wait, waits. A wait ends with the period at the time of the call, and does not go on to
// the next one.
//
// If f did not run, Do returns an error of Begin or none. Otherwise Do returns f's error, and the
// Result has the status Ran. A nil f is refused with berth.ErrInvalidConfig. If f panics, the run
// has failed.
//
// If f succeeded but its outcome could not be stored, Do returns the error of Run.End: the period may
// run twice. If the hold ended while f ran and f failed, Do joins the hold's *berth.EndError; the
// joined error matches context.Canceled and context.DeadlineExceeded only if ctx itself has ended.
func (j *Job) Do(ctx context.Context, f Func) (Result, error) {
	q, err := j.call(j.cfg)
	if err := errors.Join(err, settings.Function(f != nil)); err != nil {
		return Result{}, err
	}
	_, result, err := q.do(ctx, f)
	return result, err
}

func (q *call) do(ctx context.Context, f Func) (*Run, Result, error) {
	run, result, err := q.begin(ctx)
	if run != nil {
		result, err = run.do(ctx, f)
	}
	return run, result, err
}

// errNoReturn is the failure of an f that ended without returning.
var errNoReturn = errors.New("it panicked, or ended its goroutine")

func (r *Run) do(ctx context.Context, f Func) (result Result, err error) {
	inner, cancel := r.within(ctx)
	failure := errNoReturn
	defer func() {
		cancel()
		lost := r.lock.Err()
		if err = r.End(ctx, failure); failure != nil {
			if err = caller.Outcome(ctx, failure, lost, lost != nil); r.told != nil {
				err = errors.Join(err, r.told)
			}
		}
		result = Result{Ran, r.info}
	}()
	failure = f(inner, r)
	return result, err
}

// within returns the context of f, which ends with ctx, the hold or the job.
func (r *Run) within(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, closed := caller.Until(ctx, r.call.j.life)
	inner, cancel := r.lock.Within(ctx)
	return inner, func() {
		cancel()
		closed()
	}
}
