package berthgocron

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"

	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/once"
)

// ErrSkipped says that this replica does not run a job: another replica runs the job now or has
// run it in this period, or the last run has failed and its RetryAfter has not passed. The error's
// text says which.
var ErrSkipped = errors.New("berth: the job is skipped")

// Locker is a gocron.Locker that runs a job once in each period, across all replicas. A Locker is
// safe for concurrent use.
type Locker struct {
	n   *node.Node
	cfg once.Config

	mu        sync.Mutex
	scheduler gocron.Scheduler       // guarded by mu: that it watches, nil for none
	jobs      map[string]*watched    // guarded by mu: by the name of the job
	runs      map[string][]*once.Run // guarded by mu: what this process runs, by the name of the job, in order
	failures  map[string]error       // guarded by mu: by the name of the job, for its run that is unlocked next
}

var _ gocron.Locker = (*Locker)(nil)

// NewLocker returns a Locker whose jobs have the periods that Watch derives. If cfg sets Every, as once.Around does, or
// Schedule, these define the periods, and the jobs must fire at their middle, in all replicas; with other periods,
// differing clocks may double or skip a run. Jobs that fire at other moments then need a Locker of their own; see
// gocron.WithDistributedJobLocker. The caller must close the node, after the scheduler. NewLocker does no I/O. For bad
// arguments, Lock and Check of the node return a *berth.ConfigError.
func NewLocker(n *node.Node, cfg once.Config) *Locker {
	usable := cfg
	if derives(cfg) {
		usable.Every = time.Hour
	}
	once.New(n, "of a Locker", usable) // runs never: Check has what is wrong with cfg before there is a job
	return &Locker{n: n, cfg: cfg, jobs: map[string]*watched{}, runs: map[string][]*once.Run{}, failures: map[string]error{}}
}

// Lock begins a run of the job in the current period, by the server's clock. gocron calls Lock with the
// name of the job. Lock returns ErrSkipped and the errors of once.Job.Begin; gocron passes an error to
// its listener AfterLockError, and skips the job.
func (l *Locker) Lock(ctx context.Context, name string) (gocron.Lock, error) {
	job, err := l.job(ctx, name)
	if err != nil {
		return nil, err
	}
	run, result, err := job.Begin(once.Firing(ctx))
	if err != nil {
		return nil, err
	}
	if run == nil {
		return nil, fmt.Errorf("%w: %q of %s: %s", ErrSkipped, name, result.Period, result.Status)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.runs[name] = append(l.runs[name], run)
	return &held{l, run}, nil
}

// watched is a job with the schedule that its periods are derived from, nil for none.
type watched struct {
	*once.Job
	schedule gocron.JobSchedule
}

// derives reports whether a Config leaves the periods to Watch.
func derives(cfg once.Config) bool { return cfg.Every == 0 && cfg.Offset == 0 && cfg.Schedule == nil }

// job returns the job of a name, the same one as long as its schedule stays the same.
func (l *Locker) job(ctx context.Context, name string) (*once.Job, error) {
	l.mu.Lock()
	scheduler, known, cfg := l.scheduler, l.jobs[name], l.cfg
	l.mu.Unlock()
	var schedule gocron.JobSchedule
	if derives(cfg) && scheduler != nil {
		found, s, err := derived(ctx, scheduler, name)
		if err != nil {
			return nil, err
		}
		cfg.Every, cfg.Offset, cfg.Schedule, schedule = found.Every, found.Offset, found.Schedule, s
	}
	if known == nil || !reflect.DeepEqual(known.schedule, schedule) {
		known = &watched{once.New(l.n, name, cfg), schedule}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.jobs[name] = known
	}
	return known.Job, nil
}

// Failed records that a job has failed, so that the run of the job that gocron unlocks next does not count
// as a success. Pass Failed to gocron.AfterJobRunsWithError: otherwise every run counts as a success.
func (l *Locker) Failed(_ uuid.UUID, name string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.runs[name]) > 0 {
		l.failures[name] = err
	}
}

// Current returns the newest run of the job in this process, nil for none. A job should call Current with its own
// name, at its beginning: once the job's hold is lost, a newer run may begin. The run has its period, its fence, and
// a context that ends when the hold is lost.
func (l *Locker) Current(name string) *once.Run {
	l.mu.Lock()
	defer l.mu.Unlock()
	if runs := l.runs[name]; len(runs) > 0 {
		return runs[len(runs)-1]
	}
	return nil
}

// held is the gocron.Lock of a run.
type held struct {
	locker *Locker
	run    *once.Run
}

// Unlock ends the run: gocron calls it when the job has returned, with the context of the job, which
// may have ended.
func (h *held) Unlock(ctx context.Context) error {
	return h.run.End(ctx, h.locker.leave(h.run))
}

// leave forgets a run that is over, and returns its failure. gocron does not say which run of a job has failed, but
// unlocks that run right after it called Failed. So a run does not get the failure of another one that overlaps it,
// unless the two end in the same moment.
func (l *Locker) leave(run *once.Run) (failure error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	name := run.Name()
	failure = l.failures[name]
	delete(l.failures, name)
	l.runs[name] = slices.DeleteFunc(l.runs[name], func(r *once.Run) bool { return r == run })
	if len(l.runs[name]) == 0 {
		delete(l.runs, name)
	}
	return failure
}
