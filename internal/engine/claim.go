package engine

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/heartbeat"
	"github.com/berth-go/berth/pkg/scriptkit"
)

type phase int

// The phases of a claim on this side, in the only order they take.
const (
	asking phase = iota
	waiting
	granted
	ended
)

// Claim is one request for a name, from before its first script until its end.
// The exported fields do not change after the claim is given to the engine.
type Claim struct {
	// ID is <node>.<xid>.
	ID string
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
	// QueueTTL sends a claim that waits to the end of the line once each such
	// period, 0 for never.
	QueueTTL time.Duration
	// Extends is by how much the claim lengthens what its owner holds already, if
	// it does; 0 for a claim that would not.
	Extends time.Duration
	// Before is how long the call had taken when this claim was made for it, under
	// the nodes that were replaced.
	Before time.Duration

	// Thin says that the scripts of thin names serve its hold; the Scripts set it.
	Thin atomic.Bool

	start time.Duration // when the call began, on the engine's clock
	lease heartbeat.Lease

	// calls is held while a script of this claim is in flight, so that they are
	// sent one after the other. Batched heartbeats do not take it: they decide
	// nothing that another call could undo.
	calls turns

	inLine bool // guarded by Engine.mu: counted among the waiters of its name

	mu          sync.Mutex
	signal      chan struct{} // guarded by mu: something about this claim has changed. It has room for one, and is there once the claim waits
	phase       phase         // guarded by mu, only ever grows
	err         error         // guarded by mu: why it ended
	ticket      int64         // guarded by mu
	stored      int           // guarded by mu: the capacity that the server last named, 0 for none
	place       string        // guarded by mu: where it stands, while it waits
	secret      string        // guarded by mu: what a push of its grant proves itself by, "" until a record has it
	fence       int64         // guarded by mu: the number of its grant
	resource    string        // guarded by mu: what it gives, where the primitive has resources
	pushedFence int64         // guarded by mu: what the last push said it is
	pushedGift  string        // guarded by mu: the resource that the last push named
	confirmed   bool          // guarded by mu: an own call has followed the grant
	doubt       bool          // guarded by mu: it was asked for or restored again, so a push may be about an earlier grant
	lost        bool          // guarded by mu: an attempt of its acquire, or a restore, went unanswered
	asked       bool          // guarded by mu: an attempt of its acquire was sent
	loose       bool          // guarded by mu: only its handle is left of it
	exchanging  bool          // guarded by mu: a call that changes fence and resource is under way
	askAgain    bool          // guarded by mu: an answer that came meanwhile was passed over
	mayRun      bool          // guarded by mu: a call since its last answered one may have run, and begun that
	pushes      int           // guarded by mu: how many pushes said that it was granted
	denied      int           // guarded by mu: how many of them an own call has answered since
	heard       time.Duration // guarded by mu: start of its last own answered call
	left        time.Duration // guarded by mu: what that call's answer said is left
	silence     silence       // guarded by mu: the calls that have failed since the last answer
	hold        *Hold         // guarded by mu: its handle, once there is one
	handle      Hold          // what hold is then

	terms    Terms              // guarded by mu: what its hold goes by
	entry    *Entry             // guarded by mu: not nil for an entry of an owner that held already
	replied  time.Duration      // guarded by mu: when the answer that made it an entry was read
	limit    time.Duration      // guarded by mu: the local end of its maximum hold, 0 for none
	since    time.Duration      // guarded by mu: when the first of these was sent
	sent     time.Duration      // guarded by mu: when the last heartbeat was sent that may run yet, 0 for none
	ceilings map[*Claim]ceiling // guarded by mu: what entries in the middle of their release may leave of it
	told     time.Duration      // guarded by mu: the local deadline by the last answer; a call under way may have lowered it
	beyond   time.Duration      // guarded by mu: how much further than its lease it was extended, as far as is known
	renewed  time.Duration      // guarded by mu: start of the last call that renewed it
	steps    int                // guarded by mu: how much has become of its deadline; orders what follows, which the clock would not
	heardAt  int                // guarded by mu: the step of the last answer
	liftedAt int                // guarded by mu: the step at which the last of the ceilings was lifted
	notes    map[*Claim]note    // guarded by mu: what its siblings believed in before it was sent
	heralded []string           // the siblings that were lowered for its removal; guarded by calls
	mayGo    bool               // an attempt of its removal may run yet; guarded by calls
}

// ceiling is what the removal of another entry may leave of a claim's deadline.
type ceiling struct {
	at   time.Duration
	step int // when it was set
}

// note is a claim's deadline before something that may lengthen it was sent.
type note struct {
	deadline time.Duration
	step     int
}

// Terms are what the deadlines of a hold go by: those of its claim's record, or,
// for an entry of an owner that held the name already, the outermost one's.
type Terms struct {
	Lease   time.Duration // berth.Forever for none
	NoRenew bool
	MaxHold time.Duration // 0 for none
}

// Entry is what the server says of a claim whose owner held the name already.
type Entry struct {
	Terms
	// Extends is by how much the claim lengthens the common deadline, confirmed
	// or not.
	Extends time.Duration
	// Common is what is left of the common deadline, below 0 for no end, and where
	// the outermost entry has yet to speak.
	Common time.Duration

	rest time.Duration // what its claimant's confirming call adds
}

// owner is whom the claim is for: itself where nobody was given.
func (c *Claim) owner() string {
	if c.Record.Owner == "" {
		return c.ID
	}
	return c.Record.Owner
}

// goesBy returns the terms.
func (c *Claim) goesBy() Terms {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.terms
}

// Endless says whether the claim's hold has no end of its own.
func (c *Claim) Endless() bool {
	terms := c.goesBy()
	return terms.Lease == berth.Forever && terms.MaxHold == 0
}

// Heralded are the owner's other entries whose local deadlines were lowered before
// the claim's removal is sent: only where no other stays may it take anything back.
func (c *Claim) Heralded() []string { return c.heralded }

// lease is what a renewal gives, within the maximum hold, so that the margin is no
// larger than it.
func (t Terms) lease() time.Duration {
	if t.MaxHold > 0 {
		return min(t.Lease, t.MaxHold)
	}
	return t.Lease
}

// unanswered notes a call, sent at start, that may have run without its answer being
// read: a maximum hold may run from then on.
func (c *Claim) unanswered(start time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.mayRun {
		c.mayRun, c.since = true, start
	}
}

// misses reports whether the heartbeat that was sent at start is the last one, and
// neither answered nor missed yet, and counts it as missed.
func (c *Claim) misses(start time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if start == 0 || c.sent != start {
		return false
	}
	c.sent = 0
	return true
}

// waited is how long the call has taken at a moment.
func (c *Claim) waited(now time.Duration) time.Duration { return c.Before + now - c.start }

// begins sets what is known of a claim when its course begins.
func (c *Claim) begins(now time.Duration) {
	c.start = now
	c.lease.Claim = c
	c.silence.answered = unasked
	c.terms = Terms{Lease: c.Record.Lease, NoRenew: c.Record.NoRenew, MaxHold: c.Record.MaxHold}
}

// turns is a mutex for what takes as long as the network does. Whoever waits for
// a sync.Mutex is not idle for testing/synctest, so that virtual time would stand
// still, and the call that it waits for would never come back; whoever waits for a
// sync.Cond is.
type turns struct {
	mu    sync.Mutex // never held for as long as a turn
	taken bool       // guarded by mu
	free  sync.Cond  // on mu
}

func (t *turns) Lock() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.free.L = &t.mu
	for t.taken {
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
	t.free.Signal()
}

// wake signals without blocking. A claim that does not wait yet looks at itself
// before it does.
func (c *Claim) wake() {
	c.mu.Lock()
	signal := c.signal
	c.mu.Unlock()
	select {
	case signal <- struct{}{}:
	default:
	}
}

// end moves the claim to its last phase, once, and ends its handle's context
// with the cause. It reports whether this call was the one.
func (c *Claim) end(cause error) bool {
	c.mu.Lock()
	if c.phase == ended {
		c.mu.Unlock()
		return false
	}
	hold := c.hold
	if hold != nil {
		cause = hold.ending(cause)
	}
	c.phase, c.err = ended, cause
	c.mu.Unlock()
	if hold != nil {
		hold.finish(cause)
	}
	c.wake()
	return true
}

func (c *Claim) current() (phase, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.phase, c.err
}

// overdue is the error of a hold whose time has run out: ErrExpired for a limit
// of its own, ErrLost for a lease that should have been renewed.
func (c *Claim) overdue(cause error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.terms.NoRenew || errors.Is(cause, heartbeat.ErrLimit) && c.terms.MaxHold > 0 {
		return berth.ErrExpired
	}
	return berth.ErrLost
}

// capacity is the stored one, 0 where it is not known.
func (c *Claim) capacity() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stored
}

// endWaiting ends a claim that has no handle yet with a refusal.
func (c *Claim) endWaiting(refusal *berth.AcquireError) {
	c.mu.Lock()
	if c.phase != asking && c.phase != waiting {
		c.mu.Unlock()
		return
	}
	c.phase, c.err = ended, refusal
	c.mu.Unlock()
	c.wake()
}

// unconfirmed says whether the grant needs a confirming call before the caller
// may have it.
func (c *Claim) unconfirmed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.confirmed && (c.bounded() || c.entry != nil)
}

// bounded says whether the hold has a limit of its own, or none at all, or a lease
// shorter than the wait lease: what runs from the claimant's first call after the
// grant, which may be a heartbeat that is on its way already. It is called with
// c.mu held.
func (c *Claim) bounded() bool {
	return c.terms.NoRenew || c.terms.MaxHold > 0 || c.terms.Lease < c.Record.Wait
}

// causeOf is why a context ended: what the caller's own says, else that a limit of
// the library's own did.
func causeOf(ctx context.Context) error {
	if end := scriptkit.CallersEnd(ctx); end != nil {
		return end
	}
	return errNoAnswer
}

// Resource is what the claim holds, "" where the primitive has no resources.
func (c *Claim) Resource() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.resource
}

// Fence is the number of its grant, 0 before.
func (c *Claim) Fence() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fence
}

// Ticket is when the claim came, as far as is known.
func (c *Claim) Ticket() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ticket
}

// Standing is where the claim stands in line, and its record as it goes to the server:
// with the ticket that it has, and a secret, which is drawn when it is first asked for.
func (c *Claim) Standing() (place string, record Record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.secret == "" {
		c.secret = newSecret()
	}
	record = c.Record
	record.Ticket, record.Secret = c.ticket, c.secret
	return c.place, record
}
