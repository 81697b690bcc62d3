package observe

import (
	"context"
	"time"

	"github.com/berth-go/berth"
)

// Event is one thing that happened. The comment of each [Kind] says which fields
// an event of that kind fills; the others are zero.
type Event struct {
	// Kind is what happened.
	Kind Kind
	// Primitive is where it happened: "sem", "lock" or "pool", as in berth.Token; "once"; or "node" where the event is about
	// the node as a whole. A job of package once sends events of "once", and its lock sends events of "lock"; package
	// leader's are all of "lock". Always filled.
	Primitive string
	// Namespace is that of the node. Always filled.
	Namespace string
	// Name is the name of the semaphore, the lock or the pool. Empty if the event
	// is about the node as a whole.
	Name string
	// Claim is the id of the claim. Filled if the event is about one claim.
	Claim string
	// Node is the id of the node that sends the event. Always filled.
	Node string
	// Owner is the owner of the claim, as the caller gave it: any bytes. Filled if
	// the event is about one claim of this node and the caller gave an owner.
	Owner string
	// Fence is the fencing token of the grant.
	Fence int64
	// WasQueued is true if the claim had waited in line: its event of kind Queued was
	// sent before. Filled in every event that ends an acquire.
	WasQueued bool
	// WasHeld is true if the event is the first one that says that a hold of this node is
	// over: an event of kind Granted, Reentered or Resumed belongs to it. Each hold has exactly
	// one event with WasHeld, unless its process ends first.
	WasHeld bool
	// Waited is how long the acquiring call took, or has taken so far.
	Waited time.Duration
	// Held is how long the hold has lasted.
	Held time.Duration
	// Lease is the length of the lease as it was asked for; berth.Forever for a
	// lease without end.
	Lease time.Duration
	// Left is how long the hold still lasts if nothing renews it.
	Left time.Duration
	// Silent is for how long the server has not answered, or has not run a call.
	Silent time.Duration
	// Late is how long after its time a heartbeat was sent.
	Late time.Duration
	// Ahead is how many claims stand in line before this one.
	Ahead int
	// Capacity is the stored capacity; of a pool, the number of its resources. 0 if
	// it is not known.
	Capacity int
	// Weight is how much of the capacity the claim asks for.
	Weight int
	// Count is a number; the comment of the kind says of what.
	Count int
	// Resource is the key of the resource in a pool, any bytes; of Queued the one that the
	// claim waits for alone.
	Resource string
	// Detail is a text; the comment of the kind says which.
	Detail string
	// Reason says why a claim did not get what it asked for.
	Reason berth.Reason
	// Err is the error that the caller gets, or the error behind the event.
	Err error
	// At is when it happened, by the clock of this process. Always filled.
	At time.Time
	// Attrs is the map of attributes that the caller gave with the call: the same
	// map. Filled if the event is about one claim of this node and the caller
	// gave one. Neither the caller nor an observer may change the map after the call.
	Attrs map[string]any
	// Context is a context with the values, such as a trace, of the context of the
	// call that caused the event. If no call caused the event, as with a heartbeat or
	// a lost lease, the values are those of the call that acquired or resumed the
	// hold; without a claim, Context is context.Background(). Context never ends and
	// has no deadline, even if the call's context has ended: an observer can always
	// pass it on. Always filled.
	Context context.Context
}

// Observer receives every event of a node.
//
// The client calls Observe on the goroutine on which the event happened. That
// goroutine may be one that keeps leases alive, or one that asks a hold or its
// context and so finds the hold ended, whatever locks of its own it has then. So
// Observe must not block, must not panic, and must not call Berth. Many goroutines call Observe at once,
// none of them with a lock of Berth held. Events of one claim may come from
// several goroutines; At is their order. The event that ends an acquire always
// comes after Observe has returned from the claim's Queued event, and so does the
// return of the acquiring call.
type Observer interface {
	Observe(Event)
}

// Func is a function as an [Observer]. A nil Func drops every event.
type Func func(Event)

// Observe calls f.
func (f Func) Observe(e Event) {
	if f != nil {
		f(e)
	}
}

// nop drops every event.
type nop struct{}

func (nop) Observe(Event) {}

// Multi returns an Observer that passes each event to all given observers, one
// after the other, and leaves out those that are nil. The returned Observer is
// never nil: if no observer is given, it drops every event.
func Multi(observers ...Observer) Observer {
	var wanted multi
	for _, o := range observers {
		if _, none := o.(nop); o != nil && !none {
			wanted = append(wanted, o)
		}
	}
	switch len(wanted) {
	case 0:
		return nop{}
	case 1:
		return wanted[0]
	}
	return wanted
}

type multi []Observer

func (m multi) Observe(e Event) {
	for _, o := range m {
		o.Observe(e)
	}
}
