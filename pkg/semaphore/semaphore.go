package semaphore

import (
	"context"
	"sync"
	"time"

	"github.com/redis/rueidis"
	"go.uber.org/zap"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/internal/settings"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/observe"
)

// CapacityPolicy says what happens when a client names another capacity than
// the one that is stored.
type CapacityPolicy int

// The policies.
const (
	// CapacityStored goes by the stored capacity, and reports the difference
	// once with an event at level warn.
	CapacityStored CapacityPolicy = iota
	// CapacityStrict refuses the acquire with ReasonCapacity.
	CapacityStrict
	// CapacityOverride stores the client's own, as Resize would.
	CapacityOverride
)

// String is the policy's word, which semaphore_acquire reads: stored, strict or
// override.
func (p CapacityPolicy) String() string {
	switch p {
	case CapacityStored:
		return "stored"
	case CapacityStrict:
		return "strict"
	case CapacityOverride:
		return "override"
	}
	return "unknown"
}

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
	return nil
}

// Client makes semaphores on one Redis. It is safe for concurrent use.
type Client struct {
	cfg   Config
	space keyspace.Space
	redis rueidis.Client
	node  *node
	tell  line.Teller

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
	return c, nil
}

// Node is the id of this client: it carries 64 random bits.
func (c *Client) Node() string { return c.node.ID }

// Semaphore returns the semaphore of a name with a capacity of at least 1. The
// same name is the same semaphore, in every process. It does no I/O. Its errors
// are *berth.ConfigError.
func (c *Client) Semaphore(name string, capacity int, defaults *AcquireOptions) (*Semaphore, error) {
	if err := keyspace.CheckName(name); err != nil {
		return nil, err
	}
	if err := checkCapacity(capacity); err != nil {
		return nil, err
	}
	return &Semaphore{client: c, name: name, capacity: capacity}, nil
}

// maxCapacity keeps sums of weights exact in every Lua.
const maxCapacity = 1 << 40

func checkCapacity(capacity int) error {
	if capacity < 1 || capacity > maxCapacity {
		return berth.Invalid("capacity", "%d is not within 1 to %d", capacity, maxCapacity)
	}
	return nil
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

// Resize stores another capacity. What is held stays held: below it, grants
// pause until enough is given back. Waiting claims that have become too heavy
// end with ReasonTooHeavy. It returns berth.ErrInvalidConfig; berth.ErrAbsent where no
// capacity is stored, because nobody has used the semaphore or it is forgotten;
// berth.ErrIncompatible; or the server's error.
func (s *Semaphore) Resize(ctx context.Context, capacity int, opts *ResizeOptions) error {
	if err := checkCapacity(capacity); err != nil {
		return err
	}
	if opts == nil {
		opts = &ResizeOptions{}
	}
	return s.client.node.resize(ctx, s.name, capacity, *opts)
}

// ResizeOptions are the options of Resize.
type ResizeOptions struct {
	// Keep remembers the capacity for good, where an idle semaphore would be
	// forgotten after Config.Linger; a later Resize without it lets it go
	// again. Default false.
	Keep bool
	// Create stores the capacity of a semaphore that has none, too. Default
	// false: such a name is refused with berth.ErrAbsent.
	Create bool
}
