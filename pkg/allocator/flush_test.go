package allocator_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/observe"
)

// waiters are the claims that wait, in order.
func (w *world) waiters() []string {
	w.T.Helper()
	var ids []string
	for _, waiter := range w.Waiters() {
		ids = append(ids, waiter.ID)
	}
	return ids
}

func TestAfterAFlushThoseWhoWaitStandInTheirOldOrder(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b")
		nodes := []*proc{w.node(), w.node(), w.node()}
		holders := []*allocator.Allocation[string]{nodes[0].take(nil), nodes[1].take(nil)}
		waits := make(map[string]*wait)
		for i := range 12 {
			before := w.waiters()
			q := nodes[i%3].queue(&allocator.AllocateOptions{Priority: i % 2})
			for _, id := range w.waiters() {
				if waits[id] == nil {
					waits[id] = q
				}
			}
			require.Len(t, w.waiters(), len(before)+1)
			w.Advance(10 * ms)
		}
		before := w.waiters()
		ended := []<-chan testkit.Ended{w.Watch(holders[0]), w.Watch(holders[1])}
		w.Until(5 * time.Second)
		w.Do("FLUSHALL")
		w.Advance(lease / 3)
		for _, e := range ended {
			e := <-e
			require.ErrorIs(t, e.Cause, berth.ErrLost)
			require.LessOrEqual(t, e.At, 5*time.Second+lease/3)
		}
		// The resources are gone too: nobody is granted anything.
		require.Equal(t, before, w.waiters())
		require.Zero(t, w.inspect().Resources)
		restored := 0
		for _, n := range nodes {
			for _, kind := range n.Kinds() {
				if kind == observe.Restored {
					restored++
				}
			}
		}
		require.Equal(t, 12, restored)

		// And when there are some again, they are granted in that order.
		w.add("c")
		for _, id := range before {
			held := waits[id].gets(w.Now(), "c")
			require.Equal(t, id, held.ID())
			w.Advance(time.Second)
			w.release(held)
		}
		w.requireIdle()
	})
}

// Some have come again before a waiting node has asked: the first that asks may get
// one at once, and never more than there are.
func TestAfterAFlushWhatIsAddedAtOnceGoesToThoseWhoAskFirst(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		w.occupy("x")
		n := w.node()
		first, second := n.queue(nil), n.queue(nil)
		w.Advance(10 * ms)
		w.Do("FLUSHALL")
		w.add("a")
		lucky := w.node().takes("a", nil)
		late := w.node().queue(nil)
		w.Until(3 * time.Second)
		require.Equal(t, 3, w.inspect().Waiting)
		for _, q := range []*wait{first, second, late} {
			require.True(t, q.Pending())
			w.release(lucky)
			lucky = q.gets(3*time.Second, "a")
		}
	})
}

// What is lost is lost as a whole: no key of an evicted pool lives on by itself.
func TestAPoolWhoseStateWasEvictedBeginsAnew(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b")
		w.bind("customer", "b", 0)
		n := w.node()
		held := n.takes("a", nil)
		w.Do("DEL", stateKey)
		_, err := n.TryAllocate(t.Context(), nil)
		require.ErrorIs(t, err, berth.ErrBusy)
		require.ErrorIs(t, w.pool.Rest(t.Context(), "b", time.Second, "", nil), berth.ErrAbsent)
		require.ErrorIs(t, w.pool.Bind(t.Context(), "customer", "b", nil), berth.ErrAbsent)
		require.ErrorIs(t, held.Release(t.Context()), berth.ErrNotHeld)
		w.add("c")
		require.Equal(t, map[string]allocator.State{"c": allocator.Free}, w.states())
		w.inspect()
		n.takes("c", to("customer"))
		w.inspect()
	})
}

func TestAPoolWithResourcesNeverExpires(t *testing.T) {
	ctx := context.Background()
	inWorld(t, func(t *testing.T, w *world) {
		never := func() {
			t.Helper()
			require.EqualValues(t, -1, w.Expiry())
		}
		w.add("a", "b", "c")
		never()
		n := w.nodeOf(allocator.PoolConfig[string]{Cooldown: time.Second})
		held := n.takes("a", to("customer"))
		never()
		w.Advance(3 * time.Second)
		never()
		w.release(held)
		never()
		require.NoError(t, w.pool.Rest(ctx, "b", time.Second, "mine", nil))
		_, err := w.pool.Add(ctx, []string{"short"}, &allocator.AddOptions{Expiry: time.Hour})
		require.NoError(t, err)
		held, short := n.takes("c", nil), n.takes("short", nil)
		q := n.queue(nil)
		require.True(t, q.Pending())
		never()
		q.Cancel(nil)
		<-q.Done
		w.release(held)
		w.release(short)
		never()
		w.Advance(time.Minute)

		// Then everything goes, and the keys with it, at one instant.
		held = n.take(&allocator.AllocateOptions{NoRenew: true, Lease: time.Minute})
		_, err = w.pool.Clear(ctx)
		require.NoError(t, err)
		expiry := w.Expiry()
		require.GreaterOrEqual(t, expiry, w.Now()+time.Minute+time.Minute, "the holder is still to be known")
		require.LessOrEqual(t, expiry, w.Now()+2*time.Minute+time.Second)
		w.add("a")
		never()
		_, err = w.pool.Remove(ctx, []string{"a"})
		require.NoError(t, err)
		w.release(held)
		require.Positive(t, w.Expiry())
		w.inspect()
		w.Advance(3 * time.Minute)
		require.Empty(t, w.Keys())
	})
}

func TestAPoolThatIsOnlyWaitedForExpiresWithThoseWhoWait(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.queue(nil)
		require.Positive(t, w.Expiry())
		w.Advance(90 * time.Second)
		require.Greater(t, w.Expiry(), w.Now()+time.Minute)
		n.Die()
		w.Advance(time.Minute + 2*lease)
		require.Empty(t, w.Keys())
	})
}

// A pool that nobody touched for days: holders died, rests ended, bindings and
// resources expired, and nothing was swept.
func TestAPoolThatNobodyTouchedForDaysHasLostNothing(t *testing.T) {
	ctx := context.Background()
	inWorld(t, func(t *testing.T, w *world) {
		const all = 40
		for i := range all {
			w.add(fmt.Sprint("r", i))
		}
		_, err := w.pool.Add(ctx, []string{"short1", "short2"}, &allocator.AddOptions{Expiry: time.Minute})
		require.NoError(t, err)
		for i := range 10 {
			w.acquireScript("dead", fmt.Sprint("dead.", i), cooling(time.Duration(i)*time.Hour))
		}
		for i := 20; i < 30; i++ {
			require.NoError(t, w.pool.Rest(ctx, fmt.Sprint("r", i), time.Duration(i)*time.Minute, "", nil))
		}
		w.bind("forever", "r5", berth.Forever)
		w.bind("an hour", "r6", 0)
		require.NoError(t, w.pool.Rest(ctx, "r39", berth.Forever, "mine", nil))
		before := w.Dump()
		w.Until(2 * 24 * time.Hour)
		require.Equal(t, before, w.Dump())
		require.EqualValues(t, -1, w.Expiry())

		n := w.node()
		got := make(map[string]bool)
		got[n.takes("r5", to("forever")).Resource()] = true
		for range all - 2 {
			got[n.take(nil).Resource()] = true
		}
		require.Len(t, got, all-1, "each is there once")
		_, err = n.TryAllocate(ctx, nil)
		require.ErrorIs(t, err, berth.ErrBusy)
		stats := w.inspect()
		require.Equal(t, all, stats.Resources, "those that expired are not")
		require.Equal(t, 1, stats.Resting)
		require.Equal(t, all-1, stats.Leased)
		synctest.Wait()
	})
}

// Whoever waits finds the pool empty with the next heartbeat, and asks its Source then, and once.
func TestAfterAFlushTheSourceIsAskedWithTheNextHeartbeat(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var asked atomic.Int64
		n := w.nodeOf(allocator.PoolConfig[string]{RefreshEvery: time.Hour, Source: func(context.Context) ([]string, error) {
			asked.Add(1)
			return []string{"a"}, nil
		}})
		n.take(nil)
		q := n.queue(nil)
		w.Advance(time.Minute)
		require.EqualValues(t, 1, asked.Load())
		w.Do("FLUSHALL")
		w.Advance(lease / 3)
		require.False(t, q.Pending())
		require.NoError(t, q.Err)
		require.Equal(t, "a", q.Got.Resource())
		w.Advance(time.Minute)
		require.EqualValues(t, 2, asked.Load())
	})
}
