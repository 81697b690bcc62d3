package once

import (
	"context"
	"sync"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/caller"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// Job is a name that runs once in each period. A Job is safe for concurrent use.
type Job struct {
	name  string
	cfg   Config
	bad   error // the error of each call; nil for a usable Job
	p     *line.Process
	locks *qlock.Locks
	tell  line.Teller

	life context.Context // ends with Close
	end  context.CancelCauseFunc

	mu     sync.Mutex
	runs   int           // guarded by mu: how many have begun and not ended
	idle   chan struct{} // closed when the job is closed and no run is left
	active int           // guarded by mu: runs and calls, which Close of the node ends
	leave  func()        // guarded by mu: removes the job from those that Close of the node ends
	fired  Period        // guarded by mu: the period of the newest Firing
	told   time.Duration // guarded by mu: until when a difference of settings counts as reported, by the node's clock
}

// New returns the job of a name on a node. Make one Job for each name, and keep it.
//
// New does no I/O and always returns a Job. If an argument is bad, each call of the Job returns a *berth.ConfigError. Check
// of the node returns it too, unless the bad argument is the name.
func New(n *node.Node, name string, cfg Config) *Job {
	j := &Job{name: name, cfg: cfg, idle: make(chan struct{})}
	j.life, j.end = context.WithCancelCause(context.Background())
	j.p, j.bad = line.UseName(n, name, func(p *line.Process) error {
		j.tell = p.Tell.Of(keyspace.Once)
		return cfg.Validate()
	})
	if j.bad == nil {
		j.locks = qlock.New(n, qlock.Config{Lease: cfg.Lease, Defaults: cfg.lock()})
	}
	return j
}

// Name returns the name of the job.
func (j *Job) Name() string { return j.name }

// Fence returns the fence of the run that ctx was made under, like qlock.Locks.Fence; 0 for
// none.
func (j *Job) Fence(ctx context.Context) int64 {
	if j.bad != nil {
		return 0
	}
	return j.locks.Fence(ctx, j.name)
}

// Close ends all waits and the context of every f with berth.ErrClosed, and waits until all runs have ended, including
// those of Begin. If ctx ends first, Close returns ctx's error, and unfinished runs keep their locks. Close of the node
// does the same, and then gives the locks back, so that an unfinished run may run twice. Close may be called more than
// once; f must not call Close with a ctx that does not end.
func (j *Job) Close(ctx context.Context) error {
	j.shut()
	return caller.Await(ctx, j.idle)
}

// shut tells all runs to end.
func (j *Job) shut() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.life.Err() == nil {
		j.end(berth.ErrClosed)
		if j.runs == 0 {
			close(j.idle)
		}
	}
}

func (j *Job) isClosed() bool { return j.life.Err() != nil || j.p.Closed() }

// enter counts a run that is about to begin (run is 1) or only a call (run is 0), unless the job
// is closed.
func (j *Job) enter(run int) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.isClosed() {
		return false
	}
	if j.active == 0 {
		var open bool
		if j.leave, open = j.p.Part(func(ctx context.Context) (after func()) {
			_ = j.Close(ctx)
			return func() { <-j.idle }
		}); !open {
			return false
		}
	}
	j.active++
	j.runs += run
	return true
}

// exit undoes enter: the run or the call has ended, or did not begin.
func (j *Job) exit(run int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.active--; j.active == 0 {
		j.leave()
	}
	if j.runs -= run; run > 0 && j.runs == 0 && j.life.Err() != nil {
		close(j.idle)
	}
}

// differs reports whether a difference of settings must be reported now. If so, it counts as reported until
// then.
func (j *Job) differs(until time.Duration) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.told > j.p.Clock.Now() {
		return false
	}
	j.told = until
	return true
}

// firedIn reports whether the last firing was for period p.
func (j *Job) firedIn(p Period) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	again := j.fired == p
	j.fired = p
	return again
}

// Last returns the run of the job that began last, and the newest successful run. The server keeps
// these until the end of the period after the next. Last only reads, so a Redis user that may not
// write can use it.
//
// Last returns a *berth.ConfigError for a job with bad arguments, berth.ErrIncompatible for data of
// a newer release, and the errors of scriptkit.Runner: the server's, the network's, and ctx's.
func (j *Job) Last(ctx context.Context) (Last, error) {
	if j.bad != nil {
		return Last{}, j.bad
	}
	last, _, err := j.look(ctx)
	return last, err
}

// look reads the stored runs of the job, and the server's time (ms).
func (j *Job) look(ctx context.Context) (last Last, now int64, err error) {
	read := scriptkit.Command{
		Verb: []string{"HMGET"}, Keys: []string{j.key()}, Args: state.RunsFields,
	}
	answers, err := j.p.Runner.Read(ctx, "once_look", scriptkit.From{Unasked: true}, read)
	if err != nil {
		return Last{}, 0, err
	}
	fields, err := answers.Results[0].ToArray()
	if err != nil {
		return Last{}, 0, scriptkit.Failure(ctx, "HMGET", err)
	}
	texts := make([]string, len(state.RunsFields)) // "" for a missing field
	for i := range fields {
		texts[i], _ = fields[i].ToString()
	}
	runs, err := state.ParseRuns(j.name, texts)
	return Last{infoOf(runs.Run), infoOf(runs.Success)}, answers.Now, err
}

// key returns the Redis key of the stored runs of the job.
func (j *Job) key() string { return j.p.Space.State(keyspace.Once, j.name) }
