package lock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/pkg/once"
)

// runs is what package once keeps of the runs of a name.
type runs struct {
	once.Last
	goesOn bool // Run has begun and not ended, and holds the lock
}

// known reports whether anything is kept.
func (r *runs) known() bool { return r.Run != nil || r.Success != nil }

// settle says whether a run that has begun goes on: it holds the lock then. The lock was read after the
// runs, and the run may have ended in between. So the runs are read again where it does not hold the
// lock: an outcome is kept before the lock is released.
func (r *runs) settle(ctx context.Context, job *once.Job, n berth.Name) (err error) {
	run := r.Run
	if run == nil || run.Outcome != once.Begun {
		return nil
	}
	if r.goesOn = n.Lock != nil && n.Fence == run.Fence; r.goesOn {
		return nil
	}
	r.Last, err = job.Last(ctx)
	r.goesOn = r.Run != nil && r.Run.Outcome == once.Begun && r.Run.Fence != run.Fence // it has begun since
	return err
}

// warnUnread says that the runs could not be read where the lock could be.
func warnUnread(a *app.App, name string, err error) {
	if err != nil {
		fmt.Fprintln(a.Err, app.OneLine(fmt.Sprintf("warning: what is kept of the runs of %s cannot be read: %v", text.Word(name), err)))
	}
}

// silent reports whether the server did not answer: then there is no use in asking it for the lock.
func silent(err error) bool { return errors.Is(err, berth.ErrUnavailable) }

// print shows the runs under what is shown of the lock.
func (r *runs) print(a *app.App) error {
	if !r.known() {
		return nil
	}
	success := r.sentence(r.Success)
	if r.Run != nil && r.Success != nil && r.Run.Fence == r.Success.Fence {
		success = "this run"
	}
	_, err := fmt.Fprintf(a.Out, "\nOnce in each period\nNewest run: %s\nNewest success: %s\n", r.sentence(r.Run), success)
	return err
}

func (r *runs) sentence(i *once.Info) string {
	if i == nil {
		return "none is known"
	}
	missed := ""
	if i.Missed > 0 {
		missed = fmt.Sprintf("; before it %s went by without a success", app.Count(i.Missed, "period"))
	}
	return fmt.Sprintf("attempt %d for the period from %s to %s, by %s, begun at %s, %s%s", i.Attempt,
		i.Period, once.Period{Start: i.Period.End}, text.Word(i.Label), i.Begun.UTC().Format(time.RFC3339Nano), r.became(i), missed)
}

// became is how a run ended, if it has.
func (r *runs) became(i *once.Info) string {
	says := text.Word(string(i.Outcome))
	switch {
	case i.Outcome == once.Begun && r.goesOn:
		return "goes on"
	case i.Outcome == once.Begun:
		return "has not ended, and its lock is gone: its process has died, or has lost the lock"
	case i.Outcome == once.Stopped:
		says = "stopped by its own process"
	}
	says += " after " + text.Human(i.Took())
	if i.Error != "" {
		says += ": " + text.Quoted(i.Error)
	}
	return says
}
