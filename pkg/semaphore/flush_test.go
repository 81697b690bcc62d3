package semaphore_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/semaphore"
)

// line are the claims that wait, in order.
func (w *world) line() []string {
	w.T.Helper()
	var ids []string
	for _, waiter := range w.Waiters() {
		ids = append(ids, waiter.ID)
	}
	return ids
}

func TestAfterAFlushThoseWhoWaitStandInTheirOldOrder(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		nodes := []*proc{w.node(), w.node(), w.node()}
		holders := []*semaphore.Permit{nodes[0].take(2, nil), nodes[1].take(2, nil)}
		var waits []*wait
		for i := range 12 {
			waits = append(waits, nodes[i%3].queue(2, &semaphore.AcquireOptions{Priority: i % 2}))
			w.Advance(10 * ms)
		}
		before := w.line()
		require.Len(t, before, 12)
		ended := []<-chan testkit.Ended{w.Watch(holders[0]), w.Watch(holders[1])}
		w.Until(5 * time.Second)
		w.Do("FLUSHALL")
		w.Advance(lease / 3)

		for _, e := range ended {
			e := <-e
			require.ErrorIs(t, e.Cause, berth.ErrLost)
			require.LessOrEqual(t, e.At, 5*time.Second+lease/3)
		}
		after := w.line()
		require.Len(t, after, 10, "as many as the capacity were granted in that moment")
		kept := before[:0:0]
		for _, id := range before {
			for _, now := range after {
				if id == now {
					kept = append(kept, id)
				}
			}
		}
		require.Equal(t, kept, after)
		require.Equal(t, 2, w.stats().Held)
		restored := 0
		for _, n := range nodes {
			for _, kind := range n.Kinds() {
				if kind == "restored" {
					restored++
				}
			}
		}
		require.Equal(t, 12, restored)

		// And so they are granted.
		for range waits {
			for _, q := range waits {
				if !q.Pending() && q.Got != nil {
					_ = q.Got.Release(ctx)
				}
			}
			synctest.Wait()
		}
		for _, q := range waits {
			require.False(t, q.Pending())
			require.NoError(t, q.Err)
		}
		w.RequireIdle()
	})
}

// A new claim that comes after the flush stands behind those who are restored,
// but for as many as find a free place in that moment.
func TestAfterAFlushANewClaimStandsBehindTheOldOnes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		a.take(1, nil)
		first, second := a.queue(1, nil), a.queue(1, nil)
		w.Advance(10 * ms)
		w.Do("FLUSHALL")
		lucky := b.queue(1, nil)
		p := lucky.Granted(10 * ms)
		late := b.queue(1, nil)
		w.Until(3 * time.Second)
		require.Equal(t, 3, w.stats().Waiting)
		for _, q := range []*wait{first, second, late} {
			require.True(t, q.Pending())
			require.NoError(t, p.Release(context.Background()))
			p = q.Granted(3 * time.Second)
		}
	})
}
