package berthgocron

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"

	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/once"
)

// ErrSkipped says that a job is not run here: another replica has run it in this period or runs it
// now, or its last run has failed and its RetryAfter is not over. The error's text says which.
var ErrSkipped = errors.New("berth: the job is skipped")

// Locker is a gocron.Locker that runs a job once in each period, over all replicas. It is safe for
// concurrent use.
type Locker struct {
	n   *node.Node
	cfg once.Config

	mu       sync.Mutex
	jobs     map[string]*once.Job   // guarded by mu: by the name of the job
	runs     map[string][]*once.Run // guarded by mu: what this process runs, by the name of the job, in order
	failures map[string]error       // guarded by mu: by the name of the job, for its run that is unlocked next
}

var _ gocron.Locker = (*Locker)(nil)

// NewLocker returns a Locker for jobs that fire at the same moments: cfg is that of once.Around for these
// moments, the same in all replicas. With other periods clocks that are apart may double a run, or skip one. Jobs that
// fire at other moments need a Locker of their own: see gocron.WithDistributedJobLocker. The node stays the
// caller's: close it after the scheduler. NewLocker does no I/O. What is wrong with its arguments Lock returns, as a
// *berth.ConfigError, and Check of the node too.
func NewLocker(n *node.Node, cfg once.Config) *Locker {
	once.New(n, "of a Locker", cfg) // runs never: Check has what is wrong with cfg before there is a job
	return &Locker{n: n, cfg: cfg, jobs: map[string]*once.Job{}, runs: map[string][]*once.Run{}, failures: map[string]error{}}
}

// Lock begins a run of the job in the period that it is now by the server's clock. gocron calls it, with
// the name of the job. Its errors are ErrSkipped and those of once.Job.Begin; gocron hands them to
// its listener AfterLockError, and skips the job.
func (l *Locker) Lock(ctx context.Context, name string) (gocron.Lock, error) {
	run, result, err := l.job(name).Begin(ctx)
	if err != nil {
		return nil, err
	}
	if run == nil {
		return nil, fmt.Errorf("%w: %q of %s is %s", ErrSkipped, name, result.Period, result.Status)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.runs[name] = append(l.runs[name], run)
	return &held{l, run}, nil
}

// job is the job of a name, always the same one.
func (l *Locker) job(name string) *once.Job {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.jobs[name] == nil {
		l.jobs[name] = once.New(l.n, name, l.cfg)
	}
	return l.jobs[name]
}

// Failed notes that the job has failed, so that its run does not count as a success: the run of the job that
// gocron unlocks next. It is for gocron.AfterJobRunsWithError. Without it every run counts as a success.
func (l *Locker) Failed(_ uuid.UUID, name string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.runs[name]) > 0 {
		l.failures[name] = err
	}
}

// Current returns the newest run of the job that this process is at, nil for none. A job calls Current with its own
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
