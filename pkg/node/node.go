package node

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/check"
	"github.com/berth-go/berth/internal/clock"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/internal/settings"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/observe"
)

// Config is what a node works with. The zero value is valid.
type Config struct {
	// Namespace is the first part of every key: UTF-8 text of up to 512 bytes
	// that keyspace.CheckNamespace allows. Default "berth".
	Namespace string
	// Label is shown in listings of holders and waiters: up to 512 bytes.
	// Default "<host>/<program>/<process id>".
	Label string
	// Lease is the wait lease: a claim whose process is not heard of for so long leaves
	// the line. It is also the lease of holds whose options name none. Locks use the shorter of this and 5 s.
	// Whole milliseconds, at least 20 ms. Default 10 s.
	Lease time.Duration
	// Linger is how long the server remembers an idle name, from its last lease on: whole milliseconds. After an operator's call it
	// is at least a minute longer. Default 1 min.
	Linger time.Duration
	// CallTimeout bounds one attempt of a call to the server. Default 3 s.
	CallTimeout time.Duration
	// CleanupTimeout is how long Release and Close still wait after a caller's ctx has ended, and
	// Release for a hold that had ended by itself; and how long the node tries in the background
	// to remove the claim of a caller who has left. Else ctx and Retry bound a call. Default 2 s.
	CleanupTimeout time.Duration
	// Retry bounds how calls are repeated that the server did not answer or did not run.
	// It does not bound a wait. Default: see berth.Retry.
	Retry berth.Retry
	// KeepConnections leaves the connections of the rueidis client alone where they lead to a
	// replica. Else a node on one server that has been answered READONLY for a second breaks
	// them all, as its address may lead to a new master by now, and what else is under
	// way on them fails; see the event connections_broken. Nodes on one rueidis client do it once.
	// Default false.
	KeepConnections bool
	// WarnHeldLongerThan is how long something is held before an event reports it as perhaps
	// forgotten; below 0 never. Default 5 min.
	WarnHeldLongerThan time.Duration
	// Swarm is about nodes that watch each other. Default: see SwarmConfig.
	Swarm SwarmConfig
	// AllowEviction lets Check pass on a server that may evict keys. Default
	// false.
	AllowEviction bool
	// Logger gets every event, at the level of its kind; package observe/zaplog makes one of a zap logger. Default none.
	Logger *slog.Logger
	// Observer gets every event too. It must not block. Default none.
	Observer observe.Observer
}

// common are the settings as package settings has them.
func (c *Config) common() settings.Common {
	return settings.Common{
		Namespace: c.Namespace, Label: c.Label, Lease: c.Lease, Linger: c.Linger,
		CallTimeout: c.CallTimeout, CleanupTimeout: c.CleanupTimeout,
		WarnHeldLongerThan: c.WarnHeldLongerThan, Retry: c.Retry, KeepConnections: c.KeepConnections,
	}
}

// Node is what a process is on one namespace. It is safe for concurrent use.
type Node struct {
	p        *line.Process
	lines    *line.Lines
	swarm    *Swarm
	operator *Operator
	eviction bool // Config.AllowEviction
}

func init() {
	line.Of = func(n any) *line.Process {
		if n, _ := n.(*Node); n != nil {
			return n.p
		}
		return nil
	}
}

// New returns a node on a rueidis client. The rueidis client stays the caller's:
// close it after the node. New does no I/O; Check does. Its errors are
// *berth.ConfigError.
func New(redis rueidis.Client, cfg Config) (*Node, error) {
	if redis == nil {
		return nil, berth.Invalid("redis", "a client is needed")
	}
	s := cfg.common().WithDefaults()
	cfg.Swarm = cfg.Swarm.withDefaults()
	if err := s.Validate(); err != nil {
		return nil, err
	}
	if err := cfg.Swarm.validate(); err != nil {
		return nil, err
	}
	space, err := keyspace.New(s.Namespace)
	if err != nil {
		return nil, err
	}
	n := &Node{eviction: cfg.AllowEviction}
	n.operator = &Operator{n}
	of := line.Config{Redis: redis, Space: space, Settings: s, Clock: clock.New()}
	of.Tell, n.lines = line.NewTeller(s.Namespace, n.ID, cfg.Logger, cfg.Observer)
	of.Runner = line.NewRunner(redis, s, of.Tell)
	if n.swarm, err = newSwarm(n, cfg.Swarm, &of); err != nil {
		return nil, err
	}
	of.Swarm = n.swarm.s
	of.Notice = line.NewNotice(of)
	n.p = line.NewProcess(of)
	if cfg.Swarm.Auto {
		n.swarm.auto()
	}
	return n, nil
}

// ID is the node's id. It has 64 random bits. In a swarm it changes when the node was found dead.
func (n *Node) ID() string { return n.p.Node().ID }

// Operator returns the calls for operators. It does no I/O and always returns the same
// Operator.
func (n *Node) Operator() *Operator { return n.operator }

// Draining says whether an operator has asked this process to drain: then it gets nothing
// new, with berth.ErrDraining, but one more entry of a lock for an owner who holds it already.
func (n *Node) Draining() bool { return n.p.Notice.Drains() }

// Check looks at the server, every node of a cluster: version, eviction policy,
// latency, and whether this user may do what the scripts need of the kinds that something was made of, by taking and
// giving back something of a name of its own; where nothing was made, whether he may run a script. What may not be asked is a warning, and so is
// a refused SUBSCRIBE or PUBLISH.
//
// It returns a *berth.ConfigError for the first thing that was made of this node with options that cannot be (a bad name, which may be
// somebody else's, only its own calls refuse), and for a server that
// evicts keys when its maxmemory is reached, unless Config.AllowEviction is set; berth.ErrIncompatible for a server older than
// Redis 7.0 or Valkey 7.2; and the server's error if the server cannot be reached or refuses.
func (n *Node) Check(ctx context.Context) (berth.Report, error) {
	if err := n.p.Wrong(); err != nil {
		return berth.Report{}, err
	}
	return check.Server(ctx, check.Options{
		Client: n.p.Redis, Channel: n.p.Space.Wake(n.ID()), Timeout: n.p.Settings.CallTimeout,
		AllowEviction: n.eviction, Trial: n.p.Trial, Notices: n.p.Notices,
	})
}

// ReleaseAll releases all that this node holds and has not detached, of all kinds, and
// returns how many entries and holds those were. Waits go on. If ctx ends first, ReleaseAll
// returns 0 and ctx's error, and what it has begun goes on. It returns berth.ErrClosed on a closed node. Its other errors are of
// holds that could not be released within Config.Retry, which bounds all of them
// together, as for Close.
func (n *Node) ReleaseAll(ctx context.Context) (int, error) {
	return n.p.Node().Engine.ReleaseAll(ctx)
}

// Close ends what runs in jobs, elections and pools, all at once, and waits for the runs of jobs; until then all else goes on. Then it
// ends all waits with berth.ErrClosed, gives back all that is held and not
// detached, of all kinds, takes the node out of its swarm, and returns when nothing of the node runs any
// more. A second call waits for the first. Config.CleanupTimeout after the end of ctx, or twice that if a swarm
// runs, it returns ctx's error. Its other errors are of holds that could not be
// given back within Config.Retry, which bounds all of them together, with a CallTimeout more
// where some are answered and others are not; these holds end with their lease. A function that Close waits for (f of a job, Source, Open, or Close
// of a value) must not call it with a ctx that does not end. Close does not close the rueidis client.
func (n *Node) Close(ctx context.Context) error {
	defer n.lines.Close()
	errs := n.p.Close(ctx)
	return errors.Join(append(errs, n.swarm.stop(ctx))...)
}
