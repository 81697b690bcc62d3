package allocator_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
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
		for _, n := range nodes {
			require.Len(t, n.Told(observe.Restored), 4)
		}

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

// What is lost is lost as a whole: no key of an evicted pool lives on by itself, and what a call finds there counts for
// nothing.
func TestAPoolWhoseStateWasEvictedBeginsAnew(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		w.add("a", "b", "d")
		w.bind("customer", "b", 0)
		_, err := w.pool.Add(ctx, []string{"short"}, &allocator.AddOptions{Expiry: 500 * ms})
		require.NoError(t, err)
		n := w.node()
		held := n.takes("a", nil)
		w.acquireScript("dead", "dead.1", func(r *engine.Record) { r.Lease = 500 * ms })
		w.Advance(500 * ms)
		w.Do("DEL", stateKey)
		_, err = n.TryAllocate(ctx, nil)
		require.ErrorIs(t, err, berth.ErrBusy)
		require.ErrorIs(t, w.pool.Rest(ctx, "b", time.Second, "", nil), berth.ErrAbsent)
		require.ErrorIs(t, w.pool.Bind(ctx, "customer", "b", nil), berth.ErrAbsent)
		require.ErrorIs(t, held.Release(ctx), berth.ErrNotHeld)
		require.Zero(t, w.Int("EXISTS", stateKey))
		w.add("c")
		require.Equal(t, map[string]allocator.State{"c": allocator.Free}, w.states())
		w.inspect()
		n.takes("c", to("customer"))
		w.inspect()
	})
}

// Its holder is dead: an operator names the claim, or its release comes after all.
func TestAResourceWhoseLineWasDeletedComesBackByForce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("r1")
		n, m := w.node(), w.node()
		x := n.takes("r1", nil)
		q := m.queue(nil)
		n.Die()
		w.Do("DEL", lineKey)
		w.Until(lease/3 + 10*ms)
		require.True(t, q.Pending())
		require.Equal(t, []int64{0, 1}, []int64{w.Field("used"), w.Field("waiting")})
		require.NoError(t, m.force(x.ID()))
		held := q.gets(w.Now(), "r1")
		w.release(held)
		w.inspect()
	})
}

func TestCountsOfAPoolThatAreNotOursAreAnErrorAndAreLeftAlone(t *testing.T) {
	for _, field := range []string{"v", "pool"} {
		t.Run(field, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				ctx := context.Background()
				w.add("r1")
				n, m := w.node(), w.node()
				x := n.takes("r1", nil)
				q := m.queue(nil)
				before, err := w.Do("HGET", stateKey, field).ToString()
				require.NoError(t, err)
				w.Do("HSET", stateKey, field, "rubbish")
				dump := w.Dump()
				_, err = m.TryAllocate(ctx, nil)
				require.ErrorContains(t, err, "is not Berth's")
				require.ErrorContains(t, x.Renew(ctx), "is not Berth's")
				<-q.Done
				require.ErrorContains(t, q.Err, "is not Berth's")
				require.LessOrEqual(t, q.At, lease/3)
				require.Equal(t, dump, w.Dump())
				w.Do("HSET", stateKey, field, before)
				w.release(x)
			})
		})
	}
}
