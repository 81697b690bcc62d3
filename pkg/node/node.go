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

// Config configures a Node. The zero value is valid.
type Config struct {
	// Namespace is the first part of every key: a UTF-8 text of up to 512 bytes that
	// keyspace.CheckNamespace allows. Default "berth".
	Namespace string
	// Label is shown in listings of holders and waiters: up to 512 bytes.
	// Default "<host>/<program>/<process id>".
	Label string
	// Lease is the wait lease: a waiting claim leaves the line if its process sends no heartbeat for this
	// long. Lease is also the default lease of holds, except that locks use 5 s if that is shorter. Whole
	// milliseconds, at least 20 ms. Default 10 s.
	Lease time.Duration
	// Linger is how long the server keeps an idle name after the end of its last lease: whole milliseconds. An operator's call
	// adds at least a minute. Default 1 min.
	Linger time.Duration
	// CallTimeout limits one attempt of a call to the server. Default 3 s.
	CallTimeout time.Duration
	// CleanupTimeout is how long Release and Close still wait after the caller's ctx has ended,
	// and how long Release waits for a hold that had ended by itself. CleanupTimeout is also how
	// long the node tries, in the background, to remove the claim of a caller that has left. In
	// other cases ctx and Retry limit a call. Default 2 s.
	CleanupTimeout time.Duration
	// Retry says how a call is repeated that the server did not answer or did not run. Retry does
	// not limit a wait in line. Defaults: see berth.Retry.
	Retry berth.Retry
	// KeepConnections leaves the connections of the rueidis client alone if they lead to a
	// replica. Without KeepConnections, a node on a single server that answers READONLY for a
	// second breaks all connections, since the address may lead to a new master now. Other calls
	// in flight on these connections fail; see the event connections_broken. Nodes that share a
	// rueidis client break its connections once. Default false.
	KeepConnections bool
	// WarnHeldLongerThan is how long a hold lasts before an event reports it as perhaps forgotten;
	// below 0 never. Default 5 min.
	WarnHeldLongerThan time.Duration
	// Swarm configures the swarm, in which nodes watch each other. Default: see SwarmConfig.
	Swarm SwarmConfig
	// AllowEviction lets Check pass on a server that may evict keys. Default
	// false.
	AllowEviction bool
	// Logger gets every event, at the level of its kind; package observe/zaplog makes a Logger of a zap logger. Default
	// none.
	Logger *slog.Logger
	// Observer gets every event too. Observer must not block. Default none.
	Observer observe.Observer
}

// common returns the settings in the form of package settings.
func (c *Config) common() settings.Common {
	return settings.Common{
		Namespace: c.Namespace, Label: c.Label, Lease: c.Lease, Linger: c.Linger,
		CallTimeout: c.CallTimeout, CleanupTimeout: c.CleanupTimeout,
		WarnHeldLongerThan: c.WarnHeldLongerThan, Retry: c.Retry, KeepConnections: c.KeepConnections,
	}
}

// Node is a process's connection to one namespace. A Node is safe for concurrent use.
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

// New returns a node on a rueidis client. The caller must close the rueidis client, after the
// node. New does no I/O; Check does. The errors of New are *berth.ConfigError.
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

// ID returns the node's id, which has 64 random bits. In a swarm the id changes if the node was
// found dead.
func (n *Node) ID() string { return n.p.Node().ID }

// Operator returns the node's Operator, always the same one. Operator does no I/O.
func (n *Node) Operator() *Operator { return n.operator }

// Draining reports whether an operator has asked this process to drain. A draining process gets
// nothing new, with berth.ErrDraining, except further entries of a lock that the owner already
// holds.
func (n *Node) Draining() bool { return n.p.Notice.Drains() }

// Check checks the server, or every node of a cluster: version, eviction policy, latency, and the rights of this Redis
// user. To check the rights, Check takes and gives back a name of its own, of each kind of which something was made on the
// node; if nothing was made, Check runs one script. A question that this user may not ask the server becomes a warning, as
// does a refused SUBSCRIBE or PUBLISH.
//
// Check returns a *berth.ConfigError for the first object made on this node with bad options, except for a bad name. It
// returns one too for a server that evicts keys when its maxmemory is reached, unless Config.AllowEviction is set. Check
// returns berth.ErrIncompatible for a server older than Redis 7.0 or Valkey 7.2, and the server's error if the server
// cannot be reached or refuses.
func (n *Node) Check(ctx context.Context) (berth.Report, error) {
	if err := n.p.Wrong(); err != nil {
		return berth.Report{}, err
	}
	return check.Server(ctx, check.Options{
		Client: n.p.Redis, Channel: n.p.Space.Wake(n.ID()), Timeout: n.p.Settings.CallTimeout,
		AllowEviction: n.eviction, Trial: n.p.Trial, Notices: n.p.Notices,
	})
}

// ReleaseAll releases all holds of this node, of all kinds, except detached ones, and returns how many holds and lock
// entries there were. Waits go on. If ctx ends first, ReleaseAll returns 0 and ctx's error, and the releases go on in the
// background. On a closed node ReleaseAll returns berth.ErrClosed. Its other errors are those of holds that could not be
// released within Config.Retry, which limits all releases together, as for Close.
func (n *Node) ReleaseAll(ctx context.Context) (int, error) {
	return n.p.Node().Engine.ReleaseAll(ctx)
}

// Close ends all jobs, elections and pools at once, and waits for the runs of jobs; other work goes on until then. Then
// Close ends all waits with berth.ErrClosed, gives back all holds of all kinds except detached ones, takes the node out of
// its swarm, and returns when no goroutine of the node is left. A second call waits for the first. Close does not close the
// rueidis client.
//
// If ctx ends, Close returns ctx's error after Config.CleanupTimeout, or after twice that time if a swarm runs. The other
// errors of Close are those of holds that could not be given back within Config.Retry, which limits all of them together,
// plus one CallTimeout if some are answered and others are not. These holds end with their lease.
//
// A function that Close waits for (f of a job, Source, Open, or Close of a value) must not call Close with a ctx that does
// not end.
func (n *Node) Close(ctx context.Context) error {
	defer n.lines.Close()
	errs := n.p.Close(ctx)
	return errors.Join(append(errs, n.swarm.stop(ctx))...)
}
