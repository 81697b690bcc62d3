package allocator_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/allocator"
)

func TestStatsCountWhatThereIs(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		n := w.node()
		stats, err := n.ops().Stats(ctx, proxies)
		require.NoError(t, err)
		require.Equal(t, allocator.Stats{Name: proxies}, stats, "not known")
		require.Zero(t, stats.Share())
		require.Empty(t, w.Keys(), "and a question does not make it known")

		w.add("a", "b", "c", "d")
		n.takes("a", nil)
		n.takes("b", nil)
		require.NoError(t, n.Rest(ctx, "c", time.Minute, ""))
		require.NoError(t, change(n.Remove(ctx, []string{"a"})))
		stats, err = n.ops().Stats(ctx, proxies)
		require.NoError(t, err)
		require.Equal(t, allocator.Stats{
			Name: proxies, Resources: 4, Free: 1, Leased: 2, Resting: 1, Leaving: 1, Holders: 2,
		}, stats)
		require.InDelta(t, 0.5, stats.Share(), 1e-9)
		n.takes("d", nil)
		n.queue(nil)
		n.queue(nil)
		stats, err = n.ops().Stats(ctx, proxies)
		require.NoError(t, err)
		require.Equal(t, allocator.Stats{
			Name: proxies, Resources: 4, Leased: 3, Resting: 1, Leaving: 1, Holders: 3, Waiting: 2,
		}, stats)
	})
}

// Who died in the middle of the line waits, for all that is counted, until a sweep comes by.
func TestASweepDropsThoseWhoDiedInTheMiddleOfTheLine(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.acquireScript("x", "x.1", func(r *engine.Record) { r.Wait = time.Hour })
		for i := range 250 {
			w.acquireScript("dead", fmt.Sprint("dead.", i))
		}
		w.acquireScript("y", "y.1", func(r *engine.Record) { r.Wait = time.Hour })
		w.Advance(lease)
		require.Equal(t, 252, w.inspect().Waiting)
		n := w.node()
		dropped, err := n.ops().Sweep(t.Context(), proxies)
		require.NoError(t, err)
		require.Equal(t, 250, dropped)
		require.GreaterOrEqual(t, n.Count("pool_sweep"), 3, "at most 100 in one script")
		require.Equal(t, 2, w.inspect().Waiting)
	})
}

func TestStatsSweepAllThatHasExpired(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		n := w.node()
		w.add(many("x", 120)...)
		for i := range 120 {
			w.acquireScript("dead", fmt.Sprint("dead.", i))
		}
		w.Advance(lease)
		swept := w.Call("pool_sweep", "60000", "berth:wake:", proxies, "looks-on", "0")
		require.Equal(t, int64(100), swept.Int(4), "at most 100 in one script")
		before := w.Dump()
		stats, err := n.ops().Stats(ctx, proxies)
		require.NoError(t, err)
		require.Equal(t, allocator.Stats{Name: proxies, Resources: 120, Free: 120, Expired: 20}, stats)
		require.Equal(t, before, w.Dump(), "nothing is written")
		for _, want := range []int{20, 0} {
			count, err := n.ops().Sweep(ctx, proxies)
			require.NoError(t, err)
			require.Equal(t, want, count)
		}
		w.requireIdle()
	})
}

// named is a pool of another name, of so many resources, of which so many are leased.
func (n *node) named(name string, resources, leased int) {
	n.w.T.Helper()
	p, err := allocator.NewPool(n.client, name, allocator.PoolConfig[string]{})
	require.NoError(n.w.T, err)
	require.NoError(n.w.T, change(p.Add(context.Background(), many("x", resources), nil)))
	for range leased {
		_, err := p.TryAllocate(context.Background(), nil)
		require.NoError(n.w.T, err)
	}
}

func TestStatsOfAllNamesSkipEmptyOnes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		n, other := w.node(), w.nodeWith(allocator.Config{Namespace: "other"}, allocator.PoolConfig[string]{})
		n.named("leased", 2, 1)
		n.named("idle", 3, 0)
		n.named("odd *", 1, 0)
		other.named("elsewhere", 1, 1)
		w.add("a")
		require.NoError(t, change(n.Clear(ctx)))
		byName := func(stats []allocator.Stats) map[string]allocator.Stats {
			m := make(map[string]allocator.Stats)
			for _, s := range stats {
				require.NotContains(t, m, s.Name)
				m[s.Name] = s
			}
			return m
		}
		all := map[string]allocator.Stats{
			"leased": {Name: "leased", Resources: 2, Free: 1, Leased: 1, Holders: 1},
			"idle":   {Name: "idle", Resources: 3, Free: 3},
			"odd *":  {Name: "odd *", Resources: 1, Free: 1},
		}
		require.Equal(t, all, byName(testkit.Collect(t, n.ops().All(ctx))))
		q := n.queue(nil)
		all[proxies] = allocator.Stats{Name: proxies, Waiting: 1}
		require.Equal(t, all, byName(testkit.Collect(t, n.ops().All(ctx))), "one that is waited for is worth telling of")
		q.Cancel(nil)
		<-q.Done
		for _, err := range n.ops().All(ctx) {
			require.NoError(t, err)
			break // a caller may stop
		}
	})
}

func TestStatsGoOnAfterOneThatCannotBeRead(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.named("a", 1, 0)
		n.named("b", 1, 0)
		w.Do("HSET", "berth:pool:{newer}:state", "v", "3")
		good, bad := 0, 0
		for stats, err := range n.ops().All(context.Background()) {
			if err != nil {
				require.ErrorIs(t, err, berth.ErrIncompatible)
				bad++
				continue
			}
			require.Contains(t, []string{"a", "b"}, stats.Name)
			good++
		}
		require.Equal(t, 2, good)
		require.Equal(t, 1, bad)
	})
}

func TestAHolderIsListedWithItsResourceAndAllThatItAskedFor(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		w.add("\xff a|", "b")
		n := w.nodeWith(allocator.Config{Label: "worker 7"}, allocator.PoolConfig[string]{})
		w.Advance(time.Second)
		a, err := n.Allocate(berth.WithOwner(ctx, "order:7"), &allocator.AllocateOptions{
			Lease: 5 * time.Second, NoRenew: true, MaxHold: time.Minute, Meta: map[string]string{"job": "42"}, Bind: "me",
		})
		require.NoError(t, err)
		granted := time.UnixMilli(time.Now().UnixMilli())
		w.Advance(1500 * ms)
		want := berth.Holder{
			ID: a.ID(), Node: n.client.Node(), Label: "worker 7", Owner: "order:7", Weight: 1, Fence: a.Fence(),
			Resource: "\xff a|", Lease: 5 * time.Second, Left: 3500 * ms, NoRenew: true, MaxHold: time.Minute,
			Granted: granted, Held: 1500 * ms, Meta: map[string]string{"job": "42"},
		}
		require.Equal(t, []berth.Holder{want}, testkit.Collect(t, n.ops().Holders(ctx, proxies)))
		require.Equal(t, []berth.Holder{want}, w.status("\xff a|").Holders)
		detach(t, a)
		want.Detached = true
		require.Equal(t, []berth.Holder{want}, testkit.Collect(t, n.ops().Holders(ctx, proxies)))
		w.Advance(3500 * ms)
		require.Empty(t, testkit.Collect(t, n.ops().Holders(ctx, proxies)), "what has expired is not held, swept or not")
		require.Equal(t, allocator.Free, w.status("\xff a|").State)
	})
}

func TestAfterASwapTheListingHasTheNewResource(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		w.add(many("x", 130)...)
		n := w.node()
		resources := make(map[string]string)
		for i := range 120 {
			a := n.take(nil)
			if i%100 == 0 {
				require.NoError(t, a.Swap(ctx))
			}
			resources[a.ID()] = a.Resource()
		}
		listed := make(map[string]string)
		for _, h := range testkit.Collect(t, n.ops().Holders(ctx, proxies)) {
			require.NotContains(t, listed, h.ID)
			listed[h.ID] = h.Resource
		}
		require.Equal(t, resources, listed)
		for _, err := range n.ops().Holders(ctx, proxies) {
			require.NoError(t, err)
			break // a caller may stop
		}
	})
}

func TestWaitersAreListedInTheOrderOfTheLine(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		n, m := w.nodeWith(allocator.Config{Label: "a"}, allocator.PoolConfig[string]{}), w.node()
		w.Advance(time.Second)
		first := time.UnixMilli(time.Now().UnixMilli())
		n.queueOn(berth.WithOwner(ctx, "late"), &allocator.AllocateOptions{Meta: map[string]string{"job": "42"}})
		w.Advance(500 * ms)
		m.queueOn(berth.WithOwner(ctx, "later"), nil)
		m.queueOn(berth.WithOwner(ctx, "first"), &allocator.AllocateOptions{Priority: 3})
		var order []string
		for i, waiter := range testkit.Collect(t, n.ops().Waiters(ctx, proxies)) {
			order = append(order, waiter.Owner)
			require.Equal(t, i, waiter.Ahead)
			if waiter.Owner == "late" {
				require.Equal(t, "a", waiter.Label)
				require.Equal(t, n.client.Node(), waiter.Node)
				require.Equal(t, 500*ms, waiter.Waited)
				require.Equal(t, lease-500*ms, waiter.Alive)
				require.Equal(t, map[string]string{"job": "42"}, waiter.Meta)
				require.True(t, first.Equal(waiter.Since))
			}
		}
		require.Equal(t, []string{"first", "late", "later"}, order)
		stats, err := n.ops().Stats(ctx, proxies)
		require.NoError(t, err)
		require.Equal(t, allocator.Stats{Name: proxies, Waiting: 3}, stats)
	})
}

func TestAListingEndsWithTheServersError(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		w.add("a")
		n := w.node()
		require.NoError(t, n.Bind(ctx, "me", "a", nil))
		w.SetCount("fmt", 3)
		for name, list := range map[string]func() error{
			"Resources": func() error { return last(n.ops().Resources(ctx, proxies)) },
			"Bindings":  func() error { return last(n.ops().Bindings(ctx, proxies)) },
			"Holders":   func() error { return last(n.ops().Holders(ctx, proxies)) },
			"Waiters":   func() error { return last(n.ops().Waiters(ctx, proxies)) },
			"Stats":     func() error { _, err := n.ops().Stats(ctx, proxies); return err },
			"Sweep":     func() error { _, err := n.ops().Sweep(ctx, proxies); return err },
			"Resource":  func() error { _, err := n.ops().Resource(ctx, proxies, "a"); return err },
			"Binding":   func() error { _, err := n.Binding(ctx, "me"); return err },
			"Bind":      func() error { return n.Bind(ctx, "me", "a", nil) },
			"Rest":      func() error { return n.Rest(ctx, "a", time.Second, "") },
			"Add":       func() error { return change(n.Add(ctx, []string{"b"}, nil)) },
			"Remove":    func() error { return change(n.Remove(ctx, []string{"a"})) },
			"Replace":   func() error { return change(n.Replace(ctx, []string{"b"}, nil)) },
			"Clear":     func() error { return change(n.Clear(ctx)) },
			"Allocate":  func() error { _, err := n.Allocate(ctx, nil); return err },
		} {
			before := w.Dump()
			require.ErrorIs(t, list(), berth.ErrIncompatible, name)
			require.Equal(t, before, w.Dump(), name)
		}
	})
}

// last is the error with which a listing ends; it has nothing else.
func last[T any](seq func(func(T, error) bool)) (err error) {
	for _, e := range seq {
		if err != nil || e == nil {
			return nil
		}
		err = e
	}
	return err
}
