package semaphore_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/semaphore"
)

// requireCallerLeft fails unless the error says that the caller left, in every
// way in which one may ask.
func requireCallerLeft(t *testing.T, err error) {
	t.Helper()
	require.ErrorIs(t, err, berth.ErrNotAcquired)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, errMine)
	require.NotErrorIs(t, err, berth.ErrBusy)
	require.NotErrorIs(t, err, context.DeadlineExceeded)
}

// requireIdleAfter fails unless the semaphore is idle once its holder has released.
func (w *world) requireIdleAfter(p *semaphore.Permit) {
	w.T.Helper()
	require.NoError(w.T, p.Release(context.Background()))
	w.RequireIdle()
}

func TestACancelAtAnyMomentOfAWaitReturnsAtOnce(t *testing.T) {
	for name, meet := range map[string]func(a, b *node, held *semaphore.Permit){
		"while it waits": func(a, b *node, held *semaphore.Permit) {},
		"while its node is cut off": func(a, b *node, held *semaphore.Permit) {
			b.Stall()
		},
		"when the grant has not been heard of": func(a, b *node, held *semaphore.Permit) {
			b.Stall()
			_ = held.Release(context.Background())
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				a, b := w.node(), w.node()
				held := a.take(1, nil)
				q := b.queue(1, nil)
				next := a.queue(1, nil)
				w.Advance(time.Second)
				meet(a, b, held)
				q.Cancel(errMine)
				requireCallerLeft(t, q.Refused(time.Second, berth.ReasonCancelled))
				b.Flow()
				w.Advance(0)
				if held.Err() == nil {
					release(t, held)
				}
				w.requireIdleAfter(next.Granted(time.Second))
			})
		})
	}
}

func TestACancelInTheMomentOfTheGrantEndsInOneOfTheTwo(t *testing.T) {
	for _, delay := range []time.Duration{0, ms, 5 * ms, 9 * ms, 10 * ms, 11 * ms, 15 * ms, 20 * ms, 25 * ms} {
		t.Run(delay.String(), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				a, b := w.node(), w.node()
				held := a.take(1, nil)
				q := b.queue(1, nil)
				b.Delay(func() time.Duration { return 10 * ms })
				go func() { _ = held.Release(context.Background()) }()
				w.Advance(delay)
				q.Cancel(errMine)
				w.Advance(0)
				require.False(t, q.Pending(), "it returns at once")
				if q.Err == nil {
					release(t, q.Got)
				} else {
					requireCallerLeft(t, q.Err)
				}
				w.Advance(100 * ms)
				w.RequireIdle()
			})
		})
	}
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
		requireCallerLeft(t, err)
		w.Advance(ms)
		require.Equal(t, 0, w.stats().Held)
		require.Equal(t, "!gone", w.Record(err.Claim))
		late := w.acquireScript(n.Node(), err.Claim, 1, semaphore.CapacityStored)
		require.Equal(t, "gone", late.Status())
		w.Advance(time.Minute)
		w.Call("semaphore_sweep", "60000", "berth:wake:", gpu, "looks-on", "0")
		w.RequireIdle()
	})
}

func TestACancelOfAnAnsweredAcquireLeavesNoTombstone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		held := a.take(1, nil)
		q := b.queue(1, nil)
		q.Cancel(errMine)
		q.Refused(0, berth.ReasonCancelled)
		w.requireIdleAfter(held)
	})
}

func TestMaxWaitSaysThatOthersWereInTheWayAndNoContextEnded(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		held := a.take(1, nil)
		err := b.queue(1, &semaphore.AcquireOptions{MaxWait: 1500 * ms}).Refused(1500*ms, berth.ReasonTimedOut)
		require.ErrorIs(t, err, berth.ErrBusy)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, context.Canceled)
		require.Equal(t, 1500*ms, err.Waited)
		w.requireIdleAfter(held)
	})
}

func TestADeadlineOfTheCallerMatchesBusyAndTheContext(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		held := a.take(1, nil)
		ctx, cancel := context.WithTimeoutCause(context.Background(), 1500*ms, errMine)
		defer cancel()
		err := b.queueOn(ctx, b.gpu(1), &semaphore.AcquireOptions{MaxWait: time.Hour}).Refused(1500*ms, berth.ReasonTimedOut)
		require.ErrorIs(t, err, berth.ErrBusy)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, errMine)
		w.requireIdleAfter(held)
	})
}

func TestAServerThatIsDownForTheWholeWaitIsNoBusySemaphore(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.connect()
		n.Cut()
		err := n.queue(1, &semaphore.AcquireOptions{MaxWait: 20 * time.Second}).Refused(20*time.Second, berth.ReasonFailed)
		require.NotErrorIs(t, err, berth.ErrBusy)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		require.Error(t, err.Cause)
		require.ErrorContains(t, err, "the link is cut")
	})
}

func TestCloseEndsWaitsReleasesHoldsAndMayBeCalledAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		n := w.node()
		p := n.take(1, nil)
		q := n.queue(1, nil)
		require.NoError(t, n.Close(ctx))
		err := q.Refused(0, berth.ReasonClosed)
		require.ErrorIs(t, err, berth.ErrClosed)
		require.NotErrorIs(t, err, berth.ErrBusy)
		require.Error(t, p.Err())
		w.RequireIdle()
		n.Reset()
		require.NoError(t, n.Close(ctx))
		n.queue(1, nil).Refused(0, berth.ReasonClosed)
		_, tried := n.gpu(1).TryAcquire(ctx, nil)
		require.ErrorIs(t, tried, berth.ErrClosed)
		require.Empty(t, n.Counts(), "nothing is sent by a closed client")
	})
}

func TestCloseOnAnEndedContextStillReleases(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.take(1, nil)
		n.Delay(func() time.Duration { return 100 * ms }) // a release on a connection that has yet to be made takes several replies
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		require.NoError(t, n.Close(ctx))
		require.Less(t, w.Now(), 2*time.Second, "CleanupTimeout")
		w.RequireIdle()
	})
}

func TestDoJoinsWhatEndedThePermitToTheErrorOfTheFunction(t *testing.T) {
	for name, test := range map[string]struct {
		opts semaphore.AcquireOptions
		end  func(w *world, n *node, ctx context.Context)
		want error
	}{
		"lost":    {end: func(w *world, n *node, _ context.Context) { n.Cut() }, want: berth.ErrLost},
		"expired": {opts: semaphore.AcquireOptions{MaxHold: time.Second}, want: berth.ErrExpired},
		"released by an operator": {want: berth.ErrReleased, end: func(w *world, n *node, ctx context.Context) {
			for h, err := range n.gpu(1).Holders(ctx) {
				require.NoError(w.T, err)
				require.NoError(w.T, n.ReleaseByID(ctx, gpu, h.ID))
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n := w.node()
				s := n.gpu(1)
				err := s.Do(berth.WithOwner(context.Background(), "me"), &test.opts, func(ctx context.Context) error {
					require.Equal(t, "me", berth.Owner(ctx))
					require.NotZero(t, s.Fence(ctx))
					require.Zero(t, s.Fence(context.Background()))
					if test.end != nil {
						test.end(w, n, ctx)
					}
					<-ctx.Done()
					require.ErrorIs(t, context.Cause(ctx), test.want)
					return errMine
				})
				require.ErrorIs(t, err, errMine)
				require.ErrorIs(t, err, test.want)
				require.NotErrorIs(t, err, berth.ErrNotAcquired)
			})
		})
	}
}

func TestAPanicUnderTryDoReleasesAndTheCallersEndReachesTheFunction(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		require.PanicsWithValue(t, "mine", func() {
			_ = n.gpu(1).TryDo(context.Background(), nil, func(context.Context) error { panic("mine") })
		})
		w.RequireIdle()
		ctx, cancel := context.WithCancelCause(context.Background())
		err := n.gpu(1).TryDo(ctx, nil, func(inner context.Context) error {
			require.ErrorIs(t, n.gpu(1).TryDo(ctx, nil, func(context.Context) error { return nil }), berth.ErrBusy)
			cancel(errMine)
			<-inner.Done()
			return context.Cause(inner)
		})
		require.Equal(t, errMine, err, "the permit had not ended")
		w.RequireIdle()
	})
}

func TestReleasesTogetherAreOneRelease(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.connect()
		p := n.take(1, nil)
		n.Delay(func() time.Duration { return 10 * ms })
		n.Reset()
		var all sync.WaitGroup
		errs := make([]error, 8)
		for i := range errs {
			all.Go(func() { errs[i] = p.Release(context.Background()) })
		}
		all.Wait()
		require.NoError(t, errors.Join(errs...))
		require.NoError(t, p.Release(context.Background()))
		require.Equal(t, 1, n.asked("release"))
		w.RequireIdle()
	})
}

func TestAReleaseOnAnEndedContextReleases(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		p := n.take(1, nil)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		require.NoError(t, p.Release(ctx))
		w.RequireIdle()
	})
}

func TestAReleaseAfterExpiryLeavesTheSuccessorAlone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		p := a.take(1, &semaphore.AcquireOptions{NoRenew: true})
		successor := b.queue(1, nil)
		w.Until(lease)
		held := successor.GrantedWithin(lease, ms)
		before := w.Dump()
		for range 2 {
			err := p.Release(context.Background())
			require.ErrorIs(t, err, berth.ErrNotHeld)
			require.ErrorIs(t, err, berth.ErrExpired)
		}
		require.Equal(t, before, w.Dump())
		require.NoError(t, held.Err())
		w.requireIdleAfter(held)
	})
}

func TestWithinEndsWithThePermitOrTheCallerAndCarriesBoth(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		s := n.gpu(1)
		p, err := s.Acquire(berth.WithOwner(context.Background(), "me"), nil)
		require.NoError(t, err)
		caller, leave := context.WithCancelCause(t.Context())
		first, stop := p.Within(caller)
		defer stop()
		second, stopToo := p.Within(t.Context())
		defer stopToo()
		third, stopThird := p.Within(t.Context())
		require.Equal(t, "me", berth.Owner(first))
		require.Equal(t, p.Fence(), s.Fence(first))
		leave(errMine)
		stopThird()
		synctest.Wait()
		require.ErrorIs(t, context.Cause(first), errMine)
		require.Error(t, third.Err())
		require.NoError(t, second.Err())
		require.NoError(t, p.Err())
		release(t, p)
		synctest.Wait()
		require.ErrorIs(t, context.Cause(second), berth.ErrReleased)
	})
}
