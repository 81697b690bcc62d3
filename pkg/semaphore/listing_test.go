package semaphore_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/semaphore"
)

func TestAHolderIsListedWithAllThatItAskedFor(t *testing.T) {
	for _, capacity := range capacities {
		t.Run(fmt.Sprint(capacity), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				ctx := context.Background()
				n := w.node(semaphore.Config{Label: "worker 7"})
				w.Advance(time.Second)
				p, err := n.gpu(capacity).Acquire(berth.WithOwner(ctx, "order:7"), &semaphore.AcquireOptions{
					Weight: capacity, Lease: 5 * time.Second, NoRenew: true, MaxHold: time.Minute, Meta: map[string]string{"job": "42"},
				})
				require.NoError(t, err)
				require.Equal(t, capacity == 1, w.Thin())
				granted := time.UnixMilli(time.Now().UnixMilli())
				w.Advance(1500 * ms)
				want := berth.Holder{
					ID: p.ID(), Node: n.Node(), Label: "worker 7", Owner: "order:7", Weight: capacity, Fence: p.Fence(),
					Lease: 5 * time.Second, Left: 3500 * ms, NoRenew: true, MaxHold: time.Minute, Granted: granted,
					Held: 1500 * ms, Meta: map[string]string{"job": "42"},
				}
				require.Equal(t, []berth.Holder{want}, testkit.Collect(t, n.Operator().Holders(ctx, gpu)))

				_, err = p.Detach(ctx)
				require.NoError(t, err)
				want.Detached = true
				require.Equal(t, []berth.Holder{want}, testkit.Collect(t, n.Operator().Holders(ctx, gpu)))
				w.Advance(3500 * ms)
				require.Empty(t, testkit.Collect(t, n.Operator().Holders(ctx, gpu)), "what has expired is not held, swept or not")
			})
		})
	}
}

func TestAHolderWithoutEndIsListedAsSuch(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.take(1, &semaphore.AcquireOptions{Lease: berth.Forever})
		h := testkit.Collect(t, n.Operator().Holders(context.Background(), gpu))
		require.Len(t, h, 1)
		require.Equal(t, berth.Forever, h[0].Lease)
		require.Equal(t, berth.Forever, h[0].Left)
	})
}

func TestWaitersAreListedInTheOrderOfTheLine(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		a, b := w.node(semaphore.Config{Label: "a"}), w.node(semaphore.Config{Label: "b"})
		a.take(1, nil)
		queue := func(n *node, owner string, priority int) {
			n.queueOn(berth.WithOwner(ctx, owner), n.gpu(1), &semaphore.AcquireOptions{Priority: priority})
			w.Advance(10 * ms)
		}
		queue(a, "third", 0)
		queue(b, "fourth", 0)
		queue(a, "first", 9)
		queue(b, "last", -128)
		queue(b, "second", 1)
		var order []string
		for i, waiter := range testkit.Collect(t, a.Operator().Waiters(ctx, gpu)) {
			require.Equal(t, i, waiter.Ahead)
			order = append(order, waiter.Owner)
		}
		require.Equal(t, []string{"first", "second", "third", "fourth", "last"}, order)
	})
}

func TestAWaiterIsListedWithAllThatItAskedFor(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		n := w.node(semaphore.Config{Label: "worker 7"})
		n.take(3, &semaphore.AcquireOptions{Weight: 2})
		w.Advance(time.Second)
		since := time.UnixMilli(time.Now().UnixMilli())
		n.queueOn(berth.WithOwner(ctx, "order:7"), n.gpu(3), &semaphore.AcquireOptions{
			Weight: 2, Priority: 4, Meta: map[string]string{"job": "42"},
		})
		w.Advance(1500 * ms)
		waiters := testkit.Collect(t, n.Operator().Waiters(ctx, gpu))
		require.Len(t, waiters, 1)
		// The hold's heartbeat, at 2 s, takes it along if it is due soon: it is
		// not, so nothing was heard of it since it came.
		require.Contains(t, waiters[0].ID, n.Node()+".")
		waiters[0].ID = ""
		require.Equal(t, berth.Waiter{
			Node: n.Node(), Label: "worker 7", Owner: "order:7", Weight: 2, Priority: 4, Ahead: 0, Since: since,
			Waited: 1500 * ms, Alive: lease - 1500*ms, Meta: map[string]string{"job": "42"},
		}, waiters[0])
	})
}

func TestADeadWaiterIsNotListed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		w.acquireScript("h", "h.1", 1, semaphore.CapacityStored, func(r *engine.Record) { r.Lease, r.Wait = time.Hour, time.Hour })
		w.acquireScript("dead", "dead.1", 1, semaphore.CapacityStored)
		w.acquireScript("alive", "alive.1", 1, semaphore.CapacityStored, func(r *engine.Record) { r.Wait = time.Hour })
		owners := func() (ids []string) {
			for _, waiter := range testkit.Collect(t, n.Operator().Waiters(context.Background(), gpu)) {
				require.Equal(t, len(ids), waiter.Ahead)
				ids = append(ids, waiter.ID)
			}
			return ids
		}
		w.Until(lease - ms)
		require.Equal(t, []string{"dead.1", "alive.1"}, owners())
		w.Until(lease)
		require.Equal(t, []string{"alive.1"}, owners())
	})
}

// A page is 1000 entries.
func TestListingsOfSeveralPagesHaveAllOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		n := w.node()
		const many = 1005
		for i := range many {
			w.acquireScript("h", fmt.Sprintf("h.%d", i), many, semaphore.CapacityStored)
		}
		for i := range many {
			w.acquireScript("w", fmt.Sprintf("w.%d", i), many, semaphore.CapacityStored)
		}
		s := n.gpu(many)
		held := make(map[string]bool)
		for _, h := range testkit.Collect(t, s.Operator().Holders(ctx, s.Name())) {
			require.False(t, held[h.ID], "%s is there twice", h.ID)
			held[h.ID] = true
		}
		require.Len(t, held, many)
		for i := range many {
			require.True(t, held[fmt.Sprintf("h.%d", i)])
		}
		n.Reset()
		waiters := testkit.Collect(t, s.Operator().Waiters(ctx, s.Name()))
		require.Len(t, waiters, many)
		for i, waiter := range waiters {
			require.Equal(t, fmt.Sprintf("w.%d", i), waiter.ID)
			require.Equal(t, i, waiter.Ahead)
		}
		require.Equal(t, 2, n.Count("MGET"))
		seen := 0
		for _, err := range s.Operator().Waiters(ctx, s.Name()) {
			require.NoError(t, err)
			if seen++; seen == 3 {
				break
			}
		}
		require.Equal(t, 3, n.Count("MGET"), "no page beyond what is asked for")
		for _, err := range s.Operator().Holders(ctx, s.Name()) {
			require.NoError(t, err)
			break
		}
	})
}

// A whole page of dead waiters at the head must not end the listing.
func TestWaitersBehindAPageOfDeadOnesAreListed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		w.acquireScript("h", "h.1", 1, semaphore.CapacityStored, func(r *engine.Record) { r.Lease, r.Wait = time.Hour, time.Hour })
		for i := range 110 {
			w.acquireScript("dead", fmt.Sprintf("dead.%d", i), 1, semaphore.CapacityStored)
		}
		w.acquireScript("alive", "alive.1", 1, semaphore.CapacityStored, func(r *engine.Record) { r.Wait = time.Hour })
		w.Advance(lease)
		waiters := testkit.Collect(t, n.Operator().Waiters(context.Background(), gpu))
		require.Len(t, waiters, 1)
		require.Equal(t, "alive.1", waiters[0].ID)
		require.Zero(t, waiters[0].Ahead)
	})
}

func TestAListingEndsWithTheServersError(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node(semaphore.Config{Retry: berth.Retry{Attempts: 1}})
		n.take(1, nil)
		n.Cut()
		count := 0
		for _, err := range n.Operator().Holders(context.Background(), gpu) {
			require.Error(t, err)
			count++
		}
		for _, err := range n.Operator().Waiters(context.Background(), gpu) {
			require.Error(t, err)
			count++
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		for _, err := range n.Operator().All(ctx) {
			require.Error(t, err)
			count++
		}
		require.Equal(t, 3, count)
	})
}

// named acquires on a semaphore of another name.
func (n *node) named(name string, capacity int, opts *semaphore.AcquireOptions) *semaphore.Permit {
	n.w.T.Helper()
	s, err := n.Semaphore(name, capacity, nil)
	require.NoError(n.w.T, err)
	p, err := s.Acquire(context.Background(), opts)
	require.NoError(n.w.T, err)
	return p
}

func TestStatsCountWhatIsHeldAndWhoWaits(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		n := w.node()
		s := n.gpu(5)
		stats, err := s.Operator().Stats(ctx, s.Name())
		require.NoError(t, err)
		require.Equal(t, semaphore.Stats{Name: gpu}, stats)
		require.Zero(t, stats.Available())
		require.Zero(t, stats.Share())
		require.Empty(t, w.Keys(), "and a question does not make it known")

		n.take(5, &semaphore.AcquireOptions{Weight: 3})
		n.take(5, nil)
		n.queue(5, &semaphore.AcquireOptions{Weight: 2})
		stats, err = s.Operator().Stats(ctx, s.Name())
		require.NoError(t, err)
		require.Equal(t, semaphore.Stats{Name: gpu, Capacity: 5, Held: 4, Holders: 2, Waiting: 1}, stats)
		require.Equal(t, 1, stats.Available())
		require.InDelta(t, 0.8, stats.Share(), 1e-9)

		require.NoError(t, s.Operator().Resize(ctx, s.Name(), 2, nil))
		stats, err = s.Operator().Stats(ctx, s.Name())
		require.NoError(t, err)
		require.Zero(t, stats.Available(), "not below zero")
		require.InDelta(t, 2, stats.Share(), 1e-9)
	})
}

func weighs(n int) func(*engine.Record) { return func(r *engine.Record) { r.Weight = n } }

// What has expired is counted as expired, however much it is, and nothing is written.
func TestStatsOnlyRead(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		const many = 120
		for i := range many {
			w.acquireScript("dead", fmt.Sprintf("dead.%d", i), many+1, semaphore.CapacityStored)
		}
		w.Advance(lease / 2)
		w.acquireScript("live", "live.1", many+1, semaphore.CapacityStored)
		w.acquireScript("dead", "dead.waits", many+1, semaphore.CapacityStored, weighs(2), func(r *engine.Record) { r.Wait = lease / 2 })
		stats := func() semaphore.Stats {
			t.Helper()
			before := w.Dump()
			stats, err := n.Operator().Stats(context.Background(), gpu)
			require.NoError(t, err)
			require.Equal(t, before, w.Dump(), "nothing is written")
			return stats
		}
		require.Equal(t, semaphore.Stats{Name: gpu, Capacity: many + 1, Held: many + 1, Holders: many + 1, Waiting: 1}, stats())
		w.Advance(lease / 2)
		require.Equal(t, semaphore.Stats{Name: gpu, Capacity: many + 1, Held: 1, Holders: 1, Waiting: 1, Expired: many}, stats(),
			"who died waiting is counted until somebody meets it")
		require.Zero(t, n.Count("semaphore_sweep"))
	})
}

func TestStatsWeighWhatHasExpired(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		for i := range 3 {
			w.acquireScript("dead", fmt.Sprintf("dead.%d", i), 20, semaphore.CapacityStored, weighs(2+i))
		}
		w.Advance(lease / 2)
		w.acquireScript("live", "live.1", 20, semaphore.CapacityStored, weighs(5))
		w.Advance(lease / 2)
		stats, err := n.Operator().Stats(context.Background(), gpu)
		require.NoError(t, err)
		require.Equal(t, semaphore.Stats{Name: gpu, Capacity: 20, Held: 5, Holders: 1, Expired: 3}, stats)
	})
}

func TestStatsOfAllNamesSkipIdleOnes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		n, other := w.node(), w.node(semaphore.Config{Namespace: "other"})
		n.named("held", 2, nil)
		require.NoError(t, n.named("idle", 2, nil).Release(ctx))
		require.NoError(t, n.named("idle too", 1, nil).Release(ctx))
		n.named("odd *", 1, nil)
		other.named("elsewhere", 1, nil)
		byName := func(stats []semaphore.Stats) map[string]semaphore.Stats {
			m := make(map[string]semaphore.Stats)
			for _, s := range stats {
				require.NotContains(t, m, s.Name)
				m[s.Name] = s
			}
			return m
		}
		require.Equal(t, map[string]semaphore.Stats{
			"held":  {Name: "held", Capacity: 2, Held: 1, Holders: 1},
			"odd *": {Name: "odd *", Capacity: 1, Held: 1, Holders: 1},
		}, byName(testkit.Collect(t, n.Operator().All(ctx))))
		idle, err := n.Operator().Stats(ctx, "idle")
		require.NoError(t, err)
		require.Equal(t, semaphore.Stats{Name: "idle", Capacity: 2}, idle, "one that is named is there")
	})
}

func TestStatsGoOnAfterOneThatCannotBeRead(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.named("a", 1, nil)
		n.named("b", 1, nil)
		w.Do("HSET", "berth:sem:{newer}:state", "v", "3")
		w.Do("SET", "berth:sem:{newer too}:state", "f3 ")
		good, bad := 0, 0
		for stats, err := range n.Operator().All(context.Background()) {
			if err != nil {
				require.ErrorIs(t, err, berth.ErrIncompatible)
				bad++
				continue
			}
			require.Contains(t, []string{"a", "b"}, stats.Name)
			good++
		}
		require.Equal(t, 2, good)
		require.Equal(t, 2, bad)
	})
}
