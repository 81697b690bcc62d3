package line

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/clock"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/notice"
	"github.com/berth-go/berth/internal/settings"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// Config says what a process works with.
type Config struct {
	// Redis is the user's client.
	Redis rueidis.Client
	// Runner runs the scripts.
	Runner *scriptkit.Runner
	// Space builds the keys.
	Space keyspace.Space
	// Settings are the process's, complete and valid.
	Settings settings.Common
	// Clock is that of its nodes.
	Clock clock.Clock
	// Tell takes the events; nil for none.
	Tell Teller
	// Notice is the process's, see NewNotice; nil for one that heeds none.
	Notice *notice.Notice
	// Swarm is that of the process; nil where none can know it.
	Swarm Swarm
}

// Swarm is what a node asks of the swarm that it is in.
type Swarm interface {
	// Limit is the ZombieAfter of a node while the swarm knows it, else 0: what the claims
	// without end say of it.
	Limit(node string) time.Duration
	// Passed and Settle are those of engine.Config, of a node.
	Passed(node string) bool
	Settle(ctx context.Context, node string)
}

// Node is one node: an id, and the engine that carries its claims of all kinds. It is the engine's Scripts: each call is made
// as the claim's kind makes it.
type Node struct {
	ID     string
	Engine *engine.Engine

	p     *Process
	over  chan struct{} // closed when the process has another node, or is closed
	waits waits
	faces [3]atomic.Pointer[Face] // see face
	apart atomic.Int64            // until when each name's heartbeat goes alone, on the clock
}

var _ engine.Scripts = (*Node)(nil)

// newNode returns a node with an id of its own. It does no I/O.
func newNode(p *Process) *Node {
	n := &Node{ID: engine.NodeID(), p: p, over: make(chan struct{})}
	cfg, s := &p.Config, p.Settings
	of := engine.Config{
		Redis: cfg.Redis, Scripts: n, Node: n.ID, Channel: cfg.Space.Wake(n.ID), Process: p, Kinds: Kinds,
		Wait: s.Lease, CallTimeout: s.CallTimeout, CleanupTimeout: s.CleanupTimeout,
		WarnAfter: max(s.WarnHeldLongerThan, 0), Retry: s.Retry, Observe: cfg.Tell.from(n.ID, ""), Clock: cfg.Clock,
		Paused: func(ctx context.Context, at engine.Line) *berth.Pause {
			return p.decide.PauseNow(ctx, at.Kind, at.Name)
		},
		Reenters: func(kind keyspace.Kind) bool { return kind == keyspace.Lock },
	}
	if cfg.Swarm != nil {
		of.Passed = func() bool { return cfg.Swarm.Passed(n.ID) }
	}
	if cfg.Notice != nil {
		of.Before, of.Stands = n.before, n.stands
		of.Drains, of.Wanted = cfg.Notice.Draining, cfg.Notice.Prompt
	}
	if cfg.Swarm != nil || cfg.Notice != nil {
		of.Settle = n.settle
	}
	if cfg.Redis.Mode() == rueidis.ClientModeCluster {
		of.Server = cfg.Runner.Server
	}
	n.Engine = engine.New(of)
	n.waits = waits{
		clock: cfg.Clock, noted: map[engine.Line]time.Duration{}, background: n.Engine.Background,
		note: func(due [state.Shards][]string) { noteAll(cfg, due) },
	}
	if cfg.Notice != nil {
		cfg.Notice.Join(n.ID, n.Engine.Drain, n.Engine.LostData)
	}
	return n
}

// Face is the node as a kind sees it.
func (n *Node) Face(kind keyspace.Kind) *Face {
	at := n.face(kind)
	if f := at.Load(); f != nil {
		return f
	}
	n.p.mu.Lock()
	defer n.p.mu.Unlock()
	if f := at.Load(); f != nil {
		return f
	}
	f := newFace(n, n.p.kind(kind))
	at.Store(f)
	return f
}

// face is where the Face of a kind is kept; nil there before its first use.
func (n *Node) face(kind keyspace.Kind) *atomic.Pointer[Face] {
	switch kind {
	case keyspace.Lock:
		return &n.faces[0]
	case keyspace.Sem:
		return &n.faces[1]
	case keyspace.Pool:
		return &n.faces[2]
	}
	panic(fmt.Sprintf("berth: %q is no kind of names", string(kind))) // somebody has forgotten to say it
}

func (n *Node) of(c *engine.Claim) *Calls { return n.Face(c.Kind).Calls }

// Acquire is Calls.Acquire.
func (n *Node) Acquire(ctx context.Context, c *engine.Claim) (engine.Answer, error) {
	return n.of(c).Acquire(ctx, c)
}

// Release is Calls.Release.
func (n *Node) Release(ctx context.Context, c *engine.Claim, stays time.Duration) (engine.Parting, error) {
	return n.of(c).Release(ctx, c, stays)
}

// Requeue is Calls.Requeue.
func (n *Node) Requeue(ctx context.Context, c *engine.Claim) (engine.Answer, bool, error) {
	return n.of(c).Requeue(ctx, c)
}

// Restore is Calls.Restore.
func (n *Node) Restore(ctx context.Context, name string, claims []*engine.Claim) (engine.Round, error) {
	return n.of(claims[0]).Restore(ctx, name, claims)
}

// Beat is Calls.Beat.
func (n *Node) Beat(ctx context.Context, name string, mode engine.Mode, claims []*engine.Claim) (engine.Round, error) {
	return n.of(claims[0]).Beat(ctx, name, mode, claims)
}

// Sweep is Calls.Sweep.
func (n *Node) Sweep(ctx context.Context, at engine.Line) (engine.NextDeadline, error) {
	return n.Face(at.Kind).Sweep(ctx, at.Name)
}

// Key is the Redis key of a name's state.
func (n *Node) Key(at engine.Line) string { return n.Face(at.Kind).key(at.Name) }

// Load loads, on every node of the server, the scripts for own calls of the kinds that have a face.
func (n *Node) Load(ctx context.Context) error {
	n.p.mu.Lock()
	var kinds []keyspace.Kind
	for kind := range n.p.kinds {
		kinds = append(kinds, kind)
	}
	n.p.mu.Unlock()
	for _, kind := range kinds {
		if err := n.Face(kind).load(ctx); err != nil {
			return err
		}
	}
	return nil
}

// before is engine.Config.Before.
func (n *Node) before(ctx context.Context, c *engine.Claim) (*berth.AcquireError, error) {
	return n.of(c).before(ctx, c)
}

// stands is engine.Config.Stands.
func (n *Node) stands(ctx context.Context, c *engine.Claim) bool { return n.of(c).stands(ctx, c) }

// settle is engine.Config.Settle: it asks whether the process drains, and whether the node is dead.
func (n *Node) settle(ctx context.Context) {
	if n.p.Notice != nil {
		n.p.Notice.Ask(ctx)
	}
	if n.p.Swarm != nil {
		n.p.Swarm.Settle(ctx, n.ID)
	}
}
