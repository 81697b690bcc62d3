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
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/keyspace"
)

type (
	pool       = allocator.Pool[string]
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

func poolOrder(b *bed) {
	pools := b.pools(poolConfig{})
	b.add(pools[0], "a", "b", "c")
	a, second := must(b, allocate(pools[1], nil)), must(b, allocate(pools[0], nil))
	require.Equal(b, []string{"a", "b"}, []string{a.Value(), second.Resource()})
	release(b, second, a)
	var order []string
	for i := range 4 {
		next := must(b, allocate(pools[i%2], nil))
		order = append(order, next.Resource())
		release(b, next)
	}
	require.Equal(b, []string{"c", "b", "a", "c"}, order)
}

func poolLine(b *bed) {
	const waiters = 6
	pools := b.pools(poolConfig{})
	var line []*pending[*allocation]
	for i := range waiters { // an empty pool is waited for as well
		line = append(line, queue(b, allocate(pools[i%2], nil), b.poolWaiting(pools[0]), i+1))
	}
	b.add(pools[0], "r")
	var fence int64
	for i, w := range line {
		a := w.wait(b)
		for _, later := range line[i+1:] {
			require.True(b, later.waits(), "waiter %d was passed", i)
		}
		require.Greater(b, a.Fence(), fence)
		fence = a.Fence()
		release(b, a)
	}
}

func poolBind(b *bed) {
	pools := b.pools(poolConfig{})
	b.add(pools[0], "a", "b", "c")
	bound := &allocator.AllocateOptions{Bind: "customer-7"}
	release(b, must(b, allocate(pools[0], bound)))
	a := must(b, allocate(pools[1], bound))
	require.Equal(b, "a", a.Resource(), "though b came first")
	// It is soft: a claim does not wait for what is leased.
	other := must(b, allocate(pools[0], bound))
	require.Equal(b, "b", other.Resource())
	binding, err := pools[1].Binding(b.within(patience), "customer-7")
	require.NoError(b, err)
	require.Equal(b, "b", binding.Resource)
	require.Equal(b, "b", one(b, pools[0].Bindings(b.within(patience))).Resource)
	release(b, a, other)
	require.NoError(b, pools[1].Unbind(b.within(patience), "customer-7"))
	require.Empty(b, all(b, pools[0].Bindings(b.within(patience))))
}

func poolRest(b *bed) {
	pools := b.pools(poolConfig{Cooldown: short})
	b.add(pools[0], "r")
	a := must(b, allocate(pools[0], nil))
	released := time.Now()
	release(b, a)
	a = must(b, allocate(pools[1], nil)) // nobody has to call at its end
	require.GreaterOrEqual(b, time.Since(released), short-time.Millisecond)

	_ = a.Rest(berth.Forever, "is broken")
	release(b, a)
	info, err := pools[0].Status(b.within(patience), "r")
	require.NoError(b, err)
	require.Equal(b, allocator.Resting, info.State)
	require.Equal(b, berth.Forever, info.Left)
	require.Equal(b, "is broken", info.Reason)
	_, err = pools[1].TryAllocate(b.within(patience), nil)
	b.refused(err, berth.ReasonResting)
	w := queue(b, allocate(pools[1], nil), b.poolWaiting(pools[0]), 1)
	require.NoError(b, pools[0].Rest(b.within(patience), "r", 0, ""))
	release(b, w.wait(b))
}

func poolReplace(b *bed) {
	pools := b.pools(poolConfig{})
	b.add(pools[0], "a", "b")
	a := must(b, allocate(pools[1], nil))
	change, err := pools[1].Replace(b.within(patience), []string{"b", "c"}, nil)
	require.NoError(b, err)
	require.Equal(b, allocator.Change{Added: 1, Kept: 1, Removed: 1}, change)
	release(b, a)
	b.has(pools[0], "b", "c")

	// A newer one, begun while this one has sent a part, decides.
	many := slices.Concat(numbered(300), []string{"old"})
	var once sync.Once
	_, err = pools[0].Replace(b.within(patience), many, &allocator.AddOptions{Progress: func(int, int) {
		once.Do(func() {
			_, err := pools[1].Replace(b.within(patience), []string{"new"}, nil)
			require.NoError(b, err)
		})
	}})
	require.ErrorIs(b, err, allocator.ErrSuperseded)
	b.has(pools[0], "new")
}

func poolSource(b *bed) {
	var asked atomic.Int64
	pools := b.pools(poolConfig{Source: func(context.Context) ([]string, error) {
		if asked.Add(1) == 1 {
			return nil, errors.New("not yet")
		}
		return []string{"a", "b"}, nil
	}, RefreshEvery: 100 * time.Millisecond})
	release(b, must(b, allocate(pools[0], nil)), must(b, allocate(pools[1], nil)))
	b.has(pools[1], "a", "b")
	// Not Clear: it is a replace, as each refresh is, and the newer one supersedes.
	_, err := pools[0].Remove(b.within(patience), []string{"a", "b"})
	require.NoError(b, err)
	release(b, must(b, allocate(pools[1], nil)))
}

func poolRemove(b *bed) {
	pools := b.pools(poolConfig{})
	b.add(pools[0], "a", "b")
	a := must(b, allocate(pools[0], nil))
	change, err := pools[1].Remove(b.within(patience), []string{"a", "b"})
	require.NoError(b, err)
	require.Equal(b, 2, change.Removed)
	info, err := pools[1].Status(b.within(patience), "a")
	require.NoError(b, err)
	require.Equal(b, allocator.Leased, info.State)
	require.True(b, info.Leaving)
	require.NoError(b, a.Renew(b.within(patience)), "it stays with its holder")
	release(b, a)
	b.has(pools[1])
	_, err = pools[1].TryAllocate(b.within(patience), nil)
	b.refused(err, berth.ReasonEmpty)
}

func poolSharers(b *bed) {
	pools := b.pools(poolConfig{MaxSharers: 2})
	b.add(pools[0], "r")
	a, second := must(b, allocate(pools[0], nil)), must(b, allocate(pools[1], nil))
	require.NotEqual(b, a.Fence(), second.Fence())
	w := queue(b, allocate(pools[0], nil), b.poolWaiting(pools[1]), 1)
	info, err := pools[1].Status(b.within(patience), "r")
	require.NoError(b, err)
	require.Equal(b, 2, info.MaxSharers)
	require.Len(b, info.Holders, 2)
	release(b, a)
	release(b, w.wait(b), second)
}

func poolSwap(b *bed) {
	pools := b.pools(poolConfig{})
	b.add(pools[0], "a", "b")
	a := must(b, allocate(pools[0], nil))
	fence := a.Fence()
	require.NoError(b, a.Swap(b.within(patience)))
	require.Equal(b, "b", a.Resource())
	require.Greater(b, a.Fence(), fence)
	other := must(b, allocate(pools[1], nil))
	require.Equal(b, "a", other.Resource())
	require.ErrorIs(b, a.Swap(b.within(patience)), berth.ErrBusy)
	require.NoError(b, a.Err())
	release(b, a, other)
}

func poolDetach(b *bed) {
	pools := b.pools(poolConfig{})
	b.add(pools[0], "r")
	a := afterAWait(b, allocate(pools[0], nil), allocate(pools[1], nil), b.poolWaiting(pools[0]))
	resumed, err := pools[1].Resume(b.within(patience), must(b, a.Detach))
	require.NoError(b, err)
	require.Equal(b, "r", resumed.Value())
	require.Equal(b, a.Fence(), resumed.Fence())
	b.ended(a, berth.ErrReleased)
	release(b, resumed)
	require.Equal(b, 1, must(b, pools[0].Stats).Free)
}

func poolBytes(b *bed) {
	pools := b.pools(poolConfig{})
	keys := []string{"\x00", "\xff\xfe", "a\x00b", "{}", "{x}:state", "\r\n$5\r\n", " ", "1", "1.0", "\"", "世界"}
	b.add(pools[0], keys...)
	b.has(pools[1], keys...)
	var held []*allocation
	var got []string
	for range keys {
		a := must(b, allocate(pools[1], &allocator.AllocateOptions{Bind: "\x00\xff{}"}))
		held, got = append(held, a), append(got, a.Value())
	}
	require.Equal(b, keys, got)
	var leased []string
	for _, holder := range all(b, pools[0].Holders(b.within(patience))) {
		leased = append(leased, holder.Resource)
	}
	require.ElementsMatch(b, keys, leased)
	release(b, held...)
	change, err := pools[1].Remove(b.within(patience), keys)
	require.NoError(b, err)
	require.Equal(b, len(keys), change.Removed)
	b.has(pools[0])
}

// Something else than Berth writes over what the server has of resources: one is free,
// one is held.
func poolDamage(b *bed) {
	pools := b.pools(poolConfig{})
	b.add(pools[0], "free", "held", "whole")
	first, held := must(b, allocate(pools[0], nil)), must(b, allocate(pools[1], nil))
	release(b, first)
	require.Equal(b, []string{"free", "held"}, []string{first.Resource(), held.Resource()})
	write := func(resource string) {
		space, err := keyspace.New(b.ns)
		require.NoError(b, err)
		c := b.redis[0]
		items := space.Key(keyspace.Pool, pools[0].Name(), keyspace.ItemsPart)
		require.NoError(b, c.Do(b.within(patience), c.B().Hset().Key(items).FieldValue().FieldValue("i"+resource, "rubbish").Build()).Error())
	}
	write("free")
	write("held")
	a := must(b, allocate(pools[0], nil))
	require.Equal(b, "whole", a.Resource())
	_, err := pools[1].TryAllocate(b.within(patience), nil)
	require.ErrorIs(b, err, berth.ErrBusy)
	states := map[string]allocator.State{}
	for _, info := range all(b, pools[0].Resources(b.within(patience))) {
		states[info.Resource] = info.State
	}
	require.Equal(b, map[string]allocator.State{
		"free": allocator.Damaged, "held": allocator.Damaged, "whole": allocator.Leased,
	}, states)
	found := must(b, pools[0].Inspect)
	require.Len(b, found.Problems, 2)

	b.add(pools[0], "free", "held")
	free := must(b, allocate(pools[1], nil))
	require.Equal(b, "free", free.Resource())
	_, err = pools[1].TryAllocate(b.within(patience), nil)
	require.ErrorIs(b, err, berth.ErrBusy, "held is held")
	require.NoError(b, held.Renew(b.within(patience)))
	write("whole")
	release(b, a, held, free)
	change := must(b, func(ctx context.Context) (allocator.Change, error) { return pools[0].Remove(ctx, []string{"whole"}) })
	require.Equal(b, allocator.Change{Removed: 1}, change)
	require.Equal(b, 2, must(b, pools[0].Stats).Free)
}

func poolStorm(b *bed) {
	const goroutines, rounds = 8, 5
	pools := b.pools(poolConfig{})
	resources := numbered(3)
	b.add(pools[0], resources...)
	var used sync.Map
	var users sync.WaitGroup
	for i := range goroutines {
		users.Go(func() {
			for round := range rounds {
				opts := &allocator.AllocateOptions{}
				if round%2 == 0 {
					opts.Bind = resources[i%3]
				}
				err := pools[i%2].Do(b.within(patience), opts, func(_ context.Context, a *allocation) error {
					if _, taken := used.LoadOrStore(a.Resource(), true); taken {
						b.Errorf("%s is used twice", a.Resource())
					}
					used.Delete(a.Resource())
					return nil
				})
				if err != nil {
					b.Errorf("do: %v", err)
				}
			}
		})
	}
	users.Wait()
	require.Equal(b, allocator.Stats{Name: "pool", Resources: 3, Free: 3}, must(b, pools[0].Stats))
}

// add puts new resources into the pool.
func (b *bed) add(p *pool, resources ...string) {
	b.Helper()
	change, err := p.Add(b.within(patience), resources, nil)
	require.NoError(b, err)
	require.Equal(b, allocator.Change{Added: len(resources)}, change)
}

// has checks that these are the resources of the pool.
func (b *bed) has(p *pool, resources ...string) {
	b.Helper()
	var found []string
	for _, info := range all(b, p.Resources(b.within(patience))) {
		found = append(found, info.Resource)
	}
	require.ElementsMatch(b, resources, found)
}
