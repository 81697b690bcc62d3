package engine

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/berth-go/berth/internal/heartbeat"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// Claim is one request for a name, from before its first script until its end.
// The exported fields do not change after the claim is given to the engine.
type Claim struct {
	// ID is <node>.<xid>.
	ID string
	// Kind is the kind of Name.
	Kind keyspace.Kind
	// Name is what is contended for.
	Name string
	// Record is what the server is to keep of it.
	Record Record
	// MayWait says whether the claim joins the line.
	MayWait bool
	// Capacity goes along with the primitives that have one.
	Capacity int
	// Attrs goes to the observer.
	Attrs map[string]any
	// Request is what only the primitive's own acquire needs.
	Request any
	// Attempts ends the wait with ReasonAttempts, 0 for never.
	Attempts time.Duration
	// RequeueEvery sends a claim that waits to the end of the line once each such
	// period, 0 for never.
	RequeueEvery time.Duration
	// WantAfter is how long the claim waits until a heartbeat asks for what others hold, once it stands
	// first, and until the next one does; 0 for never.
	WantAfter time.Duration
	// Closing ends its wait with ErrClosed when it is closed, and is what Leave finds its hold by; nil for never.
	Closing <-chan struct{}
	// WarnAfter is when its hold is reported as forgotten, below 0 for never; 0 for Config.WarnAfter.
	WarnAfter time.Duration
	// Extends is by how much the claim extends what its owner holds already, if
	// it does; 0 for a claim that would not.
	Extends time.Duration
	// Before is how long the call had taken when this claim was made for it, under
	// the nodes that were replaced.
	Before time.Duration

	// Thin says that the scripts of thin names serve its hold; the Scripts set it.
	Thin atomic.Bool
	// Plain says that the last call for its hold met the plain case of a fat name, so that its
	// heartbeat may go with those of other names; the Scripts set it.
	Plain atomic.Bool

	key    string          // the Redis key of what it stands in line for, by which the heartbeat gathers
	start  time.Duration   // when the call began, on the engine's clock
	lease  heartbeat.Lease // kept while the claim waits or holds
	inLine bool            // guarded by Engine.mu: counted among the waiters of its name
	apart  bool            // guarded by Engine.mu: and among those who wait for one resource alone
	kept   bool            // of Acquire's goroutine alone: it was given up at the gate
	inside atomic.Bool     // the process drains: the claim may only be one more entry of an owner that holds
	most   time.Duration   // of a hold that was taken up: its first deadline is no later than this, 0 for no bound

	// calls is held while a script of this claim is in flight, so that they are
	// sent one after the other, until an attempt counts as unanswered. Batched heartbeats
	// do not take it: they decide nothing that another call could undo.
	calls turns

	// doing is held from when an event is taken until what follows is done, but for telling the
	// observer: the deadline of a grant must not be set after the caller has the handle, nor
	// before the place has been kept that it takes. It is taken before Engine.mu.
	doing sync.Mutex

	mu     sync.Mutex    // on, see and time alone take it
	m      machine       // guarded by mu
	signal chan struct{} // something has changed. It has room for one; it is set once, under mu, before anybody wakes

	caller context.Context // of the acquiring call, for its values
	queued sync.WaitGroup  // counts the observe.Queued that is still to be told: it comes before the end of the acquire

	part atomic.Pointer[member] // of its owner's group, nil for none; Engine.member alone sets it

	paused atomic.Pointer[pausedAt] // of its name, shortly before the wait's own end; nil for not paused

	handle Hold // the caller's, from the look on that gives it
}

// line is what the claim stands in line for.
func (c *Claim) line() Line { return Line{c.Kind, c.Name} }

// begins sets what is known of a claim when its course begins. caller is the context of the
// call that it is for.
func (c *Claim) begins(caller context.Context, now time.Duration, asked bool) {
	c.caller, c.start = caller, now
	c.lease.Claim = c
	c.m = begin(c, asked)
}

// on takes an event to the claim's machine. What the effects say is for the engine to do.
func (c *Claim) on(ev *event) effects {
	c.mu.Lock()
	defer c.mu.Unlock()
	fx := c.m.on(*ev)
	switch {
	case fx.has(doJoin):
		c.signal = make(chan struct{}, 1)
		c.queued.Add(1)
	case ev.kind == evCall:
		fx.seen.version = c.part.Load().seen()
	}
	return fx
}

// see returns what is known of the claim now.
func (c *Claim) see() machine {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.m
}

// time sets what an answer, or a push, says of the hold's deadlines, and what the entries of
// its owner may leave of them.
func (c *Claim) time(spec *heartbeat.Spec, g timing) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before, part := spec.Deadline, c.part.Load()
	c.m.time(spec, g)
	if part == nil || c.m.phase == loose {
		return
	}
	deadline, renewed := c.m.tells(g, spec)
	if !part.heard(g.version, g.start, deadline, renewed) && before != 0 {
		// Something was taken back since that call was sent: its answer may be from
		// before, and the server has been asked again.
		spec.Deadline, spec.Bounded = min(spec.Deadline, before), false
	}
	spec.Limit = part.bounds(spec.Limit)
}

// holds says whether the claim holds, as far as is known.
func (c *Claim) holds() bool {
	m := c.see()
	return m.holds()
}

// wake signals without blocking. A claim that does not wait yet looks at itself
// before it does.
func (c *Claim) wake() {
	select {
	case c.signal <- struct{}{}:
	default:
	}
}

// waited is how long the call has taken at a moment.
func (c *Claim) waited(now time.Duration) time.Duration { return c.Before + now - c.start }

// owner is whom the claim is for: itself where nobody was given.
func (c *Claim) owner() string {
	if c.Record.Owner == "" {
		return c.ID
	}
	return c.Record.Owner
}

// Caller is the context of the call that acquired or resumed the claim: for its values.
func (c *Claim) Caller() context.Context { return c.caller }

// Says is the mode of a call as the claim makes it, and whether its hold has no end of its own.
func (c *Claim) Says(mode Mode) (said Mode, endless bool) {
	m := c.see()
	return m.says(mode), m.endless()
}

// Resource is what the claim holds, "" where the primitive has no resources.
func (c *Claim) Resource() string { return c.granted().resource }

// Fence is the number of its grant, 0 before.
func (c *Claim) Fence() int64 { return c.granted().fence }

// Ticket is when the claim came, as far as is known.
func (c *Claim) Ticket() int64 { return c.see().place.ticket }

// Loose says whether the claim's hold was loosened: only its handle is left, or was.
func (c *Claim) Loose() bool { return c.granted().loose }

// entry is not nil for an entry of an owner that held already.
func (c *Claim) entry() *Entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.m.terms.entry
}

// granted returns what the claim was given, as far as is known.
func (c *Claim) granted() grant {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.m.grant
}

// Standing is where the claim stands in line, and its record as it goes to the server:
// with the ticket that it has, and a secret, which is drawn when it is first asked for.
func (c *Claim) Standing() (place string, record Record) {
	m := c.see()
	if m.news.secret == "" {
		c.on(&event{kind: evSecret, text: newSecret()})
		m = c.see()
	}
	record = c.Record
	record.Ticket, record.Secret = m.place.ticket, m.news.secret
	return m.place.at, record
}

// causeOf is why a context ended: what the caller's own says, else that a limit of
// the library's own did.
func causeOf(ctx context.Context) error {
	if end := scriptkit.CallersEnd(ctx); end != nil {
		return end
	}
	return errNoAnswer
}

// turns is a mutex for what takes as long as the network does. A goroutine that waits
// for a sync.Mutex is not idle for testing/synctest: virtual time would stand still, and the
// call that it waits for would never return. One that waits for a sync.Cond is idle.
type turns struct {
	mu    sync.Mutex // never held for as long as a turn
	taken bool       // guarded by mu
	free  *sync.Cond // on mu; nil before anybody has waited
}

func (t *turns) Lock() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.taken {
		if t.free == nil {
			t.free = sync.NewCond(&t.mu)
		}
		t.free.Wait()
	}
	t.taken = true
}

func (t *turns) TryLock() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	free := !t.taken
	t.taken = true
	return free
}

func (t *turns) Unlock() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.taken = false
	if t.free != nil {
		t.free.Signal()
	}
}
