package allocator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/internal/pace"
	"github.com/berth-go/berth/internal/settings"
	"github.com/berth-go/berth/pkg/keyspace"
)

// Allocate waits in line until a resource is granted, ctx ends or MaxWait has passed. Claims of
// one priority are granted strictly in the order in which they first reached the server.
// Allocate also waits for a pool without resources. After the grant Allocate opens the value,
// unless this process already has it open.
//
// If no resource is granted, Allocate returns a *berth.AcquireError, which matches
// berth.ErrNotAcquired. When ctx ends, Allocate returns at once; the error then also matches
// ctx.Err() and context.Cause(ctx), and the node removes the claim in the background. If Open
// failed, the error matches Open's error. If ctx ends while Open runs, Open goes on in the
// background, and the resource is given back when Open has returned. Allocate returns
// berth.ErrInvalidConfig for bad options and berth.ErrClosed on a closed node or pool.
func (p *Pool[T]) Allocate(ctx context.Context, opts *AllocateOptions) (*Allocation[T], error) {
	o, err := p.core.options(opts, true)
	if err != nil {
		return nil, err
	}
	return p.allocate(ctx, o, true, 0)
}

// TryAllocate takes a resource if one is free and no claim waits for it. TryAllocate itself never waits in line. If the
// pool has a Source and no resources, TryAllocate waits within ctx until the Source has answered, and then tries once more.
// For this it joins a refresh that is under way in this process, or begins one, at most once a second, whichever node's
// turn it is.
//
// TryAllocate returns the errors of Allocate. If no resource is free, the reason in the *berth.AcquireError is ReasonFull,
// ReasonResting, ReasonEmpty or ReasonQueuedAhead; for a call with a Resource also ReasonHeld or ReasonAbsent.
func (p *Pool[T]) TryAllocate(ctx context.Context, opts *AllocateOptions) (*Allocation[T], error) {
	o, err := p.core.options(opts, false)
	if err != nil {
		return nil, err
	}
	return p.allocate(ctx, o, false, 0)
}

// AllocateHealthy allocates a resource and calls Healthy before it returns. A resource that cannot be
// opened or is not healthy is given back and rests for FailureRest; then a new claim waits at the end of
// the line. MaxWait and BindWait limit all waits together. An Open or a Healthy that runs when MaxWait
// passes goes on, at most until OpenTimeout. If no resource is healthy, AllocateHealthy goes on until
// MaxWait or ctx ends it. AllocateHealthy returns the errors of Allocate.
func (p *Pool[T]) AllocateHealthy(ctx context.Context, opts *AllocateOptions) (*Allocation[T], error) {
	o, err := p.core.options(opts, true)
	if err != nil {
		return nil, err
	}
	clock := p.core.pools.p.Clock
	pauses := pace.New(p.core.pools.p.Settings.Retry)
	for began, whole, bound := clock.Now(), o.MaxWait, o.BindWait; ; {
		hold, err := p.lease(ctx, o, true, clock.Now()-began)
		if err != nil {
			return nil, err
		}
		a, bad := p.handle(ctx, hold)
		opened := bad == nil
		if opened {
			if bad = p.unhealthy(ctx, a); bad == nil {
				return a, nil
			}
		}
		// If the hold has ended by itself, Open's failure says nothing about the resource, which does not rest.
		if ctx.Err() != nil || !opened && !errors.Is(hold.Err(), berth.ErrReleased) {
			return nil, p.failed(ctx, hold, bad)
		}
		// Where what is not healthy does not rest, it may be the next one again.
		if p.cfg.FailureRest == 0 && !pauses.Pause(ctx, nil) {
			return nil, p.failed(ctx, hold, bad)
		}
		if bound != berth.Forever { // so that an unhealthy resource that it is bound to does not stay the next one
			o.BindWait = max(bound-(clock.Now()-began), 0).Truncate(time.Millisecond)
		}
		if whole > 0 {
			if o.MaxWait = whole - (clock.Now() - began); o.MaxWait <= 0 {
				return nil, p.outOfTime(hold, clock.Now()-began, bad)
			}
		}
	}
}

// allocate takes a claim to its handle; before is how long the call had taken already.
func (p *Pool[T]) allocate(ctx context.Context, o AllocateOptions, wait bool, before time.Duration) (*Allocation[T], error) {
	hold, err := p.lease(ctx, o, wait, before)
	if err != nil {
		return nil, err
	}
	return p.open(ctx, hold)
}

// lease takes a claim to its hold, whose value is not open yet.
func (p *Pool[T]) lease(ctx context.Context, o AllocateOptions, wait bool, before time.Duration) (*engine.Hold, error) {
	clock := p.core.pools.p.Clock
	began, seen := clock.Now()-before, p.refresher.Answers()
	hold, err := p.core.acquire(ctx, o, wait, began)
	if refusal, ok := errors.AsType[*berth.AcquireError](err); ok && !wait && refusal.Reason == berth.ReasonEmpty {
		if p.refresher.Fill(ctx, seen) {
			hold, err = p.core.acquire(ctx, o, wait, began)
		} else if ctx.Err() != nil {
			return nil, p.gaveUp(ctx, refusal, clock.Now()-began)
		}
	}
	if err != nil {
		return nil, p.unfilled(err)
	}
	return hold, nil
}

// Do allocates a resource, runs f, and gives the resource back, even if f panics. The context
// of f carries the owner, and ends with ctx or with the hold, whichever ends first. The
// allocation is only valid within f.
//
// If f did not run, Do returns Allocate's error. Otherwise Do returns f's error. If the hold ended
// before f returned, and not by f's own Release or Detach, Do joins the hold's *berth.EndError;
// the joined error matches context.Canceled and context.DeadlineExceeded only if ctx itself has
// ended.
//
// A release without an answer is repeated within node.Config.Retry while Do waits; if the release
// fails, Do sends the event release_failed and returns no error for it. A nil f is refused with
// berth.ErrInvalidConfig.
func (p *Pool[T]) Do(ctx context.Context, opts *AllocateOptions, f func(context.Context, *Allocation[T]) error) error {
	if err := settings.Function(f != nil); err != nil {
		return err
	}
	a, err := p.Allocate(ctx, opts)
	if err != nil {
		return err
	}
	return a.do(ctx, f)
}

// TryDo is like Do, but uses TryAllocate instead of Allocate.
func (p *Pool[T]) TryDo(ctx context.Context, opts *AllocateOptions, f func(context.Context, *Allocation[T]) error) error {
	if err := settings.Function(f != nil); err != nil {
		return err
	}
	a, err := p.TryAllocate(ctx, opts)
	if err != nil {
		return err
	}
	return a.do(ctx, f)
}

// DoHealthy is like Do, but uses AllocateHealthy instead of Allocate.
func (p *Pool[T]) DoHealthy(ctx context.Context, opts *AllocateOptions, f func(context.Context, *Allocation[T]) error) error {
	if err := settings.Function(f != nil); err != nil {
		return err
	}
	a, err := p.AllocateHealthy(ctx, opts)
	if err != nil {
		return err
	}
	return a.do(ctx, f)
}

// Fence returns the fence of the allocation from this pool that ctx was made under, by Do or by
// an allocation. Fence returns 0 for any other ctx; every check of fences refuses 0.
func (p *Pool[T]) Fence(ctx context.Context) int64 {
	hold := p.core.held(ctx)
	if hold == nil {
		return 0
	}
	return hold.Fence()
}

// Wanted returns Allocation.Wanted of the allocation that ctx was made under, like Fence. Wanted
// returns nil, which is never closed, for any other ctx.
func (p *Pool[T]) Wanted(ctx context.Context) <-chan struct{} {
	hold := p.core.held(ctx)
	if hold == nil {
		return nil
	}
	return hold.Wanted()
}

// Resume takes over a detached hold of this pool, whichever process detached it, and opens its value. The node renews the
// hold if it was renewed before.
//
// Resume returns berth.ErrNotHeld if the hold has ended, berth.ErrReleased if another node has resumed or released it, and
// berth.ErrLost if this node was found dead meanwhile. Resume returns berth.ErrInvalidConfig for a token of another kind,
// namespace or pool, and for a hold that is not detached. After Open's error the resource has been given back.
func (p *Pool[T]) Resume(ctx context.Context, token berth.Token) (*Allocation[T], error) {
	if err := p.core.usable(); err != nil {
		return nil, err
	}
	if token.Name != p.core.name {
		return nil, berth.Invalid("token.Name", "%q is not this pool's, %q", token.Name, p.core.name)
	}
	_, hold, err := p.core.pools.p.Resume(ctx, keyspace.Pool, token, func(c *engine.Claim) { c.Closing = p.core.closing })
	if err != nil {
		return nil, err
	}
	return p.open(ctx, hold)
}

// wants returns a claim's requests as the server stores them and scripts/pool/wants.lua reads
// them.
func (p *core) wants(o AllocateOptions) string {
	kind := "o"
	switch {
	case o.alone:
		kind = "a"
	case p.shared:
		kind = "s"
	}
	return kind + " " + line.Decimal(restMillis(o.Cooldown)) + " " + bindMillis(o.BindFor) + " " + line.Decimal(restMillis(o.BindWait)) + " " + strconv.Itoa(len(o.Resource)) + ":" + o.Resource + o.Bind
}

// held returns the hold of the allocation that ctx was made under, nil for none.
func (p *core) held(ctx context.Context) *engine.Hold {
	if p.bad != nil {
		return nil
	}
	return p.pools.face().Engine.Held(ctx, engine.Line{Kind: keyspace.Pool, Name: p.name})
}

// claim makes a claim on the pool.
func (p *core) claim(ctx context.Context, f face, o AllocateOptions, wait bool) *engine.Claim {
	return &engine.Claim{
		ID: f.Engine.ClaimID(), Kind: keyspace.Pool, Name: p.name, MayWait: wait, Capacity: 1, Attrs: o.Attrs, WantAfter: o.WantAfter,
		Closing: p.closing,
		Request: &request{agreed: &p.agreed, named: o.Resource != ""},
		Record: engine.Record{
			Weight: 1, Wait: p.pools.p.Settings.Lease, Lease: o.Lease, MaxHold: o.MaxHold,
			NoRenew: o.NoRenew || o.Lease == berth.Forever, Phase: 'w', Priority: o.Priority,
			Node: f.ID, Owner: berth.Owner(ctx), Label: p.pools.p.Settings.Label, Meta: o.Meta, Extra: p.wants(o),
		},
	}
}

// acquire takes a claim of a call that began then to its hold.
func (p *core) acquire(ctx context.Context, o AllocateOptions, wait bool, began time.Duration) (*engine.Hold, error) {
	if err := settings.Text("owner", berth.Owner(ctx)); err != nil {
		return nil, err
	}
	hold, err := p.acquireWithin(ctx, o, wait, began)
	if err != nil {
		return nil, err
	}
	if p.shared {
		hold.Loosen()
	}
	return hold, nil
}

// allocateOnly leases one resource if it is free and nobody waits. It has no
// cooldown after that: nobody has used it. Its errors are those of Acquire.
func (p *core) allocateOnly(ctx context.Context, resource string) (*engine.Hold, error) {
	// No other claim may hold a resource during its check.
	o := AllocateOptions{Lease: p.pools.p.Settings.Lease, anyLease: true, anyHold: true, Resource: resource, alone: true}
	return p.acquireWithin(ctx, o, false, p.pools.p.Clock.Now())
}

// acquireWithin takes a claim to its hold. If the pool's limits refuse the claim, another claim stays within
// the limits for options that the caller did not set.
func (p *core) acquireWithin(ctx context.Context, o AllocateOptions, wait bool, began time.Duration) (*engine.Hold, error) {
	clock, start := p.pools.p.Clock, p.pools.p.Clock.Now()
	const changes = 3 // an operator changes a limit now and then
	for tries := 0; ; tries++ {
		f, now := p.pools.face(), clock.Now()
		o := p.agreed.within(o, now)
		claim := p.claim(ctx, f, o, wait)
		claim.Before = now - began
		hold, err := f.Engine.Acquire(ctx, claim, line.Rest(o.MaxWait, now-start))
		again, err := p.pools.p.Replaced(ctx, f.Node, err)
		if again {
			tries--
			continue
		}
		refusal, ok := errors.AsType[*berth.AcquireError](err)
		if ok && refusal.Reason == berth.ReasonAbsent {
			refusal.Cause = fmt.Errorf("%w: resource %q", berth.ErrAbsent, o.Resource)
		}
		if !ok || refusal.Reason != berth.ReasonLimited {
			return hold, err
		}
		limits := claim.Request.(*request).limits
		p.agreed.bound(limits, clock.Now())
		if bad := o.within(limits).above(limits); bad != nil || tries == changes {
			refusal.Cause = cmp.Or(bad, refusal.Cause)
			return nil, refusal
		}
	}
}

// releaseResting gives a hold back and makes its resource rest.
func (p *core) releaseResting(ctx context.Context, h *engine.Hold, rest time.Duration, reason string) error {
	if h.Loose() {
		_ = h.Release(ctx) // sends nothing
		if rest == 0 {
			return nil
		}
		return p.restShared(ctx, h.Resource(), rest, reason)
	}
	h.Claim().Request.(*request).ask(rest, reason)
	return h.Release(ctx)
}
