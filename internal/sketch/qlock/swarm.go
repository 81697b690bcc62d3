package qlock

import (
	"context"
	"iter"
	"time"
)

// SwarmConfig are the settings of a swarm: nodes that watch each other, so that
// holds that do not renew end when their node has died.
type SwarmConfig struct {
	// Auto starts the swarm with the client. Default false.
	Auto bool
	// ProbeEvery is how often this node says that it lives. Default 2 s.
	ProbeEvery time.Duration
	// ZombieAfter is how old a node's last probe must be for it to count as
	// dead; it must be equal on all nodes of a namespace. Default 15 s.
	ZombieAfter time.Duration
	// FlushEvery is how often this node flushes what dead nodes hold; negative
	// for never. Default 10 s.
	FlushEvery time.Duration
}

// SwarmStatus is this node's part in the swarm.
type SwarmStatus struct {
	// Running says whether the swarm is started.
	Running bool
	// Node is the id under which it runs.
	Node string
	// ProbedAt is the start of the last probe that was confirmed, by the clock
	// of this process, or zero.
	ProbedAt time.Time
	// FlushedAt is when the last flush ended, by that clock, or zero.
	FlushedAt time.Time
	// Err is the error of the last probe or flush, or nil.
	Err error
}

// SwarmNode is a node of the swarm.
type SwarmNode struct {
	// Node is its id.
	Node string
	// Label is its Config.Label.
	Label string
	// ProbedAt is when its last probe came, by the server's clock, to the ms.
	ProbedAt time.Time
	// Zombie says whether that is longer ago than ZombieAfter.
	Zombie bool
	// Condemned says whether its holds are to be flushed; it never probes again.
	Condemned bool
}

// Zombies is what dead nodes have left behind.
type Zombies struct {
	// Nodes are the ids of the dead nodes.
	Nodes []string
	// Owners are the owners that hold or wait there.
	Owners []string
	// Locks are the locks that they hold.
	Locks []string
	// Waiters are their waiting claims.
	Waiters []Waiter
}

// Flushed is what a flush did.
type Flushed struct {
	// Nodes is how many nodes it condemned.
	Nodes int
	// Locks is how many holds it ended.
	Locks int
	// Waiters is how many waiting claims it removed.
	Waiters int
}

// Swarm is this client's part in the swarm of its namespace.
type Swarm struct{}

// Swarm returns the client's part in the swarm, always the same one. It serves
// nothing until it is started.
func (c *Client) Swarm() *Swarm { return nil }

// Start probes once and goes on in the background. It does nothing if the
// swarm runs.
func (s *Swarm) Start(ctx context.Context) error { return errSketch }

// Stop ends probing and flushing and waits for both. It takes the node out of
// the swarm, so that nobody flushes it. It does nothing if the swarm does not
// run.
func (s *Swarm) Stop(ctx context.Context) error { return errSketch }

// Status tells this node's part, without asking the server.
func (s *Swarm) Status() SwarmStatus { return SwarmStatus{} }

// Info lists the nodes of the swarm, in no order.
func (s *Swarm) Info(ctx context.Context) iter.Seq2[SwarmNode, error] {
	return func(yield func(SwarmNode, error) bool) { yield(SwarmNode{}, errSketch) }
}

// Zombies finds what dead nodes have left behind, and changes nothing.
func (s *Swarm) Zombies(ctx context.Context) (Zombies, error) { return Zombies{}, errSketch }

// ProbeNow probes once. It returns ErrClosed if the swarm does not run.
func (s *Swarm) ProbeNow(ctx context.Context) error { return errSketch }

// FlushNow flushes once, whether the swarm runs or not.
func (s *Swarm) FlushNow(ctx context.Context) (Flushed, error) { return Flushed{}, errSketch }
