package berthcron

import (
	"context"
	"errors"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/once"
)

// Around returns the Config whose periods lie around the firings of a schedule, as a Cron of that location has them, such as
// c.Location(); nil is UTC. From halfway after the firing before to halfway to the next one, by the server's clock, replicas come
// for the same firing. Give all replicas the same schedule and location.
//
// "@every" has firings that depend on when its process has started, and differ between replicas. Its periods have its length, and
// begin half a second beside a whole one, at which cron fires: in each one replica runs, whichever comes first.
//
// Where a schedule cannot be, each call of the once.Job says so.
func Around(schedule cron.Schedule, location *time.Location) once.Config {
	if every, ok := schedule.(cron.ConstantDelaySchedule); ok {
		return once.Around(every.Delay, time.Second/2)
	} else if schedule == nil {
		return once.Config{}
	}
	if location == nil {
		location = time.UTC
	}
	return once.Config{Schedule: in{schedule, location}}
}

// in is a schedule in a location, which counts where the schedule says none.
type in struct {
	cron.Schedule
	location *time.Location
}

func (s in) Next(t time.Time) time.Time { return s.Schedule.Next(t.In(s.location)) }

// Job returns a job for cron that runs f once in each period, over all replicas that have a once.Job of that
// name. Make the once.Job with the periods of Around for the schedule, the same in all replicas. With other periods clocks that are apart may double a run, or skip one. The context of f ends when its
// hold is lost, or the once.Job or its node is closed: f should return then. An error of f makes the run a failure.
//
// The logger is told of errors, also of f's, and at level info of firings that were skipped; nil stands for
// cron.DefaultLogger, which writes errors alone. Errors of the arguments, or of the once.Job, go to the logger at
// each firing; Check of the node reports those of the once.Job before. Job does no I/O.
func Job(job *once.Job, logger cron.Logger, f once.Func) cron.Job {
	if logger == nil {
		logger = cron.DefaultLogger
	}
	return &fires{job, logger, f}
}

// Wrapper returns a wrapper that runs a job once in each period, over all replicas that have a once.Job of that
// name. It is Job for what has no context and no error: the wrapped job is not told when its hold is lost,
// and has succeeded when it returns.
func Wrapper(job *once.Job, logger cron.Logger) cron.JobWrapper {
	return func(inner cron.Job) cron.Job {
		return Job(job, logger, func(context.Context, *once.Run) error {
			inner.Run()
			return nil
		})
	}
}

var errFiredTwice = errors.New("berth: two firings fall into one period, and the second one is skipped")

// fires is what cron runs. It does not change.
type fires struct {
	job    *once.Job
	logger cron.Logger
	f      once.Func
}

// Run is what cron calls when the job fires.
func (j *fires) Run() {
	if j.job == nil {
		j.logger.Error(berth.Invalid("job", "a once.Job is needed"), "job")
		return
	}
	result, err := j.job.Do(once.Firing(context.Background()), j.f)
	switch {
	case err != nil:
		j.logger.Error(err, "job", "name", j.job.Name())
	case result.Status == once.FiredTwice:
		j.logger.Error(errFiredTwice, "job", "name", j.job.Name(), "period", result.Period.String())
	case result.Status != once.Ran:
		j.logger.Info("skip", "name", j.job.Name(), "period", result.Period.String(), "status", string(result.Status))
	}
}
