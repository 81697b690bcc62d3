package allocator

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/caller"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/internal/refresh"
	"github.com/berth-go/berth/internal/settings"
	"github.com/berth-go/berth/internal/values"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
)

// Policy says which free resource the next claim gets. The zero value means unset.
type Policy int

// The policies.
const (
	// LeastRecent: the resource that has been free for longest.
	LeastRecent Policy = iota + 1
	// MostRecent: the resource that came back last.
	MostRecent
	// Random: any resource, at random.
	Random
)

// String returns the policy's words: least recent, most recent or random.
func (p Policy) String() string {
	switch p {
	case 0: // unset
		return ""
	case LeastRecent:
		return "least recent"
	case MostRecent:
		return "most recent"
	case Random:
		return "random"
	}
	return "unknown"
}

// MarshalText encodes the policy as least-recent, most-recent or random; "" for the zero value.
func (p Policy) MarshalText() ([]byte, error) {
	return []byte(strings.ReplaceAll(p.String(), " ", "-")), nil
}

// UnmarshalText decodes the text of MarshalText. UnmarshalText returns a *berth.ConfigError for
// any other text.
func (p *Policy) UnmarshalText(text []byte) error {
	for *p = 0; *p <= Random; *p++ {
		if word, _ := p.MarshalText(); string(word) == string(text) {
			return nil
		}
	}
	*p = 0
	return berth.Invalid("Policy", "%q is none of least-recent, most-recent and random", text)
}

// letter returns the letter that scripts/pool/wants.lua reads.
func (p Policy) letter() string { return p.String()[:1] }

// maxSharers limits how much of one resource a script must read.
const maxSharers = 100

// Config configures one pool in this process. T is the type of the values that the process
// makes of resources: a connection, a client, or the key itself.
type Config[T any] struct {
	// Open makes the value of a resource, once per resource and process, when the resource is
	// first allocated. The ctx of Open ends with the hold, and after OpenTimeout. If Open fails,
	// the resource is given back and rests for FailureRest, and the allocating call returns Open's
	// error, except AllocateHealthy, which takes the next resource. If Open panics, the call
	// panics with the same value. Several holders of one resource share the value. Default nil: T
	// must be string, and the value is the key.
	Open func(ctx context.Context, resource string) (T, error)
	// OpenTimeout limits one Open, and one Healthy: their ctx ends then. The ctx of Open has the
	// values but not the end of the caller's context, so a caller that leaves does not make a
	// resource fail. Default 30 s.
	OpenTimeout time.Duration
	// Close ends a value when its resource has left the pool or was not healthy, and when the pool
	// or the node closes. While this process holds the resource, only the closing of the pool or
	// the node ends the value. If another process's call removed the resource, Close follows
	// within RefreshEvery. An error of Close goes to the observer. Default nil.
	Close func(value T) error
	// Healthy returns nil if a value works, or an error that says what is wrong. CheckHealth and
	// AllocateHealthy call Healthy. A value that does not work is closed, and the next allocation
	// of the resource opens a new value. Default nil: every resource that can be opened is
	// healthy.
	Healthy func(ctx context.Context, value T) error
	// Defaults are used for each field that a call's AllocateOptions leave zero. Default none.
	Defaults AllocateOptions
	// Policy, Cooldown, MaxSharers, BindFor, MaxLease and MaxHold are this process's proposals for the
	// pool's Settings. The first proposal of a setting, or an operator's choice, is stored with the pool
	// and counts for all processes. Default of each: no proposal.
	Policy Policy
	// Cooldown is how long a resource rests after each hold; below 0 not at all. Default as stored with the
	// pool.
	Cooldown time.Duration
	// MaxSharers is how many claims may hold an added resource at once. Default as stored with the
	// pool.
	MaxSharers int
	// BindFor is how long a binding lasts if the call does not say. Default as stored with the
	// pool.
	BindFor time.Duration
	// MaxLease is the longest Lease of a call. Default as stored with the pool.
	MaxLease time.Duration
	// MaxHold is the longest MaxHold of a call. Default as stored with the pool.
	MaxHold time.Duration
	// Strict refuses calls if the stored settings differ from this process's proposals, and changes
	// nothing: an allocation with berth.ReasonDiffers, Add and Replace with a *berth.ConfigError.
	// Default false: the stored settings count, and an event at level warn reports the difference once.
	Strict bool
	// FailureRest is how long a resource rests after it could not be opened or was not healthy;
	// below 0 not at all. Default 1 min.
	FailureRest time.Duration
	// Shared hands resources out in turn, without a lease. No claim waits as long as some resource
	// does not rest, and Release gives nothing back. Default false.
	Shared bool
	// Source returns the resources that the pool should have, for a Replace. One node at a time
	// calls Source. An error of Source goes to the observer and changes nothing. Default nil.
	Source func(ctx context.Context) ([]string, error)
	// RefreshEvery is the time between two calls of Source: whole milliseconds. Default 5 min.
	RefreshEvery time.Duration
	// Expiry is how long a resource stays in the pool after Source has last returned it, if Source
	// then fails or no process calls it: whole milliseconds. Expiry needs a Source. Default 0,
	// forever.
	Expiry time.Duration
	// AllowEmpty lets an empty answer of Source empty the pool; otherwise an empty answer is an
	// error. AllowEmpty needs a Source. Default false.
	AllowEmpty bool
}

func (c Config[T]) withDefaults() Config[T] {
	if c.FailureRest == 0 {
		c.FailureRest = time.Minute
	}
	c.FailureRest = max(c.FailureRest, 0)
	if c.OpenTimeout == 0 {
		c.OpenTimeout = 30 * time.Second
	}
	if c.RefreshEvery == 0 {
		c.RefreshEvery = 5 * time.Minute
	}
	return c
}

// says returns this process's proposals for the settings.
func (c Config[T]) says() Settings {
	return Settings{
		Policy: c.Policy, Cooldown: max(c.Cooldown, -1), MaxSharers: c.MaxSharers, BindFor: c.BindFor,
		MaxLease: c.MaxLease, MaxHold: c.MaxHold,
	}
}

func (c Config[T]) validate(lease time.Duration) error {
	if _, key := any(*new(T)).(string); c.Open == nil && !key {
		return berth.Invalid("Open", "it is needed to make a %T of a resource", *new(T))
	}
	if c.OpenTimeout < 0 {
		return berth.Invalid("OpenTimeout", "%s is negative", c.OpenTimeout)
	}
	if err := c.says().validate(); err != nil {
		return err
	}
	for _, f := range []struct {
		name  string
		value time.Duration
	}{{"RefreshEvery", c.RefreshEvery}, {"Expiry", c.Expiry}} {
		if err := settings.Duration(f.name, f.value); err != nil {
			return err
		}
	}
	switch {
	case c.Strict && c.says() == (Settings{}):
		return berth.Invalid("Strict", "this process says nothing of the settings")
	case c.Shared && c.MaxSharers > 1:
		return berth.Invalid("MaxSharers", "a pool that is Shared counts no sharers")
	case c.Shared && c.Policy == MostRecent:
		return berth.Invalid("Policy", "a pool that is Shared would hand out one resource for ever")
	case c.Shared && c.Cooldown > 0:
		return berth.Invalid("Cooldown", "a pool that is Shared has no holds that end")
	case c.RefreshEvery < settings.MinLease || c.RefreshEvery == berth.Forever:
		return berth.Invalid("RefreshEvery", "%s is no period", c.RefreshEvery)
	case c.Expiry == berth.Forever:
		return berth.Invalid("Expiry", "for good is 0")
	case c.Source == nil && c.Expiry > 0:
		return berth.Invalid("Expiry", "there is no Source whose resources could expire; AddOptions has one for others")
	case c.Source == nil && c.AllowEmpty:
		return berth.Invalid("AllowEmpty", "there is no Source that could return nothing")
	case c.Open == nil && c.Close != nil:
		return berth.Invalid("Close", "there is no Open whose values could be closed")
	}
	return c.Defaults.validateDefaults(lease)
}

// Pool is this process's view of a pool. A Pool is safe for concurrent use.
type Pool[T any] struct {
	core   *core
	cfg    Config[T]
	values *values.Store[T]

	refresher *refresh.Refresher // nil if there is nothing to refresh
	end       func()             // ends all waits, and what goes on in the background
	ending    atomic.Bool        // over was called
	ended     chan struct{}      // closed when it has done all
}

// New returns the pool of a name on a node. The same name is the same pool in every process. Source is called in the
// background until the pool or the node closes.
//
// New does no I/O and always returns a Pool. If an argument is bad, each call of the Pool returns a *berth.ConfigError,
// which names a field of the defaults as "Defaults.Lease". Check of the node returns it too, unless the bad argument is the
// name. A node has one Pool of a name at a time: a second Pool is refused in this way, because it would open the values
// again. A Pool takes about 1.5 kB until it closes, or 6 kB with an Open or a Source.
func New[T any](n *node.Node, name string, cfg Config[T]) *Pool[T] {
	p := &Pool[T]{cfg: cfg.withDefaults(), ended: make(chan struct{}), core: &core{
		name: name, shared: cfg.Shared, replacing: make(chan struct{}, 1),
		agreed: agreement{says: cfg.says(), opinions: cfg.says().opinions(cfg.Strict), strict: cfg.Strict},
	}}
	of, bad := line.UseName(n, name, func(of *line.Process) error { return p.cfg.validate(of.Settings.Lease) })
	if bad == nil {
		bad = p.begin(of) // may be temporary, so Check does not report it
	}
	p.core.bad = bad
	return p
}

// begin registers the pool with the process, which fills and closes it, unless a pool of the
// name is already open.
func (p *Pool[T]) begin(of *line.Process) error {
	c := p.core
	c.pools, c.defaults = poolsOf(of, true), p.cfg.Defaults.own().complete(of.Settings.Lease)
	closing := make(chan struct{})
	c.closing, c.gone = closing, make(chan struct{})
	p.end = sync.OnceFunc(func() {
		close(closing)
		p.refresher.End()
	})
	p.values = values.New(p.cfg.Open, p.cfg.Close, func(resource string, err error) {
		c.tell(observe.Event{Kind: observe.CloseFailed, Resource: resource, Err: err})
	})
	if err := c.pools.enter(c.name, nil); err != nil {
		return err
	}
	p.start()
	c.pools.ready(c.name, p)
	var open bool
	if c.leave, open = of.Part(func(context.Context) (after func()) {
		p.end()
		return p.over
	}); !open {
		p.end()
		c.pools.leave(c.name)
	}
	return nil
}

func (p *Pool[T]) kick() { p.refresher.Kick() }

// over waits for the end of the background work, and closes the values. A second call waits for the first.
func (p *Pool[T]) over() {
	if p.ending.Swap(true) {
		<-p.ended
		return
	}
	defer close(p.ended)
	p.refresher.Stop()
	p.values.Close()
}

// Close ends this process's waits for the pool with berth.ErrClosed, gives back its holds except detached ones, stops
// calling Source, and closes the values. The node goes on. Later calls of the pool return berth.ErrClosed, and New may make
// another Pool of the name. The ctx of an Open under way ends; a value that this Open still returns is closed. The places
// of the waits in line are given up in the background.
//
// If ctx ends, Close returns ctx's error after node.Config.CleanupTimeout; the unfinished work goes on, and Close of the
// node waits for it. The other errors of Close are those of holds that could not be given back within node.Config.Retry;
// these holds end with their lease.
//
// Close may be called more than once, and each call waits for the end of the first. Source, Open and Close of a value must
// not call Close of the pool with a ctx that does not end. Close of a pool with bad arguments returns nil.
func (p *Pool[T]) Close(ctx context.Context) error {
	c := p.core
	if c.bad != nil {
		return nil
	}
	c.once.Do(func() {
		p.end()
		go func() {
			defer func() { // even if a Close of a value ends the goroutine
				c.pools.leave(c.name)
				c.leave()
				close(c.gone)
			}()
			c.parting = c.pools.p.Leave(context.WithoutCancel(ctx), c.closing)
			p.over()
		}()
	})
	late, cancel := c.pools.face().Engine.Overtime(ctx)
	defer cancel()
	select {
	case <-c.gone:
		return c.parting
	case <-late.Done():
		return caller.EndOf(ctx)
	}
}

// Name returns the name of the pool.
func (p *Pool[T]) Name() string { return p.core.name }

// core is a pool without its values.
type core struct {
	pools    *pools
	bad      error // the error of each call; nil for a usable pool
	name     string
	defaults AllocateOptions // of the pool, complete and checked
	shared   bool
	agreed   agreement
	turnID   string // the id of this node's last turn; used by the refresher only

	closing <-chan struct{} // closed when Close of the pool or of the node begins
	once    sync.Once       // Close has begun
	gone    chan struct{}   // closed when Close has done all
	parting error           // what Close returns; written before gone is closed
	leave   func()          // Close of the node need not end the pool any more

	// replacing has room for one: the Replaces of this process run one after the other, so
	// only another process can supersede one.
	replacing chan struct{}
}

// usable returns why the pool cannot be used: its bad arguments, or that it is closed.
func (p *core) usable() error {
	if p.bad != nil {
		return p.bad
	}
	select {
	case <-p.closing: // nil for that of a trial
		return berth.ErrClosed
	default:
		return nil
	}
}

// tell sends an event of the pool.
func (p *core) tell(ev observe.Event) {
	ev.Name = p.name
	p.pools.face().Tell.Send(ev)
}
