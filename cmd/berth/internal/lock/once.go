package lock

import (
	"context"
	"fmt"

	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/internal/view"
	"github.com/berth-go/berth/pkg/once"
)

// settle takes what is kept of the runs of the name, and says whether a run that has begun goes on: it holds the lock then.
// The lock was read after the runs, and the run may have ended in between. So the runs are read again where it does not
// hold the lock: an outcome is kept before the lock is released.
func (s *shown) settle(ctx context.Context, job *once.Job, last once.Last) (err error) {
	if run := last.Run; run != nil && run.Outcome == once.Begun {
		if s.GoesOn = s.Lock != nil && s.Fence == run.Fence; !s.GoesOn {
			last, err = job.Last(ctx)
			s.GoesOn = last.Run != nil && last.Run.Outcome == once.Begun && last.Run.Fence != run.Fence // it has begun since
		}
	}
	if last.Run != nil || last.Success != nil {
		s.Once = &last
	}
	return err
}

// printRuns shows the runs under what is shown of the lock.
func (s *shown) printRuns(a *app.App) error {
	if s.Once == nil {
		return nil
	}
	run, success := s.Once.Run, s.Once.Success
	says := view.Run(success, s.GoesOn)
	if run != nil && success != nil && run.Fence == success.Fence {
		says = "this run"
	}
	_, err := fmt.Fprintf(a.Out, "\nOnce in each period\nNewest run: %s\nNewest success: %s\n", view.Run(run, s.GoesOn), says)
	return err
}
