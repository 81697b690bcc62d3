package allocator_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/pkg/allocator"
)

// cooling is what a claim of another process wants whose pool has a cooldown.
func cooling(d time.Duration) func(*engine.Record) {
	return func(r *engine.Record) { r.Extra = "o " + millis(d.Milliseconds()) + " 3600000 0 0:" }
}

// Each of these has the resource a come free at a moment at which nobody calls. What
// comes before the wait is in before, what comes at half a second in then.
func TestTheFirstInLineWakesWhenSomethingComesFreeByTheClock(t *testing.T) {
	ctx := context.Background()
	hold := func(opts allocator.AllocateOptions, cooldown time.Duration) func(w *world) (*proc, *allocator.Allocation[string]) {
		return func(w *world) (*proc, *allocator.Allocation[string]) {
			other := w.nodeOf(allocator.PoolConfig[string]{Cooldown: cooldown})
			return other, other.takes("a", &opts)
		}
	}
	release := func(w *world, _ *proc, held *allocator.Allocation[string]) { w.release(held) }
	for name, c := range map[string]struct {
		before func(w *world) (*proc, *allocator.Allocation[string])
		then   func(w *world, other *proc, held *allocator.Allocation[string])
		at     time.Duration
	}{
		"a long cooldown after another node's release": {hold(allocator.AllocateOptions{}, 40*time.Second), release, 40500 * ms},
		"a cooldown after a forced release": {
			hold(allocator.AllocateOptions{}, 300*ms),
			func(w *world, _ *proc, held *allocator.Allocation[string]) {
				require.NoError(w.T, w.force(held.ID()))
			}, 800 * ms,
		},
		"a rest that the holder asked for": {
			hold(allocator.AllocateOptions{}, 300*ms),
			func(w *world, _ *proc, held *allocator.Allocation[string]) {
				_ = held.Rest(time.Second, "429")
				w.release(held)
			}, 1500 * ms,
		},
		"a rest that an operator asked for while it was held": {
			hold(allocator.AllocateOptions{}, 0),
			func(w *world, _ *proc, held *allocator.Allocation[string]) {
				require.NoError(w.T, w.pool.Rest(ctx, "a", 2*time.Second, "", nil))
				w.release(held)
			}, 2500 * ms,
		},
		"a lease that does not renew":      {hold(allocator.AllocateOptions{NoRenew: true, Lease: 700 * ms}, 0), nil, 700 * ms},
		"that, and a cooldown":             {hold(allocator.AllocateOptions{NoRenew: true, Lease: 700 * ms}, 250*ms), nil, 950 * ms},
		"a maximum hold":                   {hold(allocator.AllocateOptions{MaxHold: 800 * ms}, 0), nil, 800 * ms},
		"a holder that died":               {hold(allocator.AllocateOptions{}, 0), die, lease},
		"that, and a long cooldown":        {hold(allocator.AllocateOptions{}, time.Minute), die, lease + time.Minute},
		"a lease longer than the wait's":   {hold(allocator.AllocateOptions{NoRenew: true, Lease: 20 * time.Second}, 0), die, 20 * time.Second},
		"a rest that began before":         {resting(3 * time.Second), nil, 3 * time.Second},
		"a rest that is shortened":         {resting(time.Hour), rest(700 * ms), 1200 * ms},
		"a rest that is lengthened":        {resting(time.Second), rest(5 * time.Second), 5500 * ms},
		"a rest without end that gets one": {resting(berth.Forever), rest(700 * ms), 1200 * ms},
		"a rest after a swap": {func(w *world) (*proc, *allocator.Allocation[string]) {
			other, held := hold(allocator.AllocateOptions{}, 900*ms)(w)
			w.add("b")
			require.NoError(w.T, held.Swap(ctx))
			return other, held
		}, nil, 900 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.add("a")
				n := w.node()
				other, held := c.before(w)
				q := n.queue(nil)
				w.Until(500 * ms)
				if c.then != nil {
					c.then(w, other, held)
				}
				require.True(t, q.Pending())
				q.getsIn(c.at, "a")
				w.inspect()
			})
		})
	}
}

func die(_ *world, other *proc, _ *allocator.Allocation[string]) { other.Die() }

func resting(d time.Duration) func(w *world) (*proc, *allocator.Allocation[string]) {
	return func(w *world) (*proc, *allocator.Allocation[string]) {
		require.NoError(w.T, w.pool.Rest(context.Background(), "a", d, "", nil))
		return nil, nil
	}
}

func rest(d time.Duration) func(w *world, other *proc, held *allocator.Allocation[string]) {
	return func(w *world, _ *proc, _ *allocator.Allocation[string]) {
		require.NoError(w.T, w.pool.Rest(context.Background(), "a", d, "", exactly))
	}
}

// Whoever becomes the first in line learns of the next end.
func TestRestsThatEndOneAfterTheOtherWakeTheLineOneAfterTheOther(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b", "c", "d")
		for _, c := range []struct {
			resource string
			ends     time.Duration
		}{{"a", 1300 * ms}, {"b", time.Second}, {"c", 1700 * ms}, {"d", 20 * time.Second}} {
			require.NoError(t, w.pool.Rest(t.Context(), c.resource, c.ends, "", nil))
		}
		nodes := []*proc{w.node(), w.node(), w.node()}
		var line []*wait
		for i := range 4 {
			line = append(line, nodes[i%3].queue(nil))
		}
		line[0].getsIn(time.Second, "b")
		line[1].getsIn(1300*ms, "a")
		line[2].getsIn(1700*ms, "c")
		line[3].getsIn(20*time.Second, "d")
		w.inspect()
	})
}

// A script that finds an expired lease begins the rest after it, and tells the first
// in line of its end. That one has no process of its own here: what it is told is
// heard on its channel.
func TestWhoeverBeginsARestTellsTheFirstInLineOfItsEnd(t *testing.T) {
	ctx := context.Background()
	for script, call := range map[string]func(n *proc, held *allocator.Allocation[string]) error{
		"pool_acquire": func(n *proc, _ *allocator.Allocation[string]) error {
			_, err := n.TryAllocate(ctx, nil)
			require.ErrorIs(n.w.T, err, berth.ErrBusy)
			return nil
		},
		"pool_renew": func(_ *proc, held *allocator.Allocation[string]) error { return held.Renew(ctx) },
		"pool_swap": func(n *proc, held *allocator.Allocation[string]) error {
			require.ErrorIs(n.w.T, held.Swap(ctx), berth.ErrBusy)
			return nil
		},
		"pool_sweep": func(n *proc, _ *allocator.Allocation[string]) error {
			_, err := n.ops().Sweep(ctx, proxies)
			return err
		},
		"pool_add": func(n *proc, _ *allocator.Allocation[string]) error {
			_, err := n.Add(ctx, []string{"kept"}, nil)
			return err
		},
		"pool_rest": func(n *proc, _ *allocator.Allocation[string]) error {
			return n.Rest(ctx, "kept", time.Second, "", nil)
		},
	} {
		t.Run(script, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.add("kept", "a")
				n := w.node()
				held := n.takes("kept", &allocator.AllocateOptions{NoRenew: true, Lease: time.Hour})
				w.acquireScript("dead", "dead.1", cooling(300*ms))
				w.acquireScript("x", "x.1", func(r *engine.Record) { r.Wait = time.Minute })
				heard := w.listen("x")
				w.Until(lease)
				require.Empty(t, heard())
				n.Fresh()
				require.NoError(t, call(n, held))
				require.Equal(t, only(script), n.Scripts())
				require.Equal(t, allocator.Resting, w.status("a").State)
				require.Equal(t, []string{"4:next7:proxies3:300"}, heard())
			})
		})
	}
}
