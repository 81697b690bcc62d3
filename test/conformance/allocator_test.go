package conformance

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/keyspace"
)

type (
	poolConfig = allocator.PoolConfig[string]
	allocation = allocator.Allocation[string]
)

func allocatorTests() []test {
	return []test{
		{name: "allocator/the least recent first", run: poolOrder},
		{name: "allocator/waiters in their order", run: poolLine},
		{name: "allocator/bindings", run: poolBind},
		{name: "allocator/rest and cooldown", run: poolRest},
		{name: "allocator/replace", run: poolReplace},
		{name: "allocator/a source fills an empty pool", run: poolSource},
		{name: "allocator/removed while it is leased", run: poolRemove},
		{name: "allocator/sharers", run: poolSharers},
		{name: "allocator/swap", run: poolSwap},
		{name: "allocator/detach and resume", run: poolDetach},
		{name: "allocator/bytes as keys", run: poolBytes},
		{name: "allocator/a damaged resource", run: poolDamage},
		{name: "allocator/whole after a storm", run: poolStorm},
	}
}

func poolOrder(w *world) {
	pools := w.pools(poolConfig{})
	w.add(pools[0], "a", "b", "c")
	a, second := must(w, allocate(pools[1], nil)), must(w, allocate(pools[0], nil))
	require.Equal(w, []string{"a", "b"}, []string{a.Value(), second.Resource()})
	release(w, second, a)
	var order []string
	for i := range 4 {
		next := must(w, allocate(pools[i%2], nil))
		order = append(order, next.Resource())
		release(w, next)
	}
	require.Equal(w, []string{"c", "b", "a", "c"}, order)
}

func poolLine(w *world) {
	const waiters = 6
	pools := w.pools(poolConfig{})
	var line []*testkit.Call[*allocation]
	for i := range waiters { // an empty pool is waited for as well
		line = append(line, queue(w, allocate(pools[i%2], nil), w.waiting(keyspace.Pool, "pool"), i+1))
	}
	w.add(pools[0], "r")
	var fence int64
	for i, q := range line {
		a := q.Wait(w)
		for _, later := range line[i+1:] {
			require.False(w, later.Over(), "waiter %d was passed", i)
		}
		require.Greater(w, a.Fence(), fence)
		fence = a.Fence()
		release(w, a)
	}
}

func poolBind(w *world) {
	pools := w.pools(poolConfig{})
	w.add(pools[0], "a", "b", "c")
	bound := &allocator.AllocateOptions{Bind: "customer-7"}
	release(w, must(w, allocate(pools[0], bound)))
	a := must(w, allocate(pools[1], bound))
	require.Equal(w, "a", a.Resource(), "though b came first")
	// It is soft: a claim does not wait for what is leased.
	other := must(w, allocate(pools[0], bound))
	require.Equal(w, "b", other.Resource())
	binding, err := pools[1].Binding(w.Within(patience), "customer-7")
	require.NoError(w, err)
	require.Equal(w, "b", binding.Resource)
	require.Equal(w, "b", one(w, all(w, pools[0].ops.Bindings(w.Within(patience), pools[0].Name()))).Resource)
	release(w, a, other)
	require.NoError(w, pools[1].Unbind(w.Within(patience), "customer-7"))
	require.Empty(w, all(w, pools[0].ops.Bindings(w.Within(patience), pools[0].Name())))
}

func poolRest(w *world) {
	pools := w.pools(poolConfig{Cooldown: short})
	w.add(pools[0], "r")
	a := must(w, allocate(pools[0], nil))
	released := time.Now()
	release(w, a)
	a = must(w, allocate(pools[1], nil)) // nobody has to call at its end
	require.GreaterOrEqual(w, time.Since(released), short-time.Millisecond)

	_ = a.Rest(berth.Forever, "is broken")
	release(w, a)
	info, err := pools[0].ops.Resource(w.Within(patience), pools[0].Name(), "r")
	require.NoError(w, err)
	require.Equal(w, allocator.Resting, info.State)
	require.Equal(w, berth.Forever, info.Left)
	require.Equal(w, "is broken", info.Reason)
	_, err = pools[1].TryAllocate(w.Within(patience), nil)
	w.refused(err, berth.ReasonResting)
	q := queue(w, allocate(pools[1], nil), w.waiting(keyspace.Pool, "pool"), 1)
	require.NoError(w, pools[0].Rest(w.Within(patience), "r", 0, "", nil))
	release(w, q.Wait(w))
}

func poolReplace(w *world) {
	pools := w.pools(poolConfig{})
	w.add(pools[0], "a", "b")
	a := must(w, allocate(pools[1], nil))
	change, err := pools[1].Replace(w.Within(patience), []string{"b", "c"}, nil)
	require.NoError(w, err)
	require.Equal(w, allocator.Change{Added: 1, Kept: 1, Removed: 1}, change)
	release(w, a)
	w.has(pools[0], "b", "c")

	// A newer one, begun while this one has sent a part, decides.
	many := slices.Concat(numbered(300), []string{"old"})
	var once sync.Once
	_, err = pools[0].Replace(w.Within(patience), many, &allocator.AddOptions{Progress: func(int, int) {
		once.Do(func() {
			_, err := pools[1].Replace(w.Within(patience), []string{"new"}, nil)
			require.NoError(w, err)
		})
	}})
	require.ErrorIs(w, err, berth.ErrStale)
	w.has(pools[0], "new")
}

func poolSource(w *world) {
	var asked atomic.Int64
	pools := w.pools(poolConfig{Source: func(context.Context) ([]string, error) {
		if asked.Add(1) == 1 {
			return nil, errors.New("not yet")
		}
		return []string{"a", "b"}, nil
	}, RefreshEvery: 100 * time.Millisecond})
	release(w, must(w, allocate(pools[0], nil)), must(w, allocate(pools[1], nil)))
	w.has(pools[1], "a", "b")
	// Not Clear: it is a replace, as each refresh is, and the newer one supersedes.
	var err error
	for again := true; again; again = errors.Is(err, berth.ErrStale) { // a refresh has begun since the call did: it is still wanted
		_, err = pools[0].Remove(w.Within(patience), []string{"a", "b"})
	}
	require.NoError(w, err)
	release(w, must(w, allocate(pools[1], nil)))
}

func poolRemove(w *world) {
	pools := w.pools(poolConfig{})
	w.add(pools[0], "a", "b")
	a := must(w, allocate(pools[0], nil))
	change, err := pools[1].Remove(w.Within(patience), []string{"a", "b"})
	require.NoError(w, err)
	require.Equal(w, 2, change.Removed)
	info, err := pools[1].ops.Resource(w.Within(patience), pools[1].Name(), "a")
	require.NoError(w, err)
	require.Equal(w, allocator.Leased, info.State)
	require.True(w, info.Leaving)
	require.NoError(w, a.Renew(w.Within(patience)), "it stays with its holder")
	release(w, a)
	w.has(pools[1])
	_, err = pools[1].TryAllocate(w.Within(patience), nil)
	w.refused(err, berth.ReasonEmpty)
}

func poolSharers(w *world) {
	pools := w.pools(poolConfig{MaxSharers: 2})
	w.add(pools[0], "r")
	a, second := must(w, allocate(pools[0], nil)), must(w, allocate(pools[1], nil))
	require.NotEqual(w, a.Fence(), second.Fence())
	q := queue(w, allocate(pools[0], nil), w.waiting(keyspace.Pool, "pool"), 1)
	info, err := pools[1].ops.Resource(w.Within(patience), pools[1].Name(), "r")
	require.NoError(w, err)
	require.Equal(w, 2, info.MaxSharers)
	require.Len(w, info.Holders, 2)
	release(w, a)
	release(w, q.Wait(w), second)
}

func poolSwap(w *world) {
	pools := w.pools(poolConfig{})
	w.add(pools[0], "a", "b")
	a := must(w, allocate(pools[0], nil))
	fence := a.Fence()
	require.NoError(w, a.Swap(w.Within(patience)))
	require.Equal(w, "b", a.Resource())
	require.Greater(w, a.Fence(), fence)
	other := must(w, allocate(pools[1], nil))
	require.Equal(w, "a", other.Resource())
	require.ErrorIs(w, a.Swap(w.Within(patience)), berth.ErrBusy)
	require.NoError(w, a.Err())
	release(w, a, other)
}

func poolDetach(w *world) {
	pools := w.pools(poolConfig{})
	w.add(pools[0], "r")
	a := afterAWait(w, allocate(pools[0], nil), allocate(pools[1], nil), w.waiting(keyspace.Pool, "pool"))
	resumed, err := pools[1].Resume(w.Within(patience), must(w, a.Detach))
	require.NoError(w, err)
	require.Equal(w, "r", resumed.Value())
	require.Equal(w, a.Fence(), resumed.Fence())
	w.ended(a, berth.ErrReleased)
	release(w, resumed)
	require.Equal(w, 1, w.free())
}

func poolBytes(w *world) {
	pools := w.pools(poolConfig{})
	keys := []string{"\x00", "\xff\xfe", "a\x00b", "{}", "{x}:state", "\r\n$5\r\n", " ", "1", "1.0", "\"", "世界"}
	w.add(pools[0], keys...)
	w.has(pools[1], keys...)
	var held []*allocation
	var got []string
	for range keys {
		a := must(w, allocate(pools[1], &allocator.AllocateOptions{Bind: "\x00\xff{}"}))
		held, got = append(held, a), append(got, a.Value())
	}
	require.Equal(w, keys, got)
	var leased []string
	for _, holder := range w.reader().Holders(keyspace.Pool, "pool") {
		leased = append(leased, holder.Resource)
	}
	require.ElementsMatch(w, keys, leased)
	release(w, held...)
	change, err := pools[1].Remove(w.Within(patience), keys)
	require.NoError(w, err)
	require.Equal(w, len(keys), change.Removed)
	w.has(pools[0])
}

// Something else than Berth writes over what the server has of resources: one is free,
// one is held.
func poolDamage(w *world) {
	pools := w.pools(poolConfig{})
	w.add(pools[0], "free", "held", "whole")
	first, held := must(w, allocate(pools[0], nil)), must(w, allocate(pools[1], nil))
	release(w, first)
	require.Equal(w, []string{"free", "held"}, []string{first.Resource(), held.Resource()})
	write := func(resource string) {
		space, err := keyspace.New(w.ns)
		require.NoError(w, err)
		c := w.redis[0]
		items := space.Key(keyspace.Pool, pools[0].Name(), keyspace.ItemsPart)
		require.NoError(w, c.Do(w.Within(patience), c.B().Hset().Key(items).FieldValue().FieldValue("i"+resource, "rubbish").Build()).Error())
	}
	write("free")
	write("held")
	a := must(w, allocate(pools[0], nil))
	require.Equal(w, "whole", a.Resource())
	_, err := pools[1].TryAllocate(w.Within(patience), nil)
	require.ErrorIs(w, err, berth.ErrBusy)
	states := map[string]allocator.State{}
	for _, info := range all(w, pools[0].ops.Resources(w.Within(patience), pools[0].Name())) {
		states[info.Resource] = info.State
	}
	require.Equal(w, map[string]allocator.State{
		"free": allocator.Damaged, "held": allocator.Damaged, "whole": allocator.Leased,
	}, states)
	found, err := pools[0].ops.Inspect(w.Within(patience), pools[0].Name())
	require.NoError(w, err)
	require.Len(w, found.Problems, 2)

	change, err := pools[0].Add(w.Within(patience), []string{"free", "held"}, nil) // which makes them whole
	require.NoError(w, err)
	require.Equal(w, allocator.Change{Kept: 2}, change)
	free := must(w, allocate(pools[1], nil))
	require.Equal(w, "free", free.Resource())
	_, err = pools[1].TryAllocate(w.Within(patience), nil)
	require.ErrorIs(w, err, berth.ErrBusy, "held is held")
	require.NoError(w, held.Renew(w.Within(patience)))
	write("whole")
	release(w, a, held, free)
	change = must(w, func(ctx context.Context) (allocator.Change, error) { return pools[0].Remove(ctx, []string{"whole"}) })
	require.Equal(w, allocator.Change{Removed: 1}, change)
	require.Equal(w, 2, w.free())
}

func poolStorm(w *world) {
	const goroutines, rounds = 8, 5
	pools := w.pools(poolConfig{})
	resources := numbered(3)
	w.add(pools[0], resources...)
	var used sync.Map
	var users sync.WaitGroup
	for i := range goroutines {
		users.Go(func() {
			for round := range rounds {
				opts := &allocator.AllocateOptions{}
				if round%2 == 0 {
					opts.Bind = resources[i%3]
				}
				err := pools[i%2].Do(w.Within(patience), opts, func(_ context.Context, a *allocation) error {
					if _, taken := used.LoadOrStore(a.Resource(), true); taken {
						w.Errorf("%s is used twice", a.Resource())
					}
					used.Delete(a.Resource())
					return nil
				})
				if err != nil {
					w.Errorf("do: %v", err)
				}
			}
		})
	}
	users.Wait()
	n := w.reader().Look(keyspace.Pool, "pool")
	require.Equal(w, []int{3, 3, 0, 0}, []int{n.Capacity, n.Pool.Free, n.Holders, n.Waiting})
}

// add puts new resources into the pool.
func (w *world) add(p *pool, resources ...string) {
	w.Helper()
	change, err := p.Add(w.Within(patience), resources, nil)
	require.NoError(w, err)
	require.Equal(w, allocator.Change{Added: len(resources)}, change)
}

// has checks that these are the resources of the pool.
func (w *world) has(p *pool, resources ...string) {
	w.Helper()
	var found []string
	for _, info := range all(w, p.ops.Resources(w.Within(patience), p.Name())) {
		found = append(found, info.Resource)
	}
	require.ElementsMatch(w, resources, found)
}
