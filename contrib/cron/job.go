package berthcron

import (
	"context"

	"github.com/robfig/cron/v3"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/once"
)

// Job returns a job for cron that runs f once in each period, over all replicas that have a job of that
// name. opts are those of once.Around for the moments at which the job fires, the same in all replicas. With other
// periods clocks that are apart may double a run, or skip one. The context of f ends when its hold is lost or the
// client is closed: f should return then. An error of f makes the run a failure.
//
// The logger is told of errors, also of f's, and at level info of firings that were skipped; nil stands for
// cron.DefaultLogger, which writes errors alone. The client stays the caller's. Job does no I/O. Its errors are
// *berth.ConfigError.
func Job(jobs *once.Client, logger cron.Logger, name string, opts once.Options, f once.Func) (cron.Job, error) {
	if f == nil {
		return nil, berth.Invalid("f", "a function is needed")
	}
	return newJob(jobs, logger, name, opts, f)
}

// Wrapper returns a wrapper that runs a job once in each period, over all replicas that have a job of that
// name. It is Job for what has no context and no error: the wrapped job is not told when its hold is lost,
// and has succeeded when it returns.
func Wrapper(jobs *once.Client, logger cron.Logger, name string, opts once.Options) (cron.JobWrapper, error) {
	j, err := newJob(jobs, logger, name, opts, nil)
	if err != nil {
		return nil, err
	}
	return func(inner cron.Job) cron.Job {
		wrapped := *j
		wrapped.f = func(context.Context, *once.Run) error {
			inner.Run()
			return nil
		}
		return &wrapped
	}, nil
}

// job is a function and when it runs. It does not change.
type job struct {
	jobs   *once.Client
	logger cron.Logger
	name   string
	opts   once.Options
	f      once.Func
}

func newJob(jobs *once.Client, logger cron.Logger, name string, opts once.Options, f once.Func) (*job, error) {
	if jobs == nil {
		return nil, berth.Invalid("jobs", "a client is needed")
	}
	if err := keyspace.CheckName(name); err != nil {
		return nil, err
	}
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	if logger == nil {
		logger = cron.DefaultLogger
	}
	return &job{jobs: jobs, logger: logger, name: name, opts: opts, f: f}, nil
}

// Run is what cron calls when the job fires.
func (j *job) Run() {
	result, err := j.jobs.Do(context.Background(), j.name, j.opts, j.f)
	switch {
	case err != nil:
		j.logger.Error(err, "job", "name", j.name)
	case result.Status != once.Ran:
		j.logger.Info("skip", "name", j.name, "period", result.Period.String(), "status", string(result.Status))
	}
}
