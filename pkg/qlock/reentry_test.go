package qlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/qlock"
)

func TestAnExtensionIsGivenBackExactly(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		outer := n.takeFor("me", &qlock.LockOptions{Lease: 5 * time.Second, NoRenew: true})
		require.Equal(t, 5*time.Second-52*ms, outer.Left())
		w.advance(time.Second)
		inner := n.takeFor("me", &qlock.LockOptions{Lease: 3 * time.Second, Conflict: qlock.ExtendAndWorkThrough})
		require.Equal(t, qlock.ReenteredExtended, inner.Process())
		require.Equal(t, outer.Fence(), inner.Fence())
		require.Equal(t, 7*time.Second-52*ms, outer.Left(), "lengthened with the inner's confirmation")
		require.Equal(t, 7*time.Second-52*ms, inner.Left())
		w.advance(time.Second)
		require.NoError(t, inner.Release(context.Background()))
		left, ok := w.leftOf(outer.ID())
		require.True(t, ok)
		require.Equal(t, 4*time.Second, left, "8 s less the 2 s that were not used, at 2 s")
		w.advance(0)
		require.Equal(t, 4*time.Second-52*ms, outer.Left())
		w.until(6 * time.Second)
		require.ErrorIs(t, outer.Err(), berth.ErrExpired)
	})
}

func TestTheInnerEntryGoesOnWhereTheOuterWasReleasedFirst(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, other := w.node(), w.node()
		outer := n.takeFor("me", nil)
		inner := n.takeFor("me", &qlock.LockOptions{Conflict: qlock.WorkThrough})
		require.NoError(t, outer.Release(context.Background()))
		next := other.queue(nil)
		w.advance(time.Minute)
		require.NoError(t, inner.Err(), "it renews as the outer did")
		require.True(t, next.pending())
		require.NoError(t, inner.Release(context.Background()))
		require.NoError(t, next.granted(time.Minute).Release(context.Background()))
		w.requireIdle()
	})
}

func TestTheZeroConflictIsADeadlock(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		outer := n.take(nil)
		_, err := n.Lock(outer.Context(), door, nil)
		require.ErrorIs(t, err, berth.ErrDeadlock)
		require.ErrorIs(t, err, berth.ErrNotAcquired)
		require.NoError(t, outer.Release(context.Background()))
		w.requireIdle()
	})
}
