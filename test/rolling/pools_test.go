package rolling

import (
	"context"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
)

type allocation = *allocator.Allocation[string]

// poolPlays are what two releases go through together on a pool that one of them has
// filled.
var poolPlays = map[string]func(s *stage, a, b *process){
	"hand on in order":     poolHandsOn,
	"rest, bind, replace":  poolChanges,
	"expire and be swept":  poolExpires,
	"renew, detach, force": poolHolds,
	"forget and restore":   poolRestores,
}

func (p *process) fill(resources ...string) {
	change, err := p.pool.Add(bg, resources, nil)
	p.s.ok(err)
	require.Equal(p.s, len(resources), change.Added+change.Kept)
}

func (p *process) resource(want string, opts *allocator.AllocateOptions) allocation {
	h, err := p.pool.TryAllocate(bg, opts)
	p.s.ok(err)
	require.Equal(p.s, want, h.Resource())
	return h
}

func (p *process) resourceQueued(opts *allocator.AllocateOptions) *wait[allocation] {
	return queue(p.s, func(ctx context.Context) (allocation, error) { return p.pool.Allocate(ctx, opts) })
}

// whole wants the pool to fit together, for all of them, and returns what it counts.
func whole(s *stage, all ...*process) (stats allocator.Stats) {
	for n, p := range all {
		seen, err := p.pool.Inspect(bg)
		s.ok(err)
		require.Empty(s, seen.Problems)
		if n > 0 {
			require.Equal(s, stats, seen.Stats, "both see the same")
		}
		stats = seen.Stats
	}
	return stats
}

// poolHandsOn: the least recently used first, whoever gave it back, and one line.
func poolHandsOn(s *stage, a, b *process) {
	a.fill("r1", "r2")
	b.fill("r3", "r1")
	first, second, third := a.resource("r1", nil), b.resource("r2", nil), a.resource("r3", nil)
	require.Less(s, first.Fence(), second.Fence(), "all in one instant")
	require.Less(s, second.Fence(), third.Fence())
	_, err := b.pool.TryAllocate(bg, nil)
	require.ErrorIs(s, err, berth.ErrNotAcquired)
	waits := []*wait[allocation]{
		b.resourceQueued(&allocator.AllocateOptions{MaxHold: time.Minute}), a.resourceQueued(nil),
		b.resourceQueued(&allocator.AllocateOptions{Bind: "bound"}),
	}
	ahead := a.resourceQueued(&allocator.AllocateOptions{Priority: 1})
	for _, p := range []*process{a, b} {
		for n, h := range []allocation{first, second, third} {
			info, err := p.pool.Status(bg, h.Resource())
			s.ok(err)
			require.Equal(s, allocator.Leased, info.State)
			require.Equal(s, []any{h.ID(), h.Fence()}, []any{info.Holders[0].ID, info.Holders[0].Fence}, n)
		}
		require.Len(s, all(s, p.pool.Waiters(bg)), 4)
	}
	require.Equal(s, 4, whole(s, a, b).Waiting)
	giveBack(s, second)
	got := ahead.granted(third.Fence())
	require.Equal(s, "r2", got.Resource())
	giveBack(s, first)
	next := waits[0].granted(got.Fence())
	require.Equal(s, "r1", next.Resource())
	giveBack(s, third)
	after := waits[1].granted(next.Fence())
	require.Equal(s, "r3", after.Resource())
	lives(s, got, next, after)
	giveBack(s, next)
	last := waits[2].granted(after.Fence())
	require.Equal(s, "r1", last.Resource())
	giveBack(s, last, got, after)
	for _, p := range []*process{a, b} {
		bound, err := p.pool.Binding(bg, "bound")
		s.ok(err)
		require.Equal(s, "r1", bound.Resource)
	}
	require.Equal(s, allocator.Stats{Name: name, Resources: 3, Free: 3}, whole(s, a, b))
	// The order of the free ones is that in which they came back.
	order := []allocation{b.resource("r1", nil), a.resource("r2", nil), b.resource("r3", nil)}
	giveBack(s, order...)
}

// poolChanges: rests, bindings, expiries, swaps and replaces of one release are
// kept by the other.
func poolChanges(s *stage, a, b *process) {
	a.fill("r1", "r2", "r3", "r4")
	s.ok(a.pool.Rest(bg, "r1", 20*second, "a says so"))
	s.ok(a.pool.Bind(bg, "job", "r3", &allocator.BindOptions{BindFor: time.Minute}))
	info, err := b.pool.Status(bg, "r1")
	s.ok(err)
	require.Equal(s, []any{allocator.Resting, "a says so"}, []any{info.State, info.Reason})
	require.InDelta(s, 20, info.Left.Seconds(), 1)
	require.Len(s, all(s, b.pool.Bindings(bg)), 1)

	bound := b.resource("r3", &allocator.AllocateOptions{Bind: "job"})
	other := b.resource("r2", nil)
	s.ok(other.Swap(bg))
	require.Equal(s, "r4", other.Resource())
	_ = other.Rest(30*second, "b has had enough")
	giveBack(s, other)
	info, err = a.pool.Status(bg, "r4")
	s.ok(err)
	require.Equal(s, []any{allocator.Resting, "b has had enough"}, []any{info.State, info.Reason})
	require.Equal(s, 2, whole(s, a, b).Resting)

	waits := a.resourceQueuedBehind(s, b)
	s.pass(20 * second) // r1 has rested
	got := waits.granted(bound.Fence())
	require.Equal(s, "r1", got.Resource())

	change, err := b.pool.Replace(bg, []string{"r3", "r5"}, &allocator.AddOptions{Expiry: time.Minute, MaxSharers: 2})
	s.ok(err)
	require.Equal(s, 1, change.Added)
	info, err = a.pool.Status(bg, "r1")
	s.ok(err)
	require.True(s, info.Leaving, "it stays with its holder")
	lives(s, got, bound)
	giveBack(s, got, bound)
	info, err = a.pool.Status(bg, "r1")
	s.ok(err)
	require.Equal(s, allocator.Absent, info.State)
	info, err = a.pool.Status(bg, "r5")
	s.ok(err)
	require.Equal(s, 2, info.MaxSharers)
	require.InDelta(s, 60, info.Expiry.Seconds(), 2)
	_, err = a.pool.Remove(bg, []string{"r3"})
	s.ok(err)
	whole(s, a, b)
	shared := []allocation{a.take(s), b.take(s)} // both have r5
	giveBack(s, shared...)
	s.pass(time.Minute)
	n, err := b.pool.Len(bg)
	s.ok(err)
	_, err = b.pool.GC(bg)
	s.ok(err)
	require.LessOrEqual(s, n, 2)
	require.Zero(s, whole(s, a, b).Resources, "all have expired")
}

// take allocates whatever is free.
func (p *process) take(s *stage) allocation {
	h, err := p.pool.TryAllocate(bg, nil)
	s.ok(err)
	return h
}

// resourceQueuedBehind waits in line once the other has taken all that is free.
func (p *process) resourceQueuedBehind(s *stage, other *process) *wait[allocation] {
	for range 4 {
		if _, err := other.pool.TryAllocate(bg, &allocator.AllocateOptions{NoRenew: true, Lease: time.Minute}); err != nil {
			require.ErrorIs(s, err, berth.ErrNotAcquired)
			break
		}
	}
	return p.resourceQueued(nil)
}

// poolExpires: what a dead process of one release has left is swept by the other.
func poolExpires(s *stage, a, b *process) {
	a.fill("r1", "r2")
	lost := a.resource("r1", nil)
	fixed := a.resource("r2", &allocator.AllocateOptions{NoRenew: true, Lease: 2 * second, Bind: "job"})
	gone := a.resourceQueued(nil)
	waits := []*wait[allocation]{b.resourceQueued(nil), b.resourceQueued(nil)}
	a.die()
	s.pass(2 * second)
	require.ErrorIs(s, fixed.Err(), berth.ErrNotHeld)
	s.pass(lease)
	gone.stop()
	require.ErrorIs(s, lost.Err(), berth.ErrLost)
	// The claim of the dead one was next, and its grant has ended with its life.
	s.pass(lease)
	last := waits[0].granted(fixed.Fence())
	next := waits[1].granted(last.Fence())
	lives(s, last, next)
	require.ElementsMatch(s, []string{"r1", "r2"}, []string{last.Resource(), next.Resource()})
	giveBack(s, last, next)
	require.Equal(s, allocator.Stats{Name: name, Resources: 2, Free: 2}, whole(s, b))
}

// poolHolds: each release renews, takes over and ends what is the other's.
func poolHolds(s *stage, a, b *process) {
	a.fill("r1", "r2")
	renewed := a.resource("r1", nil)
	forever := b.resource("r2", &allocator.AllocateOptions{Lease: berth.Forever})
	next := a.resourceQueued(nil)
	s.pass(3 * lease)
	lives(s, renewed, forever)
	token, err := renewed.Detach(bg)
	s.ok(err)
	s.pass(lease / 2)
	resumed, err := b.pool.Resume(bg, token)
	s.ok(err)
	require.Equal(s, []any{"r1", renewed.Fence()}, []any{resumed.Resource(), resumed.Fence()})
	s.pass(2 * lease)
	lives(s, resumed, forever)
	require.ErrorIs(s, renewed.Err(), berth.ErrReleased)
	s.ok(a.pools.ReleaseByID(bg, name, forever.ID()))
	s.pass(lease) // b has never waited, and hears of nothing by a push
	require.ErrorIs(s, forever.Err(), berth.ErrReleased)
	got := next.granted(forever.Fence())
	require.Equal(s, "r2", got.Resource())
	cancelled := b.resourceQueued(nil)
	cancelled.stop()
	giveBack(s, got, resumed)
	require.Equal(s, allocator.Stats{Name: name, Resources: 2, Free: 2}, whole(s, a, b))
}

// poolRestores: after a flush those who wait stand where they stood, and get what the
// other release fills in.
func poolRestores(s *stage, a, b *process) {
	a.fill("r1")
	hold := a.resource("r1", nil)
	waits := []*wait[allocation]{a.resourceQueued(nil), b.resourceQueued(nil), b.resourceQueued(nil), a.resourceQueued(nil)}
	s.do("FLUSHALL")
	s.pass(lease)
	require.ErrorIs(s, hold.Err(), berth.ErrLost)
	require.Equal(s, 4, whole(s, a, b).Waiting)
	b.fill("r2")
	last := hold
	for _, w := range waits {
		got := w.granted(last.Fence())
		lives(s, got)
		giveBack(s, got)
		last = got
	}
	require.Equal(s, allocator.Stats{Name: name, Resources: 1, Free: 1}, whole(s, a, b))
}
