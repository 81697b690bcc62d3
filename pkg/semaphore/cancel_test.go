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

func TestACancelThatMeetsTheGrantHandsOn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, other := w.node(), w.node()
		p := other.take(1, nil)
		gone := n.queue(1, nil)
		stays := other.queue(1, nil)
		n.Deafen(true) // the grant is not heard of
		require.NoError(t, p.Release(context.Background()))
		synctest.Wait()
		require.True(t, stays.Pending())
		gone.Cancel(nil)
		gone.Refused(0, berth.ReasonCancelled)
		stays.Granted(0)
		require.Equal(t, 1, w.stats().Holders)
	})
}

func TestACancelOfAnUnansweredAcquireLeavesATombstoneForAMinute(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.connect()
		n.OnCommand(func(c link.Command) link.Fate {
			if asks(c, "acquire") {
				return link.LoseReply
			}
			return link.Pass
		})
		q := n.queue(1, nil)
		w.Advance(time.Second)
		testkit.RequirePending(w.T, q)
		require.Equal(t, 1, w.stats().Held, "it ran all the same")
		q.Cancel(errMine)
		err := q.Refused(time.Second, berth.ReasonCancelled)
		require.ErrorIs(t, err, errMine)
		w.Advance(ms)
		require.Equal(t, 0, w.stats().Held)
		require.Equal(t, "!gone", w.Record(err.Claim))
		late := w.acquireScript(n.ID(), err.Claim, 1, semaphore.CapacityStored)
		require.Equal(t, "gone", late.Status())
		w.Advance(time.Minute)
		w.Call("semaphore_sweep", "60000", "berth:wake:", gpu, "looks-on", "0")
		w.RequireIdle()
	})
}

func TestMaxWaitEndsAWaitThatNoContextEnds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.take(1, nil)
		q := n.queue(1, &semaphore.AcquireOptions{MaxWait: 1234 * ms})
		refusal := q.Refused(1234*ms, berth.ReasonTimedOut)
		require.NotErrorIs(t, refusal, context.DeadlineExceeded)
		require.NotErrorIs(t, refusal, context.Canceled)
		synctest.Wait()
		require.Zero(t, w.stats().Waiting)
	})
}

func TestAPermitOutlivesTheContextItWasAcquiredWith(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		type key struct{}
		ctx, cancel := context.WithCancel(context.WithValue(context.Background(), key{}, "value"))
		n := w.node()
		p, err := n.gpu(1).Acquire(ctx, nil)
		require.NoError(t, err)
		cancel()
		w.Advance(time.Minute)
		require.NoError(t, p.Err())
		require.NoError(t, p.Context().Err())
		require.Equal(t, "value", p.Context().Value(key{}))
		require.Equal(t, p.Fence(), n.gpu(1).Fence(p.Context()))
		require.Zero(t, n.gpu(1).Fence(ctx))
		require.NoError(t, p.Release(ctx), "it works after ctx has ended")
		w.RequireIdle()
	})
}

func TestCloseEndsWaitsAndGivesBackWhatIsHeld(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		p := a.take(2, nil)
		a.take(2, nil)
		waits := []*wait{a.queue(2, nil), a.queue(2, nil)}
		theirs := b.queue(2, nil)
		require.NoError(t, a.Close(context.Background()))
		for _, q := range waits {
			refusal := q.Refused(0, berth.ReasonClosed)
			require.ErrorIs(t, refusal, berth.ErrClosed)
		}
		theirs.Granted(0)
		require.Equal(t, 1, w.stats().Holders)
		require.Zero(t, w.stats().Waiting)
		require.ErrorIs(t, p.Err(), berth.ErrReleased)
		require.NoError(t, p.Release(context.Background()), "it has been given back")
		_, err := a.gpu(1).Acquire(context.Background(), nil)
		require.ErrorIs(t, err, berth.ErrClosed)
		require.NoError(t, a.Close(context.Background()), "again")
	})
}
