package berthcron

import (
	"context"
	"errors"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/once"
)

// Around returns the Config with a period around each firing of a schedule in the location of the Cron, such as
// c.Location(); nil means UTC. A period reaches halfway to the firing before and to the firing after, by the server's
// clock. Give all replicas the same schedule and location.
//
// The firings of "@every" depend on the start of the process, and differ between replicas. Its periods have the length of
// its interval, and begin half a second off the whole second, at which cron fires: in each period the first replica that
// asks runs.
//
// For a bad schedule, each call of the once.Job returns an error.
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

// Job returns a job for cron that runs f once in each period, across all replicas with a once.Job of the same name. Make
// the once.Job with the Config of Around for the schedule, the same in all replicas; with other periods, differing clocks
// may double or skip a run. The context of f ends when the hold is lost, or the once.Job or its node is closed: f should
// return then. An error of f makes the run a failure.
//
// The logger gets errors, including those of f, and skipped firings at level info; nil means cron.DefaultLogger,
// which writes only errors. Errors of the arguments, or of the once.Job, go to the logger at each firing; Check
// of the node reports those of the once.Job before. Job does no I/O.
func Job(job *once.Job, logger cron.Logger, f once.Func) cron.Job {
	if logger == nil {
		logger = cron.DefaultLogger
	}
	return &fires{job, logger, f}
}

// Wrapper returns a wrapper that runs a job once in each period, across all replicas with a once.Job of the
// same name. Unlike a function of Job, the wrapped job has no context and returns no error: it does not learn
// of the loss of its hold, and counts as successful when it returns.
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
