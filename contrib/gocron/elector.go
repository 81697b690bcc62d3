package berthgocron

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/go-co-op/gocron/v2"

	"github.com/berth-go/berth/pkg/leader"
	"github.com/berth-go/berth/pkg/node"
)

// ErrNotLeader says that another replica runs the jobs, or none.
var ErrNotLeader = errors.New("berth: this process does not lead")

// Elector is a gocron.Elector: the one replica that leads runs all jobs of its scheduler. It is safe
// for concurrent use.
type Elector struct {
	election *leader.Election
	term     atomic.Pointer[context.Context] // of the newest term, nil before the first
}

var _ gocron.Elector = (*Elector)(nil)

// NewElector returns an Elector for the election of a name, which all replicas of the scheduler share. It stands for
// election while Run runs. The KeepWhenWanted of cfg does not count, as the Elector has nothing to finish. The node
// stays the caller's: close it after the scheduler. NewElector does no I/O. For bad arguments, Run and Check of the node
// return a *berth.ConfigError.
func NewElector(n *node.Node, name string, cfg leader.Config) *Elector {
	cfg.KeepWhenWanted = false
	return &Elector{election: leader.New(n, name, cfg)}
}

// Run stands for election, leads, and stands again after a loss, until ctx ends; then it hands leadership
// on, and returns an error that matches context.Cause(ctx). Its other errors are those of leader.Election.Run for
// bad arguments and a closed node. Call Run once, in a goroutine, before the scheduler starts, and end ctx after
// the scheduler was shut down: then no job of this process runs beside those of the next leader.
func (e *Elector) Run(ctx context.Context) error {
	return e.election.Run(ctx, func(ctx context.Context) error {
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
