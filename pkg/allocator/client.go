package allocator

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/internal/settings"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
)

// Config is what all pools of a client share. The zero value is valid.
type Config struct {
	// Namespace is the first part of every key: UTF-8 text of up to 512 bytes
	// that keyspace.CheckNamespace allows. Default "berth".
	Namespace string
	// Label is shown in listings of holders and waiters: up to 512 bytes.
	// Default "<host>/<program>/<process id>".
	Label string
	// Lease is the wait lease, within which a waiting process must be heard of,
	// and the lease of holds whose options name none: whole milliseconds, at
	// least 20 ms. Default 10 s.
	Lease time.Duration
	// Linger is how long a pool without resources is remembered: whole
	// milliseconds. One with resources is never forgotten. Default 1 min.
	Linger time.Duration
	// CallTimeout bounds one attempt of a call to the server. Default 3 s.
	CallTimeout time.Duration
	// CleanupTimeout is how long Release and Close still wait after a caller's ctx has ended, and
	// Release for a hold that had ended by itself; and how long the client tries in the background
	// to remove the claim of a caller who has left. Else ctx and Retry bound a call. Default 2 s.
	CleanupTimeout time.Duration
	// Retry bounds how calls are repeated that the server did not answer or
	// did not run; a wait is not bounded by it. Default: see berth.Retry.
	Retry berth.Retry
	// KeepConnections leaves the connections of the rueidis client alone where they lead to a
	// replica. Else a client of one server that has been answered READONLY for a second breaks
	// them all, as its address may lead to a new master by now, and what else is under
	// way on them fails; see the event connections_broken. Clients on one rueidis client do it once.
	// Default false.
	KeepConnections bool
	// WarnHeldLongerThan is when a hold is reported as perhaps forgotten;
	// below 0 never. Default 5 min.
	WarnHeldLongerThan time.Duration
	// Defaults are the options of all allocations whose call and PoolConfig.Defaults
	// say nothing else. Default none.
	Defaults AllocateOptions
	// AllowEviction lets Check pass on a server that may evict keys. Default
	// false.
	AllowEviction bool
	// Logger gets every event, at the level of its kind; package observe/zaplog makes one of a zap logger. Default none.
	Logger *slog.Logger
	// Observer takes every event too. It must not block. Default none.
	Observer observe.Observer
}

// Client is the pools of a node. It is safe for concurrent use.
type Client struct {
	cfg      Config
	wait     time.Duration // the wait lease
	n        *node.Node
	p        *line.Process
	look     *reader.Reader // for who looks on
	operator Operator

	mu     sync.Mutex
	pools  map[string]member // guarded by mu
	closed bool              // guarded by mu
}

// New returns the pools of a node of its own, on a rueidis client, which stays the caller's and must
// not be closed before the returned client is. New does no I/O; Check does. Its
// errors are *berth.ConfigError.
func New(redis rueidis.Client, cfg Config) (*Client, error) {
	n, err := node.New(redis, node.Config{
		Namespace: cfg.Namespace, Label: cfg.Label, Lease: cfg.Lease, Linger: cfg.Linger, CallTimeout: cfg.CallTimeout,
		CleanupTimeout: cfg.CleanupTimeout, Retry: cfg.Retry, KeepConnections: cfg.KeepConnections,
		WarnHeldLongerThan: cfg.WarnHeldLongerThan, AllowEviction: cfg.AllowEviction, Logger: cfg.Logger, Observer: cfg.Observer,
	})
	if err != nil {
		return nil, err
	}
	return On(n, &cfg)
}

// On returns the pools of a node. Of cfg Lease and Defaults count; nil for none. The wait lease is that of the node where that
// is shorter. A node has its pools once: On returns an error for a node that has some. Its errors are *berth.ConfigError.
func On(n *node.Node, cfg *Config) (*Client, error) {
	if n == nil {
		return nil, berth.Invalid("node", "a node is needed")
	}
	p := line.Of(n)
	s := &p.Settings
	own := Config{Lease: s.Lease}
	if cfg != nil {
		own = Config{Lease: cmp.Or(cfg.Lease, s.Lease), Defaults: cfg.Defaults}
	}
	if err := settings.WaitLease(own.Lease); err != nil {
		return nil, err
	}
	own.Label, own.CallTimeout, own.CleanupTimeout, own.Retry = s.Label, s.CallTimeout, s.CleanupTimeout, s.Retry
	if err := own.Defaults.validateDefaults(&own); err != nil {
		return nil, err
	}
	own.Defaults = own.Defaults.own()
	c := &Client{cfg: own, wait: min(own.Lease, s.Lease), n: n, p: p, look: reader.New(p.Runner, p.Space, false), pools: make(map[string]member)}
	c.operator = Operator{client: c, atOnce: atOnce}
	if !p.Add(c.kind()) {
		return nil, berth.Invalid("node", "it has its pools already")
	}
	if !p.Part(func(context.Context) (after func()) { return c.close() }) {
		c.close()
	}
	return c, nil
}

// Node is the id of the node. It has 64 random bits. In a swarm it changes when the node was found dead.
func (c *Client) Node() string { return c.n.ID() }

// Operator returns the calls for operators, which do not ask who holds a resource. It
// returns the same Operator each time, and does no I/O.
func (c *Client) Operator() *Operator { return &c.operator }

// member is a pool of a client. Only stop waits.
type member interface {
	start()  // begins what goes on in the background
	kick()   // has the pool filled soon
	cancel() // has what goes on end
	stop()   // waits for that end, and closes the values
}

// enter registers a pool and starts it.
func (c *Client) enter(name string, pool member) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return berth.ErrClosed
	}
	if _, there := c.pools[name]; there {
		return berth.Invalid("name", "this client has a pool %q already: its values are kept there", name)
	}
	c.pools[name] = pool
	pool.start()
	return nil
}

// empty is told that a pool was found empty.
func (c *Client) empty(name string) {
	c.mu.Lock()
	pool := c.pools[name]
	c.mu.Unlock()
	if pool != nil {
		pool.kick()
	}
}

// isClosed says whether Close has begun.
func (c *Client) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// Check is Check of the node.
func (c *Client) Check(ctx context.Context) (berth.Report, error) { return c.n.Check(ctx) }

// Close is Close of the node.
func (c *Client) Close(ctx context.Context) error { return c.n.Close(ctx) }

// close ends what goes on in the background. What it returns waits for that end, and closes the values, when what is held has
// been given back.
func (c *Client) close() (wait func()) {
	c.mu.Lock()
	pools := c.pools
	c.closed, c.pools = true, nil
	c.mu.Unlock()
	for _, pool := range pools {
		pool.cancel()
	}
	return func() {
		var stops sync.WaitGroup
		for _, pool := range pools {
			stops.Go(pool.stop)
		}
		stops.Wait()
	}
}

// Draining is Draining of the node.
func (c *Client) Draining() bool { return c.n.Draining() }

// trial goes through the scripts of an uncontended allocation.
func (c *Client) trial(ctx context.Context) (err error) {
	p := &core{client: c, name: "berth check " + c.Node()}
	defer func() {
		_, removed := p.remove(ctx, []string{"trial"})
		err = errors.Join(err, removed)
	}()
	// Should this process die in the middle, the few keys of that pool stay. The resource outlasts the
	// four calls of a check, each answered within CallTimeout, also where a lease is shorter than that.
	if _, err := p.add(ctx, []string{"trial"}, max(c.cfg.Lease, 4*c.cfg.CallTimeout), 1, 0, nil); err != nil {
		return err
	}
	f := c.face()
	claim := p.claim(ctx, f, AllocateOptions{Lease: c.cfg.Lease}, false)
	answer, err := f.Acquire(ctx, claim)
	if err != nil {
		return err
	}
	if answer.Refused != nil {
		return answer.Refused
	}
	if _, err := f.Beat(ctx, claim.Name, engine.ModeBeat, []*engine.Claim{claim}); err != nil {
		return err
	}
	_, err = f.Release(ctx, claim, 0)
	return err
}
