package allocator_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/allocator"
)

// remove removes resources, or fails.
func (w *world) remove(resources ...string) {
	w.T.Helper()
	_, err := w.pool.Remove(context.Background(), resources)
	require.NoError(w.T, err)
}

// parked is how many claims wait for one resource each, as the pool counts them.
func (w *world) parked() int {
	w.T.Helper()
	counts, err := w.Do("HGET", stateKey, "pool").ToString()
	if rueidis.IsRedisNil(err) {
		return 0
	}
	require.NoError(w.T, err)
	n, err := strconv.Atoi(strings.Fields(counts)[6])
	require.NoError(w.T, err)
	return n
}

// One Redis key of a pool is deleted by hand, or evicted.
func TestLanesStandAgainWhenOneKeyIsDeleted(t *testing.T) {
	for part, key := range map[string]string{
		"line": lineKey, "state": stateKey, "items": itemsKey, "free": freeKey, "bindings": bindingsKey,
	} {
		t.Run(part, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
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
				_, err := w.pool.Add(t.Context(), []string{"a", "b", "c"}, nil)
				require.NoError(t, err)
				holder.Shut()
				order := []*wait{first, second, third, bound, takesAny}
				var ended []*wait
				for range 60 {
					w.Advance(lease / 6)
					for _, q := range order {
						if q.Pending() || q.Err != nil || q.Got.Err() != nil {
							continue
						}
						switch {
						case q == bound && part != "bindings":
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
				_, err = w.ops().Sweep(t.Context(), proxies)
				require.NoError(t, err)
				require.Zero(t, w.Field("waiting"))
				require.Zero(t, w.parked())
				if part != "items" { // the counts of resources stay wrong then
					w.requireIdle()
				}
			})
		})
	}
}

// The nodes put their claims back one after the other: nobody is counted who does not stand there.
func TestALaneIsCountedAgainWhenTheLineIsDeleted(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b")
		holder, n, m := w.node(), w.node(), w.node()
		holder.takes("a", nil)
		holder.takes("b", nil)
		for range 3 {
			n.queue(names("a"))
			m.queue(names("b"))
		}
		n.queue(nil)
		w.Do("DEL", lineKey)
		w.Advance(lease/3 + 100*ms)
		// The holds are gone with the line, so two of them hold now.
		for range 2 {
			require.Equal(t, []int64{2, 5}, []int64{w.Field("used"), w.Field("waiting")})
			require.Equal(t, 4, w.parked())
			require.Equal(t, 5, w.inspect().Waiting)
			w.Advance(lease)
		}
		w.inspect()
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
		later, last := m.queue(names("a")), n.queue(names("b"))
		w.Advance(ms)
		happens(w, a)
		w.Advance(10 * ms)
		back()
		for range 40 {
			w.Advance(lease / 3)
			held := map[string]int{}
			for _, q := range []*wait{first, bound, later, last} {
				if !q.Pending() && q.Err == nil && q.Got.Err() == nil {
					held[q.Got.Resource()]++
				}
			}
			for _, hold := range []*allocator.Allocation[string]{a, b} {
				if hold.Err() == nil {
					held[hold.Resource()]++
				}
			}
			for r, n := range held {
				require.Equal(t, 1, n, r)
			}
			for _, q := range []*wait{first, bound, later, last} {
				if !q.Pending() && q.Err == nil && q.Got.Err() == nil {
					_ = q.Got.Release(t.Context())
					break
				}
			}
			if b.Err() == nil {
				w.release(b)
			}
			if a.Err() == nil {
				_ = a.Release(t.Context())
			}
		}
		for i, q := range []*wait{first, bound, later, last} {
			require.False(t, q.Pending(), "%d", i)
		}
		w.Advance(2 * lease)
		_, err := w.ops().Sweep(t.Context(), proxies)
		require.NoError(t, err)
		stats := w.inspect()
		require.Zero(t, stats.Waiting)
		require.Zero(t, stats.Leased)
	})
}

// The acquire of a claim for an absent resource is still on its way when that is added.
func TestARefusedClaimLeavesNoGhost(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("b")
		n := w.node()
		n.connect()
		n.Once("pool_acquire", link.Late)
		q := n.queue(names("a"))
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
		_, err = w.ops().Sweep(t.Context(), proxies)
		require.NoError(t, err)
		require.Zero(t, w.Field("gone"))
		w.inspect()
	})
}

// So is a restore that an absent resource ended.
func TestARestoreThatComesLateLeavesNoGhost(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b")
		holder, n := w.node(), w.node()
		holder.takes("a", nil)
		q := n.queue(names("a"))
		n.Once("pool_restore", link.Late)
		w.Do("FLUSHALL")
		w.add("b")
		w.Advance(2 * lease)
		require.ErrorIs(t, q.Err, berth.ErrAbsent)
		w.add("a")
		late, err := n.DeliverLate()
		require.NoError(t, err)
		require.Equal(t, 1, late)
		w.Advance(ms)
		require.Equal(t, allocator.Free, w.status("a").State)
		require.Zero(t, w.inspect().Waiting)
	})
}
