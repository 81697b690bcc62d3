package allocator_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/allocator"
)

func TestAHoldIsRenewedAtAThirdOfItsLease(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		n := w.node()
		held := n.takes("a", nil)
		w.Until(2*time.Second - ms)
		require.Zero(t, n.Count("pool_renew"))
		left, _ := w.LeftOf(held.ID())
		require.Equal(t, 4*time.Second+ms, left)
		w.Until(2 * time.Second)
		require.Equal(t, 1, n.Count("pool_renew"))
		left, _ = w.LeftOf(held.ID())
		require.Equal(t, lease, left)
		w.Until(time.Minute)
		require.NoError(t, held.Err())
		// Jitter takes away up to a tenth.
		require.InDelta(t, 30*1.05, n.Count("pool_renew"), 30*0.06)
		require.Equal(t, "a", held.Resource())
		w.release(held)
		require.NoError(t, held.Release(context.Background()), "nil ever after")
		require.ErrorIs(t, held.Err(), berth.ErrReleased)
		require.Equal(t, "a", held.Resource(), "that stays known")
		w.requireIdle()
	})
}

func TestAHoldThatDoesNotRenewExpiresAtTheEndOfItsLease(t *testing.T) {
	for _, length := range []time.Duration{20 * ms, lease, time.Minute} {
		t.Run(length.String(), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.add("a")
				n := w.node()
				held := n.takes("a", &allocator.AllocateOptions{NoRenew: true, Lease: length})
				if length > lease {
					require.Equal(t, byte('h'), w.PhaseOf(held.ID()), "confirmed before it was returned")
				}
				require.Equal(t, length-2*ms-length/100, held.Left())
				e := <-w.Watch(held)
				testkit.RequireWithin(t, length-2*ms-length/100, e.At)
				require.ErrorIs(t, e.Cause, berth.ErrExpired)
				require.NotErrorIs(t, e.Cause, berth.ErrLost)
				w.Until(length - ms)
				require.Equal(t, held.ID(), w.holder("a"))
				w.Until(length)
				require.Equal(t, allocator.Free, w.status("a").State)
				require.ErrorIs(t, held.Release(context.Background()), berth.ErrExpired)
				w.requireIdle()
			})
		})
	}
}

func TestRenewSetsAFixedLeaseAnew(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		held := w.node().takes("a", &allocator.AllocateOptions{NoRenew: true, Lease: time.Second})
		ended := w.Watch(held)
		for range 10 {
			w.Advance(900 * ms)
			require.NoError(t, held.Renew(context.Background()))
			left, _ := w.LeftOf(held.ID())
			require.Equal(t, time.Second, left)
		}
		testkit.RequireWithin(t, 10*time.Second-12*ms, (<-ended).At)
	})
}

func TestMaxHoldEndsAHoldHoweverItIsRenewed(t *testing.T) {
	for name, opts := range map[string]allocator.AllocateOptions{
		"longer than the lease":                {MaxHold: 20 * time.Second},
		"shorter than the lease":               {MaxHold: time.Second},
		"of one without end":                   {MaxHold: 20 * time.Second, Lease: berth.Forever},
		"of a lease longer than both together": {MaxHold: 20 * time.Second, Lease: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.add("a")
				held := w.node().takes("a", &opts)
				ended := w.Watch(held)
				for w.Now() < opts.MaxHold*8/10 {
					w.Advance(opts.MaxHold / 10)
					require.NoError(t, held.Renew(context.Background()))
				}
				length := opts.Lease
				if length == 0 {
					length = lease
				}
				e := <-ended
				require.ErrorIs(t, e.Cause, berth.ErrExpired)
				testkit.RequireWithin(t, opts.MaxHold-2*ms-min(length, opts.MaxHold)/100, e.At)
				w.Until(opts.MaxHold - ms)
				require.Equal(t, held.ID(), w.holder("a"))
				w.Until(opts.MaxHold)
				require.Empty(t, w.holder("a"))
			})
		})
	}
}

// confirmed lets time pass until the claimant's own call has begun its lease.
func (w *world) confirmed(held *allocator.Allocation[string]) {
	w.T.Helper()
	for w.PhaseOf(held.ID()) == 'g' {
		require.NoError(w.T, held.Err())
		require.Less(w.T, w.Now(), 2*lease, "it never is")
		w.Advance(ms)
	}
}

// No first grant is longer than the wait lease: a reply that is lost must not keep a
// resource for longer.
func TestALongerLeaseBeginsWithTheClaimantsNextCall(t *testing.T) {
	for name, long := range map[string]time.Duration{"ten minutes": 10 * time.Minute, "without end": berth.Forever} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.add("a")
				n := w.node()
				held := n.takes("a", &allocator.AllocateOptions{Lease: long})
				if long == berth.Forever {
					// It does not renew, so that it is confirmed before it is returned.
					require.Equal(t, 1, n.Count("pool_renew"))
				} else {
					require.Zero(t, n.Count("pool_renew"))
					require.Equal(t, byte('g'), w.PhaseOf(held.ID()))
					left, _ := w.LeftOf(held.ID())
					require.Equal(t, lease, left)
					require.Equal(t, lease-margin, held.Left())
					w.confirmed(held)
					require.LessOrEqual(t, w.Now(), 2*time.Second)
					left, _ = w.LeftOf(held.ID())
					require.InDelta(t, long, left, float64(ms))
				}
				require.Equal(t, byte('h'), w.PhaseOf(held.ID()))
				n.Die()
				w.Advance(10*time.Minute - 2*ms)
				require.Equal(t, held.ID(), w.holder("a"))
				w.Advance(2 * ms)
				if long == berth.Forever {
					require.Equal(t, held.ID(), w.holder("a"))
				} else {
					require.Empty(t, w.holder("a"))
				}
			})
		})
	}
}

func TestAHoldWithoutEndEndsWithItsRelease(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		n := w.node()
		held := n.takes("a", &allocator.AllocateOptions{Lease: berth.Forever})
		require.Equal(t, berth.Forever, held.Left())
		require.Equal(t, berth.Forever, w.status("a").Left)
		require.EqualValues(t, 1, w.Field("forever"))
		_, err := w.pool.Remove(t.Context(), []string{"a"})
		require.NoError(t, err)
		w.Until(2 * time.Minute)
		require.NoError(t, held.Err())
		require.EqualValues(t, -1, w.Expiry(), "it would be lost with its keys")
		require.True(t, w.status("a").Leaving)
		w.release(held)
		require.Zero(t, w.Field("forever"))
		testkit.RequireWithin(t, w.Now()+time.Minute, w.Expiry().Truncate(time.Second))
		w.Advance(2 * time.Minute)
		require.Empty(t, w.Keys())
	})
}

func TestAHandedOnHoldWithALimitIsConfirmedBeforeItIsReturned(t *testing.T) {
	for name, c := range map[string]struct {
		opts allocator.AllocateOptions
		left time.Duration
	}{
		"fixed and short":   {allocator.AllocateOptions{NoRenew: true, Lease: 100 * ms}, 97 * ms},
		"fixed and long":    {allocator.AllocateOptions{NoRenew: true, Lease: time.Hour}, time.Hour - 36002*ms},
		"maximum hold":      {allocator.AllocateOptions{MaxHold: 3 * time.Second}, 3*time.Second - 32*ms},
		"long maximum hold": {allocator.AllocateOptions{MaxHold: time.Hour}, lease - margin},
		"without end":       {allocator.AllocateOptions{Lease: berth.Forever}, berth.Forever},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.add("a", "b")
				w.occupy("x")
				w.occupy("y")
				n := w.node()
				q := n.queue(&c.opts)
				w.Until(time.Second)
				n.Fresh()
				w.vacate("y")
				held := q.gets(time.Second, "b")
				require.Equal(t, map[string]int{"pool_renew": 1}, n.Scripts())
				require.Equal(t, byte('h'), w.PhaseOf(held.ID()))
				require.Equal(t, c.left, held.Left(), "it runs from that call")
				if c.opts.MaxHold > 0 {
					left, _ := w.LeftOf(held.ID())
					require.Equal(t, min(lease, c.opts.MaxHold), left)
				}
				w.release(held)
				w.inspect()
			})
		})
	}
}
