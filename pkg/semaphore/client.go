package semaphore

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
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
	// the line. It is also the lease of permits whose options name none. Whole
	// milliseconds, at least 20 ms. Default 10 s.
	Lease time.Duration
	// Linger is how long the server remembers an idle semaphore and its capacity:
	// whole milliseconds. Default 1 min.
	Linger time.Duration
	// CallTimeout bounds one attempt of a call to the server. Default 3 s.
	CallTimeout time.Duration
	// CleanupTimeout is how long Release and Close still wait after a caller's ctx has ended, and
	// Release for a hold that had ended by itself; and how long the client tries in the background
	// to remove the claim of a caller who has left. Else ctx and Retry bound a call. Default 2 s.
	CleanupTimeout time.Duration
	// Retry bounds how calls are repeated that the server did not answer or did not
	// run. It does not bound a wait. Default: see berth.Retry.
	Retry berth.Retry
	// KeepConnections leaves the connections of the rueidis client alone where they lead to a
	// replica. Else a client of one server that has been answered READONLY for a second breaks
	// them all, as its address may lead to a new master by now, and what else is under
	// way on them fails; see the event connections_broken. Clients on one rueidis client do it once.
	// Default false.
	KeepConnections bool
	// WarnHeldLongerThan is how long a permit is held before an event reports it as
	// perhaps forgotten; below 0 never. Default 5 min.
	WarnHeldLongerThan time.Duration
	// Defaults are the options of acquires: of each field that neither the call nor
	// its Semaphore says. Default none.
	Defaults AcquireOptions
	// CapacityPolicy says what happens when the stored capacity differs from the
	// Semaphore's. Default CapacityStored.
	CapacityPolicy CapacityPolicy
	// AllowEviction lets Check pass on a server that may evict keys. Default
	// false.
	AllowEviction bool
	// Logger gets every event, at the level of its kind; package observe/zaplog makes one of a zap logger. Default none.
	Logger *slog.Logger
	// Observer gets every event too. It must not block. Default none.
	Observer observe.Observer
}

// validate looks at what is no setting of a node.
func (c Config) validate() error {
	if c.CapacityPolicy < CapacityStored || c.CapacityPolicy > CapacityOverride {
		return berth.Invalid("CapacityPolicy", "%d is no policy", int(c.CapacityPolicy))
	}
	return c.Defaults.validateDefaults("Defaults", &c)
}

// Client makes the semaphores of a node. It is safe for concurrent use.
type Client struct {
	cfg      Config
	wait     time.Duration // the wait lease
	n        *node.Node
	p        *line.Process
	operator Operator

	// differs has, by name, the stored capacity that was last reported as
	// another than this client's.
	differs sync.Map
}

// New returns what makes the semaphores of a node of its own, on a rueidis client. The rueidis client stays the caller's: close
// it after the returned client. New does no I/O; Check does. Its errors are
// *berth.ConfigError.
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

// On returns what makes the semaphores of a node. Of cfg Lease, Defaults and CapacityPolicy count; nil for none. The wait
// lease is that of the node where that is shorter. Its errors are *berth.ConfigError.
func On(n *node.Node, cfg *Config) (*Client, error) {
	if n == nil {
		return nil, berth.Invalid("node", "a node is needed")
	}
	s := line.Of(n).Settings
	own := Config{Lease: s.Lease}
	if cfg != nil {
		own = Config{Lease: cmp.Or(cfg.Lease, s.Lease), Defaults: cfg.Defaults, CapacityPolicy: cfg.CapacityPolicy}
	}
	if err := settings.WaitLease(own.Lease); err != nil {
		return nil, err
	}
	own.Label = s.Label
	if err := own.validate(); err != nil {
		return nil, err
	}
	own.Defaults = own.Defaults.own()
	c := &Client{cfg: own, wait: min(own.Lease, s.Lease), n: n, p: line.Of(n)}
	c.operator.client = c
	c.p.Add(&kind)
	return c, nil
}

// face is the node that the process is now.
func (c *Client) face() *line.Face { return c.p.Face(keyspace.Sem) }

// Node is the id of the node. It has 64 random bits. In a swarm it changes when the node was found dead.
func (c *Client) Node() string { return c.n.ID() }

// Operator returns the calls for operators. It does no I/O and always returns the
// same Operator.
func (c *Client) Operator() *Operator { return &c.operator }

// Semaphore returns the semaphore of a name, with a capacity of at least 1. The same
// name is the same semaphore in every process. The defaults count for acquires through
// this Semaphore alone, before Config.Defaults; nil for none. Semaphore does no I/O.
// Its errors are *berth.ConfigError.
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
		s.defaults = defaults.own().or(s.defaults)
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

// Check is Check of the node.
func (c *Client) Check(ctx context.Context) (berth.Report, error) { return c.n.Check(ctx) }

// Close is Close of the node.
func (c *Client) Close(ctx context.Context) error { return c.n.Close(ctx) }

// Draining is Draining of the node.
func (c *Client) Draining() bool { return c.n.Draining() }

// Semaphore is one name with a capacity. It is safe for concurrent use.
type Semaphore struct {
	client   *Client
	name     string
	capacity int
	defaults AcquireOptions
}

// Name is what is contended for.
func (s *Semaphore) Name() string { return s.name }

// Fence returns the fence of the permit that ctx was made under: the context of Do, or
// of a permit of this client and name. It returns 0 if ctx was not made under such a
// permit; every check of fences refuses 0.
func (s *Semaphore) Fence(ctx context.Context) int64 {
	hold := s.client.face().Engine.Held(ctx, engine.Line{Kind: keyspace.Sem, Name: s.name})
	if hold == nil {
		return 0
	}
	return hold.Fence()
}

// Wanted is the Wanted of the permit that ctx was made under, as Fence has it. It returns nil, which
// is never closed, if ctx was not made under such a permit.
func (s *Semaphore) Wanted(ctx context.Context) <-chan struct{} {
	hold := s.client.face().Engine.Held(ctx, engine.Line{Kind: keyspace.Sem, Name: s.name})
	if hold == nil {
		return nil
	}
	return hold.Wanted()
}
