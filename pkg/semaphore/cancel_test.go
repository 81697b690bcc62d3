package semaphore_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/semaphore"
)

func TestACancelledWaitReturnsAtOnceAndLeavesTheLine(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		p := n.take(1, nil)
		gone, stays := n.queue(1, nil), n.queue(1, nil)
		w.Advance(3 * time.Second)
		gone.Cancel(errMine)
		refusal := gone.Refused(3*time.Second, berth.ReasonCancelled)
		require.ErrorIs(t, refusal, context.Canceled)
		require.ErrorIs(t, refusal, errMine)
		require.NotErrorIs(t, refusal, context.DeadlineExceeded)
		require.Equal(t, 3*time.Second, refusal.Waited)
		synctest.Wait()
		require.Equal(t, 1, w.stats().Waiting)
		require.NoError(t, p.Release(context.Background()))
		stays.Granted(3 * time.Second)
	})
}

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

func TestACancelWhileTheAcquireIsOnItsWayRemovesItAfterwards(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.connect()
		n.Delay(func() time.Duration { return 500 * ms })
		for name, end := range map[string]struct {
			opts semaphore.AcquireOptions
			ctx  func() context.Context
			why  berth.Reason
		}{
			"cancelled": {why: berth.ReasonCancelled, ctx: func() context.Context {
				ctx, cancel := context.WithCancel(context.Background())
				time.AfterFunc(100*ms, cancel)
				return ctx
			}},
			"its deadline": {why: berth.ReasonFailed, ctx: func() context.Context {
				ctx, cancel := context.WithTimeout(context.Background(), 100*ms)
				context.AfterFunc(ctx, cancel)
				return ctx
			}},
			"MaxWait": {why: berth.ReasonFailed, opts: semaphore.AcquireOptions{MaxWait: 100 * ms}, ctx: context.Background},
		} {
			start := w.Now()
			q := n.queueOn(end.ctx(), n.gpu(1), &end.opts)
			<-q.Done
			require.Equal(t, start+100*ms, q.At, name)
			refusal := q.Refused(start+100*ms, end.why) // nobody has said that others were in the way
			require.NotErrorIs(t, refusal, berth.ErrBusy, name)
			require.Equal(t, name == "its deadline", errors.Is(refusal, context.DeadlineExceeded), name)
			require.Equal(t, name == "cancelled", errors.Is(refusal, context.Canceled), name)
			w.Until(start + 700*ms)
			require.EqualValues(t, 1, w.Field("used"), "it has been granted meanwhile")
			w.Until(start + 2500*ms)
			w.RequireIdle()
			require.Zero(t, w.Field("gone"), "the acquire was answered, so no tombstone is needed")
		}
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

func TestTheContextsDeadlineEndsAWait(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.take(1, nil)
		ctx, cancel := context.WithTimeoutCause(context.Background(), 2*time.Second, errMine)
		defer cancel()
		q := n.queueOn(ctx, n.gpu(1), &semaphore.AcquireOptions{MaxWait: time.Hour})
		refusal := q.Refused(2*time.Second, berth.ReasonTimedOut)
		require.ErrorIs(t, refusal, context.DeadlineExceeded)
		require.ErrorIs(t, refusal, errMine)
		require.NotErrorIs(t, refusal, context.Canceled)
	})
}

func TestAContextThatHasEndedSendsNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.Reset()
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(errMine)
		for _, acquire := range []func(context.Context, *semaphore.AcquireOptions) (*semaphore.Permit, error){
			n.gpu(1).Acquire, n.gpu(1).TryAcquire,
		} {
			_, err := acquire(ctx, nil)
			require.ErrorIs(t, err, berth.ErrNotAcquired)
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorIs(t, err, errMine)
		}
		require.Empty(t, n.Counts())
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
		require.NoError(t, a.Client.Close(context.Background()))
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
		require.NoError(t, a.Client.Close(context.Background()), "again")
	})
}

// However a close and a grant race, nothing stays held.
func TestCloseThatMeetsAGrantLeavesNothingHeld(t *testing.T) {
	for _, lag := range []time.Duration{0, ms, 2 * ms, 3 * ms, 5 * ms} {
		t.Run(lag.String(), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				a, b := w.node(), w.node()
				a.connect()
				p := b.take(1, nil)
				q := a.queue(1, nil)
				a.Delay(func() time.Duration { return 2 * ms })
				w.Advance(100 * ms)
				require.NoError(t, p.Release(context.Background()))
				w.Advance(lag)
				require.NoError(t, a.Client.Close(context.Background()))
				<-q.Done
				if q.Err == nil {
					require.Error(t, q.Got.Err(), "Close has given it back")
				}
				w.RequireIdle()
			})
		})
	}
}

// A call without a context that ends waits for its reply, whatever it brings.
func TestCloseThatMeetsAnAcquireOnItsWayLeavesNothingHeld(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.connect()
		n.Delay(func() time.Duration { return 50 * ms })
		failed := make(chan error, 1)
		go func() {
			_, err := n.gpu(1).Acquire(context.Background(), nil)
			failed <- err
		}()
		w.Advance(60 * ms) // the server has granted it, and the reply is on its way
		require.NoError(t, n.Client.Close(context.Background()))
		require.ErrorIs(t, <-failed, berth.ErrClosed)
		w.RequireIdle()
	})
}

func TestCloseWaitsForWhatACancelLeftToDo(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.connect()
		n.take(1, nil)
		q := n.queue(1, nil)
		n.Delay(func() time.Duration { return 50 * ms })
		q.Cancel(nil)
		q.Refused(0, berth.ReasonCancelled)
		require.Equal(t, 1, w.stats().Waiting)
		require.NoError(t, n.Client.Close(context.Background()))
		w.RequireIdle()
	})
}

func TestCloseGivesUpWhenItsContextEnds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.take(1, nil)
		n.Stall()
		ctx, cancel := context.WithTimeout(context.Background(), 100*ms)
		defer cancel()
		err := n.Client.Close(ctx)
		require.Error(t, err)
		require.LessOrEqual(t, w.Now(), 2100*ms, "CleanupTimeout is all it takes beyond")
		n.Flow()
	})
}

func TestACancelAfterALostAcquireLeavesATombstone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.connect()
		n.OnCommand(func(c link.Command) link.Fate {
			if asks(c, "acquire") {
				return link.Late
			}
			return link.Pass
		})
		q := n.queue(1, nil)
		require.True(t, q.Pending())
		w.Advance(10 * ms)
		q.Cancel(nil)
		q.Refused(10*ms, berth.ReasonCancelled)
		w.Advance(5 * time.Second)
		require.EqualValues(t, 1, w.Field("gone"))
		n.OnCommand(nil)
		late, err := n.DeliverLate()
		require.NoError(t, err)
		require.GreaterOrEqual(t, late, 1)
		require.Zero(t, w.Field("used"), "the late acquire met the tombstone")
		require.Equal(t, roundUp(time.Minute+10*ms), w.Expiry())
		w.Until(time.Minute + 20*ms)
		w.stats() // sweeps
		w.RequireIdle()
	})
}
