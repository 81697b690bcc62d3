package observe

import (
	"time"

	"github.com/berth-go/berth"
)

// Event is one thing that happened. Which fields it fills is said at each
// [Kind]; the others are zero.
type Event struct {
	// Kind is what happened.
	Kind Kind
	// Primitive is where: "sem", "lock" or "pool", as in berth.Token. Always
	// filled.
	Primitive string
	// Namespace is that of the client. Always filled.
	Namespace string
	// Name is what is contended for. Filled unless the event is about the
	// client as a whole.
	Name string
	// Claim is the id of the claim. Filled wherever one claim is meant.
	Claim string
	// Node is the id of the client that tells it. Always filled.
	Node string
	// Owner is whom the claim is for, as the caller gave it: any bytes. Filled
	// wherever one claim of this client is meant.
	Owner string
	// Fence is the number of the grant.
	Fence int64
	// Waited is how long the acquiring call took, or has taken so far.
	Waited time.Duration
	// Held is how long the hold has lasted.
	Held time.Duration
	// Lease is the length of the lease as it was asked for; berth.Forever for
	// one without end.
	Lease time.Duration
	// Left is how long the hold still lasts if nothing renews it.
	Left time.Duration
	// Silent is how long the server has not answered, or has not run a call.
	Silent time.Duration
	// Ahead is how many claims stand in line before this one.
	Ahead int
	// Capacity is the stored capacity, of a pool the number of its resources; 0 where it
	// is not known.
	Capacity int
	// Weight is how much of the capacity the claim asks for.
	Weight int
	// Count is how many; of what is said at the kind.
	Count int
	// Resource is the key of the resource in a pool: any bytes.
	Resource string
	// Detail is a text; which is said at the kind.
	Detail string
	// Reason says why a claim did not get what it asked for.
	Reason berth.Reason
	// Err is the error that the caller gets, or the one behind the event.
	Err error
	// At is when it happened, by the clock of this process. Always filled.
	At time.Time
	// Attrs is what the caller gave with the call, the same map. Filled
	// wherever one claim of this client is meant. Neither the caller nor an
	// observer may change it after the call.
	Attrs map[string]any
}

// Observer is told of every event of a client.
//
// Observe is called on the goroutine on which the event happened, which may be
// one that keeps leases alive: it must not block, must not panic, and must not
// call the client. Observe is called by many goroutines at once, and never with
// a lock of Berth's held. Events of one claim may come from several goroutines;
// At is their order.
type Observer interface {
	Observe(Event)
}

// Func is a function as an [Observer]. A nil Func does nothing.
type Func func(Event)

// Observe calls f.
func (f Func) Observe(e Event) {
	if f != nil {
		f(e)
	}
}

// nop is the Observer of those who want none.
type nop struct{}

func (nop) Observe(Event) {}

// Multi returns an Observer that passes each event to all given ones, one
// after the other. Nil ones are left out. It is never nil: without any, the
// events go nowhere.
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
