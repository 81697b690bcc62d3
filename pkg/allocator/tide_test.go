package allocator_test

import (
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
	hold := func(opts allocator.AllocateOptions, cooldown time.Duration) func(w *world) (*proc, *allocator.Allocation[string]) {
		return func(w *world) (*proc, *allocator.Allocation[string]) {
			other := w.nodeOf(allocator.PoolConfig[string]{Cooldown: cooldown})
			return other, other.takes("a", &opts)
		}
	}
	release := func(w *world, _ *proc, held *allocator.Allocation[string]) { w.release(held) }
	type row struct {
		before func(w *world) (*proc, *allocator.Allocation[string])
		then   func(w *world, other *proc, held *allocator.Allocation[string])
		at     time.Duration
	}
	inEach(t, map[string]row{
		"a long cooldown after another node's release": {hold(allocator.AllocateOptions{}, 40*time.Second), release, 40500 * ms},
		"a lease that does not renew":                  {hold(allocator.AllocateOptions{NoRenew: true, Lease: 700 * ms}, 0), nil, 700 * ms},
		"a holder that died":                           {hold(allocator.AllocateOptions{}, 0), die, lease},
		"a lease longer than the wait's":               {hold(allocator.AllocateOptions{NoRenew: true, Lease: 20 * time.Second}, 0), die, 20 * time.Second},
		"a rest that is shortened":                     {resting(time.Hour), rest(700 * ms), 1200 * ms},
		"a rest that is lengthened":                    {resting(time.Second), rest(5 * time.Second), 5500 * ms},
		"a rest after a swap": {func(w *world) (*proc, *allocator.Allocation[string]) {
			other, held := hold(allocator.AllocateOptions{}, 900*ms)(w)
			w.add("b")
			require.NoError(w.T, held.Swap(ctx))
			return other, held
		}, nil, 900 * ms},
	}, func(t *testing.T, w *world, c row) {
		n := w.node("a")
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
}

func die(_ *world, other *proc, _ *allocator.Allocation[string]) { other.Die() }

func resting(d time.Duration) func(w *world) (*proc, *allocator.Allocation[string]) {
	return func(w *world) (*proc, *allocator.Allocation[string]) {
		require.NoError(w.T, w.pool.Rest(ctx, "a", d, "", nil))
		return nil, nil
	}
}

func rest(d time.Duration) func(w *world, other *proc, held *allocator.Allocation[string]) {
	return func(w *world, _ *proc, _ *allocator.Allocation[string]) {
		require.NoError(w.T, w.pool.Rest(ctx, "a", d, "", exactly))
	}
}

// Whoever becomes the first in line learns of the next end.
func TestRestsThatEndOneAfterTheOtherWakeTheLineOneAfterTheOther(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b", "c", "d")
		rests := map[string]time.Duration{"a": 1300 * ms, "b": time.Second, "c": 1700 * ms, "d": 20 * time.Second}
		for key, ends := range rests {
			require.NoError(t, w.pool.Rest(t.Context(), key, ends, "", nil))
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

// The first in line leaves by its release, which sweeps nothing, or is granted something else: the next one hears of the
// rest of which only the first was told, also where it has ended.
func TestTheNextInLineHearsOfADeadlineWhenTheFirstGoes(t *testing.T) {
	leaves := func(w *world) { w.releaseScript("x", "x.1") }
	type row struct {
		at   time.Duration
		goes func(w *world)
		want string
	}
	inEach(t, map[string]row{
		"that is to come":      {100 * ms, leaves, "4:next7:proxies3:300"},
		"that is now":          {400 * ms, leaves, "4:next7:proxies1:0"},
		"that has passed":      {801 * ms, leaves, "4:next7:proxies1:0"},
		"the first is granted": {100 * ms, func(w *world) { w.add("b") }, "4:next7:proxies3:300"},
	}, func(t *testing.T, w *world, c row) {
		w.add("a")
		long := func(r *engine.Record) { r.Wait = time.Minute }
		require.NoError(t, w.pool.Rest(t.Context(), "a", 400*ms, "", nil))
		w.acquireScript("x", "x.1", long)
		w.acquireScript("y", "y.1", long)
		heard := w.listen("y")
		w.Until(c.at)
		c.goes(w)
		require.Equal(t, []string{c.want}, heard())
	})
}

// A lease has run out, and nobody has swept it: whatever script comes by gives what it held to the first in line, or,
// where that has a cooldown, tells its node when that ends. That one has no process of its own here, which would sweep.
func TestWhatHasExpiredIsHandedOnByWhateverScriptComesBy(t *testing.T) {
	type hold = *allocator.Allocation[string]
	for script, call := range map[string]func(n *proc, held hold) error{
		"pool_acquire":       func(n *proc, _ hold) error { return second(n.TryAllocate(ctx, nil)) },
		"pool_renew":         func(_ *proc, held hold) error { return held.Renew(ctx) },
		"pool_swap":          func(_ *proc, held hold) error { return held.Swap(ctx) },
		"pool_sweep":         func(n *proc, _ hold) error { return second(n.ops().Sweep(ctx, proxies)) },
		"pool_add":           func(n *proc, _ hold) error { return change(n.Add(ctx, []string{"kept"}, nil)) },
		"pool_rest":          func(n *proc, _ hold) error { return n.Rest(ctx, "kept", time.Second, "", nil) },
		"pool_force_release": func(n *proc, held hold) error { return n.force(held.ID()) },
	} {
		inEach(t, map[string]time.Duration{
			script: 0, script + " begins a rest": 300 * ms,
		}, func(t *testing.T, w *world, cooldown time.Duration) {
			n := w.node("kept", "a")
			held := n.takes("kept", &allocator.AllocateOptions{NoRenew: true, Lease: time.Hour})
			w.acquireScript("dead", "dead.1", cooling(cooldown))
			w.acquireScript("x", "x.1", func(r *engine.Record) { r.Wait = time.Hour })
			heard := w.listen("x")
			w.Until(lease)
			require.Equal(t, byte('w'), w.PhaseOf("x.1"))
			require.Empty(t, heard())
			n.Fresh()
			if err := call(n, held); script == "pool_acquire" || script == "pool_swap" {
				require.ErrorIs(t, err, berth.ErrBusy, "it does not pass the line")
			} else {
				require.NoError(t, err)
			}
			require.Equal(t, only(script), n.Scripts())
			switch {
			case script == "pool_force_release": // which frees another one
				require.Equal(t, byte('g'), w.PhaseOf("x.1"))
			case cooldown == 0:
				require.Equal(t, "x.1", w.holder("a"))
			default:
				require.Equal(t, allocator.Resting, w.status("a").State)
				require.Equal(t, []string{"4:next7:proxies3:300"}, heard())
			}
			w.inspect()
		})
	}
}
