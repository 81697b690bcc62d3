package allocator

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/caller"
	"github.com/berth-go/berth/internal/check"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/internal/settings"
	"github.com/berth-go/berth/pkg/keyspace"
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
	// Logger takes every event, at a level by its kind: a *slog.Logger or a
	// *zap.Logger. Default none.
	Logger observe.Logger
	// Observer takes every event too. It must not block. Default none.
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

func (c Config) withDefaults() Config {
	s := c.common().WithDefaults()
	c.Namespace, c.Label, c.Lease, c.Linger = s.Namespace, s.Label, s.Lease, s.Linger
	c.CallTimeout, c.CleanupTimeout, c.WarnHeldLongerThan = s.CallTimeout, s.CleanupTimeout, s.WarnHeldLongerThan
	return c
}

func (c Config) validate() error {
	if err := c.common().Validate(); err != nil {
		return err
	}
	return c.Defaults.validateDefaults(&c)
}

// Client is a node that uses pools of one Redis. It is safe for concurrent use.
type Client struct {
	cfg   Config
	space keyspace.Space
	redis rueidis.Client
	node  *node
	tell  line.Teller
	lines *line.Lines

	operator Operator

	mu     sync.Mutex
	pools  map[string]member // guarded by mu
	closed bool              // guarded by mu
	gone   chan struct{}     // closed when Close has nothing more to wait for
}

// New returns a client on a rueidis client, which stays the caller's and must
// not be closed before the returned client is. New does no I/O; Check does. Its
// errors are *berth.ConfigError.
func New(redis rueidis.Client, cfg Config) (*Client, error) {
	if redis == nil {
		return nil, berth.Invalid("redis", "a client is needed")
	}
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg.Defaults = cfg.Defaults.own()
	space, err := keyspace.New(cfg.Namespace)
	if err != nil {
		return nil, err
	}
	c := &Client{cfg: cfg, space: space, redis: redis, pools: make(map[string]member), gone: make(chan struct{})}
	c.tell, c.lines = line.NewTeller(keyspace.Pool, cfg.Namespace, c.Node, cfg.Logger, cfg.Observer)
	c.node = newNode(c)
	c.operator = Operator{client: c, atOnce: atOnce}
	return c, nil
}

// Node is the id of this client: it carries 64 random bits.
func (c *Client) Node() string { return c.node.ID }

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

// Check looks at the server, every node of a cluster: version, eviction policy,
// latency, and whether this user may do what the scripts need, by allocating from a
// pool of its own and removing it. What may not be asked is a warning, and
// so is a refused SUBSCRIBE or PUBLISH.
//
// It returns berth.ErrIncompatible for a server older than Redis 7.0 or Valkey
// 7.2, a *berth.ConfigError for one that evicts keys when its maxmemory is reached,
// unless Config.AllowEviction is set, and the server's error where it cannot be reached
// or refuses.
func (c *Client) Check(ctx context.Context) (berth.Report, error) {
	return check.Server(ctx, check.Options{
		Client: c.redis, Channel: c.space.Wake(c.Node()), Timeout: c.cfg.CallTimeout,
		AllowEviction: c.cfg.AllowEviction, Trial: c.trial, Notices: c.node.Notices,
	})
}

// Close ends the client. Call it when nothing uses the resources any more: Close ends the
// contexts of those who still do, and does not wait for them. Close ends all waits with
// berth.ErrClosed, gives back what is held and not detached, and closes the values of all
// pools. It returns when nothing of the client runs any more, or with ctx's error when
// Config.CleanupTimeout has passed since ctx ended. Its other errors are of holds that
// could not be given back within what Config.Retry allows for all of them together, and a CallTimeout
// more where some are answered and others are not; these
// holds end with their lease. Close does not close the rueidis client.
func (c *Client) Close(ctx context.Context) error {
	defer c.lines.Close()
	c.mu.Lock()
	first, pools := !c.closed, c.pools
	c.closed, c.pools = true, nil
	c.mu.Unlock()
	for _, pool := range pools {
		pool.cancel()
	}
	err := c.node.Engine.Close(ctx) // what is held is given back before its value is closed
	c.node.Notice.Close()
	if first {
		go func() {
			defer close(c.gone)
			var stops sync.WaitGroup
			for _, pool := range pools {
				stops.Go(pool.stop)
			}
			stops.Wait()
		}()
	}
	if !c.node.Engine.Ended() {
		return err // ctx has ended, and it has been patient already
	}
	select {
	case <-c.gone:
		return err
	case <-ctx.Done():
	}
	patience := time.NewTimer(c.cfg.CleanupTimeout)
	defer patience.Stop()
	select {
	case <-c.gone:
		return err
	case <-patience.C:
		return caller.EndOf(ctx)
	}
}

// Draining says whether an operator has asked this process to drain: then nothing new is
// leased, with berth.ErrDraining, and no Source is asked.
func (c *Client) Draining() bool { return c.node.Notice.Drains() }

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
	claim := p.claim(ctx, AllocateOptions{Lease: c.cfg.Lease}, false)
	answer, err := c.node.Acquire(ctx, claim)
	if err != nil {
		return err
	}
	if answer.Refused != nil {
		return answer.Refused
	}
	if _, err := c.node.Beat(ctx, claim.Name, engine.ModeBeat, []*engine.Claim{claim}); err != nil {
		return err
	}
	_, err = c.node.Release(ctx, claim, 0)
	return err
}
