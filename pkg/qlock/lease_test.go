package qlock_test

import (
	"cmp"
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/qlock"
)

func TestALockIsRenewedAtAThirdOfItsLease(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		l := n.take(nil)
		w.Until(2*time.Second - ms)
		require.Zero(t, n.asked("renew"))
		w.requireLeft(4*time.Second+ms, l)
		w.Until(2 * time.Second)
		require.Equal(t, 1, n.asked("renew"))
		w.requireLeft(lease, l)
		w.Until(2 * time.Minute)
		require.NoError(t, l.Err())
		// Jitter takes away up to a tenth.
		require.InDelta(t, 60*1.05, n.asked("renew"), 60*0.07)
		w.Do("FLUSHALL")
		w.Advance(lease / 3)
		require.ErrorIs(t, l.Err(), berth.ErrLost)
		require.ErrorIs(t, l.Release(context.Background()), berth.ErrLost)
		w.RequireIdle()
	})
}

func TestAMaxHoldThatEndsWhileItsHolderRenewsHasExpired(t *testing.T) {
	inWorld(t, func(_ *testing.T, w *world) {
		opts := &qlock.LockOptions{MaxHold: 8 * time.Second}
		w.RequireRenewedToItsMaximum(opts.MaxHold, func() berth.Hold { return w.node().take(opts) })
	})
}

func TestMaxHoldEndsALockHoweverItIsRenewed(t *testing.T) {
	each(t, map[string]qlock.LockOptions{
		"longer than the lease":                 {MaxHold: 8 * time.Second},
		"of a lock without end":                 {MaxHold: 8 * time.Second, Lease: berth.Forever},
		"of a lease longer than the wait lease": {MaxHold: 20 * time.Second, Lease: 8 * time.Second},
	}, func(t *testing.T, w *world, opts qlock.LockOptions) {
		n, other := w.node(), w.node()
		l := n.take(&opts)
		next := other.queue(nil)
		ended := w.Watch(l)
		limit := opts.MaxHold
		for w.Now() < limit*9/10 {
			w.Advance(limit / 10)
			require.NoError(t, l.Renew(context.Background()))
			require.NoError(t, l.Extend(context.Background(), limit))
		}
		e := <-ended
		require.ErrorIs(t, e.Cause, berth.ErrExpired)
		testkit.RequireWithin(t, limit-2*ms-min(cmp.Or(opts.Lease, lease), limit)/100, e.At)
		require.True(t, next.Pending())
		release(t, next.GrantedWithin(limit, ms))
		w.RequireIdle()
	})
}

func TestForeverIsConfirmedBeforeTheCallReturnsAndNeverEnds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.connect()
		l := n.take(&qlock.LockOptions{Lease: berth.Forever})
		require.Equal(t, map[string]int{"lock_acquire": 1, "lock_renew": 1}, n.Counts())
		require.EqualValues(t, 1, w.Field("forever"))
		require.Equal(t, berth.Forever, l.Left())
		require.EqualValues(t, -1, w.Int("PTTL", stateKey))
		info := n.info()
		require.Equal(t, berth.Forever, info.Left)
		require.NoError(t, l.Renew(context.Background()))
		require.NoError(t, l.Extend(context.Background(), time.Hour))
		n.Cut()
		w.Advance(10 * time.Minute)
		require.NoError(t, l.Err())
		n.Mend()
		release(t, l)
		w.RequireIdle()
		require.Positive(t, w.Int("PTTL", stateKey), "its end puts the expiry back")
	})
}

func TestAHolderThatIsCutOffLosesItsLockBeforeTheNextIsGranted(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, other := w.node(), w.node(node.Config{Lease: time.Minute})
		l := n.take(nil)
		next := other.queue(nil)
		w.Advance(10 * time.Second)
		require.NoError(t, l.Err())
		ended := w.Watch(l)
		synctest.Wait()
		n.Cut()
		left, ok := w.LeftOf(l.ID())
		require.True(t, ok)
		deadline := w.Now() + left
		e := <-ended
		require.ErrorIs(t, e.Cause, berth.ErrLost)
		require.ErrorIs(t, e.Cause, berth.ErrNotHeld)
		testkit.RequireWithin(t, deadline-margin, e.At)
		require.True(t, next.Pending())
		held := next.GrantedBy(deadline)
		require.Greater(t, held.Fence(), l.Fence())
		require.ErrorIs(t, l.Renew(context.Background()), berth.ErrLost)
		release(t, held)
	})
}

func TestExtendMovesTheEndOfAFixedLeaseOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		l := n.take(&qlock.LockOptions{NoRenew: true, Lease: 4 * time.Second})
		ended := w.Watch(l)
		w.Until(time.Second)
		require.NoError(t, l.Extend(ctx, 3*time.Second))
		w.requireLeft(6*time.Second, l, "4 s and 3 s, at 1 s")
		require.Equal(t, 6*time.Second-42*ms, l.Left())
		require.NoError(t, l.Extend(ctx, 500*ms))
		w.requireLeft(6500*ms, l, "another one is added to it")
		w.Until(2 * time.Second)
		require.NoError(t, l.Renew(ctx))
		w.requireLeft(5500*ms, l, "a renewal brings it no nearer")
		w.Until(5 * time.Second)
		require.NoError(t, l.Renew(ctx))
		w.requireLeft(4*time.Second, l, "and moves it where it gives more")
		e := <-ended
		testkit.RequireWithin(t, 9*time.Second-42*ms, e.At)
		require.ErrorIs(t, e.Cause, berth.ErrExpired)
		ev := n.Told(observe.Extended)[0]
		require.Equal(t, []any{3 * time.Second, 6*time.Second - 42*ms, l.Fence()}, []any{ev.Lease, ev.Left, ev.Fence})
	})
}

func TestRenewalsKeepWhatExtendAdded(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		l := n.take(nil)
		w.Until(time.Second)
		require.NoError(t, l.Extend(context.Background(), 30*time.Second))
		w.requireLeft(36*time.Second, l, "the call renews, and adds")
		w.Advance(0)
		require.Equal(t, 36*time.Second-margin, l.Left())
		w.Until(31 * time.Second)
		require.Greater(t, n.Count("lock_renew"), 12)
		w.requireLeft(lease, l)
		w.Until(time.Minute)
		left, ok := w.LeftOf(l.ID())
		require.True(t, ok)
		require.LessOrEqual(t, left, lease, "it was added once")
		require.Greater(t, left, lease/2, "and it renews")
		require.NoError(t, l.Err())
	})
}

func TestAnExtendWhoseReplyIsLostAddsOnce(t *testing.T) {
	each(t, map[string]qlock.LockOptions{
		"fixed": {NoRenew: true}, "renewing": {},
	}, func(t *testing.T, w *world, opts qlock.LockOptions) {
		n := w.node()
		l := n.take(&opts)
		for i := range time.Duration(3) {
			n.Once("lock_renew", link.LoseReply)
			require.NoError(t, l.Extend(context.Background(), 10*time.Second))
			left, ok := w.LeftOf(l.ID())
			require.True(t, ok)
			// Repeated soon: a renewing one starts anew with the call.
			require.InDelta(t, lease+(i+1)*10*time.Second, left, float64(time.Second))
			w.honest(l)
		}
	})
}

// Its reply is lost, and somebody else extends before it is repeated.
func TestAnExtendIsReplayedThoughAnotherCameInBetween(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node(node.Config{Retry: berth.Retry{Base: 500 * ms, Jitter: -1}})
		other := w.node()
		l := n.take(&qlock.LockOptions{NoRenew: true})
		n.Once("lock_renew", link.LoseReply)
		extended := make(chan error, 1)
		go func() { extended <- l.Extend(context.Background(), 10*time.Second) }()
		synctest.Wait()
		w.requireLeft(16*time.Second, l, "it ran all the same")
		require.NoError(t, other.extend(context.Background(), door, time.Second))
		w.requireLeft(17*time.Second, l)
		require.NoError(t, <-extended)
		w.requireLeft(17*time.Second-w.Now(), l, "once each")
		w.honest(l)
	})
}

func TestAnOperatorsExtendIsHeardWithTheNextCheck(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, other := w.node(), w.node()
		l := n.take(&qlock.LockOptions{NoRenew: true})
		ended := w.Watch(l)
		w.Until(500 * ms)
		require.ErrorIs(t, other.extend(ctx, "another", time.Second), berth.ErrNotHeld)
		other.Once("lock_extend", link.LoseReply)
		require.NoError(t, other.extend(ctx, door, 10*time.Second))
		w.requireLeft(16*time.Second-w.Now(), l, "once")
		require.Equal(t, lease-w.Now()-margin, l.Left(), "nobody has told the holder")
		w.Until(2 * time.Second) // a third of its lease
		require.Equal(t, 14*time.Second-margin, l.Left())
		e := <-ended
		testkit.RequireWithin(t, 16*time.Second-margin, e.At)
		for _, by := range []time.Duration{0, -1, berth.Forever, ms + 1} {
			requireInvalid(t, "by", other.extend(ctx, door, by))
			requireInvalid(t, "by", l.Extend(ctx, by))
		}
	})
}

func TestAForcedExtendKeepsWhatACutOffHolderHasFromTheNext(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, other := w.node(), w.node()
		l := n.take(&qlock.LockOptions{MaxHold: 20 * time.Second})
		next := other.queue(nil)
		n.Cut()
		w.Until(time.Second)
		require.NoError(t, other.extend(context.Background(), door, 4*time.Second))
		w.requireLeft(9*time.Second, l)
		w.Until(9 * time.Second)
		testkit.RequirePending(w.T, next)
		require.ErrorIs(t, l.Err(), berth.ErrLost)
		require.NoError(t, other.extend(context.Background(), door, time.Hour))
		w.requireLeft(11*time.Second, l, "no further than the maximum hold")
		release(t, next.GrantedWithin(20*time.Second, ms))
	})
}
