package qlock

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/check"
	"github.com/berth-go/berth/internal/clock"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/internal/notice"
	"github.com/berth-go/berth/internal/settings"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/scriptkit"
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
	// Swarm is about nodes that watch each other. Default: see SwarmConfig.
	Swarm SwarmConfig
	// AllowEviction lets Check pass on a server that may evict keys. Default
	// false.
	AllowEviction bool
	// Logger gets every event, at the level of its kind: a *slog.Logger or a *zap.Logger.
	// Default none.
	Logger observe.Logger
	// Observer gets every event too. It must not block. Default none.
	Observer observe.Observer
}

// common are the settings that all primitives share.
func (c Config) common() settings.Common {
	return settings.Common{
		Namespace: c.Namespace, Label: c.Label, Lease: c.Lease, Linger: c.Linger,
		CallTimeout: c.CallTimeout, CleanupTimeout: c.CleanupTimeout,
		WarnHeldLongerThan: c.WarnHeldLongerThan, Retry: c.Retry, KeepConnections: c.KeepConnections, Logger: c.Logger,
	}
}

// defaultLease is that of locks, which is shorter than that of other primitives.
const defaultLease = 5 * time.Second

func (c Config) withDefaults() Config {
	if c.Lease == 0 {
		c.Lease = defaultLease
	}
	s := c.common().WithDefaults()
	c.Namespace, c.Label, c.Lease, c.Linger = s.Namespace, s.Label, s.Lease, s.Linger
	c.CallTimeout, c.CleanupTimeout, c.WarnHeldLongerThan = s.CallTimeout, s.CleanupTimeout, s.WarnHeldLongerThan
	c.Swarm = c.Swarm.withDefaults()
	return c
}

func (c Config) validate() error {
	if err := c.common().Validate(); err != nil {
		return err
	}
	return c.Swarm.validate()
}

// Client is a node that uses locks on one Redis. It is safe for concurrent use.
type Client struct {
	cfg      Config
	defaults LockOptions // Config.Defaults, complete
	space    keyspace.Space
	redis    rueidis.Client
	run      *scriptkit.Runner
	tell     line.Teller
	lines    *line.Lines
	clock    clock.Clock
	notice   *notice.Notice
	swarm    *Swarm
	operator *Operator

	node atomic.Pointer[node] // the one that the client is now

	mu     sync.Mutex
	former []*node // guarded by mu: the nodes that it was, in a swarm
	closed bool    // guarded by mu
}

// New returns a client on a rueidis client. The rueidis client stays the caller's:
// close it after the returned client. New does no I/O; Check does. Its errors are
// *berth.ConfigError.
func New(redis rueidis.Client, cfg Config) (*Client, error) {
	if redis == nil {
		return nil, berth.Invalid("redis", "a client is needed")
	}
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	complete, err := defaults(&cfg)
	if err != nil {
		return nil, err
	}
	space, err := keyspace.New(cfg.Namespace)
	if err != nil {
		return nil, err
	}
	c := &Client{cfg: cfg, defaults: complete, space: space, redis: redis, clock: clock.New()}
	c.operator = &Operator{client: c}
	c.tell, c.lines = line.NewTeller(keyspace.Lock, cfg.Namespace, c.Node, cfg.Logger, cfg.Observer)
	c.run = line.NewRunner(redis, cfg.common(), c.tell)
	if c.swarm, err = newSwarm(c); err != nil {
		return nil, err
	}
	c.notice = line.NewNotice(c.line())
	c.node.Store(newNode(c))
	if cfg.Swarm.Auto {
		c.swarm.auto()
	}
	return c, nil
}

// Node is the id of this client. It has 64 random bits. In a swarm it changes when the
// node was found dead.
func (c *Client) Node() string { return c.node.Load().ID }

// Operator returns the calls for operators. It does no I/O and always returns the same
// Operator.
func (c *Client) Operator() *Operator { return c.operator }

// Check looks at the server, every node of a cluster: version, eviction policy,
// latency, and whether this user may do what the scripts need, by taking and
// giving back a lock of a name of its own. What may not be asked is a warning, and so is
// a refused SUBSCRIBE or PUBLISH.
//
// It returns berth.ErrIncompatible for a server older than Redis 7.0 or Valkey 7.2; a
// *berth.ConfigError for a server that evicts keys when its maxmemory is reached,
// unless Config.AllowEviction is set; and the server's error if the server cannot be
// reached or refuses.
func (c *Client) Check(ctx context.Context) (berth.Report, error) {
	node := c.node.Load()
	return check.Server(ctx, check.Options{
		Client: c.redis, Channel: c.space.Wake(node.ID), Timeout: c.cfg.CallTimeout,
		AllowEviction: c.cfg.AllowEviction, Trial: node.Trial, Notices: node.Notices,
	})
}

// Close ends all waits with berth.ErrClosed, releases the locks that are held and not
// detached, takes the node out of its swarm, and returns when nothing of the client
// runs any more. Config.CleanupTimeout after the end of ctx, or twice that if a swarm
// runs, it returns ctx's error. Its other errors are of locks that could not be
// released within Config.Retry, which bounds all of them together, with a CallTimeout more
// where some are answered and others are not; these locks end with their lease. Close does not close the rueidis client.
func (c *Client) Close(ctx context.Context) error {
	defer c.lines.Close()
	c.mu.Lock()
	if !c.closed {
		c.closed = true
		close(c.node.Load().over) // replace has closed those of the former
	}
	nodes := append([]*node{c.node.Load()}, c.former...)
	c.mu.Unlock()
	errs := make([]error, len(nodes))
	var closing sync.WaitGroup
	for i, n := range nodes {
		closing.Go(func() { errs[i] = n.Engine.Close(ctx) })
	}
	closing.Wait()
	c.notice.Close()
	return errors.Join(append(errs, c.swarm.stop(ctx))...)
}

// Draining says whether an operator has asked this process to drain: then nothing new is
// locked, with berth.ErrDraining, but by owners who hold the lock already.
func (c *Client) Draining() bool { return c.notice.Drains() }

// ReleaseAll releases all locks that this client holds and has not detached, and
// returns how many entries those were. Waits go on. If ctx ends first, ReleaseAll
// returns 0 and ctx's error, and what it has begun goes on. Its other errors are of
// locks that could not be released within Config.Retry, which bounds all of them
// together, as for Close.
func (c *Client) ReleaseAll(ctx context.Context) (int, error) {
	return c.node.Load().Engine.ReleaseAll(ctx)
}

// replace gives the client another node than it has, and ends all that the former
// one held. It reports false on a closed client.
func (c *Client) replace() bool {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return false
	}
	former := c.node.Load()
	c.node.Store(newNode(c))
	c.former = append(slices.DeleteFunc(c.former, func(n *node) bool { return n.Engine.Ended() }), former)
	c.mu.Unlock()
	close(former.over)
	ended := former.Engine.Abandon()
	c.notice.Leave(former.ID)
	c.tell.Send(observe.Event{Kind: observe.NodeReplaced, Node: c.Node(), Detail: former.ID, Count: ended})
	return true
}
