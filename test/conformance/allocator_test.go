package conformance

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/keyspace"
)

type (
	poolConfig = allocator.Config[string]
	allocation = allocator.Allocation[string]
)

func allocatorTests() []test {
	return []test{
		{name: "allocator/order, bindings, swaps, replace and remove", run: poolStock},
		{name: "allocator/sharers, rest and cooldown", run: poolRest},
		{name: "allocator/a source fills an empty pool", run: poolSource},
		{name: "allocator/bytes as keys", run: poolBytes},
	}
}

func poolStock(w *world) {
	pools := w.pools("pool", poolConfig{})
	w.add(pools[0], "a", "b", "c")
	bound := &allocator.AllocateOptions{Bind: "customer-7"}
	a, b := must(w, allocate(pools[1], bound)), must(w, allocate(pools[0], nil))
	require.Equal(w, []string{"a", "b"}, []string{a.Value(), b.Resource()})
	release(w, b, a)
	a, c := must(w, allocate(pools[1], bound)), must(w, allocate(pools[0], nil))
	require.Equal(w, []string{"a", "c"}, []string{a.Resource(), c.Resource()}, "the bound one, and the least recent")
	other := must(w, allocate(pools[0], bound))
	require.Equal(w, "b", other.Resource(), "a claim does not wait for what is leased")
	binding, err := pools[1].Binding(w.Within(patience), "customer-7")
	require.NoError(w, err)
	require.Equal(w, "b", binding.Resource)
	require.Equal(w, "b", one(w, testkit.Collect(w.T, pools[0].ops.Bindings(w.Within(patience), "pool"))).Resource)
	require.NoError(w, pools[1].Unbind(w.Within(patience), "customer-7"))
	require.Empty(w, testkit.Collect(w.T, pools[0].ops.Bindings(w.Within(patience), "pool")))

	require.ErrorIs(w, other.Swap(w.Within(patience)), berth.ErrBusy)
	fence := other.Fence()
	release(w, c)
	require.NoError(w, other.Swap(w.Within(patience)))
	require.Equal(w, "c", other.Resource())
	require.Greater(w, other.Fence(), fence)

	change, err := pools[1].Replace(w.Within(patience), []string{"b", "d"}, nil)
	require.NoError(w, err)
	require.Equal(w, allocator.Change{Added: 1, Kept: 1, Removed: 2}, change)
	info, err := pools[1].ops.Resource(w.Within(patience), "pool", "a")
	require.NoError(w, err)
	require.Equal(w, []any{allocator.Leased, true}, []any{info.State, info.Leaving})
	require.NoError(w, a.Renew(w.Within(patience)), "it stays with its holder")
	release(w, a, other)
	w.has(pools[0], "b", "d")
	change, err = pools[1].Remove(w.Within(patience), []string{"b", "d"})
	require.NoError(w, err)
	require.Equal(w, 2, change.Removed)
	w.has(pools[1])
	_, err = pools[1].TryAllocate(w.Within(patience), nil)
	w.refused(err, berth.ReasonEmpty)
}

func poolRest(w *world) {
	pools := w.pools("pool", poolConfig{Cooldown: short, MaxSharers: 2})
	waiting := w.waiting(keyspace.Pool, "pool")
	w.add(pools[0], "r")
	a, second := must(w, allocate(pools[0], nil)), must(w, allocate(pools[1], nil))
	require.NotEqual(w, a.Fence(), second.Fence())
	q := queue(w, allocate(pools[1], nil), waiting, 1)
	info, err := pools[1].ops.Resource(w.Within(patience), "pool", "r")
	require.NoError(w, err)
	require.Equal(w, []int{2, 2}, []int{info.MaxSharers, len(info.Holders)})
	released := time.Now()
	release(w, second, a)
	a = q.Wait(w) // nobody has to call at the end of its rest
	require.GreaterOrEqual(w, time.Since(released), short-time.Millisecond)

	_ = a.Rest(berth.Forever, "is broken")
	release(w, a)
	info, err = pools[0].ops.Resource(w.Within(patience), "pool", "r")
	require.NoError(w, err)
	require.Equal(w, []any{allocator.Resting, berth.Forever, "is broken"}, []any{info.State, info.Left, info.Reason})
	_, err = pools[1].TryAllocate(w.Within(patience), nil)
	w.refused(err, berth.ReasonResting)
	q = queue(w, allocate(pools[1], nil), waiting, 1)
	require.NoError(w, pools[0].Rest(w.Within(patience), "r", 0, "", nil))
	release(w, q.Wait(w))
}

func poolSource(w *world) {
	var asked atomic.Int64
	pools := w.pools("pool", poolConfig{Source: func(context.Context) ([]string, error) {
		if asked.Add(1) == 1 {
			return nil, errors.New("not yet")
		}
		return []string{"a", "b"}, nil
	}, RefreshEvery: 100 * time.Millisecond})
	release(w, must(w, allocate(pools[0], nil)), must(w, allocate(pools[1], nil)))
	w.has(pools[1], "a", "b")
	// Not Clear: it is a replace, as each refresh is, and the newer one supersedes.
	var err error
	for again := true; again; again = errors.Is(err, berth.ErrOvertaken) { // a refresh has begun since the call did: it is still wanted
		_, err = pools[0].Remove(w.Within(patience), []string{"a", "b"})
	}
	require.NoError(w, err)
	release(w, must(w, allocate(pools[1], nil)))
}

func poolBytes(w *world) {
	pools := w.pools("pool", poolConfig{})
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
	for _, info := range testkit.Collect(w.T, p.ops.Resources(w.Within(patience), p.Name())) {
		found = append(found, info.Resource)
	}
	require.ElementsMatch(w, resources, found)
}
