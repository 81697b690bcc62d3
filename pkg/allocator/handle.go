package allocator

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/caller"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/settings"
	"github.com/berth-go/berth/pkg/observe"
)

// Allocation is what Allocate grants: a resource and its value. It is safe for
// concurrent use. An allocation that is neither released nor lost is renewed until the
// pool or the node is closed. In a pool that is Shared an allocation has no lease, and ends with
// Release, or with the pool or the node.
type Allocation[T any] struct {
	pool *Pool[T]
	hold *engine.Hold

	mu       sync.Mutex
	swapping chan struct{} // guarded by mu: nil before the first Swap; it has room for one: Swaps come one after the other
	value    T             // guarded by mu
	taken    string        // guarded by mu: the resource whose value is in use, "" for none any more
	closed   bool          // guarded by mu: the hold has ended, no value is in use
}

var _ berth.Hold = (*Allocation[string])(nil)

// watch gives a value that Open has made back when the hold ends, however it does. Without Open there is nothing to
// give back, and the hold needs no context until somebody asks for it.
func (a *Allocation[T]) watch() {
	if a.pool.cfg.Open != nil {
		context.AfterFunc(a.hold.Context(), a.end)
	}
}

// end gives the value back, once.
func (a *Allocation[T]) end() {
	a.mu.Lock()
	resource, ended := a.taken, a.closed
	a.closed = true
	a.mu.Unlock()
	if !ended {
		a.pool.values.Give(resource)
	}
}

func (a *Allocation[T]) request() *request { return a.hold.Claim().Request.(*request) }

// ID is the id of the claim.
func (a *Allocation[T]) ID() string { return a.hold.Claim().ID }

// Name is the name of the pool.
func (a *Allocation[T]) Name() string { return a.hold.Claim().Name }

// Resource is the key of the resource; after Swap, of the new one.
func (a *Allocation[T]) Resource() string { return a.hold.Resource() }

// Value is what Open made of the resource.
func (a *Allocation[T]) Value() T {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.value
}

// Fence is the number of the grant, strictly rising per pool; after Swap, that of
// the new resource. Pass it on to whatever the hold protects, and refuse smaller
// ones there.
func (a *Allocation[T]) Fence() int64 { return a.hold.Fence() }

// Node is the id of the node that holds it.
func (a *Allocation[T]) Node() string { return a.hold.Node() }

// Granted is when this process heard of the grant, or resumed the hold, by its own clock.
func (a *Allocation[T]) Granted() time.Time { return a.hold.Granted() }

// Lease is the lease that was asked for, at last by RenewFor; berth.Forever for none.
func (a *Allocation[T]) Lease() time.Duration { return a.hold.Lease() }

// Waited is how long the allocation took, Open not counted.
func (a *Allocation[T]) Waited() time.Duration { return a.hold.Waited() }

// Context carries the values of the allocating context but not its end. It ends
// with the hold. Its context.Cause matches berth.ErrLost, berth.ErrExpired or
// berth.ErrReleased; in a pool that is Shared it may match berth.ErrClosed.
func (a *Allocation[T]) Context() context.Context { return a.hold.Context() }

// Within returns a context that ends with ctx or with the hold, whichever comes
// first, and that carries the hold's owner. Call the CancelFunc when what runs under
// it is done.
func (a *Allocation[T]) Within(ctx context.Context) (context.Context, context.CancelFunc) {
	return a.hold.Within(ctx)
}

// Done is closed when the hold has ended.
func (a *Allocation[T]) Done() <-chan struct{} { return a.hold.Context().Done() }

// Err is nil while the hold lives; afterwards it matches berth.ErrLost, berth.ErrExpired
// or berth.ErrReleased; in a pool that is Shared it may match berth.ErrClosed. Err looks at the clock itself, so it is
// right even where a timer is late, as after a suspension.
// Of a nil Allocation, which an Allocate returns beside its error, it is berth.ErrNotHeld.
func (a *Allocation[T]) Err() error {
	if a == nil {
		return berth.ErrNotHeld
	}
	return a.hold.Err()
}

// Left is how long the holder may still believe in the hold if nothing renews it, by
// the local deadline: berth.Forever for no end, 0 once it has ended.
func (a *Allocation[T]) Left() time.Duration { return a.hold.Left() }

// Rest has the resource rest for d, rounded up to the millisecond, once Release, Swap or
// Do ends this hold while it lives. The longer one of d and the pool's Cooldown counts;
// berth.Forever lasts until somebody ends the rest by Pool.Rest. The last call of Rest
// counts, and 0 takes it back. Rest sends nothing. Of the reason, 512 bytes are kept.
// Rest returns berth.ErrInvalidConfig for a negative d; what was asked for before stays.
func (a *Allocation[T]) Rest(d time.Duration, reason string) error {
	if d < 0 {
		return berth.Invalid("d", "%s is negative", d)
	}
	a.request().ask(d, cutReason(reason))
	return nil
}

// ExpireIn has the resource leave the pool d, rounded up to the millisecond, after Release,
// Swap or Do has ended this hold while it lives: a session that the other side ends soon. It
// takes the place of the expiry that the resource had. Other holders of the resource keep
// it beyond that. The last call of ExpireIn counts, and 0 takes it back. A later Add or Replace that names the
// resource sets the expiry anew. ExpireIn sends nothing. It returns berth.ErrInvalidConfig
// for a negative d and for berth.Forever; what was asked for before stays.
func (a *Allocation[T]) ExpireIn(d time.Duration) error {
	switch {
	case d < 0:
		return berth.Invalid("d", "%s is negative", d)
	case d == berth.Forever:
		return berth.Invalid("d", "a resource without an expiry stays; 0 takes back what was asked for")
	}
	a.request().expire(d)
	return nil
}

// Wanted is closed when somebody has asked for the hold back: an operator, or a claim that waits with
// WantAfter. The hold goes on, also through Swap, and a server that loses its data forgets who has asked.
// Whoever can, finishes its work and releases. In a pool that is Shared nobody can ask.
func (a *Allocation[T]) Wanted() <-chan struct{} { return a.hold.Wanted() }

// Release gives the resource back, to the first in line if somebody waits and it does
// not have to rest. The hold's context ends before anything is sent. Release may be
// called more than once and from several goroutines, and is nil ever after it has
// succeeded; it works after ctx or the hold has ended, and then waits for at most
// node.Config.CleanupTimeout; what is not answered by then goes on in the background, where
// the node is open.
//
// It returns berth.ErrLost or berth.ErrExpired, which match berth.ErrNotHeld, if
// the server had ended the hold before, and then it changes nothing; berth.ErrReleased
// if somebody else had given it back; or the server's error: then the hold ends with
// its lease, and Release may be called again. Of a nil Allocation it returns berth.ErrNotHeld.
func (a *Allocation[T]) Release(ctx context.Context) error {
	if a == nil {
		return berth.ErrNotHeld
	}
	err := a.hold.Release(ctx)
	a.over()
	if a.hold.Loose() {
		return a.leaveShared(ctx)
	}
	return err
}

// leaveShared has a resource rest and expire that was shared: there is no release that could
// say so.
func (a *Allocation[T]) leaveShared(ctx context.Context) error {
	asked, back := a.request().take()
	if asked == (wish{}) {
		return nil
	}
	ctx, cancel := a.pool.core.pools.face().Engine.Overtime(ctx)
	defer cancel()
	var err error
	if asked.expiry > 0 {
		err = a.pool.core.expire(ctx, a.Resource(), asked.expiry)
	}
	if err == nil && asked.rest > 0 {
		err = a.pool.core.restShared(ctx, a.Resource(), asked.rest, asked.reason)
	}
	if err == nil || errors.Is(err, berth.ErrAbsent) {
		return nil
	}
	back()
	return err
}

// over gives the value back after a release, and has it closed if the resource has
// left the pool with it.
func (a *Allocation[T]) over() {
	a.end()
	q := a.request()
	q.mu.Lock()
	left := q.left
	q.mu.Unlock()
	if left {
		a.pool.values.Drop(a.Resource())
	}
}

// do runs f under the hold and gives it back.
func (a *Allocation[T]) do(ctx context.Context, f func(context.Context, *Allocation[T]) error) error {
	defer func() {
		a.over()
		if a.hold.Loose() {
			_ = a.leaveShared(ctx) // the observer is told where it works
		}
	}()
	return a.hold.Do(ctx, func(ctx context.Context) error { return f(ctx, a) })
}

// Renew sets the end of the lease anew, counted from now. Holds renew by
// themselves unless NoRenew was set. It returns berth.ErrLost, berth.ErrExpired
// or berth.ErrReleased if the hold has ended, ctx's error, or the server's. In a pool
// that is Shared there is nothing to renew, and it returns Err.
func (a *Allocation[T]) Renew(ctx context.Context) error {
	if a.hold.Loose() {
		return a.hold.Err()
	}
	return a.hold.Renew(ctx)
}

// RenewFor is Renew with another lease, which the hold has from then on, however often it is
// renewed: d is whole milliseconds, at least 20 ms, or berth.Forever. The hold ends no
// sooner than it would have: with a shorter lease its end stays until the lease reaches further. MaxHold
// bounds it as before. Swap, Detach and Resume keep the lease.
//
// It returns berth.ErrInvalidConfig for any other d, for a longer lease than the hold has if the pool's
// MaxLease does not allow it, for a lease without end, which stays, and in a pool that is Shared; else the
// errors of Renew. After an error the
// lease is as before; if the server was not reached, a call that is still on its way may move the end
// once more, to d from when it arrives.
func (a *Allocation[T]) RenewFor(ctx context.Context, d time.Duration) error {
	if err := settings.Lease("d", d); err != nil {
		return err
	}
	if a.hold.Loose() {
		return berth.Invalid("RenewFor", "the pool is Shared: there is no lease")
	}
	err := a.hold.RenewFor(ctx, d)
	if errors.Is(err, engine.ErrLimited) {
		return a.pool.core.limited(ctx, d)
	}
	return err
}

// swaps has room for one Swap.
func (a *Allocation[T]) swaps() chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.swapping == nil {
		a.swapping = make(chan struct{}, 1)
	}
	return a.swapping
}

// Swap gives the resource back and takes the next one, in one step: the claim, its
// lease and the handle stay; Resource, Value and Fence change. Do not use the old
// resource from the call on. It never waits and never passes the line: if nothing
// else is free or others wait, it matches berth.ErrBusy and everything stays as it is.
// What Rest and ExpireIn have asked for is for the old resource.
//
// Other errors: those of Renew; Open's, and then the hold has ended and the new
// resource rests; the server's where it was not reached: the hold has ended with
// berth.ErrLost then if nobody can tell which resource it is of. An attempt under way is not
// cut short by ctx's end. A pool that is Shared refuses it with berth.ErrInvalidConfig:
// allocate again; so does a claim that named its Resource.
func (a *Allocation[T]) Swap(ctx context.Context) error {
	if a.hold.Loose() {
		return berth.Invalid("Swap", "the pool is Shared: allocate again")
	}
	if a.request().named {
		return berth.Invalid("Swap", "the claim named its Resource: no other one will do")
	}
	swapping := a.swaps()
	select {
	case swapping <- struct{}{}:
	case <-ctx.Done():
		return caller.EndOf(ctx)
	}
	defer func() { <-swapping }()
	p := a.pool
	before := a.hold.Resource()
	asked, back := a.request().take()
	left := false
	swapped, err := a.hold.Exchange(ctx, func(ctx context.Context) (x engine.Exchanged, err error) {
		x, left, err = p.core.pools.face().swap(ctx, a.hold.Claim(), &asked)
		return x, err
	})
	if !swapped {
		back()
		return err
	}
	if err != nil {
		return err
	}
	if asked.rest > 0 && !left {
		rested(ctx, a.hold.Claim(), before, asked.rest, asked.reason)
	}
	a.hold.Claim().Event(observe.Swapped, func(ev *observe.Event) {
		ev.Context, ev.Fence, ev.Detail = ctx, a.Fence(), before
	})
	value, err := p.value(ctx, a.hold)
	if err != nil {
		return p.failed(ctx, a.hold, err)
	}
	a.mu.Lock()
	ended := a.closed
	unused := before
	if ended {
		unused = a.hold.Resource()
	} else {
		a.value, a.taken = value, a.hold.Resource()
	}
	a.mu.Unlock()
	p.values.Give(unused)
	if left {
		p.values.Drop(before)
	}
	return a.hold.Err()
}

// Detach stops renewing and keeps the hold until its lease ends, also through
// Close of the pool and of the node. A lease that renews by itself starts anew with the call, a
// fixed one goes on. The handle ends with berth.ErrReleased, and gives its value back:
// whoever has the token, this process too, takes the hold up with Pool.Resume and
// works on under that handle. Release does nothing from then on and returns nil, so
// that a deferred one may stay. What Rest and ExpireIn have asked for is forgotten.
//
// Its errors are those of Renew. After the server's or ctx's error the hold stays this
// handle's, detached on the server or not, and ends with its lease if it is: call
// Detach again, or Release. A pool that is Shared refuses it with
// berth.ErrInvalidConfig.
func (a *Allocation[T]) Detach(ctx context.Context) (berth.Token, error) {
	if a.hold.Loose() {
		return berth.Token{}, berth.Invalid("Detach", "the pool is Shared: there is no lease to keep")
	}
	return a.pool.core.pools.face().Detach(ctx, a.hold)
}
