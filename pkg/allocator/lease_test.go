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
		w.release(held)
		require.NoError(t, held.Release(context.Background()), "nil ever after")
		require.ErrorIs(t, held.Err(), berth.ErrReleased)
		require.Equal(t, "a", held.Resource(), "that stays known")
		w.requireIdle()
	})
}

func TestAMaxHoldThatEndsWhileItsHolderRenewsHasExpired(t *testing.T) {
	inWorld(t, func(_ *testing.T, w *world) {
		w.add("a")
		opts := &allocator.AllocateOptions{MaxHold: 8 * time.Second}
		w.RequireRenewedToItsMaximum(opts.MaxHold, func() berth.Hold { return w.node().takes("a", opts) })
	})
}

func TestAHoldWithoutEndEndsWithItsRelease(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		n := w.node()
		held := n.takes("a", &allocator.AllocateOptions{Lease: berth.Forever})
		require.Equal(t, berth.Forever, held.Left())
		require.Equal(t, berth.Forever, w.status("a").Left)
		require.EqualValues(t, 1, w.Field("forever"))
		w.remove("a")
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
