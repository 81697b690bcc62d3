package allocator_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/pkg/allocator"
)

// What ends by the clock is dropped by at most 100 in one script, and by a call in as many scripts as that takes.
func TestASweepDropsAllThatHasExpired(t *testing.T) {
	waits := func(r *engine.Record) { r.Wait = time.Hour }
	type row struct {
		dies  func(w *world)
		all   int
		left  counts // after one script
		after counts // and after all
	}
	inEach(t, map[string]row{
		"leases": {func(w *world) {
			w.add(many("x", 120)...)
			for i := range 120 {
				w.acquireScript("dead", fmt.Sprint("dead.", i))
			}
		}, 120, counts{Resources: 120, Free: 120, Expired: 20}, counts{Resources: 120, Free: 120}},
		"resources": {func(w *world) {
			require.NoError(w.T, change(w.pool.Add(w.T.Context(), many("x", 180), &allocator.AddOptions{Expiry: lease})))
		}, 180, counts{Expired: 80}, counts{}},
		"those who died in the middle of the line": {func(w *world) {
			w.acquireScript("x", "x.1", waits)
			for i := range 250 {
				w.acquireScript("dead", fmt.Sprint("dead.", i))
			}
			w.acquireScript("y", "y.1", waits)
		}, 250, counts{Waiting: 165}, counts{Waiting: 2}},
	}, func(t *testing.T, w *world, c row) {
		n := w.node()
		c.dies(w)
		w.Advance(lease)
		swept := w.Call("pool_sweep", "60000", "berth:wake:", proxies, "looks-on", "0")
		require.Equal(t, c.left, w.stats())
		first := int(swept.Int(4))
		require.Positive(t, first)
		require.LessOrEqual(t, first, 100)
		n.Fresh()
		for _, want := range []int{c.all - first, 0} {
			require.Equal(t, want, must(n.ops().Sweep(t.Context(), proxies))(t))
		}
		require.Equal(t, c.after, w.stats())
		w.inspect()
	})
}

// named is a pool of another name, of so many resources, of which so many are leased.
func (n *proc) named(name string, resources, leased int) {
	n.w.T.Helper()
	p := allocator.New(n.node, name, allocator.Config[string]{})
	require.NoError(n.w.T, change(p.Add(ctx, many("x", resources), nil)))
	for range leased {
		must(p.TryAllocate(ctx, nil))(n.w.T)
	}
}

func TestAPoolOfAnotherReleaseIsRefusedByEachCall(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node("a")
		require.NoError(t, n.Bind(ctx, "me", "a", nil))
		w.SetCount("fmt", 4)
		for name, list := range map[string]func() error{
			"Resources": func() error { return last(n.ops().Resources(ctx, proxies)) },
			"Bindings":  func() error { return last(n.ops().Bindings(ctx, proxies)) },
			"Sweep":     func() error { _, err := n.ops().Sweep(ctx, proxies); return err },
			"Resource":  func() error { _, err := n.ops().Resource(ctx, proxies, "a"); return err },
			"Binding":   func() error { _, err := n.Binding(ctx, "me"); return err },
			"Bind":      func() error { return n.Bind(ctx, "me", "a", nil) },
			"Rest":      func() error { return n.Rest(ctx, "a", time.Second, "", nil) },
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

// Somebody has stored counts, places or lanes that do not fit what else is stored. Nobody goes round in circles.
func TestASweepAndATryEndWhateverIsStored(t *testing.T) {
	const many = 1_000_000_000_000
	inEach(t, map[string]func(w *world){
		"too many wait":             func(w *world) { w.SetCount("waiting", many) },
		"too few wait":              func(w *world) { w.SetCount("waiting", 0) },
		"a search from nowhere":     func(w *world) { w.SetCount("waiting", many); w.SetCount("look", many-1) },
		"a damaged one is not free": func(w *world) { w.damage("r1"); w.Do("ZREM", freeKey, "r1") },
		"a damaged one for ever":    func(w *world) { w.damage("r1"); w.Do("ZADD", freeKey, "inf", "r1", "-inf", "") },
		"a lane of nobody":          func(w *world) { w.Do("HSET", stateKey, "l:r1", "600", "l:r3", "601") },
		"a moment of nobody":        func(w *world) { w.Do("ZADD", lineKey, "4538783999459328", "w:r1") },
	}, func(t *testing.T, w *world, harm func(w *world)) {
		ctx := t.Context()
		n := w.node("r1", "r2")
		require.NoError(t, n.Bind(ctx, "two", "r2", nil))
		held := n.takes("r2", &allocator.AllocateOptions{Bind: "two"})
		go func() { _, _ = n.Allocate(ctx, &allocator.AllocateOptions{Bind: "two", BindWait: berth.Forever}) }()
		w.Advance(time.Second)
		harm(w)
		before := n.Count("pool_sweep") + n.Count("pool_acquire")
		must(n.ops().Sweep(ctx, proxies))(t)
		_, _ = n.TryAllocate(ctx, nil)
		require.NoError(t, held.Release(ctx))
		_, _ = n.TryAllocate(ctx, &allocator.AllocateOptions{Resource: "r1"})
		w.Advance(time.Second)
		require.Less(t, n.Count("pool_sweep")+n.Count("pool_acquire")-before, 30)
	})
}
