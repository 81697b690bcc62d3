package berth

import (
	"context"
	"math"
	"time"
)

// Forever is the Lease of a hold that never ends by itself. Only a release,
// by its holder or forced, gives it back: a process that dies keeps it.
const Forever time.Duration = math.MaxInt64

// Handle is what every handle offers: a [Hold], and the LockSet of package qlock,
// which is several holds as one. Later releases add methods.
type Handle interface {
	// Context carries the values of the acquiring context but not its end. It ends
	// with the handle, and its cause says why.
	Context() context.Context
	// Done is closed when the handle has ended.
	Done() <-chan struct{}
	// Err is nil while the handle lives, and says why it ended afterwards. Err
	// looks at the clock itself.
	Err() error
	// Left is how long the holder may still believe in the hold if nothing renews
	// it: [Forever] for no end, 0 once it has ended.
	Left() time.Duration
	// Waited is how long the acquiring call took.
	Waited() time.Duration
	// Wanted is closed when somebody has asked for the hold back: an operator, or a claim that waits with
	// WantAfter. The hold goes on; whoever can, finishes its work and releases it.
	Wanted() <-chan struct{}
	// Renew sets the end of the lease anew, counted from now.
	Renew(ctx context.Context) error
	// Release gives back what is held. Release works after the acquiring context has
	// ended, and is nil ever after it has succeeded once.
	Release(ctx context.Context) error
	// Within returns a context that ends with ctx or with the handle, whichever
	// comes first, and that carries the owner. Call the CancelFunc when what runs
	// under the context is done.
	Within(ctx context.Context) (context.Context, context.CancelFunc)
}

// Hold is a handle of one claim. The handles of all primitives are Holds.
type Hold interface {
	Handle
	// ID is the id of the claim.
	ID() string
	// Name is what is held.
	Name() string
	// Node is the id of the node that holds it.
	Node() string
	// Fence is the number of the grant, strictly rising per name. Pass it on
	// to whatever the hold protects, and refuse smaller ones there.
	Fence() int64
	// Granted is when this process heard of the grant, or resumed the hold, by the
	// clock of this process.
	Granted() time.Time
	// Lease is the lease that was asked for, Forever for none.
	Lease() time.Duration
	// Detach stops renewing and keeps the hold until its lease ends, also
	// through Close of the node. Detach ends the handle with ErrReleased; a Release
	// after it does nothing. The token is for Resume, here or elsewhere.
	Detach(ctx context.Context) (Token, error)
}

// Target says whose claims an operator's Release ends, and whose holds Want asks back. All
// fields that are given must match. At least one of them is needed. Want leaves claims that wait alone.
type Target struct {
	// Kind is that of the names: keyspace.Sem, keyspace.Lock or keyspace.Pool. A Name needs it. Default all kinds.
	Kind Kind `json:"kind,omitzero"`
	// Name is what is contended for. With Kind and Name alone everything ends that is held
	// of it; claims that wait stay in line, and get what comes free.
	Name string `json:"name,omitzero"`
	// Claim is the id of one claim of Name, which holds or waits. It needs Name.
	Claim string `json:"claim,omitzero"`
	// Owner and Node end what they hold and what they have waiting. A claim to which
	// no owner was given is its own owner.
	Owner string `json:"owner,omitzero"`
	Node  string `json:"node,omitzero"`
	// All ends everything that is held in the namespace, of the Kind if one is given.
	All bool `json:"all,omitzero"`
}

// Kind is what a name is the name of; package keyspace lists the kinds.
type Kind string

// Retry bounds how a call that the server did not answer, or did not run, is
// repeated. Every script of Berth can be repeated safely.
type Retry struct {
	// Attempts is how often a call is sent at the most. Default 20, which
	// Within normally cuts short.
	Attempts int
	// Within bounds all attempts together. Default 10 s.
	Within time.Duration
	// Base is the pause before the second attempt. Default 20 ms.
	Base time.Duration
	// Factor multiplies the pause for each further attempt. Default 2.
	Factor float64
	// Cap bounds one pause. Default 1 s.
	Cap time.Duration
	// Jitter is the share of a pause that is drawn at random, 0 to 1.
	// Default 0.2; a negative value means none.
	Jitter float64
}

type ownerKey struct{}

// WithOwner returns a context whose claims are for the given owner: any text
// up to 512 bytes. Calls that share the context share its owner, so it must be
// unique to the run of work that may re-enter its own holds: two replicas that
// both call themselves "order:7" would enter each other's. An empty owner makes
// every call its own owner again.
func WithOwner(ctx context.Context, owner string) context.Context {
	return context.WithValue(ctx, ownerKey{}, owner)
}

// Owner returns the owner that ctx carries, or "".
func Owner(ctx context.Context) string {
	owner, _ := ctx.Value(ownerKey{}).(string)
	return owner
}
