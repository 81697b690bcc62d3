package allocator

import (
	"context"
	"time"
)

// Policy says which of the free resources comes next.
type Policy int

// The policies.
const (
	// LeastRecent: the one that came back first.
	LeastRecent Policy = iota
	// MostRecent: the one that came back last.
	MostRecent
	// Random: any.
	Random
)

// PoolConfig are the settings of one pool in this process. T is what the
// process makes of a resource: a connection, a client, or the key itself.
type PoolConfig[T any] struct {
	// Open makes the value of a resource, once per resource and process, when
	// it is first allocated. If it fails, the resource is released with a rest
	// of FailureRest, and the allocating call returns the error. Where several
	// may hold a resource at once, they share the value. Default nil: T must be
	// string, and the value is the key.
	Open func(ctx context.Context, resource string) (T, error)
	// Close ends a value when its resource has left the pool, when it was not
	// healthy, and when the client closes. Its error is reported, not returned.
	// Default nil.
	Close func(value T) error
	// Healthy returns nil if a value works, or what is wrong with it; for
	// CheckHealth and AllocateHealthy. A value that does not work is closed, and
	// opened anew by the next that allocates its resource. Default nil: all are
	// healthy.
	Healthy func(ctx context.Context, value T) error
	// Policy says which of the free resources comes next. Default LeastRecent.
	Policy Policy
	// Cooldown is how long a resource rests after each hold, however the hold
	// ended; 0 for not at all. Default 0.
	Cooldown time.Duration
	// FailureRest is how long a resource rests that could not be opened or is
	// not healthy. Default 1 min.
	FailureRest time.Duration
	// Shared hands resources out in turn, without a lease: nobody waits while
	// one is free or shared, and Release gives nothing back. Default false.
	Shared bool
	// MaxSharers is how many may hold one resource at once, each with a lease;
	// it must not be set with Shared. Default 1.
	MaxSharers int
	// Source returns what the pool should hold, for Replace; one node at a
	// time asks it. Its error is reported and changes nothing. Default nil.
	Source func(ctx context.Context) ([]string, error)
	// RefreshEvery is how often Source is asked. Default 5 min.
	RefreshEvery time.Duration
	// Expiry is how long a resource stays that Source no longer returns because
	// Source is not asked any more or fails; 0 for ever. Default 0.
	Expiry time.Duration
	// AllowEmpty lets an empty answer of Source empty the pool. Default false:
	// it is reported and changes nothing.
	AllowEmpty bool
}

// Pool is a pool as this process sees it. Its methods may be called by many
// goroutines at once.
type Pool[T any] struct{}

// NewPool returns the pool of that name. Same name, same pool, in every
// process. It does no I/O; if there is a Source, it is asked in the background
// from now on, until the client closes. A client has one Pool of a name: a
// second NewPool with that name is refused.
func NewPool[T any](client *Client, name string, cfg PoolConfig[T]) (*Pool[T], error) {
	return nil, errSketch
}

// Name is the name of the pool.
func (p *Pool[T]) Name() string { return "" }
