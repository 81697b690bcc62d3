package semaphore_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/semaphore"
)

// lineOf are the claims that wait, in order.
func lineOf(t *testing.T, s *semaphore.Semaphore) []string {
	t.Helper()
	var ids []string
	for _, waiter := range testkit.Collect(t, s.Waiters(context.Background())) {
		ids = append(ids, waiter.ID)
	}
	return ids
}

func TestAfterAFlushThoseWhoWaitStandInTheirOldOrder(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		nodes := []*node{w.node(), w.node(), w.node()}
		holders := []*semaphore.Permit{nodes[0].take(2, nil), nodes[1].take(2, nil)}
		var waits []*wait
		for i := range 12 {
			waits = append(waits, nodes[i%3].queue(2, &semaphore.AcquireOptions{Priority: i % 2}))
			w.Advance(10 * ms)
		}
		before := lineOf(t, nodes[0].gpu(2))
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
		after := lineOf(t, nodes[0].gpu(2))
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

func TestAfterAServerStoodStillLongerThanTheLeaseTheLineIsTheSame(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		nodes := []*node{w.node(), w.node()}
		p := nodes[0].take(1, nil)
		for i := range 8 {
			nodes[i%2].queue(1, &semaphore.AcquireOptions{Weight: 1})
			w.Advance(10 * ms)
		}
		before := lineOf(t, nodes[0].gpu(1))
		for _, n := range nodes {
			n.Stall()
		}
		ended := w.Watch(p)
		w.Until(3 * lease)
		require.ErrorIs(t, (<-ended).Cause, berth.ErrLost)
		for _, n := range nodes {
			n.Flow()
		}
		w.Advance(lease)
		after := lineOf(t, nodes[0].gpu(1))
		require.Equal(t, 1, w.stats().Held)
		require.Len(t, after, 7)
		i := 0
		for _, id := range before {
			if i < len(after) && after[i] == id {
				i++
			}
		}
		require.Equal(t, len(after), i, "%v is not a part of %v in its order", after, before)
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

// What a flush has made a waiter of again must not be taken for granted by a
// push from before it.
func TestAPushFromBeforeTheFlushIsNotBelievedAfterIt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		a, b := w.node(), w.node()
		p := a.take(1, nil)
		q := b.queue(1, nil)
		id := lineOf(t, b.gpu(1))[0]
		w.Do("FLUSHALL")
		other := w.node().take(1, nil)
		w.Advance(lease / 3)
		require.Equal(t, []string{id}, lineOf(t, b.gpu(1)))
		b.Reset()
		w.Do("PUBLISH", "berth:wake:"+b.Node(), w.grantedPush(id, p.Fence()+1))
		synctest.Wait()
		require.True(t, q.Pending())
		require.Equal(t, 1, b.Count("semaphore_renew"), "it asked")
		at := w.Now()
		require.NoError(t, other.Release(ctx))
		q.Granted(at)
	})
}

func TestARestoreThatIsLostIsRepeatedOrForgotten(t *testing.T) {
	for name, fate := range map[string]link.Fate{"its reply": link.LoseReply, "its request": link.LoseRequest, "late": link.Late} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				a, b := w.node(), w.node()
				a.take(1, nil)
				q := b.queue(1, nil)
				w.Do("FLUSHALL")
				a.take(1, nil)
				b.Once("semaphore_restore", fate)
				w.Advance(lease / 2)
				require.Equal(t, 1, w.stats().Waiting)
				q.Cancel(nil)
				<-q.Done
				synctest.Wait()
				_, err := b.DeliverLate()
				require.NoError(t, err)
				require.Zero(t, w.stats().Waiting, "a late restore meets the tombstone")
			})
		})
	}
}

func TestAHoldThatTheServerForgotEndsWithTheNextHeartbeat(t *testing.T) {
	for name, c := range map[string]struct {
		opts semaphore.AcquireOptions
		by   time.Duration
	}{
		"renewing":  {by: lease / 3},
		"fixed":     {opts: semaphore.AcquireOptions{NoRenew: true, Lease: time.Hour}, by: lease / 3},
		"forever":   {opts: semaphore.AcquireOptions{Lease: berth.Forever}, by: lease / 3},
		"long":      {opts: semaphore.AcquireOptions{Lease: time.Hour}, by: lease / 3},
		"short":     {opts: semaphore.AcquireOptions{Lease: 300 * ms}, by: 100 * ms},
		"max. hold": {opts: semaphore.AcquireOptions{MaxHold: time.Hour}, by: lease / 3},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n := w.node()
				p := n.take(1, &c.opts)
				ended := w.Watch(p)
				synctest.Wait()
				at := w.Now()
				w.Do("FLUSHALL")
				e := <-ended
				require.LessOrEqual(t, e.At, at+c.by)
				require.ErrorIs(t, e.Cause, berth.ErrNotHeld)
				require.ErrorIs(t, e.Cause, berth.ErrLost, "it is not its own limit that ended it")
				require.ErrorIs(t, p.Release(context.Background()), berth.ErrNotHeld)
			})
		})
	}
}

func TestAHolderWhoseServerStoodStillDoesNotComeBackToLife(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		a, b := w.node(), w.node()
		p := a.take(1, nil)
		q := b.queue(1, nil)
		w.Advance(time.Second)
		a.Stall()
		e := <-w.Watch(p)
		testkit.RequireWithin(t, lease-margin, e.At)
		held := q.GrantedBy(lease)
		a.Flow()
		require.ErrorIs(t, p.Renew(ctx), berth.ErrLost)
		err := p.Release(ctx)
		require.ErrorIs(t, err, berth.ErrNotHeld)
		require.NoError(t, held.Err())
		require.Greater(t, held.Fence(), p.Fence())
		require.Equal(t, 1, w.stats().Held)
	})
}
