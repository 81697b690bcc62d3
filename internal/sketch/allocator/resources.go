package allocator

import (
	"context"
	"iter"
	"time"
)

// AddOptions are the settings of Add and Replace. Nil stands for the defaults.
type AddOptions struct {
	// Expiry is how long the resources stay in the pool, kept ones counted
	// anew; 0 for ever. Default 0.
	Expiry time.Duration
	// Progress is told, on the caller's goroutine, how many of the resources
	// have been sent. Default nil.
	Progress func(done, total int)
}

// Change is what a call did to a pool.
type Change struct {
	// Added is how many resources are new.
	Added int
	// Kept is how many were there already.
	Kept int
	// Removed is how many went, those included that leave when they come back.
	Removed int
}

// State is what can be said of a resource.
type State string

// The states of a resource.
const (
	// Free: the next claim may get it.
	Free State = "free"
	// Leased: somebody holds it.
	Leased State = "leased"
	// Resting: it is free again at its end.
	Resting State = "resting"
	// Absent: it is not in the pool.
	Absent State = "absent"
)

// ResourceInfo is a resource at one moment.
type ResourceInfo struct {
	// Resource is its key.
	Resource string
	// State is what can be said of it.
	State State
	// Left is how long it stays leased or resting if nothing happens;
	// berth.Forever for ever, 0 if it is free or absent.
	Left time.Duration
	// Reason is why it rests, or "".
	Reason string
	// Expiry is how long it stays in the pool; 0 for ever.
	Expiry time.Duration
	// Leaving says whether it leaves the pool when it comes back.
	Leaving bool
	// Holders are who holds it: one, or up to MaxSharers.
	Holders []Holder
}

// Add puts resources at the end of the pool, in their order, in steps of up to
// 200. Keys are any bytes, 1 to 1024. The change is what was done, also beside
// an error.
func (p *Pool[T]) Add(ctx context.Context, resources []string, opts *AddOptions) (Change, error) {
	return Change{}, errSketch
}

// Remove takes resources out of the pool. One that is leased stays with its
// holder and leaves when it comes back.
func (p *Pool[T]) Remove(ctx context.Context, resources []string) (Change, error) {
	return Change{}, errSketch
}

// Replace makes the pool hold these resources and no others, in steps as Add
// and Remove do. It refuses an empty list; that is Clear. It returns
// ErrSuperseded if a newer Replace has begun, which then decides.
func (p *Pool[T]) Replace(ctx context.Context, resources []string, opts *AddOptions) (Change, error) {
	return Change{}, errSketch
}

// Clear removes all resources.
func (p *Pool[T]) Clear(ctx context.Context) (Change, error) { return Change{}, errSketch }

// Refresh asks Source now, and replaces. It returns the error of Source. It is
// refused without a Source.
func (p *Pool[T]) Refresh(ctx context.Context) (Change, error) { return Change{}, errSketch }

// Rest makes a free or resting resource rest for d from now, rounded up to the
// millisecond, and a leased one at its release; 0 ends a rest, berth.Forever
// lasts until somebody does. It returns ErrAbsent if the resource is not in the
// pool.
func (p *Pool[T]) Rest(ctx context.Context, resource string, d time.Duration, reason string) error {
	return errSketch
}

// Contains says whether the resource is in the pool.
func (p *Pool[T]) Contains(ctx context.Context, resource string) (bool, error) {
	return false, errSketch
}

// Len is how many resources are in the pool.
func (p *Pool[T]) Len(ctx context.Context) (int, error) { return 0, errSketch }

// Status reads one resource.
func (p *Pool[T]) Status(ctx context.Context, resource string) (ResourceInfo, error) {
	return ResourceInfo{}, errSketch
}

// Resources lists the resources, in no order.
func (p *Pool[T]) Resources(ctx context.Context) iter.Seq2[ResourceInfo, error] {
	return func(yield func(ResourceInfo, error) bool) { yield(ResourceInfo{}, errSketch) }
}
