package allocator

import (
	"context"
	"sync"
	"time"

	"github.com/redis/rueidis"
	"go.uber.org/zap"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/caller"
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
	// CleanupTimeout is for after ctx has ended: Release and Close wait for so long
	// more, and a claim whose caller has left is removed within it, in the background.
	// A caller who waits is bounded by ctx and Retry alone. Default 2 s.
	CleanupTimeout time.Duration
	// Retry bounds how calls are repeated that the server did not answer or
	// did not run; a wait is not bounded by it. Default: see berth.Retry.
	Retry berth.Retry
	// WarnHeldLongerThan is when a hold is reported as perhaps forgotten;
	// below 0 never. Default 5 min.
	WarnHeldLongerThan time.Duration
	// AllowEviction lets Check pass on a server that may evict keys. Default
	// false.
	AllowEviction bool
	// Logger takes every event, at a level by its kind. Default none.
	Logger *zap.Logger
	// Observer takes every event too. It must not block. Default none.
	Observer observe.Observer
}

// common are the settings that all primitives share.
func (c Config) common() settings.Common {
	return settings.Common{
		Namespace: c.Namespace, Label: c.Label, Lease: c.Lease, Linger: c.Linger,
		CallTimeout: c.CallTimeout, CleanupTimeout: c.CleanupTimeout,
		WarnHeldLongerThan: c.WarnHeldLongerThan, Retry: c.Retry,
	}
}

func (c Config) withDefaults() Config {
	s := c.common().WithDefaults()
	c.Namespace, c.Label, c.Lease, c.Linger = s.Namespace, s.Label, s.Lease, s.Linger
	c.CallTimeout, c.CleanupTimeout, c.WarnHeldLongerThan = s.CallTimeout, s.CleanupTimeout, s.WarnHeldLongerThan
	return c
}

// Client is a node that uses pools of one Redis. It is safe for concurrent use.
type Client struct {
	cfg   Config
	space keyspace.Space
	redis rueidis.Client
	node  *node
	tell  line.Teller

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
	if err := cfg.common().Validate(); err != nil {
		return nil, err
	}
	space, err := keyspace.New(cfg.Namespace)
	if err != nil {
		return nil, err
	}
	c := &Client{cfg: cfg, space: space, redis: redis, pools: make(map[string]member), gone: make(chan struct{})}
	c.tell = line.NewTeller(keyspace.Pool, cfg.Namespace, c.Node, cfg.Logger, cfg.Observer)
	c.node = newNode(c)
	return c, nil
}

// Node is the id of this client: it carries 64 random bits.
func (c *Client) Node() string { return c.node.ID }

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

// Close is for when nothing uses the resources any more: it does not wait for those
// who do, whose contexts it ends. It ends all waits with berth.ErrClosed, gives back what is held and not
// detached, closes the values of all pools, and returns when nothing of the client
// runs any more, or with ctx's error: Config.CleanupTimeout after ctx has ended. Its
// other errors are of holds that could not be given back within what Config.Retry
// allows for all of them together; they end with their lease. It does not close the
// rueidis client.
func (c *Client) Close(ctx context.Context) error {
	c.mu.Lock()
	first, pools := !c.closed, c.pools
	c.closed, c.pools = true, nil
	c.mu.Unlock()
	for _, pool := range pools {
		pool.cancel()
	}
	err := c.node.Engine.Close(ctx) // what is held is given back before its value is closed
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

// ReleaseByID ends somebody's hold, or wait, by the id of its claim alone: a call
// for operators. The resource is handed on in the same step, or rests; the holder's
// process hears of it and its hold ends with berth.ErrReleased, a wait with
// ReasonGone. Until it has heard, two may use the resource. It returns
// berth.ErrNotHeld if the id is not known, berth.ErrExpired if its time had passed,
// or the server's error.
func (c *Client) ReleaseByID(ctx context.Context, name, id string) error {
	return c.node.ForceRelease(ctx, name, id, "")
}
