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

// Allocation is the handle of a granted claim: a resource and its value. The node renews the
// allocation until it is released or lost, or until the pool or the node is closed. In a Shared
// pool an allocation has no lease, and ends with Release, or with the pool or the node. An
// Allocation is safe for concurrent use.
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

// watch gives a value made by Open back when the hold ends for any reason. Without Open there is nothing to give
// back, and the hold needs no context until a caller asks for one.
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

// ID returns the id of the claim.
func (a *Allocation[T]) ID() string { return a.hold.Claim().ID }

// Name returns the name of the pool.
func (a *Allocation[T]) Name() string { return a.hold.Claim().Name }

// Resource returns the key of the resource; after Swap, of the new resource.
func (a *Allocation[T]) Resource() string { return a.hold.Resource() }

// Value returns the value that Open made of the resource.
func (a *Allocation[T]) Value() T {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.value
}

// Fence returns the fencing token of the grant, which rises with every grant of the pool; after
// Swap, the token of the new resource. Pass the token to the system behind the resource, and
// refuse smaller tokens there.
func (a *Allocation[T]) Fence() int64 { return a.hold.Fence() }

// Node returns the id of the node that holds the resource.
func (a *Allocation[T]) Node() string { return a.hold.Node() }

// Granted returns when this process learned of the grant, or resumed the hold, by the process's
// own clock.
func (a *Allocation[T]) Granted() time.Time { return a.hold.Granted() }

// Lease returns the requested lease, last changed by RenewFor; berth.Forever for a hold without
// end.
func (a *Allocation[T]) Lease() time.Duration { return a.hold.Lease() }

// Waited returns how long the allocation took, without Open.
func (a *Allocation[T]) Waited() time.Duration { return a.hold.Waited() }

// Context returns the hold's context, which has the values of the allocating context but ends
// only with the hold. Its context.Cause matches berth.ErrLost, berth.ErrExpired or
// berth.ErrReleased, or, in a Shared pool, perhaps berth.ErrClosed.
func (a *Allocation[T]) Context() context.Context { return a.hold.Context() }

// Within returns a context that carries the hold's owner and ends with ctx or with the hold,
// whichever ends first. Call the CancelFunc when the work under the context is done.
func (a *Allocation[T]) Within(ctx context.Context) (context.Context, context.CancelFunc) {
	return a.hold.Within(ctx)
}

// Done returns a channel that is closed when the hold has ended.
func (a *Allocation[T]) Done() <-chan struct{} { return a.hold.Context().Done() }

// Err returns nil while the hold lives, and afterwards an error that matches berth.ErrLost, berth.ErrExpired or
// berth.ErrReleased, or, in a Shared pool, perhaps berth.ErrClosed. Err compares the clock itself, so it is right even
// if a timer is late, for example after a suspension. Err of a nil Allocation, which Allocate returns with an error,
// is berth.ErrNotHeld.
func (a *Allocation[T]) Err() error {
	if a == nil {
		return berth.ErrNotHeld
	}
	return a.hold.Err()
}

// Left returns the time until the local deadline: berth.Forever for no end, 0 once the hold has
// ended. A renewal moves the deadline.
func (a *Allocation[T]) Left() time.Duration { return a.hold.Left() }

// Rest makes the resource rest for d, rounded up to the millisecond, after Release, Swap or Do
// has ended this hold while it lives. The longer of d and the pool's Cooldown counts;
// berth.Forever lasts until a Pool.Rest ends the rest. The last call of Rest counts, and 0
// cancels the rest. Rest sends nothing. The first 512 bytes of the reason are kept. Rest
// returns berth.ErrInvalidConfig for a negative d, and then changes nothing.
func (a *Allocation[T]) Rest(d time.Duration, reason string) error {
	if d < 0 {
		return berth.Invalid("d", "%s is negative", d)
	}
	a.request().ask(d, cutReason(reason))
	return nil
}

// ExpireIn makes the resource leave the pool d, rounded up to the millisecond, after Release, Swap or Do has
// ended this hold while it lives: for example a session that the other side will end soon. The new expiry
// replaces the resource's former one. Other holders of the resource keep it beyond the expiry. The last call
// of ExpireIn counts, and 0 cancels it. A later Add or Replace that names the resource sets the expiry again.
// ExpireIn sends nothing. ExpireIn returns berth.ErrInvalidConfig for a negative d and for berth.Forever, and
// then changes nothing.
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

// Wanted returns a channel that is closed when somebody has asked for the hold back: an operator, or a
// claim that waits with WantAfter. The hold goes on, even through Swap: finish the work early if
// possible, and release. A server that loses its data forgets the request. In a Shared pool nobody can
// ask.
func (a *Allocation[T]) Wanted() <-chan struct{} { return a.hold.Wanted() }

// Release gives the resource back, to the first in line if a claim waits and the resource need
// not rest. The hold's context ends before anything is sent. Release may be called from several
// goroutines and more than once; after a success it returns nil.
//
// Release also works after ctx or the hold has ended. Release then waits for at most
// node.Config.CleanupTimeout; if the server has not answered by then, an open node keeps trying
// in the background.
//
// Release returns berth.ErrLost or berth.ErrExpired, which match berth.ErrNotHeld, and changes
// nothing if the server had ended the hold before; berth.ErrReleased if somebody else had given
// the resource back; or the server's error. After the server's error the hold ends with its
// lease, and Release may be called again. Release of a nil Allocation returns berth.ErrNotHeld.
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

// leaveShared makes a resource of a Shared pool rest and expire, since such a pool has no
// release that could do so.
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

// over gives the value back after a release, and closes the value if the release has removed
// the resource from the pool.
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

// do runs f under the hold and releases the hold.
func (a *Allocation[T]) do(ctx context.Context, f func(context.Context, *Allocation[T]) error) error {
	defer func() {
		a.over()
		if a.hold.Loose() {
			_ = a.leaveShared(ctx) // the observer is told where it works
		}
	}()
	return a.hold.Do(ctx, func(ctx context.Context) error { return f(ctx, a) })
}

// Renew restarts the lease from now. Holds renew by themselves unless NoRenew is set. Renew
// returns berth.ErrLost, berth.ErrExpired or berth.ErrReleased if the hold has ended, ctx's
// error, or the server's error. In a Shared pool Renew renews nothing and returns Err.
func (a *Allocation[T]) Renew(ctx context.Context) error {
	if a.hold.Loose() {
		return a.hold.Err()
	}
	return a.hold.Renew(ctx)
}

// RenewFor is like Renew, but gives the hold another lease for this and all later renewals: d is whole
// milliseconds, at least 20 ms, or berth.Forever. RenewFor never shortens the hold: with a shorter lease
// the deadline stays until the new lease reaches further. MaxHold still limits the hold. Swap, Detach
// and Resume keep the lease.
//
// RenewFor returns berth.ErrInvalidConfig for any other d, for a longer lease than the present one that is
// above the pool's MaxLease, for a hold whose lease has no end, and in a Shared pool; else the errors of
// Renew. After an error the lease is as before. If the server was not reached, a call still on its way may
// move the deadline once more, to d after its arrival.
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

// swaps returns a semaphore of capacity 1 for Swap.
func (a *Allocation[T]) swaps() chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.swapping == nil {
		a.swapping = make(chan struct{}, 1)
	}
	return a.swapping
}

// Swap gives the resource back and takes the next one, in one step. The claim, its lease and
// the handle stay; Resource, Value and Fence change. Do not use the old resource once Swap is
// called. Swap never waits and never passes the line: if no other resource is free, or if
// claims wait, the error matches berth.ErrBusy and nothing changes. Earlier calls of Rest and
// ExpireIn apply to the old resource.
//
// Swap also returns the errors of Renew. After Open's error the hold has ended and the new
// resource rests. If the server was not reached, Swap returns the server's error; if it is then
// unknown which resource the claim has, the hold has ended with berth.ErrLost. The end of ctx
// does not cut an attempt short. In a Shared pool, and for a claim that named its Resource,
// Swap returns berth.ErrInvalidConfig.
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

// Detach ends the handle with berth.ErrReleased, gives its value back, and stops renewals. The
// hold stays until its lease ends, even if the pool or the node is closed. The call restarts a
// lease that renews by itself; a fixed lease goes on. Pool.Resume, in this or any other
// process, makes a new handle from the token. Release of the old handle does nothing and
// returns nil, so a deferred Release may stay. Earlier calls of Rest and ExpireIn are
// forgotten.
//
// Detach returns the errors of Renew. After the server's or ctx's error the hold may or may not
// be detached on the server; a detached hold ends with its lease. The handle lives on: call
// Detach again, or Release. In a Shared pool Detach returns berth.ErrInvalidConfig.
func (a *Allocation[T]) Detach(ctx context.Context) (berth.Token, error) {
	if a.hold.Loose() {
		return berth.Token{}, berth.Invalid("Detach", "the pool is Shared: there is no lease to keep")
	}
	return a.pool.core.pools.face().Detach(ctx, a.hold)
}
