package once

import (
	"context"
	"errors"

	"github.com/berth-go/berth/internal/caller"
	"github.com/berth-go/berth/internal/settings"
)

// Func is what runs in a period. Its context carries the owner of the hold, and ends with the
// caller's or with the hold, whichever comes first: a Func that goes on then may run twice. Pass
// run.Fence to what it writes.
type Func func(ctx context.Context, run *Run) error

// Do runs f if the period that it is now by the server's clock is not done yet and nobody else runs
// it. If somebody has done it, Do returns Done; if somebody is at it, Do returns Running, or waits
// with Config.Wait. The period is the one at the time of the call: a wait does not go on to the
// next.
//
// If f did not run, the errors are those of Begin. Otherwise Do returns f's error and the Result has
// the status Ran. A nil f is refused with berth.ErrInvalidConfig. If f panics, the run has failed.
//
// If f succeeded and its outcome could not be kept, Do returns the error of Run.End: the period may
// run twice. If the hold ended while f ran and f failed, Do joins the *berth.EndError of the hold;
// the joined error matches context.Canceled and context.DeadlineExceeded only if ctx itself has ended.
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

// errNoReturn is the failure of an f that did not return.
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

// within is the context of f: it ends with ctx, the hold or the job.
func (r *Run) within(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, closed := caller.Until(ctx, r.call.j.life)
	inner, cancel := r.lock.Within(ctx)
	return inner, func() {
		cancel()
		closed()
	}
}
