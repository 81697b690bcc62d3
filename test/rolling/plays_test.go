package rolling

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/scriptkit"
	"github.com/berth-go/berth/pkg/semaphore"
)

var bg = context.Background()

// faced is a kind as a process sees it: every claim of a life wants all there is.
type faced struct {
	kind    keyspace.Kind
	try     func(p *process) (handle, error)
	acquire func(ctx context.Context, p *process) (handle, error)
	resume  func(p *process, token berth.Token) (handle, error)
}

var (
	whole = &semaphore.AcquireOptions{Weight: capacity, Meta: map[string]string{"of": "both"}}
	sems  = faced{
		keyspace.Sem,
		func(p *process) (handle, error) { return p.sem.TryAcquire(bg, whole) },
		func(ctx context.Context, p *process) (handle, error) { return p.sem.Acquire(ctx, whole) },
		func(p *process, token berth.Token) (handle, error) { return p.sem.Resume(bg, token) },
	}
	locks = faced{
		keyspace.Lock,
		func(p *process) (handle, error) { return p.locks.TryLock(bg, name, nil) },
		func(ctx context.Context, p *process) (handle, error) { return p.locks.Lock(ctx, name, nil) },
		func(p *process, token berth.Token) (handle, error) { return p.locks.Resume(bg, token) },
	}
	pools = faced{
		keyspace.Pool,
		func(p *process) (handle, error) { return p.pool.TryAllocate(bg, nil) },
		func(ctx context.Context, p *process) (handle, error) { return p.pool.Allocate(ctx, nil) },
		func(p *process, token berth.Token) (handle, error) { return p.pool.Resume(bg, token) },
	}
)

func (f faced) take(p *process) handle { return take(p.w)(f.try(p)) }

func (f faced) queue(p *process) *wait {
	return p.w.queue(func(ctx context.Context) (handle, error) { return f.acquire(ctx, p) })
}

// life is what two releases go through together on a name: what one has made the other serves, hands on, renews, takes
// over, ends, sweeps and restores. In the end b alone lives, and nothing is held.
func (f faced) life(w *world, a, b *process) {
	if f.kind == keyspace.Pool {
		a.fill("r1")
	}
	hold := f.take(a)
	_, err := f.try(b)
	require.ErrorIs(w, err, berth.ErrNotAcquired)
	line := []*wait{f.queue(b), f.queue(a), f.queue(b)}
	f.queue(a).stop()
	w.pass(second)
	w.read(func() {
		n := w.look(f.kind)
		require.Equal(w, []int{1, 3}, []int{n.Holders, n.Waiting})
		holder := w.holders(f.kind)[0]
		require.Equal(w, []any{hold.ID(), hold.Fence(), a.ID()}, []any{holder.ID, holder.Fence, holder.Node})
		var nodes []string
		for _, waiter := range w.waiters(f.kind) {
			nodes = append(nodes, waiter.Node)
		}
		require.Equal(w, []string{b.ID(), a.ID(), b.ID()}, nodes)
	})

	w.pass(3 * lease)
	lives(w, hold)
	token, err := hold.Detach(bg)
	w.ok(err)
	w.pass(lease / 2)
	resumed := take(w)(f.resume(b, token))
	require.Equal(w, hold.Fence(), resumed.Fence())
	w.pass(3 * lease)
	lives(w, resumed)
	require.ErrorIs(w, hold.Err(), berth.ErrReleased)
	_, err = a.Operator().Release(bg, berth.Target{Kind: f.kind, Name: name, Claim: resumed.ID()})
	w.ok(err)
	w.pass(lease) // b has perhaps never waited, and hears of nothing by a push
	require.ErrorIs(w, resumed.Err(), berth.ErrReleased)
	last := resumed
	for n, q := range line {
		got := q.granted(last.Fence())
		for _, later := range line[n+1:] {
			later.waits()
		}
		lives(w, got)
		giveBack(w, got)
		last = got
	}

	last = f.restored(w, a, b)
	lost, next := f.take(a), f.queue(b)
	gone := f.queue(a)
	a.die()
	w.pass(2 * lease)
	gone.stop()
	require.ErrorIs(w, lost.Err(), berth.ErrLost)
	got := next.granted(last.Fence())
	giveBack(w, got)
	w.pass(lease)
	w.read(func() {
		n := w.look(f.kind)
		require.Equal(w, []int{0, 0, 0}, []int{n.Held, n.Holders, n.Waiting}, "nothing is left")
	})
}

// restored: after a flush those who wait stand where they stood, whoever asks first.
func (f faced) restored(w *world, a, b *process) (last handle) {
	last = f.take(a)
	line := []*wait{f.queue(a), f.queue(b), f.queue(b), f.queue(a)}
	w.do("FLUSHALL")
	w.pass(lease)
	require.ErrorIs(w, last.Err(), berth.ErrLost)
	if f.kind == keyspace.Pool {
		b.fill("r1") // what the other release fills in
	}
	// Who asked first may have been granted ahead of others: one, with all there is.
	for done := 0; len(line) > 0; done++ {
		w.pass(lease)
		n := 0
		for done == 0 && n < len(line)-1 && !line[n].Over() {
			n++
		}
		got := line[n].granted(last.Fence())
		lives(w, got)
		giveBack(w, got)
		last, line = got, append(line[:n:n], line[n+1:]...)
	}
	return last
}

type play = func(w *world, a, b *process)

// plays are what two releases go through together.
var plays = map[string]play{
	"semaphore/life": sems.life, "semaphore/weights": weights,
	"lock/life": locks.life, "lock/entries": entries, "lock/swarm": watched,
	"pool/life": pools.life, "pool/stock": stock,
}

// The previous release and today's work on one name, whoever is first.
func TestThePreviousReleaseAndTodaysWorkTogether(t *testing.T) {
	was := previous(t)
	for about, play := range plays {
		for direction, sides := range map[string][2]*scriptkit.Library{
			"today beside " + was.version: {nil, was.library}, was.version + " beside today": {was.library, nil},
		} {
			t.Run(about+"/"+direction, func(t *testing.T) {
				t.Parallel()
				require.Empty(t, perform(t, sides[0], sides[1], play))
			})
		}
	}
}

// weights: weights in one line, an endless hold and a new capacity too.
func weights(w *world, a, b *process) {
	permit := func(p *process, opts *semaphore.AcquireOptions) handle { return take(w)(p.sem.TryAcquire(bg, opts)) }
	queued := func(p *process, opts *semaphore.AcquireOptions) *wait {
		return w.queue(func(ctx context.Context) (handle, error) { return p.sem.Acquire(ctx, opts) })
	}
	two, one := permit(a, &semaphore.AcquireOptions{Weight: 2}), permit(b, &semaphore.AcquireOptions{Lease: berth.Forever})
	_, err := b.sem.TryAcquire(bg, nil)
	require.ErrorIs(w, err, berth.ErrNotAcquired)
	heavy, light := queued(b, whole), queued(a, nil)
	ahead := queued(b, &semaphore.AcquireOptions{Priority: 5})
	w.read(func() {
		n := w.look(keyspace.Sem)
		require.Equal(w, []int{capacity, 3, 2, 3}, []int{n.Capacity, n.Held, n.Holders, n.Waiting})
	})
	giveBack(w, two)
	first := ahead.granted(one.Fence())
	heavy.waits()
	light.waits()
	giveBack(w, one, first)
	got := heavy.granted(first.Fence())
	light.waits()
	giveBack(w, got)
	got = light.granted(got.Fence())
	w.ok(semaphore.NewOperator(b.Node).Resize(bg, name, 1, nil))
	last := queued(a, nil)
	last.waits()
	giveBack(w, got)
	giveBack(w, last.granted(got.Fence()))
}

// entries: an owner enters from a process of each release, and the line goes to its end, whatever the access.
func entries(w *world, a, b *process) {
	enter := func(p *process, opts *qlock.LockOptions) handle {
		return take(w)(p.locks.TryLock(berth.WithOwner(bg, "job"), name, opts))
	}
	queued := func(p *process, access qlock.Access) *wait {
		opts := &qlock.LockOptions{Access: access}
		return w.queue(func(ctx context.Context) (handle, error) { return p.locks.Lock(ctx, name, opts) })
	}
	outer := enter(a, &qlock.LockOptions{Lease: 20 * second, NoRenew: true})
	line := []*wait{queued(b, qlock.LIFO), queued(a, qlock.LIFO), queued(b, qlock.Queued)}
	_, err := b.locks.TryLock(berth.WithOwner(bg, "job"), name, nil)
	require.ErrorIs(w, err, berth.ErrDeadlock)
	through := &qlock.LockOptions{Conflict: qlock.WorkThrough}
	worked := enter(b, through)
	extended := enter(b, &qlock.LockOptions{Conflict: qlock.ExtendAndWorkThrough, Lease: 30 * second})
	w.pass(time.Millisecond) // a heartbeat of b that is on its way would write over what a writes
	inner := enter(a, through)
	for _, h := range []handle{worked, extended, inner} {
		require.Equal(w, outer.Fence(), h.Fence(), "an entry has the fence of its hold")
	}
	w.read(func() {
		of, held := w.look(keyspace.Lock).Lock, w.holders(keyspace.Lock)
		require.Equal(w, []any{"job", 3, 30 * second}, []any{of.Owner, of.Reentries, of.Extended})
		require.Equal(w, []any{4, outer.ID()}, []any{len(held), held[0].ID}, "the outermost first")
		require.InDelta(w, 50, of.Left.Seconds(), 1)
	})
	// An entry that has not been confirmed has a deadline of its own, which the other
	// release keeps when it writes all entries anew.
	b.wire.Delay(func() time.Duration { return 20 * time.Millisecond })
	fresh := w.queue(func(ctx context.Context) (handle, error) {
		return b.locks.TryLock(berth.WithOwner(ctx, "job"), name, through)
	})
	w.pass(20 * time.Millisecond) // it is granted, and its claimant does not know yet
	giveBack(w, enter(a, through))
	w.pass(100 * time.Millisecond)
	b.wire.Delay(nil)
	giveBack(w, fresh.granted(0))
	w.pass(25 * second)
	w.ok(worked.(*qlock.Lock).Extend(bg, 10*second))
	giveBack(w, inner, outer) // the others go on
	w.pass(10 * second)
	lives(w, worked, extended)
	giveBack(w, extended, worked)
	last := outer
	for _, n := range []int{2, 1, 0} { // the last LIFO stands ahead of the first
		got := line[n].granted(last.Fence())
		giveBack(w, got)
		last = got
	}
}

// watched: one release finds the other's node dead, and flushes what it holds.
func watched(w *world, a, b *process) {
	for _, p := range []*process{a, b} {
		w.ok(p.Swarm().Start(bg))
	}
	forever := take(w)(a.locks.TryLock(bg, name, &qlock.LockOptions{Lease: berth.Forever}))
	next := locks.queue(b)
	w.pass(20 * second)
	w.read(func() {
		nodes := all(w, b.Swarm().Info(bg))
		require.Len(w, nodes, 2)
		for _, n := range nodes {
			require.Equal(w, []any{15 * second, false, false}, []any{n.ZombieAfter, n.Zombie, n.Condemned}, n.Node)
		}
	})
	next.waits()
	a.die()
	w.pass(20 * second)
	flushed, err := b.Swarm().FlushNow(bg)
	w.ok(err)
	require.Equal(w, node.Flushed{Nodes: 1, Holds: 1}, flushed)
	got := next.granted(forever.Fence())
	a.back()
	w.pass(20 * second)
	require.ErrorIs(w, forever.Err(), berth.ErrNotHeld, "the node hears that it was found dead")
	lives(w, got)
	giveBack(w, got)
	w.pass(20 * second)
	for _, p := range []*process{a, b} {
		w.ok(p.Swarm().Stop(bg))
	}
}

func (p *process) fill(resources ...string) {
	change, err := p.pool.Add(bg, resources, nil)
	p.w.ok(err)
	require.Equal(p.w, len(resources), change.Added+change.Kept)
}

// resource allocates, and wants this one.
func (p *process) resource(want string, opts *allocator.AllocateOptions) *allocator.Allocation[string] {
	h, err := p.pool.TryAllocate(bg, opts)
	p.w.ok(err)
	require.Equal(p.w, want, h.Resource())
	return h
}

// stock: the least recently used first, whoever gave it back; rests, bindings, expiries, swaps and replaces of one
// release are kept by the other.
func stock(w *world, a, b *process) {
	inspected := func() (seen allocator.Inspection) {
		for _, p := range []*process{a, b} {
			now, err := p.pools.Inspect(bg, name)
			w.ok(err)
			require.Empty(w, now.Problems)
			now.Bindings = 0 // they are for those who ask for them
			if p == b {
				require.Equal(w, seen, now, "both see the same")
			}
			seen = now
		}
		return seen
	}
	a.fill("r1", "r2")
	b.fill("r3", "r1")
	giveBack(w, b.resource("r1", nil), a.resource("r2", nil), b.resource("r3", nil))
	third, first := a.resource("r1", nil), b.resource("r2", nil)
	require.Less(w, third.Fence(), first.Fence(), "both in one instant")
	giveBack(w, first, third)
	for _, want := range []string{"r3", "r2", "r1"} { // the order in which they came back
		giveBack(w, b.resource(want, nil))
	}
	swapped := b.resource("r3", nil)
	w.ok(swapped.Swap(bg))
	require.Equal(w, "r2", swapped.Resource())
	giveBack(w, swapped)

	w.ok(a.pool.Rest(bg, "r3", 20*second, "a says so", nil))
	w.ok(a.pool.Bind(bg, "job", "r1", &allocator.BindOptions{BindFor: time.Minute}))
	bound, other := b.resource("r1", &allocator.AllocateOptions{Bind: "job"}), b.resource("r2", nil)
	require.ErrorIs(w, other.Swap(bg), berth.ErrBusy)
	require.Equal(w, 1, inspected().Resting)
	waits := pools.queue(a)
	require.Equal(w, 1, inspected().Waiting)
	w.pass(20 * second) // r3 has rested
	got := waits.granted(bound.Fence())
	w.read(func() {
		info, err := b.pools.Resource(bg, name, "r3")
		w.ok(err)
		require.Equal(w, []any{allocator.Leased, got.Fence()}, []any{info.State, info.Holders[0].Fence})
		found, err := b.pool.Binding(bg, "job")
		w.ok(err)
		require.Equal(w, "r1", found.Resource)
	})
	change, err := b.pool.Replace(bg, []string{"r1", "r5"}, &allocator.AddOptions{Expiry: time.Minute, MaxSharers: 2})
	w.ok(err)
	require.Equal(w, allocator.Change{Added: 1, Kept: 1, Removed: 2}, change)
	lives(w, got, bound, other)
	giveBack(w, got, bound, other)
	_, err = a.pool.Remove(bg, []string{"r1"})
	w.ok(err)
	require.Equal(w, 1, inspected().Resources)
	giveBack(w, a.resource("r5", nil), b.resource("r5", nil)) // both have it
	w.pass(time.Minute)
	_, err = b.Operator().Sweep(bg, keyspace.Pool, name)
	w.ok(err)
	require.Zero(w, inspected().Resources, "all have expired")
}
