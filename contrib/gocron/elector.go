package berthgocron

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/go-co-op/gocron/v2"

	"github.com/berth-go/berth/pkg/leader"
	"github.com/berth-go/berth/pkg/node"
)

// ErrNotLeader says that this process does not lead: another replica, or none, runs the jobs.
var ErrNotLeader = errors.New("berth: this process does not lead")

// Elector is a gocron.Elector: the replica that leads runs all jobs of its scheduler. An Elector is
// safe for concurrent use.
type Elector struct {
	election *leader.Election
	term     atomic.Pointer[context.Context] // of the newest term, nil before the first
}

var _ gocron.Elector = (*Elector)(nil)

// NewElector returns an Elector for the election of a name, which all replicas of the scheduler share. The Elector
// stands for election while Run runs. The KeepWhenWanted of cfg is ignored, since the Elector has no work to finish. The
// caller must close the node, after the scheduler. NewElector does no I/O. For bad arguments, Run and Check of the node
// return a *berth.ConfigError.
func NewElector(n *node.Node, name string, cfg leader.Config) *Elector {
	cfg.KeepWhenWanted = false
	return &Elector{election: leader.New(n, name, cfg)}
}

// Run stands for election, leads, and stands again after a loss, until ctx ends; then it hands leadership on, and
// returns an error that matches context.Cause(ctx). Its other errors are those of leader.Election.Run for bad
// arguments and a closed node. Call Run once, in a goroutine, before the scheduler starts, and end ctx after the
// scheduler was shut down: then no job of this process runs at the same time as those of the next leader.
func (e *Elector) Run(ctx context.Context) error {
	return e.election.Run(ctx, func(ctx context.Context) error {
		e.term.Store(&ctx)
		<-ctx.Done()
		return context.Cause(ctx)
	})
}

// IsLeader returns nil while this process leads, and ErrNotLeader otherwise. IsLeader returns at once,
// without asking the server. gocron calls IsLeader when a job fires.
func (e *Elector) IsLeader(context.Context) error {
	if term := e.term.Load(); term == nil || (*term).Err() != nil {
		return ErrNotLeader
	}
	return nil
}
