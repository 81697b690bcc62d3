package line

import (
	"context"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/clock"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/notice"
	"github.com/berth-go/berth/internal/settings"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// Config says what a node works with. All fields are set by the primitive, but for those that
// only one kind has.
type Config struct {
	// Redis is the user's client.
	Redis rueidis.Client
	// Runner runs the scripts.
	Runner *scriptkit.Runner
	// Space builds the keys.
	Space keyspace.Space
	// Kind is the primitive's kind of keys.
	Kind keyspace.Kind
	// Scripts are the kind's.
	Scripts Scripts
	// Settings are the client's, complete and valid.
	Settings settings.Common
	// Clock is that of the node.
	Clock clock.Clock
	// Tell takes the events of the node; nil for none.
	Tell Teller
	// Notice is the client's, see NewNotice; nil for a node that heeds none.
	Notice *notice.Notice
	// Swarm is that of the node; nil where none can know it.
	Swarm Swarm

	// AcquireArgs returns what only the kind's acquire takes of a claim: whether it may wait, 0, 1
	// or what only that script knows, and the arguments behind the common ones.
	AcquireArgs func(c *engine.Claim) (wait string, own []string)
	// AcquireReply adds to an answer what only the kind's acquire says, such as extra, and why nothing
	// was got; nil for nothing. A thin name's answer is whole already.
	AcquireReply func(c *engine.Claim, a engine.Answer, extra string) (engine.Answer, error)
	// ReleaseArgs returns what only the kind's release takes of a claim; nil for nothing.
	ReleaseArgs func(c *engine.Claim) (own []string)
	// ReleaseReply adds to the end of a hold what only the kind's release says of it; nil for nothing.
	ReleaseReply func(c *engine.Claim, p engine.Parting, extra string) (engine.Parting, error)

	// Parts are keys of a name beyond its state and its line, for scripts that take
	// them.
	Parts []string
	// Empty is told that a pool on which claims of this node wait has no resources;
	// nil for nobody.
	Empty func(name string)
	// Swept is given what only the kind's own sweep tells; nil for nobody.
	Swept func(name string, told []string)
	// Request returns the Request of a claim that is resumed; nil for none.
	Request func() any
}

// Scripts are those of a kind for what every kind does.
type Scripts struct {
	Acquire, Release, Renew, Resume, Restore, Sweep, ForceRelease, Pause, Want *scriptkit.Script
	// Requeue is of locks alone.
	Requeue *scriptkit.Script
}

// kind is what the names of the scripts begin with: semaphore, lock, pool.
func (s *Scripts) kind() string {
	kind, _, _ := strings.Cut(s.Acquire.Name, "_")
	return kind
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

// Node is one node: its calls, and the engine that carries its claims on them. A client whose
// node changes makes a new one.
type Node struct {
	*Calls
	Engine *engine.Engine
	// Notice is Config.Notice.
	Notice *notice.Notice
}

// New returns a node with an id of its own. It does no I/O.
func New(cfg Config) *Node {
	id := engine.NodeID()
	calls := newCalls(cfg, id)
	s := cfg.Settings
	of := engine.Config{
		Redis: cfg.Redis, Scripts: calls, Node: id, Channel: cfg.Space.Wake(id),
		Wait: s.Lease, CallTimeout: s.CallTimeout, CleanupTimeout: s.CleanupTimeout,
		WarnAfter: max(s.WarnHeldLongerThan, 0), Retry: s.Retry, Observe: calls.Tell, Clock: cfg.Clock,
		Paused: func(ctx context.Context, name string) *berth.Pause { return calls.Decide.PauseNow(ctx, cfg.Kind, name) },
	}
	if cfg.Swarm != nil {
		of.Passed = func() bool { return cfg.Swarm.Passed(id) }
	}
	if cfg.Notice != nil {
		of.Before, of.Stands = calls.before, calls.stands
		of.Drains, of.Reenters = cfg.Notice.Drains, cfg.Kind == keyspace.Lock
		of.Wanted = cfg.Notice.Prompt
	}
	if cfg.Swarm != nil || cfg.Notice != nil {
		of.Settle = calls.settle
	}
	if cfg.Redis.Mode() == rueidis.ClientModeCluster {
		of.Server = func(name string) int { return cfg.Runner.Server(calls.Key(name)) }
	}
	n := &Node{Calls: calls, Engine: engine.New(of), Notice: cfg.Notice}
	calls.waits.background = n.Engine.Background
	if cfg.Notice != nil {
		cfg.Notice.Join(id, n.Engine.Drain, n.Engine.LostData)
	}
	return n
}

// Trial goes through the scripts of an uncontended claim, on a name of its own: those of a thin
// name, and with a lease that a thin name does not take the kind's own.
func (n *Node) Trial(ctx context.Context) error {
	lease, label := n.cfg.Settings.Lease, n.cfg.Settings.Label
	for _, length := range []time.Duration{lease, 2 * lease} {
		claim := &engine.Claim{
			ID: n.Engine.ClaimID(), Name: "berth check " + n.ID, Capacity: 1,
			Record: engine.Record{Weight: 1, Wait: lease, Lease: length, Phase: 'w', Node: n.ID, Label: label},
		}
		if _, err := n.Acquire(ctx, claim); err != nil {
			return err
		}
		if _, err := n.Beat(ctx, claim.Name, engine.ModeBeat, []*engine.Claim{claim}); err != nil {
			return err
		}
		if _, err := n.Release(ctx, claim, 0); err != nil {
			return err
		}
	}
	return nil
}
