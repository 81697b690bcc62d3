package berthgocron

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/go-co-op/gocron/v2"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/leader"
)

// ErrNotLeader says that another replica runs the jobs, or none.
var ErrNotLeader = errors.New("berth: this process does not lead")

// Elector is a gocron.Elector: the one replica that leads runs all jobs of its scheduler. It is safe
// for concurrent use.
type Elector struct {
	leaders *leader.Client
	name    string
	opts    leader.Options
	term    atomic.Pointer[context.Context] // of the newest term, nil before the first
}

var _ gocron.Elector = (*Elector)(nil)

// NewElector returns an Elector for the election of a name, which all replicas of the scheduler share. It
// stands for election while Run runs. Options.KeepWhenWanted does not count: the Elector has nothing to
// finish. The client stays the caller's. NewElector does no I/O. Its errors are *berth.ConfigError.
func NewElector(leaders *leader.Client, name string, opts *leader.Options) (*Elector, error) {
	if leaders == nil {
		return nil, berth.Invalid("leaders", "a client is needed")
	}
	if err := keyspace.CheckName(name); err != nil {
		return nil, err
	}
	e := &Elector{leaders: leaders, name: name}
	if opts != nil {
		e.opts = *opts
	}
	e.opts.KeepWhenWanted = false
	return e, nil
}

// Run stands for election, leads, and stands again after a loss, until ctx ends; then it hands leadership
// on, and returns an error that matches context.Cause(ctx). Its other errors are those of leader.Client.Run for
// bad options and a closed client. Call Run once, in a goroutine, before the scheduler starts, and end ctx after
// the scheduler was shut down: then no job of this process runs beside those of the next leader.
func (e *Elector) Run(ctx context.Context) error {
	return e.leaders.Run(ctx, e.name, &e.opts, func(ctx context.Context) error {
		e.term.Store(&ctx)
		<-ctx.Done()
		return context.Cause(ctx)
	})
}

// IsLeader returns nil while this process leads, and ErrNotLeader else. It answers at once, from what the
// process knows and by the clock, also where the server does not answer. gocron calls it when a job fires.
func (e *Elector) IsLeader(context.Context) error {
	if term := e.term.Load(); term == nil || (*term).Err() != nil {
		return ErrNotLeader
	}
	return nil
}
