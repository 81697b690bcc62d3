package semaphore

import (
	"context"
	"sync"
	"time"

	"github.com/redis/rueidis"
	"go.uber.org/zap"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/check"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/internal/settings"
	"github.com/berth-go/berth/pkg/keyspace"
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
	// Lease is the wait lease, within which a waiting process must be heard of,
	// and the lease of permits whose options name none: whole milliseconds, at
	// least 20 ms. Default 10 s.
	Lease time.Duration
	// Linger is how long an idle semaphore is remembered, its capacity
	// included: whole milliseconds. Default 1 min.
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
	// WarnHeldLongerThan is when a permit is reported as perhaps forgotten;
	// below 0 never. Default 5 min.
	WarnHeldLongerThan time.Duration
	// Defaults are the options of all acquires that say nothing else. Default none.
	Defaults AcquireOptions
	// CapacityPolicy says what happens when the stored capacity is another
	// one. Default CapacityStored.
	CapacityPolicy CapacityPolicy
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

func (c Config) validate() error {
	if err := c.common().Validate(); err != nil {
		return err
	}
	if c.CapacityPolicy < CapacityStored || c.CapacityPolicy > CapacityOverride {
		return berth.Invalid("CapacityPolicy", "%d is no policy", int(c.CapacityPolicy))
	}
	return c.Defaults.validateDefaults("Defaults", &c)
}

// Client makes semaphores on one Redis. It is safe for concurrent use.
type Client struct {
	cfg   Config
	space keyspace.Space
	redis rueidis.Client
	node  *node
	tell  line.Teller

	operator Operator

	// differs has, by name, the stored capacity that was last reported as
	// another than this client's.
	differs sync.Map
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
	space, err := keyspace.New(cfg.Namespace)
	if err != nil {
		return nil, err
	}
	c := &Client{cfg: cfg, space: space, redis: redis}
	c.tell = line.NewTeller(keyspace.Sem, cfg.Namespace, c.Node, cfg.Logger, cfg.Observer)
	c.node = newNode(c)
	c.operator.client = c
	return c, nil
}

// Node is the id of this client: it carries 64 random bits.
func (c *Client) Node() string { return c.node.ID }

// Operator returns the calls for operators, which do not ask who holds a semaphore. Always
// the same one; no I/O.
func (c *Client) Operator() *Operator { return &c.operator }

// Semaphore returns the semaphore of a name with a capacity of at least 1, and the
// options of its acquires that say nothing else; nil for none. The same name is the
// same semaphore, in every process; the defaults are this handle's alone. Semaphore
// does no I/O. Its errors are *berth.ConfigError.
func (c *Client) Semaphore(name string, capacity int, defaults *AcquireOptions) (*Semaphore, error) {
	if err := keyspace.CheckName(name); err != nil {
		return nil, err
	}
	if err := checkCapacity(capacity); err != nil {
		return nil, err
	}
	s := &Semaphore{client: c, name: name, capacity: capacity, defaults: c.cfg.Defaults}
	if defaults != nil {
		if err := defaults.validateDefaults("defaults", &c.cfg); err != nil {
			return nil, err
		}
		s.defaults = defaults.or(s.defaults)
	}
	return s, nil
}

// maxCapacity keeps sums of weights exact in every Lua.
const maxCapacity = 1 << 40

func checkCapacity(capacity int) error {
	if capacity < 1 || capacity > maxCapacity {
		return berth.Invalid("capacity", "%d is not within 1 to %d", capacity, maxCapacity)
	}
	return nil
}

// Check looks at the server, every node of a cluster: version, eviction policy,
// latency, and whether this user may do what the scripts need, by taking and
// giving back a permit of a name of its own. What may not be asked is a warning.
//
// It returns berth.ErrIncompatible for a server older than Redis 7.0 or Valkey
// 7.2, a *berth.ConfigError for one that evicts keys when its maxmemory is reached,
// unless Config.AllowEviction is set, and the server's error where it cannot be reached
// or refuses.
func (c *Client) Check(ctx context.Context) (berth.Report, error) {
	return check.Server(ctx, check.Options{
		Client: c.redis, Channel: c.space.Wake(c.Node()), Timeout: c.cfg.CallTimeout,
		AllowEviction: c.cfg.AllowEviction, Trial: c.node.Trial,
	})
}

// Close ends all waits with berth.ErrClosed, gives back the permits that are
// held and not detached, and returns when nothing of the client runs any more,
// or with ctx's error: Config.CleanupTimeout after ctx has ended. Its other errors
// are of permits that could not be given back within what Config.Retry allows for all
// of them together; they end with their lease. It does not close the rueidis client.
func (c *Client) Close(ctx context.Context) error { return c.node.Engine.Close(ctx) }

// Semaphore is one name with a capacity. It is safe for concurrent use.
type Semaphore struct {
	client   *Client
	name     string
	capacity int
	defaults AcquireOptions
}

// Name is what is contended for.
func (s *Semaphore) Name() string { return s.name }

// Fence is the fence of the permit that ctx was made under: the context of Do,
// or one of a permit of this client and name. It is 0 where there is none, which
// whatever refuses smaller fences refuses too.
func (s *Semaphore) Fence(ctx context.Context) int64 {
	hold := s.client.node.Engine.Held(ctx, s.name)
	if hold == nil {
		return 0
	}
	return hold.Fence()
}
