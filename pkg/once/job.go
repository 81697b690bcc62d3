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

// Job is what runs once in each period: one name. It is safe for concurrent use.
type Job struct {
	name  string
	cfg   Config
	bad   error // what each call returns; nil for a usable one
	p     *line.Process
	locks *qlock.Locks
	tell  line.Teller

	life context.Context // ends with Close
	end  context.CancelCauseFunc

	mu     sync.Mutex
	runs   int           // guarded by mu: those that have begun and not ended
	idle   chan struct{} // closed when the job is closed and there are none
	active int           // guarded by mu: runs and calls, which Close of the node ends
	leave  func()        // guarded by mu: it need not any more; of active
	fired  Period        // guarded by mu: that of the newest Firing
	told   time.Duration // guarded by mu: until when it has been told that settings differ, by the node's clock
}

// New returns the job of a name on a node. It does no I/O and always returns a Job: what is wrong with the arguments each call
// returns, as a *berth.ConfigError, and, but for a bad name, Check of the node too. Make one Job for a name, and keep it.
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

// Name is the name that runs.
func (j *Job) Name() string { return j.name }

// Fence returns the fence of the run that ctx was made under, as qlock.Locks.Fence does; 0
// for none.
func (j *Job) Fence(ctx context.Context) int64 {
	if j.bad != nil {
		return 0
	}
	return j.locks.Fence(ctx, j.name)
}

// Close ends all waits and the context of every f with berth.ErrClosed, and waits until all runs have ended, those of
// Begin too. If ctx ends first, Close returns its error, and what still runs keeps its lock. Close of the node does the same, and
// then gives the locks back: a run that goes on after that may run twice. Close may be called more than once; f must not call it with a
// ctx that does not end.
func (j *Job) Close(ctx context.Context) error {
	j.shut()
	return caller.Await(ctx, j.idle)
}

// shut has what runs end.
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

// enter counts a run that is about to begin, or a call, which is no run, unless the job is closed.
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

// exit says that what enter has counted has ended, or did not begin.
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

// differs says whether it is to be told that the settings of the job differ. Until the moment it is told then.
func (j *Job) differs(until time.Duration) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.told > j.p.Clock.Now() {
		return false
	}
	j.told = until
	return true
}

// firedIn says whether the last firing was for the same period as this one.
func (j *Job) firedIn(p Period) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	again := j.fired == p
	j.fired = p
	return again
}

// Last says what is known of the runs of the job: of the one that began last, and of the newest that
// succeeded. The server remembers until the end of the period after the next. Last only reads, also
// for a user that may not write.
//
// Its errors are a *berth.ConfigError for a job that cannot be used,
// berth.ErrIncompatible for what a newer release keeps, and those of scriptkit.Runner: the server's,
// the network's, and ctx's.
func (j *Job) Last(ctx context.Context) (Last, error) {
	if j.bad != nil {
		return Last{}, j.bad
	}
	last, _, err := j.look(ctx)
	return last, err
}

// look reads what is known of the job, and the server's time (ms).
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
	texts := make([]string, len(state.RunsFields)) // "" for what is not there
	for i := range fields {
		texts[i], _ = fields[i].ToString()
	}
	runs, err := state.ParseRuns(j.name, texts)
	return Last{infoOf(runs.Run), infoOf(runs.Success)}, answers.Now, err
}

// key is the Redis key of what is known of the job.
func (j *Job) key() string { return j.p.Space.State(keyspace.Once, j.name) }
