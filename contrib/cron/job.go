package berthcron

import (
	"context"

	"github.com/robfig/cron/v3"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/once"
)

// Job returns a job for cron that runs f once in each period, over all replicas that have a job of that
// name. The context of f ends when its hold is lost or the client is closed: f should return then. An
// error of f makes the run a failure, and goes to Options.Logger.
//
// The client stays the caller's. Job does no I/O. Its errors are *berth.ConfigError.
func Job(jobs *once.Client, name string, opts Options, f once.Func) (cron.Job, error) {
	if f == nil {
		return nil, berth.Invalid("f", "a function is needed")
	}
	return newJob(jobs, name, opts, f)
}

// Wrapper returns a wrapper that runs a job once in each period, over all replicas that have a job of that
// name. It is Job for what has no context and no error: the wrapped job is not told when its hold is lost,
// and has succeeded when it returns.
func Wrapper(jobs *once.Client, name string, opts Options) (cron.JobWrapper, error) {
	j, err := newJob(jobs, name, opts, nil)
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
	name   string
	opts   once.Options
	logger cron.Logger
	f      once.Func
}

func newJob(jobs *once.Client, name string, opts Options, f once.Func) (*job, error) {
	if jobs == nil {
		return nil, berth.Invalid("jobs", "a client is needed")
	}
	if err := keyspace.CheckName(name); err != nil {
		return nil, err
	}
	o, err := opts.once()
	if err != nil {
		return nil, err
	}
	if opts.Logger == nil {
		opts.Logger = cron.DefaultLogger
	}
	return &job{jobs: jobs, name: name, opts: o, logger: opts.Logger, f: f}, nil
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
