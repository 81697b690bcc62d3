package observe

import (
	"context"
	"time"

	"github.com/berth-go/berth"
)

// Event is one occurrence inside Berth. The comment of each [Kind] says which fields an event
// of that kind fills; the other fields are zero.
type Event struct {
	// Kind is what happened.
	Kind Kind
	// Primitive is the part of Berth that sent the event: "sem", "lock" or "pool", as in berth.Token; "once"; or "node" for
	// an event about the node as a whole. A job of package once sends events of "once", and the job's lock sends events of
	// "lock". All events of package leader are of "lock". Always filled.
	Primitive string
	// Namespace is the node's namespace. Always filled.
	Namespace string
	// Name is the name of the semaphore, the lock or the pool. Empty if the event
	// is about the node as a whole.
	Name string
	// Claim is the id of the claim. Filled if the event is about one claim.
	Claim string
	// Node is the id of the node that sends the event. Always filled.
	Node string
	// Owner is the owner that the caller gave the claim: any bytes. Filled if the event is about
	// one claim of this node and the caller gave an owner.
	Owner string
	// Fence is the fencing token of the grant.
	Fence int64
	// WasQueued is true if the claim had waited in line, so that an event of kind Queued came
	// before. Filled in every event that ends an acquire.
	WasQueued bool
	// WasHeld is true if the event is the first one to say that a hold of this node is over; an
	// event of kind Granted, Reentered or Resumed of that hold came before. Each hold has exactly
	// one event with WasHeld, unless its process ends first.
	WasHeld bool
	// Waited is how long the acquiring call took, or has taken so far.
	Waited time.Duration
	// Held is how long the hold has lasted.
	Held time.Duration
	// Lease is the requested lease; berth.Forever for a lease without end.
	Lease time.Duration
	// Left is how long the hold still lasts if nothing renews the hold.
	Left time.Duration
	// Silent is how long the server has not answered, or not run, any call.
	Silent time.Duration
	// Late is how long after its due time a heartbeat was sent.
	Late time.Duration
	// Ahead is how many claims stand in line before this one.
	Ahead int
	// Capacity is the stored capacity or, for a pool, the number of its resources. 0 if it is not
	// known.
	Capacity int
	// Weight is how much of the capacity the claim asks for.
	Weight int
	// Count is a number whose meaning depends on the kind; see the kind's comment.
	Count int
	// Resource is the key of a pool's resource, any bytes. In an event of kind Queued, Resource is
	// the only resource that the claim waits for.
	Resource string
	// Detail is a text whose meaning depends on the kind; see the kind's comment.
	Detail string
	// Reason says why a claim was not granted.
	Reason berth.Reason
	// Err is the error that the caller gets, or the underlying error.
	Err error
	// At is the time of the event, by the clock of this process. Always filled.
	At time.Time
	// Attrs is the attribute map that the caller gave with the call, not a copy. Filled if the
	// event is about one claim of this node and the caller gave a map. Neither the caller nor an
	// observer may change the map after the call.
	Attrs map[string]any
	// Context has the values, such as a trace, of the context of the call that caused the event.
	// If no call caused the event, as with a heartbeat or a lost lease, Context has the values of
	// the call that acquired or resumed the hold; without a claim Context is context.Background().
	// Context never ends and has no deadline, so an observer can always pass it on. Always filled.
	Context context.Context
}

// Observer receives every event of a node.
//
// Observe must not block, must not panic, and must not call Berth. The node calls Observe on the
// goroutine on which the event happened. That may be a goroutine that keeps leases alive, or a caller's
// goroutine that asks a hold or its context and finds the hold ended, perhaps while holding locks of its
// own.
//
// Many goroutines call Observe at once, none of them with a lock of Berth held. Events of one claim may
// come from several goroutines; sort them by At. Observe has always returned from a claim's Queued event
// before the event that ends the acquire is sent, and before the acquiring call returns.
type Observer interface {
	Observe(Event)
}

// Func makes an [Observer] of a function. A nil Func drops every event.
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

// Multi returns an Observer that passes each event to all given observers, one after the other,
// skipping nil ones. The returned Observer is never nil; without any observers it drops every
// event.
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
