package allocator_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/pkg/allocator"
)

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

func TestASweepDropsAllThatHasExpired(t *testing.T) {
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
		require.Equal(t, counts{Resources: 120, Free: 120, Expired: 20}, w.stats())
		for _, want := range []int{20, 0} {
			count, err := n.ops().Sweep(ctx, proxies)
			require.NoError(t, err)
			require.Equal(t, want, count)
		}
		w.requireIdle()
	})
}

// named is a pool of another name, of so many resources, of which so many are leased.
func (n *proc) named(name string, resources, leased int) {
	n.w.T.Helper()
	p := allocator.New(n.node, name, allocator.PoolConfig[string]{})
	require.NoError(n.w.T, change(p.Add(context.Background(), many("x", resources), nil)))
	for range leased {
		_, err := p.TryAllocate(context.Background(), nil)
		require.NoError(n.w.T, err)
	}
}

func TestAPoolOfAnotherReleaseIsRefusedByEachCall(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		w.add("a")
		n := w.node()
		require.NoError(t, n.Bind(ctx, "me", "a", nil))
		w.SetCount("fmt", 3)
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
