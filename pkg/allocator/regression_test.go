package allocator_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/node"
)

// The free one has expired, and another one's lease has run out: neither is swept yet,
// and nobody waits.
func TestATryFindsWhatHasRunOutBehindWhatHasExpired(t *testing.T) {
	for name, taken := range map[string]func(w *world){
		"a lease": func(w *world) { w.acquireScript("dead", "dead.1") },
		"a rest":  func(w *world) { require.NoError(w.T, w.pool.Rest(w.T.Context(), "a", lease, "", nil)) },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.add("a")
				taken(w)
				_, err := w.pool.Add(t.Context(), []string{"short"}, &allocator.AddOptions{Expiry: lease})
				require.NoError(t, err)
				w.Advance(lease)
				n := w.node()
				a, err := n.TryAllocate(t.Context(), nil)
				require.NoError(t, err)
				require.Equal(t, "a", a.Resource())
			})
		})
	}
}

// More than one script drops have expired before it.
func TestWhatHasExpiredIsAddedAnewAndNotKept(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		all := many("x", 300)
		_, err := w.pool.Add(ctx, all, &allocator.AddOptions{Expiry: time.Second})
		require.NoError(t, err)
		last := all[len(all)-1]
		require.NoError(t, w.pool.Rest(ctx, last, time.Hour, "of its former life", nil))
		w.Advance(time.Second)
		change, err := w.pool.Add(ctx, []string{last}, nil)
		require.NoError(t, err)
		require.Equal(t, allocator.Change{Added: 1}, change)
		require.Equal(t, allocator.ResourceInfo{Resource: last, State: allocator.Free, MaxSharers: 1}, w.status(last))
	})
}

// Behind more expired ones than one script drops, it is no longer there for anybody.
func TestWhatHasExpiredCannotRest(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		all := many("x", 300)
		_, err := w.pool.Add(ctx, all, &allocator.AddOptions{Expiry: time.Second})
		require.NoError(t, err)
		w.Advance(time.Second)
		require.ErrorIs(t, w.pool.Rest(ctx, all[len(all)-1], time.Hour, "", nil), berth.ErrAbsent)
	})
}

// Its release comes before anything has swept it.
func TestWhatHasExpiredLeavesWithItsRelease(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("kept")
		w.occupy("x")
		_, err := w.pool.Add(t.Context(), []string{"short"}, &allocator.AddOptions{Expiry: time.Second})
		require.NoError(t, err)
		w.occupy("y")
		w.Advance(time.Second)
		w.vacate("y")
		require.Empty(t, w.list())
		require.Equal(t, 1, w.inspect().Resources)
	})
}

// Nothing sweeps a pool that always has a free one: each binding takes ended ones along.
func TestBindingsThatEndedDoNotGrowInNumber(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b")
		n := w.node()
		for i := range 40 {
			w.release(n.take(&allocator.AllocateOptions{Bind: fmt.Sprint("customer ", i), BindFor: time.Second}))
			w.Advance(400 * ms)
		}
		require.Less(t, w.Int("HLEN", bindingsKey), int64(8))
		require.Less(t, w.Int("ZCARD", lineKey), int64(8))
	})
}

// However few resources a pool has, what it knows of bindings and waiters may be much.
func TestAPoolWithMuchBesideItsResourcesIsInspectedInSteps(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		for i := range 101 {
			require.NoError(t, w.pool.Bind(t.Context(), fmt.Sprint("customer ", i), "a", nil))
		}
		reply := w.Call("pool_inspect", "items", "0", "10", "10")
		require.Equal(t, "part", reply.Status())
		require.NotEmpty(t, reply.Str(1), "there is a next step")
		reply = w.Call("pool_inspect", "items", "0", "10", "100")
		require.Empty(t, reply.Str(1))
	})
}

func TestTheListingOfResourcesDoesNotReadBindings(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.connect()
		w.add("a", "b", "c")
		for i := range 110 {
			require.NoError(t, w.pool.Bind(t.Context(), fmt.Sprint("customer ", i), "a", nil))
		}
		n.Fresh()
		require.Len(t, testkit.Collect(t, n.ops().Resources(t.Context(), proxies)), 3)
		require.Equal(t, map[string]int{"HELLO": 2, "TIME": 2, "HMGET": 2, "HSCAN": 1}, n.Counts())
		require.Equal(t, int64(4), w.Int("HLEN", itemsKey), "a field for each, and one that keeps it")
	})
}

// A claim that waits finds the pool empty as much as a new one does.
func TestAFlushUnderAWaitIsFilledAgainSoon(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.nodeOf(allocator.PoolConfig[string]{
			Source: func(context.Context) ([]string, error) { return []string{"a"}, nil }, RefreshEvery: time.Hour,
		})
		synctest.Wait()
		w.Advance(10 * time.Second)
		n.takes("a", nil)
		q := n.queue(nil)
		w.Advance(time.Second)
		require.True(t, q.Pending())
		w.Do("FLUSHALL")
		w.Advance(lease)
		require.False(t, q.Pending())
		require.NoError(t, q.Err)
	})
}

// A resource of which sharers have taken one place since it was listed is in use.
func TestCheckHealthLeavesAloneWhatASharerHasTakenMeanwhile(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		sharing := allocator.PoolConfig[string]{MaxSharers: 2}
		m := w.nodeOf(sharing)
		_, err := m.Add(t.Context(), []string{"a"}, nil)
		require.NoError(t, err)
		asked := 0
		sharing.Healthy = func(context.Context, string) error { asked++; return nil }
		n := w.nodeOf(sharing)
		var taken *allocator.Allocation[string]
		n.OnCommand(func(c link.Command) link.Fate {
			if c.Name == "pool_acquire" && taken == nil {
				taken, err = m.TryAllocate(context.Background(), nil)
			}
			return link.Pass
		})
		report, failed := n.CheckHealth(t.Context(), 1)
		require.NoError(t, failed)
		require.NoError(t, err)
		require.Equal(t, allocator.HealthReport{Skipped: 1}, report)
		require.Zero(t, asked)
	})
}

// What is not healthy and does not rest may be the next one again: not in a tight loop.
func TestWithoutAFailureRestAllocateHealthyPauses(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		tries := 0
		n := w.nodeOf(allocator.PoolConfig[string]{FailureRest: -1, Healthy: func(context.Context, string) error {
			if tries++; tries == 1000 {
				return nil
			}
			return errMine
		}})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err := n.AllocateHealthy(ctx, nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Less(t, tries, 200)
		require.Equal(t, 10*time.Second, w.Now())
	})
}

// Whatever fails on the way.
func TestACheckLeavesNothingBehind(t *testing.T) {
	left := func(w *world) (keys []string) {
		for _, key := range w.Keys() {
			if strings.Contains(key, "check") {
				keys = append(keys, key)
			}
		}
		return keys
	}
	inWorld(t, func(t *testing.T, w *world) {
		n := w.nodeWith(once, allocator.PoolConfig[string]{})
		n.connect()
		n.Once("pool_renew", link.LoseRequest)
		_, err := n.node.Check(context.Background())
		require.Error(t, err)
		w.Advance(2*time.Minute + lease)
		require.Empty(t, left(w))
	})
}

// An answer takes longer than a lease: the trial finds its resource all the same.
func TestACheckOfAServerThatIsSlowerThanALease(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.nodeWith(node.Config{Lease: 200 * time.Millisecond}, allocator.PoolConfig[string]{})
		n.Delay(func() time.Duration { return 300 * time.Millisecond })
		_, err := n.node.Check(context.Background())
		require.NoError(t, err)
	})
}

// The copy of a call that has begun a Replace comes when another one has begun.
func TestALateCopyOfAReplaceDoesNotSupersedeTheNext(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		n, m := w.node(), w.node()
		n.connect()
		begun := false
		n.OnCommand(func(c link.Command) link.Fate {
			if c.Name == "pool_replace" && strings.Contains(fmt.Sprint(c.Args), "begin") && !begun {
				begun = true
				return link.Late
			}
			return link.Pass
		})
		_, err := n.Replace(t.Context(), []string{"b"}, nil)
		require.NoError(t, err)
		delivered := 0
		m.OnCommand(func(c link.Command) link.Fate {
			if c.Name == "pool_add" && delivered == 0 {
				delivered, _ = n.DeliverLate()
			}
			return link.Pass
		})
		_, err = m.Replace(t.Context(), []string{"c"}, nil)
		require.NoError(t, err)
		require.Equal(t, 1, delivered)
		require.Equal(t, map[string]allocator.State{"c": allocator.Free}, w.states())
	})
}

func TestAllocateHealthyEndsWithMaxWaitWhereSomethingIsAlwaysFree(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		n := w.nodeOf(allocator.PoolConfig[string]{FailureRest: -1, Healthy: func(context.Context, string) error {
			if w.Now() > 30*time.Second {
				return nil
			}
			return errMine
		}})
		_, err := n.AllocateHealthy(t.Context(), &allocator.AllocateOptions{MaxWait: 2 * time.Second})
		require.ErrorIs(t, err, berth.ErrNotAcquired)
		require.ErrorIs(t, err, errMine)
		require.Less(t, w.Now(), 4*time.Second, "and a pause")
	})
}
