package engine

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
	"github.com/rs/xid"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/clock"
	"github.com/berth-go/berth/internal/heartbeat"
	"github.com/berth-go/berth/internal/wake"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// Tombstone is how long a removed claim is remembered whose acquire may still
// be on its way.
const Tombstone = time.Minute

// idlers is how many goroutines are kept for what is spawned next.
const idlers = 64

// Config says what an engine works with. All fields are set by the primitive.
type Config struct {
	// Redis is the user's client.
	Redis rueidis.Client
	// Scripts are the primitive's calls.
	Scripts Scripts
	// Node is the id of this node.
	Node string
	// Channel is where the scripts publish for this node.
	Channel string
	// Wait is the wait lease.
	Wait time.Duration
	// CallTimeout bounds one attempt of a call.
	CallTimeout time.Duration
	// CleanupTimeout is how long Release and Close go on waiting once ctx has ended,
	// and bounds the removal of a claim whose caller has left.
	CleanupTimeout time.Duration
	// WarnAfter is when a hold is reported as forgotten whose claim does not say; 0 for never.
	WarnAfter time.Duration
	// Retry paces what is repeated.
	Retry berth.Retry
	// Observe takes the events; nil for nobody. It is never called with a lock held. The
	// context of an event may be nil, or end.
	Observe func(observe.Event)
	// Clock is the engine's clock.
	Clock clock.Clock
	// Passed says whether the node has outlived its time, so that it must not
	// believe in anything that it holds; nil where that cannot be. It never waits.
	Passed func() bool
	// Settle asks the server what a claim of this node may have been ended for: whether the node
	// has outlived its time, so that Passed is true afterwards, or the engine abandoned, if it has;
	// and whether the process drains. It returns early when ctx ends; nil for nothing to ask.
	Settle func(ctx context.Context)
	// Before is called before each attempt of an acquire. It returns why the attempt is not sent:
	// the refusal of the claim, or an error, which counts as that of an attempt that did not run;
	// nil for nothing to do.
	Before func(ctx context.Context, c *Claim) (*berth.AcquireError, error)
	// Stands says whether the caller of a claim that was granted may have it; nil for always. Where not, the claim is removed,
	// and another one asks for the same. It may ask the server, and returns when ctx ends.
	Stands func(ctx context.Context, c *Claim) bool
	// Paused asks for the pause of a name, nil for none; nil where nobody is to be asked. It returns when ctx ends.
	Paused func(ctx context.Context, at Line) *berth.Pause
	// Wanted is called when somebody wants a hold of this node back; nil for nobody. It waits for nothing.
	Wanted func()
	// Drains says why the process drains, an error that matches berth.ErrDraining; nil for it does not. Drains is nil where that
	// cannot be. When the process begins to drain, Drain has to follow. It never waits.
	Drains func() error
	// Server tells which server has a Redis key, by a number; nil for one server.
	Server func(key string) int
	// Reenters says whether an owner who holds a name of a kind may take it again; nil for none.
	Reenters func(kind keyspace.Kind) bool
	// Process is what contexts of holds are known by, so that those of a node that was replaced are; nil for the engine.
	Process any
	// Kinds are those that claims may be of: a push about a name says no kind.
	Kinds []keyspace.Kind
}

// Engine carries the claims of one node, of all kinds.
type Engine struct {
	cfg     Config
	clock   clock.Clock
	beats   *heartbeat.Engine
	held    heartbeat.Spec // what the specs of all holds have in common
	waits   heartbeat.Spec // and those of all claims that wait
	hub     *wake.Hub
	closing chan struct{} // closed when Close begins
	gone    chan struct{} // closed when nothing runs any more
	back    chan struct{} // closed when what was held has been given back
	parting error         // what Close met; written before gone is closed

	jobs chan func()    // what is spawned, for a goroutine that waits; closed when nothing is any more
	idle chan struct{}  // has an element for each of these, and room for idlers
	crew sync.WaitGroup // the goroutines of spawn, those that wait included

	replaced atomic.Bool // Abandon has closed it
	primed   atomic.Bool // the heartbeat's script has been loaded, or is being loaded

	given   given   // releases that a server may lose
	doors   *doors  // what the calls of those who wait pass
	flights flights // their attempts

	mu       sync.Mutex
	claims   map[string]*Claim   // guarded by mu: all that are not ended
	lines    map[Line]*line      // guarded by mu: the names on which a claim waits
	groups   map[groupKey]*group // guarded by mu: of owners of whom an entry here may extend
	many     int                 // guarded by mu: at how many of them those that nobody needs are dropped
	adopting int                 // guarded by mu: the calls between Begin and End
	doubts   map[string]struct{} // guarded by mu: see Doubt; nil for none
	closed   bool                // guarded by mu
	work     sync.WaitGroup      // calls and goroutines; Add only under mu while not closed, or inside one that counts
}

// NodeID draws the id of a node: 64 random bits.
func NodeID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails since Go 1.24
	return hex.EncodeToString(b[:])
}

// New returns an engine. It does no I/O and starts nothing.
func New(cfg Config) *Engine {
	e := &Engine{
		cfg:     cfg,
		clock:   cfg.Clock,
		closing: make(chan struct{}),
		gone:    make(chan struct{}),
		back:    make(chan struct{}),
		jobs:    make(chan func()),
		idle:    make(chan struct{}, idlers),
		claims:  make(map[string]*Claim),
		lines:   make(map[Line]*line),
		groups:  make(map[groupKey]*group),
		doors:   newDoors(&cfg),
		flights: flights{clock: cfg.Clock, timeout: cfg.CallTimeout},
	}
	beats := heartbeat.Config{Clock: cfg.Clock, Beat: e.beatMany, Timeout: cfg.CallTimeout, Gate: e.doors.gate}
	if cfg.Observe != nil {
		beats.Over = e.beaten
	}
	e.beats = heartbeat.New(beats)
	e.held = heartbeat.Spec{
		Ends:   true,
		Ended:  func(l *heartbeat.Lease, cause error) { e.leaseEnded(l.Claim.(*Claim), cause) },
		OnWarn: func(l *heartbeat.Lease) { e.heldLong(l.Claim.(*Claim)) },
		Failed: e.beatFailed,
	}
	e.waits = heartbeat.Spec{Failed: e.beatFailed}
	e.hub = wake.New(cfg.Redis, cfg.Channel, cfg.Clock, wake.Callbacks{
		Deliver: e.deliver, Subscribed: e.subscribed, Deaf: e.deaf, Observe: cfg.Observe,
	})
	return e
}

// ClaimID returns a new id.
func (e *Engine) ClaimID() string {
	id := append(make([]byte, 0, 64), e.cfg.Node...)
	drawn, _ := xid.New().MarshalText() // never fails
	return string(append(append(id, '.'), drawn...))
}

// enter registers a claim, so that a wake-up finds it even before the reply of
// its first script. Whoever enters must call e.work.Done once.
func (e *Engine) enter(c *Claim) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return e.closedBy()
	}
	if e.drains() {
		if !e.reenters(c) {
			return cmp.Or(e.drained(), berth.ErrDraining) // it may have ended just now
		}
		c.inside.Store(true)
	}
	e.work.Add(1)
	e.claims[c.ID] = c
	return nil
}

// forget takes a claim out of the registry, out of the heartbeat and out of the
// line of its name.
func (e *Engine) forget(c *Claim) {
	e.beats.Remove(&c.lease)
	e.mu.Lock()
	if e.claims[c.ID] == c {
		delete(e.claims, c.ID)
	}
	e.leaveLine(c)
	e.leaveGroup(c)
	e.mu.Unlock()
}

// spawn runs f on a goroutine that Close waits for. It may only be called from
// work that counts already.
func (e *Engine) spawn(f func()) {
	e.work.Add(1)
	select {
	case e.jobs <- f:
	default:
		e.crew.Go(func() { e.serve(f) })
	}
}

// serve runs f, and then what is spawned next: a goroutine that stays has its stack
// already, which a new one would first have to grow for every call.
func (e *Engine) serve(f func()) {
	for open := true; open; {
		f()
		e.work.Done()
		select {
		case e.idle <- struct{}{}:
		default:
			return // enough of them wait
		}
		f, open = <-e.jobs
		<-e.idle
	}
}

// prime loads the heartbeat's script, in the background and once, so that the first
// heartbeats find it. It may only be called from work that counts already. An engine that
// is closing sends no more of them. It would give the load up at once, and with it the
// connection that rueidis may be making for others too.
func (e *Engine) prime() {
	if e.primed.Load() || e.isClosing() || !e.primed.CompareAndSwap(false, true) {
		return
	}
	e.spawn(func() {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		loaded := make(chan struct{})
		go func() {
			defer close(loaded)
			_ = e.cfg.Scripts.Load(ctx) // else a heartbeat brings it along
		}()
		select {
		case <-loaded:
		case <-e.closing:
			cancel()
			<-loaded
		}
	})
}

// begin counts a piece of work that comes from outside any call, and reports
// false once the engine is closed.
func (e *Engine) begin() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return false
	}
	e.work.Add(1)
	return true
}

// Background runs f on a goroutine that Close waits for, and reports false once the engine is
// closed. closing is closed when Close begins: f is to end soon then.
func (e *Engine) Background(f func(closing <-chan struct{})) bool {
	if !e.begin() {
		return false
	}
	defer e.work.Done()
	e.spawn(func() { f(e.closing) })
	return true
}

// find returns the claim of an id, nil if this node does not have it.
func (e *Engine) find(id string) *Claim {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.claims[id]
}

// repeats reports a call of a claim that is about to be repeated; ctx is that of who makes it.
func (e *Engine) repeats(ctx context.Context, c *Claim, attempt int, err error) {
	e.event(observe.Repeated, c, func(ev *observe.Event) {
		ev.Context, ev.Count, ev.Err = ctx, attempt, err
		if failed, ok := errors.AsType[*scriptkit.Error](err); ok {
			ev.Detail = failed.Script
		}
	})
}

// Event sends an event about a claim whose caller has the handle, with what all such events share: of them the node that the claim
// is of, which may have been replaced. Its context is that of the acquiring call, unless fill sets another one.
func (c *Claim) Event(kind observe.Kind, fill func(*observe.Event)) { c.handle.e.event(kind, c, fill) }

// event fills in what all events of a claim share, and sends it.
func (e *Engine) event(kind observe.Kind, c *Claim, fill func(*observe.Event)) {
	if e.cfg.Observe == nil {
		return
	}
	ev := observe.Event{
		Kind: kind, Primitive: string(c.Kind), Name: c.Name, Claim: c.ID, Node: e.cfg.Node, Owner: c.Record.Owner,
		Weight: c.Record.Weight, Resource: c.Resource(), Attrs: c.Attrs, Context: c.caller,
	}
	if fill != nil {
		fill(&ev)
	}
	e.cfg.Observe(ev)
}

// Now is the engine's clock, for the start of a request.
func (e *Engine) Now() time.Duration { return e.clock.Now() }

// outdated says whether the node has outlived its time in a swarm: others may have been given
// what it holds.
func (e *Engine) outdated() bool {
	return e.replaced.Load() || e.cfg.Passed != nil && e.cfg.Passed()
}

// closedBy is why nothing can be acquired here any more.
func (e *Engine) closedBy() error {
	if e.outdated() {
		return ErrReplaced
	}
	return berth.ErrClosed
}
