package allocator_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/allocator"
)

// renewFor gives a hold another lease, or fails.
func (w *world) renewFor(a *allocator.Allocation[string], d time.Duration) {
	w.T.Helper()
	require.NoError(w.T, a.RenewFor(ctx, d))
	require.Equal(w.T, d, a.Lease())
}

// requireLeft fails unless the server keeps a hold for so long, and its holder believes in it
// up to the margin.
func (w *world) requireLeft(a *allocator.Allocation[string], left time.Duration) {
	w.T.Helper()
	kept, ok := w.LeftOf(a.ID())
	require.True(w.T, ok)
	require.Equal(w.T, left, kept)
	require.NoError(w.T, a.Err())
	require.Equal(w.T, left-2*ms-a.Lease()/100, a.Left())
}

func TestAHoldGoesByALongerLeaseOnceItAsksForOne(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node("a")
		held := n.takes("a", nil)
		w.Until(time.Second)
		w.renewFor(held, 10*time.Minute)
		w.requireLeft(held, 10*time.Minute)
		w.Until(time.Minute)
		require.NoError(t, held.Err())
		left, _ := w.LeftOf(held.ID())
		require.Greater(t, left, 10*time.Minute-lease/3, "its heartbeats go by it, and come as often as before")
		n.Die()
		w.Advance(left - ms)
		require.Equal(t, held.ID(), w.holder("a"))
		w.Advance(ms)
		require.Empty(t, w.holder("a"))
	})
}

func TestAShorterLeaseTakesNoTimeAway(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node("a")
		held := n.takes("a", &allocator.AllocateOptions{Lease: time.Minute})
		w.Until(10 * time.Second) // confirmed
		left, _ := w.LeftOf(held.ID())
		ends := w.Now() + left
		w.renewFor(held, 3*time.Second)
		w.requireLeft(held, left)
		n.Cut()
		w.Until(ends - time.Second)
		require.NoError(t, held.Err(), "as long as it had before")
		n.Mend()
		w.Advance(500 * ms)
		left, _ = w.LeftOf(held.ID())
		require.Greater(t, left, 2*time.Second, "from here on the new lease reaches further")
		w.Advance(time.Minute)
		require.NoError(t, held.Err())
		n.Die()
		w.Advance(3 * time.Second)
		require.Empty(t, w.holder("a"))
	})
}

// A deadline that is further off than any lease of the hold explains comes from a clock that
// went back.
func TestARenewalTakesBackWhatNoLeaseOfTheHoldExplains(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		held := w.node("a").takes("a", &allocator.AllocateOptions{Lease: time.Minute})
		w.Until(10 * time.Second)
		w.renewFor(held, 3*time.Second)
		w.Do("ZINCRBY", lineKey, "3600000", "h:"+held.ID())
		require.NoError(t, held.Renew(t.Context()))
		w.requireLeft(held, time.Minute)
		w.Until(5 * time.Minute)
		w.Do("ZINCRBY", lineKey, "3600000", "h:"+held.ID())
		require.NoError(t, held.Renew(t.Context()))
		w.requireLeft(held, 3*time.Second)
	})
}

func TestAFixedLeaseLastsFromTheCallOnOrAsBefore(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		held := w.node("a").takes("a", &allocator.AllocateOptions{NoRenew: true, Lease: time.Minute})
		w.Until(10 * time.Second)
		w.renewFor(held, 5*time.Second)
		w.requireLeft(held, 50*time.Second)
		w.Until(58 * time.Second)
		w.renewFor(held, 10*time.Second)
		w.requireLeft(held, 10*time.Second)
		w.Until(60 * time.Second)
		require.NoError(t, held.Renew(t.Context()))
		w.requireLeft(held, 10*time.Second)
		e := <-w.Watch(held)
		require.ErrorIs(t, e.Cause, berth.ErrExpired)
		testkit.RequireWithin(t, 70*time.Second-102*ms, e.At)
		require.ErrorIs(t, held.RenewFor(t.Context(), time.Minute), berth.ErrExpired)
	})
}

// The call may have run, and has left at least what the longer lease had.
func TestARenewalWithoutAnAnswerTakesBackNothingOfALongerLease(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.nodeWith(once, allocator.Config[string]{}, "a").connect()
		held := n.takes("a", &allocator.AllocateOptions{NoRenew: true, Lease: time.Minute})
		w.renewFor(held, 100*ms)
		n.Cut()
		require.ErrorIs(t, held.Renew(t.Context()), berth.ErrUnavailable)
		w.Until(time.Second)
		require.NoError(t, held.Err())
		require.InDelta(t, 59*time.Second, held.Left(), float64(10*ms))
	})
}

func TestAHoldMayAskForALeaseWithoutEnd(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node("a")
		held := n.takes("a", nil)
		w.renewFor(held, berth.Forever)
		require.Equal(t, berth.Forever, held.Left())
		require.EqualValues(t, 1, w.Field("forever"))
		require.Contains(t, w.Record(held.ID()), " f ", "nobody has to renew it")
		w.Until(10 * time.Minute)
		require.NoError(t, held.Err())
		requireInvalid(t, "d", held.RenewFor(ctx, time.Hour), "no renewal may bring the end nearer")
		w.renewFor(held, berth.Forever)
		again := must(n.Resume(ctx, detach(t, held)))(t)
		require.Equal(t, berth.Forever, again.Lease())
		w.release(again)
		w.requireIdle()
	})
}

func TestTheMaximumHoldBoundsAnotherLease(t *testing.T) {
	leases := map[string]time.Duration{"longer": time.Hour, "without end": berth.Forever}
	inEach(t, leases, func(t *testing.T, w *world, d time.Duration) {
		held := w.node("a").takes("a", &allocator.AllocateOptions{MaxHold: 20 * time.Second})
		w.Until(5 * time.Second)
		w.renewFor(held, d)
		left, _ := w.LeftOf(held.ID())
		require.Equal(t, 15*time.Second, left)
		e := <-w.Watch(held)
		require.ErrorIs(t, e.Cause, berth.ErrExpired)
		require.Greater(t, e.At, 19*time.Second)
		w.Until(20 * time.Second)
		require.Empty(t, w.holder("a"))
		require.Zero(t, w.Field("forever"))
	})
}

func TestSwapDetachAndResumeKeepTheLease(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, m := w.node("a", "b"), w.node()
		held := n.takes("a", nil)
		w.renewFor(held, time.Minute)
		require.NoError(t, held.Swap(t.Context()))
		require.Equal(t, time.Minute, held.Lease())
		token := detach(t, held)
		w.Advance(30 * time.Second)
		again := must(m.Resume(t.Context(), token))(t)
		require.Equal(t, time.Minute, again.Lease())
		w.requireLeft(again, time.Minute)
	})
}

// The first own call of a hold confirms it: what it names counts from then on.
func TestRenewForMayBeTheFirstCallOfAHold(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		held := w.node("a").takes("a", &allocator.AllocateOptions{Lease: time.Hour})
		require.Equal(t, byte('g'), w.PhaseOf(held.ID()))
		w.renewFor(held, 2*time.Second)
		require.Equal(t, byte('h'), w.PhaseOf(held.ID()))
		w.requireLeft(held, lease)
		w.Until(time.Minute)
		require.NoError(t, held.Err())
		left, _ := w.LeftOf(held.ID())
		require.LessOrEqual(t, left, 2*time.Second)
	})
}

func TestALeaseThatCannotBeIsRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node("a")
		held := n.takes("a", nil)
		n.Fresh()
		for _, d := range []time.Duration{0, -time.Second, 19 * ms, 20*ms + 1} {
			requireInvalid(t, "d", held.RenewFor(ctx, d), d)
		}
		require.Empty(t, n.Scripts())
		w.renewFor(held, 20*ms)
		w.release(held)
		require.ErrorIs(t, held.RenewFor(ctx, time.Minute), berth.ErrReleased)
	})
}

func TestARenewForWhoseAnswerIsLostHasHappenedOnce(t *testing.T) {
	inEach(t, fates, func(t *testing.T, w *world, fate link.Fate) {
		n := w.node("a").connect()
		held := n.takes("a", nil)
		n.Once("pool_renew", fate)
		w.renewFor(held, time.Minute)
		left, _ := w.LeftOf(held.ID())
		require.InDelta(t, time.Minute, left, float64(100*ms))
	})
}

// After an error nobody knows whether the server has the new lease. The next heartbeat sees to it.
func TestAfterAnErrorTheLeaseIsAsBefore(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.nodeWith(once, allocator.Config[string]{}, "a").connect()
		held := n.takes("a", &allocator.AllocateOptions{Lease: time.Minute})
		w.Until(10 * time.Second)
		n.Once("pool_renew", link.LoseReply)
		require.ErrorIs(t, held.RenewFor(t.Context(), 100*ms), berth.ErrUnavailable)
		require.Equal(t, time.Minute, held.Lease())
		require.Contains(t, w.Record(held.ID()), " 100 0 ", "it has run")
		w.Advance(lease / 3)
		require.NoError(t, held.Err())
		left, _ := w.LeftOf(held.ID())
		require.Greater(t, left, time.Minute-lease/3)
		require.Contains(t, w.Record(held.ID()), " 60000 0 ")
	})
}

// The first copy of a call comes when the hold has another lease already.
func TestALateCopyOfARenewForTakesNothing(t *testing.T) {
	inEach(t, map[string]bool{"a lease": false, "a fixed lease": true}, func(t *testing.T, w *world, fixed bool) {
		n := w.node("a").connect()
		held := n.takes("a", &allocator.AllocateOptions{NoRenew: fixed})
		n.Once("pool_renew", link.Late)
		w.renewFor(held, 100*ms)
		w.renewFor(held, 10*time.Minute)
		require.Equal(t, 1, must(n.DeliverLate())(t))
		synctest.Wait()
		require.Contains(t, w.Record(held.ID()), " 100 0 ")
		w.Advance(lease / 3)
		require.NoError(t, held.Renew(t.Context()))
		require.Contains(t, w.Record(held.ID()), " 600000 0 ", "every call names it")
		require.InDelta(t, 10*time.Minute-6002*ms, held.Left(), float64(ms))
	})
}

// An operator's limit counts for a hold that asks for more than it has; no hold loses anything by it.
func TestALeaseAboveThePoolsLimitIsRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		held := w.node("a").takes("a", nil)
		w.set("", allocator.Settings{MaxLease: 10 * time.Second})
		refused := func(d time.Duration) {
			t.Helper()
			err := held.RenewFor(t.Context(), d)
			requireInvalid(t, "d", err)
			require.ErrorContains(t, err, "10s")
		}
		w.Advance(time.Second)
		refused(10*time.Second + ms)
		refused(berth.Forever)
		require.Equal(t, lease, held.Lease())
		w.requireLeft(held, lease)
		w.renewFor(held, 10*time.Second)
		w.requireLeft(held, 10*time.Second)
		refused(time.Minute)

		// One that was longer before the limit was set goes on, through calls and heartbeats.
		w.set("", allocator.Settings{MaxLease: time.Second})
		require.NoError(t, held.Renew(t.Context()))
		w.Advance(time.Minute)
		require.NoError(t, held.Err())
		w.renewFor(held, 2*time.Second)
	})
}
