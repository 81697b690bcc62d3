package berth

import (
	"context"
	"math"
	"time"
)

// Forever is the Lease of a hold that never ends by itself. Only a release, by the holder or by
// an operator, ends such a hold; the death of the holder's process does not.
const Forever time.Duration = math.MaxInt64

// Handle has the methods of every handle: each [Hold], and the LockSet of package qlock, which
// joins several holds. Later releases add methods.
type Handle interface {
	// Context returns a context with the values, but not the end, of the acquiring context. The
	// returned context ends with the handle, and its cause says why.
	Context() context.Context
	// Done is closed when the handle has ended.
	Done() <-chan struct{}
	// Err returns nil while the handle lives, and afterwards the reason for its end. Err compares
	// the clock itself and does not depend on a timer.
	Err() error
	// Left returns how long the holder may still rely on the hold if nothing renews the hold:
	// [Forever] for no end, 0 once the hold has ended.
	Left() time.Duration
	// Waited returns how long the acquiring call took.
	Waited() time.Duration
	// Wanted is closed when somebody has asked for the hold back: an operator, or a claim that waits with
	// WantAfter. The hold goes on: finish the work early if possible, and release.
	Wanted() <-chan struct{}
	// Renew restarts the lease from now.
	Renew(ctx context.Context) error
	// Release gives the hold back. Release works after the acquiring context has ended. After the
	// first success every call returns nil.
	Release(ctx context.Context) error
	// Within returns a context that carries the owner and ends with ctx or with the handle,
	// whichever ends first. Call the CancelFunc when the work under the context is done.
	Within(ctx context.Context) (context.Context, context.CancelFunc)
}

// Hold is a handle of one claim. The handles of all primitives are Holds.
type Hold interface {
	Handle
	// ID returns the id of the claim.
	ID() string
	// Name returns the name that is held.
	Name() string
	// Node returns the id of the node that holds the claim.
	Node() string
	// Fence returns the fencing token of the grant, which rises with every grant of a name. Pass
	// the token to the system that the hold protects, and refuse smaller tokens there.
	Fence() int64
	// Granted returns when this process learned of the grant, or resumed the hold, by the clock of
	// this process.
	Granted() time.Time
	// Lease returns the requested lease, Forever for a hold without end.
	Lease() time.Duration
	// Detach ends the handle with ErrReleased and stops renewals. The hold stays until its lease
	// ends, even if the node is closed. A later Release of the handle does nothing. Resume takes
	// the token, in this process or another one.
	Detach(ctx context.Context) (Token, error)
}

// Target selects the claims that an operator's Release ends, and the holds that Want asks back. A claim
// must match all fields that are set; at least one must be set. Want leaves waiting claims alone.
type Target struct {
	// Kind is the kind of the names: keyspace.Sem, keyspace.Lock or keyspace.Pool. If Name is set, Kind must be
	// set. Default all kinds.
	Kind Kind `json:"kind,omitzero"`
	// Name is the semaphore, lock or pool. With only Kind and Name set, all holds of the name
	// match; its waiting claims stay in line and get the places that come free.
	Name string `json:"name,omitzero"`
	// Claim is the id of one claim of Name, holding or waiting. If Claim is set, Name must be set.
	Claim string `json:"claim,omitzero"`
	// Owner and Node match the holds and the waiting claims of an owner and of a node. A claim
	// made without an owner is its own owner.
	Owner string `json:"owner,omitzero"`
	Node  string `json:"node,omitzero"`
	// All matches every hold in the namespace, or every hold of Kind if Kind is set.
	All bool `json:"all,omitzero"`
}

// Kind is the kind of a name, such as a semaphore or a lock; package keyspace lists the kinds.
type Kind string

// Retry says how a call is repeated that the server did not answer or did not run. Every script
// of Berth can be repeated safely.
type Retry struct {
	// Attempts is the most times that a call is sent. Default 20; Within normally ends the
	// attempts earlier.
	Attempts int
	// Within is the time limit for all attempts together. Default 10 s.
	Within time.Duration
	// Base is the pause before the second attempt. Default 20 ms.
	Base time.Duration
	// Factor multiplies the pause before each further attempt. Default 2.
	Factor float64
	// Cap bounds one pause. Default 1 s.
	Cap time.Duration
	// Jitter is the random share of a pause, 0 to 1. Default 0.2; a negative value means 0.
	Jitter float64
}

type ownerKey struct{}

// WithOwner returns a context whose claims belong to the given owner, a text of up to 512
// bytes. Calls that share the context share the owner, so make the owner unique to one run of
// work: two replicas that both use "order:7" would enter each other's locks. With an empty
// owner every call is its own owner again.
func WithOwner(ctx context.Context, owner string) context.Context {
	return context.WithValue(ctx, ownerKey{}, owner)
}

// Owner returns the owner that ctx carries, or "".
func Owner(ctx context.Context) string {
	owner, _ := ctx.Value(ownerKey{}).(string)
	return owner
}
