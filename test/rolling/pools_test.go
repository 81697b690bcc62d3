package rolling

import (
	"context"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/keyspace"
)

type allocation = *allocator.Allocation[string]

// poolPlays are what two releases go through together on a pool that one of them has
// filled.
var poolPlays = map[string]func(w *world, a, b *process){
	"hand on in order":     poolHandsOn,
	"rest, bind, replace":  poolChanges,
	"expire and be swept":  poolExpires,
	"renew, detach, force": poolHolds,
	"forget and restore":   poolRestores,
}

func (p *process) fill(resources ...string) {
	change, err := p.pool.Add(bg, resources, nil)
	p.w.ok(err)
	require.Equal(p.w, len(resources), change.Added+change.Kept)
}

func (p *process) resource(want string, opts *allocator.AllocateOptions) allocation {
	h, err := p.pool.TryAllocate(bg, opts)
	p.w.ok(err)
	require.Equal(p.w, want, h.Resource())
	return h
}

func (p *process) resourceQueued(opts *allocator.AllocateOptions) *wait[allocation] {
	return queue(p.w, func(ctx context.Context) (allocation, error) { return p.pool.Allocate(ctx, opts) })
}

// whole wants the pool to fit together, for all of them, and returns what it counts.
func whole(w *world, all ...*process) (first allocator.Inspection) {
	for n, p := range all {
		seen, err := p.pools.Inspect(bg, name)
		w.ok(err)
		require.Empty(w, seen.Problems)
		seen.Bindings = 0 // they are for those who ask for them
		if n == 0 {
			first = seen
		}
		require.Equal(w, first, seen, "both see the same")
	}
	return first
}

// poolHandsOn: the least recently used first, whoever gave it back, and one line.
func poolHandsOn(w *world, a, b *process) {
	a.fill("r1", "r2")
	b.fill("r3", "r1")
	first, second, third := a.resource("r1", nil), b.resource("r2", nil), a.resource("r3", nil)
	require.Less(w, first.Fence(), second.Fence(), "all in one instant")
	require.Less(w, second.Fence(), third.Fence())
	_, err := b.pool.TryAllocate(bg, nil)
	require.ErrorIs(w, err, berth.ErrNotAcquired)
	waits := []*wait[allocation]{
		b.resourceQueued(&allocator.AllocateOptions{MaxHold: time.Minute}), a.resourceQueued(nil),
		b.resourceQueued(&allocator.AllocateOptions{Bind: "bound"}),
	}
	ahead := a.resourceQueued(&allocator.AllocateOptions{Priority: 1})
	w.read(func(p *process) {
		for n, h := range []allocation{first, second, third} {
			info, err := p.pools.Resource(bg, name, h.Resource())
			w.ok(err)
			require.Equal(w, allocator.Leased, info.State)
			require.Equal(w, []any{h.ID(), h.Fence()}, []any{info.Holders[0].ID, info.Holders[0].Fence}, n)
		}
		require.Len(w, w.waiters(keyspace.Pool), 4)
	}, a, b)
	require.Equal(w, 4, whole(w, a, b).Waiting)
	giveBack(w, second)
	got := ahead.granted(third.Fence())
	require.Equal(w, "r2", got.Resource())
	giveBack(w, first)
	next := waits[0].granted(got.Fence())
	require.Equal(w, "r1", next.Resource())
	giveBack(w, third)
	after := waits[1].granted(next.Fence())
	require.Equal(w, "r3", after.Resource())
	lives(w, got, next, after)
	giveBack(w, next)
	last := waits[2].granted(after.Fence())
	require.Equal(w, "r1", last.Resource())
	giveBack(w, last, got, after)
	w.read(func(p *process) {
		bound, err := p.pool.Binding(bg, "bound")
		w.ok(err)
		require.Equal(w, "r1", bound.Resource)
	}, a, b)
	require.Equal(w, allocator.Inspection{Resources: 3, Free: 3}, whole(w, a, b))
	// The order of the free ones is that in which they came back.
	order := []allocation{b.resource("r1", nil), a.resource("r2", nil), b.resource("r3", nil)}
	giveBack(w, order...)
}

// poolChanges: rests, bindings, expiries, swaps and replaces of one release are
// kept by the other.
func poolChanges(w *world, a, b *process) {
	a.fill("r1", "r2", "r3", "r4")
	w.ok(a.pool.Rest(bg, "r1", 20*second, "a says so", nil))
	w.ok(a.pool.Bind(bg, "job", "r3", &allocator.BindOptions{BindFor: time.Minute}))
	w.read(func(p *process) {
		info := p.info("r1")
		require.Equal(w, []any{allocator.Resting, "a says so"}, []any{info.State, info.Reason})
		require.InDelta(w, 20, info.Left.Seconds(), 1)
		require.Len(w, all(w, p.pools.Bindings(bg, name)), 1)
	}, b)

	bound := b.resource("r3", &allocator.AllocateOptions{Bind: "job"})
	other := b.resource("r2", nil)
	w.ok(other.Swap(bg))
	require.Equal(w, "r4", other.Resource())
	_ = other.Rest(30*second, "b has had enough")
	giveBack(w, other)
	w.read(func(p *process) {
		info := p.info("r4")
		require.Equal(w, []any{allocator.Resting, "b has had enough"}, []any{info.State, info.Reason})
	}, a)
	require.Equal(w, 2, whole(w, a, b).Resting)

	waits := a.resourceQueuedBehind(w, b)
	w.pass(20 * second) // r1 has rested
	got := waits.granted(bound.Fence())
	require.Equal(w, "r1", got.Resource())

	change, err := b.pool.Replace(bg, []string{"r3", "r5"}, &allocator.AddOptions{Expiry: time.Minute, MaxSharers: 2})
	w.ok(err)
	require.Equal(w, 1, change.Added)
	w.read(func(p *process) { require.True(w, p.info("r1").Leaving, "it stays with its holder") }, a)
	lives(w, got, bound)
	giveBack(w, got, bound)
	w.read(func(p *process) {
		require.Equal(w, allocator.Absent, p.info("r1").State)
		require.Equal(w, 2, p.info("r5").MaxSharers)
		require.InDelta(w, 60, p.info("r5").Expiry.Seconds(), 2)
	}, a)
	_, err = a.pool.Remove(bg, []string{"r3"})
	w.ok(err)
	whole(w, a, b)
	shared := []allocation{a.take(w), b.take(w)} // both have r5
	giveBack(w, shared...)
	w.pass(time.Minute)
	require.LessOrEqual(w, w.look(keyspace.Pool).Capacity, 2)
	_, err = b.Operator().Sweep(bg, keyspace.Pool, name)
	w.ok(err)
	require.Zero(w, whole(w, a, b).Resources, "all have expired")
}

// info is what the process reads of a resource.
func (p *process) info(resource string) allocator.ResourceInfo {
	info, err := p.pools.Resource(bg, name, resource)
	p.w.ok(err)
	return info
}

// take allocates whatever is free.
func (p *process) take(w *world) allocation {
	h, err := p.pool.TryAllocate(bg, nil)
	w.ok(err)
	return h
}

// resourceQueuedBehind waits in line once the other has taken all that is free.
func (p *process) resourceQueuedBehind(w *world, other *process) *wait[allocation] {
	for range 4 {
		if _, err := other.pool.TryAllocate(bg, &allocator.AllocateOptions{NoRenew: true, Lease: time.Minute}); err != nil {
			require.ErrorIs(w, err, berth.ErrNotAcquired)
			break
		}
	}
	return p.resourceQueued(nil)
}

// poolExpires: what a dead process of one release has left is swept by the other.
func poolExpires(w *world, a, b *process) {
	a.fill("r1", "r2")
	lost := a.resource("r1", nil)
	fixed := a.resource("r2", &allocator.AllocateOptions{NoRenew: true, Lease: 2 * second, Bind: "job"})
	gone := a.resourceQueued(nil)
	waits := []*wait[allocation]{b.resourceQueued(nil), b.resourceQueued(nil)}
	a.die()
	w.pass(2 * second)
	require.ErrorIs(w, fixed.Err(), berth.ErrNotHeld)
	w.pass(lease)
	gone.stop()
	require.ErrorIs(w, lost.Err(), berth.ErrLost)
	// The claim of the dead one was next, and its grant has ended with its life.
	w.pass(lease)
	last := waits[0].granted(fixed.Fence())
	next := waits[1].granted(last.Fence())
	lives(w, last, next)
	require.ElementsMatch(w, []string{"r1", "r2"}, []string{last.Resource(), next.Resource()})
	giveBack(w, last, next)
	require.Equal(w, allocator.Inspection{Resources: 2, Free: 2}, whole(w, b))
}

// poolHolds: each release renews, takes over and ends what is the other's.
func poolHolds(w *world, a, b *process) {
	a.fill("r1", "r2")
	renewed := a.resource("r1", nil)
	forever := b.resource("r2", &allocator.AllocateOptions{Lease: berth.Forever})
	next := a.resourceQueued(nil)
	w.pass(3 * lease)
	lives(w, renewed, forever)
	token, err := renewed.Detach(bg)
	w.ok(err)
	w.pass(lease / 2)
	resumed, err := b.pool.Resume(bg, token)
	w.ok(err)
	require.Equal(w, []any{"r1", renewed.Fence()}, []any{resumed.Resource(), resumed.Fence()})
	w.pass(2 * lease)
	lives(w, resumed, forever)
	require.ErrorIs(w, renewed.Err(), berth.ErrReleased)
	_, err = a.Operator().Release(bg, berth.Target{Kind: keyspace.Pool, Name: name, Claim: forever.ID()})
	w.ok(err)
	w.pass(lease) // b has never waited, and hears of nothing by a push
	require.ErrorIs(w, forever.Err(), berth.ErrReleased)
	got := next.granted(forever.Fence())
	require.Equal(w, "r2", got.Resource())
	cancelled := b.resourceQueued(nil)
	cancelled.stop()
	giveBack(w, got, resumed)
	require.Equal(w, allocator.Inspection{Resources: 2, Free: 2}, whole(w, a, b))
}

// poolRestores: after a flush those who wait stand where they stood, and get what the
// other release fills in.
func poolRestores(w *world, a, b *process) {
	a.fill("r1")
	hold := a.resource("r1", nil)
	waits := []*wait[allocation]{a.resourceQueued(nil), b.resourceQueued(nil), b.resourceQueued(nil), a.resourceQueued(nil)}
	w.do("FLUSHALL")
	w.pass(lease)
	require.ErrorIs(w, hold.Err(), berth.ErrLost)
	require.Equal(w, 4, whole(w, a, b).Waiting)
	b.fill("r2")
	last := hold
	for _, q := range waits {
		got := q.granted(last.Fence())
		lives(w, got)
		giveBack(w, got)
		last = got
	}
	require.Equal(w, allocator.Inspection{Resources: 1, Free: 1}, whole(w, a, b))
}
