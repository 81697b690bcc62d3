package qlock

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/clock"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/internal/settings"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
)

// Config is what a client works with. The zero value is valid.
type Config struct {
	// Namespace is the first part of every key: UTF-8 text of up to 512 bytes
	// that keyspace.CheckNamespace allows. Default "berth".
	Namespace string
	// Label is shown in listings of holders and waiters: up to 512 bytes.
	// Default "<host>/<program>/<process id>".
	Label string
	// Lease is the wait lease: a claim whose process is not heard of for so long leaves
	// the line. It is also the lease of locks whose options name none. Whole milliseconds,
	// at least 20 ms. Default 5 s.
	Lease time.Duration
	// Linger is how long the server remembers an idle lock: whole milliseconds. Default 1
	// min.
	Linger time.Duration
	// CallTimeout bounds one attempt of a call to the server. Default 3 s.
	CallTimeout time.Duration
	// CleanupTimeout is how long Release and Close still wait after a caller's ctx has ended, and
	// Release for a hold that had ended by itself; and how long the client tries in the background
	// to remove the claim of a caller who has left. Else ctx and Retry bound a call. Default 2 s.
	CleanupTimeout time.Duration
	// Retry bounds how calls are repeated that the server did not answer or did not run.
	// It does not bound a wait. Default: see berth.Retry.
	Retry berth.Retry
	// KeepConnections leaves the connections of the rueidis client alone where they lead to a
	// replica. Else a client of one server that has been answered READONLY for a second breaks
	// them all, as its address may lead to a new master by now, and what else is under
	// way on them fails; see the event connections_broken. Clients on one rueidis client do it once.
	// Default false.
	KeepConnections bool
	// WarnHeldLongerThan is how long a lock is held before an event reports it as perhaps
	// forgotten; below 0 never. Default 5 min.
	WarnHeldLongerThan time.Duration
	// Defaults are the options of claims: of each field that the call does not say. Their
	// MaxWait, WantAfter, RequeueEvery and Attempts do not count for a call that does not wait.
	// Default none.
	Defaults LockOptions
	// Swarm is about nodes that watch each other. Default: see node.SwarmConfig.
	Swarm SwarmConfig
	// AllowEviction lets Check pass on a server that may evict keys. Default
	// false.
	AllowEviction bool
	// Logger gets every event, at the level of its kind; package observe/zaplog makes one of a zap logger. Default none.
	Logger *slog.Logger
	// Observer gets every event too. It must not block. Default none.
	Observer observe.Observer
}

// defaultLease is that of locks, which is shorter than that of other primitives.
const defaultLease = 5 * time.Second

// Client is the locks of a node. It is safe for concurrent use.
type Client struct {
	cfg      Config
	wait     time.Duration // the wait lease
	defaults LockOptions   // Config.Defaults, complete
	n        *node.Node
	p        *line.Process
	clock    clock.Clock
	operator *Operator
}

// New returns the locks of a node of its own, on a rueidis client. The rueidis client stays the caller's:
// close it after the returned client. New does no I/O; Check does. Its errors are
// *berth.ConfigError.
func New(redis rueidis.Client, cfg Config) (*Client, error) {
	cfg.Lease = cmp.Or(cfg.Lease, defaultLease)
	_, bad := defaults(&cfg) // before a swarm starts
	cfg.Swarm.Auto = cfg.Swarm.Auto && bad == nil
	n, err := node.New(redis, node.Config{
		Namespace: cfg.Namespace, Label: cfg.Label, Lease: cfg.Lease, Linger: cfg.Linger, CallTimeout: cfg.CallTimeout,
		CleanupTimeout: cfg.CleanupTimeout, Retry: cfg.Retry, KeepConnections: cfg.KeepConnections,
		WarnHeldLongerThan: cfg.WarnHeldLongerThan, Swarm: cfg.Swarm, AllowEviction: cfg.AllowEviction,
		Logger: cfg.Logger, Observer: cfg.Observer,
	})
	if err = cmp.Or(err, bad); err != nil {
		return nil, err
	}
	return On(n, &cfg)
}

// On returns the locks of a node. Of cfg Lease and Defaults count; nil for none. The wait lease is that of the node where
// that is shorter. Its errors are *berth.ConfigError.
func On(n *node.Node, cfg *Config) (*Client, error) {
	if n == nil {
		return nil, berth.Invalid("node", "a node is needed")
	}
	s := line.Of(n).Settings
	own := Config{Lease: min(defaultLease, s.Lease)}
	if cfg != nil {
		own = Config{Lease: cmp.Or(cfg.Lease, own.Lease), Defaults: cfg.Defaults}
	}
	if err := settings.WaitLease(own.Lease); err != nil {
		return nil, err
	}
	own.Label, own.CallTimeout = s.Label, s.CallTimeout
	complete, err := defaults(&own)
	if err != nil {
		return nil, err
	}
	c := &Client{cfg: own, wait: min(own.Lease, s.Lease), defaults: complete, n: n, p: line.Of(n)}
	c.clock, c.operator = c.p.Clock, &Operator{client: c}
	c.p.Add(&kind)
	return c, nil
}

// face is the node that the process is now.
func (c *Client) face() *line.Face { return c.p.Face(keyspace.Lock) }

// Node is the id of the node. It has 64 random bits. In a swarm it changes when the
// node was found dead.
func (c *Client) Node() string { return c.n.ID() }

// Operator returns the calls for operators. It does no I/O and always returns the same
// Operator.
func (c *Client) Operator() *Operator { return c.operator }

// Check is Check of the node.
func (c *Client) Check(ctx context.Context) (berth.Report, error) { return c.n.Check(ctx) }

// Close is Close of the node.
func (c *Client) Close(ctx context.Context) error { return c.n.Close(ctx) }

// Draining is Draining of the node.
func (c *Client) Draining() bool { return c.n.Draining() }

// ReleaseAll is ReleaseAll of the node.
func (c *Client) ReleaseAll(ctx context.Context) (int, error) { return c.n.ReleaseAll(ctx) }

// Swarm is Swarm of the node.
func (c *Client) Swarm() *Swarm { return c.n.Swarm() }

// What a node has of a swarm.
type (
	// SwarmConfig is node.SwarmConfig.
	SwarmConfig = node.SwarmConfig
	// SwarmStatus is node.SwarmStatus.
	SwarmStatus = node.SwarmStatus
	// SwarmNode is node.SwarmNode.
	SwarmNode = node.SwarmNode
	// Zombies is node.Zombies.
	Zombies = node.Zombies
	// Flushed is node.Flushed.
	Flushed = node.Flushed
	// Swarm is node.Swarm.
	Swarm = node.Swarm
)
