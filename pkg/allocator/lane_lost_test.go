package allocator_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/allocator"
)

// remove removes resources, or fails.
func (w *world) remove(resources ...string) {
	w.T.Helper()
	require.NoError(w.T, change(w.pool.Remove(context.Background(), resources)))
}

// parked is how many claims wait for one resource each, as the pool counts them.
func (w *world) parked() int {
	w.T.Helper()
	fields, err := w.Do("HMGET", stateKey, "v", "pool").AsStrSlice()
	require.NoError(w.T, err)
	v, _, _ := state.ParseValues(fields[0])
	parsed, err := state.ParseCounts(fields[1], v.Used)
	require.NoError(w.T, err)
	return int(parsed.Parked)
}

// One Redis key of a pool is deleted by hand, or evicted.
func TestLanesStandAgainWhenOneKeyIsDeleted(t *testing.T) {
	inEach(t, map[string]string{
		"line": lineKey, "state": stateKey, "items": itemsKey, "free": freeKey, "bindings": bindingsKey,
	}, func(t *testing.T, w *world, key string) {
		w.add("a", "b", "c")
		w.bind("anna", "b", 0)
		holder, n, m := w.node(), w.node(), w.node()
		for range 3 {
			holder.take(nil)
		}
		first := n.queue(names("a"))
		second, third := m.queue(names("a")), n.queue(names("a"))
		bound, takesAny := m.queue(sticks("anna", berth.Forever)), n.queue(nil)
		w.Advance(time.Second)
		w.Do("DEL", key)
		w.Advance(100 * ms)
		w.add("a", "b", "c")
		holder.Shut()
		order := []*wait{first, second, third, bound, takesAny}
		var ended []*wait
		for range 60 {
			w.Advance(lease / 6)
			if key == lineKey { // the nodes put back one after the other: nobody is counted who does not stand there
				found := w.inspection().Problems // but the end of a binding is in the line again once its claim gets something
				require.Subset(t, []string{`the end of the binding "anna" is not in the line`}, found)
			}
			for _, q := range order {
				if q.Pending() || q.Err != nil || q.Got.Err() != nil {
					continue
				}
				switch {
				case q == bound && key != bindingsKey:
					require.Equal(t, "b", q.Got.Resource())
				case q == first || q == second || q == third:
					require.Equal(t, "a", q.Got.Resource())
				}
				ended = append(ended, q)
				w.release(q.Got)
			}
		}
		for i, q := range order {
			require.False(t, q.Pending(), "%d", i)
			require.NoError(t, q.Err, "%d", i)
		}
		// Of one node; the other one may have put its claims back before.
		require.Less(t, slices.Index(ended, first), slices.Index(ended, third))
		_, err := w.ops().Sweep(t.Context(), proxies)
		require.NoError(t, err)
		require.Zero(t, w.Field("waiting"))
		require.Zero(t, w.parked())
		if key != itemsKey { // the counts of resources stay wrong then
			w.requireIdle()
		}
	})
}

// A failover to a replica that had fallen behind.
func TestLanesAfterAFailoverToAnOlderState(t *testing.T) {
	inEach(t, map[string]func(w *world, held *allocator.Allocation[string]){
		"the lane is older than a grant": func(w *world, held *allocator.Allocation[string]) { w.release(held) },
		"the lane is older than a claim": func(*world, *allocator.Allocation[string]) {},
		"the lane is older than its end": func(w *world, _ *allocator.Allocation[string]) { w.remove("a") },
		"the lane is older than its rest": func(w *world, held *allocator.Allocation[string]) {
			require.NoError(w.T, held.Rest(time.Second, ""))
			w.release(held)
		},
	}, func(t *testing.T, w *world, happens func(w *world, held *allocator.Allocation[string])) {
		w.add("a", "b")
		w.bind("anna", "a", 0)
		holder, n, m := w.node(), w.node(), w.node()
		a := holder.takes("a", nil)
		b := holder.takes("b", nil)
		first, bound := n.queue(names("a")), m.queue(sticks("anna", berth.Forever))
		w.Advance(ms)
		back := w.Snapshot()
		asked := []*wait{first, bound, m.queue(names("a")), n.queue(names("b"))}
		w.Advance(ms)
		happens(w, a)
		w.Advance(10 * ms)
		back()
		live := func() (live []*allocator.Allocation[string]) {
			for _, q := range asked {
				if !q.Pending() && q.Err == nil {
					live = append(live, q.Got)
				}
			}
			return slices.DeleteFunc(append(live, a, b), func(a *allocator.Allocation[string]) bool { return a.Err() != nil })
		}
		for range 40 {
			w.Advance(lease / 3)
			holds := live()
			held := map[string]bool{}
			for _, hold := range holds {
				require.False(t, held[hold.Resource()], hold.Resource())
				held[hold.Resource()] = true
			}
			for _, hold := range holds {
				_ = hold.Release(t.Context())
			}
		}
		for i, q := range asked {
			require.False(t, q.Pending(), "%d", i)
		}
		w.Advance(2 * lease)
		require.NoError(t, second(w.ops().Sweep(t.Context(), proxies)))
		stats := w.inspect()
		require.Zero(t, stats.Waiting)
		require.Zero(t, stats.Leased)
	})
}

// What was still on its way for an absent resource, and was refused meanwhile, comes when that has been added.
func TestARefusedClaimLeavesNoGhost(t *testing.T) {
	inEach(t, map[string]func(w *world, n *proc) *wait{
		"its acquire": func(w *world, n *proc) *wait {
			w.add("b")
			n.connect()
			n.Once("pool_acquire", link.Late)
			return n.queue(names("a"))
		},
		"its restore": func(w *world, n *proc) *wait {
			w.add("a", "b")
			w.node().takes("a", nil)
			q := n.queue(names("a"))
			n.Once("pool_restore", link.Late)
			w.Do("FLUSHALL")
			w.add("b")
			return q
		},
	}, func(t *testing.T, w *world, asks func(w *world, n *proc) *wait) {
		n := w.node()
		q := asks(w, n)
		w.Advance(2 * lease)
		require.ErrorIs(t, q.Err, berth.ErrAbsent)
		w.add("a")
		late, err := n.DeliverLate()
		require.NoError(t, err)
		require.Equal(t, 1, late)
		w.Advance(ms)
		require.Equal(t, allocator.Free, w.status("a").State)
		require.Zero(t, w.inspect().Waiting)
		w.release(w.node().takes("a", names("a")))
		w.Advance(5 * time.Minute)
		require.NoError(t, second(w.ops().Sweep(t.Context(), proxies)))
		require.Zero(t, w.Field("gone"))
		w.inspect()
	})
}
