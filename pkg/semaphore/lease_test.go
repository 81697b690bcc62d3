package semaphore_test

import (
	"cmp"
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/semaphore"
)

func TestAPermitIsRenewedAtAThirdOfItsLease(t *testing.T) {
	for capacity, script := range map[int]string{1: "thin_renew", 2: "semaphore_renew"} {
		t.Run(script, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n := w.node()
				p := n.take(capacity, nil)
				w.Until(2*time.Second - ms)
				require.Zero(t, n.Count(script))
				left, _ := w.LeftOf(p.ID())
				require.Equal(t, 4*time.Second+ms, left)
				w.Until(2 * time.Second)
				require.Equal(t, 1, n.Count(script))
				left, _ = w.LeftOf(p.ID())
				require.Equal(t, lease, left)
				w.Until(10 * time.Minute)
				require.NoError(t, p.Err())
				// Jitter takes away up to a tenth.
				require.InDelta(t, 300*1.05, n.Count(script), 300*0.06)
				require.NoError(t, p.Release(context.Background()))
				require.NoError(t, p.Release(context.Background()), "nil ever after")
				require.ErrorIs(t, p.Err(), berth.ErrReleased)
				require.ErrorIs(t, context.Cause(p.Context()), berth.ErrReleased)
				w.RequireIdle()
				p = n.take(capacity, nil)
				w.Do("FLUSHALL")
				w.Advance(lease / 3)
				require.ErrorIs(t, p.Err(), berth.ErrLost, "the server does not know it")
			})
		})
	}
}

func TestAHolderThatIsCutOffLosesItsPermitBeforeTheServerDoes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		p := n.take(1, nil)
		w.Advance(10 * time.Second)
		require.NoError(t, p.Err())
		ended := w.Watch(p)
		synctest.Wait()
		n.Cut()
		left, ok := w.LeftOf(p.ID())
		require.True(t, ok)
		deadline := w.Now() + left
		e := <-ended
		require.ErrorIs(t, e.Cause, berth.ErrLost)
		require.ErrorIs(t, e.Cause, berth.ErrNotHeld)
		testkit.RequireWithin(t, deadline-margin, e.At)
		require.ErrorIs(t, p.Renew(context.Background()), berth.ErrLost)
	})
}

func TestTheLocalDeadlineCountsFromTheStartOfTheRequest(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.connect()
		n.Delay(func() time.Duration { return 50 * ms })
		start := w.Now()
		p := n.take(1, &semaphore.AcquireOptions{NoRenew: true})
		require.Equal(t, start+100*ms, w.Now())
		e := <-w.Watch(p)
		testkit.RequireWithin(t, start+lease-margin, e.At)
		require.ErrorIs(t, e.Cause, berth.ErrExpired)
	})
}

func TestAPermitThatDoesNotRenewExpiresAtTheEndOfItsLease(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		p := n.take(1, &semaphore.AcquireOptions{NoRenew: true})
		e := <-w.Watch(p)
		testkit.RequireWithin(t, lease-margin, e.At)
		require.ErrorIs(t, e.Cause, berth.ErrExpired)
		require.ErrorIs(t, p.Err(), berth.ErrNotHeld)
		w.Until(lease - ms)
		require.Equal(t, 1, w.stats().Held)
		w.Until(lease)
		require.Equal(t, 0, w.stats().Held)
		require.ErrorIs(t, p.Release(context.Background()), berth.ErrExpired)
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
		release(t, held)
		w.RequireIdle()
	})
}

func TestRenewSetsAFixedLeaseAnew(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		p := n.take(1, &semaphore.AcquireOptions{NoRenew: true, Lease: time.Second})
		ended := w.Watch(p)
		for range 10 {
			w.Advance(900 * ms)
			require.NoError(t, p.Renew(context.Background()))
			left, _ := w.LeftOf(p.ID())
			require.Equal(t, time.Second, left)
		}
		testkit.RequireWithin(t, 10*time.Second-12*ms, (<-ended).At)
	})
}

func TestAMaxHoldThatEndsWhileItsHolderRenewsHasExpired(t *testing.T) {
	inWorld(t, func(_ *testing.T, w *world) {
		opts := &semaphore.AcquireOptions{MaxHold: 8 * time.Second}
		w.RequireRenewedToItsMaximum(opts.MaxHold, func() berth.Hold { return w.node().take(1, opts) })
	})
}

func TestMaxHoldEndsAPermitHoweverItIsRenewed(t *testing.T) {
	for name, opts := range map[string]semaphore.AcquireOptions{
		"longer than the lease":   {MaxHold: 8 * time.Second},
		"of a permit without end": {MaxHold: 8 * time.Second, Lease: berth.Forever},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n := w.node()
				p := n.take(1, &opts)
				ended := w.Watch(p)
				limit := opts.MaxHold
				for w.Now() < limit*9/10 {
					w.Advance(limit / 10)
					require.NoError(t, p.Renew(context.Background()))
				}
				e := <-ended
				require.ErrorIs(t, e.Cause, berth.ErrExpired)
				testkit.RequireWithin(t, limit-2*ms-min(cmp.Or(opts.Lease, lease), limit)/100, e.At)
				w.Until(limit - ms)
				require.Equal(t, 1, w.stats().Held)
				w.Until(limit)
				require.Zero(t, w.stats().Held)
			})
		})
	}
}

func TestAMaxHoldWithoutEndIsNone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		w.Advance(time.Second)
		p := n.take(1, &semaphore.AcquireOptions{MaxHold: berth.Forever})
		w.Advance(5 * time.Minute)
		require.NoError(t, p.Err())
		require.NoError(t, p.Release(context.Background()))
	})
}
