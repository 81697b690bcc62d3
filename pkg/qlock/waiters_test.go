package qlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/qlock"
)

// The end of every process in these tests looks at that too: see testkit.Process.Shut.
func TestTheEventsSayHowManyWaitForALock(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		n := w.node()
		l := w.node().take(nil)
		granted, leaves, late := n.queue(nil), n.queue(nil), n.queue(&qlock.LockOptions{MaxWait: 10 * lease})
		require.Equal(t, 3, n.Waiting())
		require.NoError(t, l.Release(ctx))
		<-granted.Done
		require.Equal(t, 2, n.Waiting())
		leaves.Cancel(nil)
		<-leaves.Done
		require.Equal(t, 1, n.Waiting())
		<-late.Done
		require.Zero(t, n.Waiting())

		n.queue(nil)
		require.Equal(t, 1, n.Waiting())
		require.NoError(t, n.Close(ctx))
		require.Zero(t, n.Waiting())
	})
}

// One who waits for several locks is a claim after the other.
func TestTheEventsSayHowManyWaitForAllLocksOfASet(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		n, other := w.node(), w.node()
		names := []string{"a", "b", "c"}
		var held []*qlock.Lock
		for _, name := range names {
			l, err := other.Lock(ctx, name, nil)
			require.NoError(t, err)
			held = append(held, l)
		}
		all := func(maxWait time.Duration) *testkit.Wait[*qlock.LockSet] {
			return testkit.Queue(ctx, n.w.World, func(ctx context.Context) (*qlock.LockSet, error) {
				return n.LockAll(ctx, names, &qlock.LockOptions{MaxWait: maxWait})
			})
		}
		gets, late := all(0), all(time.Second)
		require.Equal(t, 2, n.Waiting())
		<-late.Done
		require.ErrorIs(t, late.Err, berth.ErrNotAcquired)
		require.Equal(t, 1, n.Waiting())
		for _, l := range held {
			require.NoError(t, l.Release(ctx))
		}
		<-gets.Done
		require.NoError(t, gets.Err)
		require.Zero(t, n.Waiting())
		require.NoError(t, gets.Got.Release(ctx))
	})
}

// A wait that goes on under the next node is another claim's: the former one's ends first.
func TestTheEventsSayHowManyWaitAcrossAReplacement(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.member(), w.member()
		l := b.take(nil)
		waits := a.queue(nil)
		require.Equal(t, 1, a.Waiting())
		a.condemn()
		require.True(t, waits.Pending())
		require.Equal(t, 1, a.Waiting(), "under its new node")
		require.Len(t, a.Told(observe.Queued), 2)
		require.Len(t, a.Told(observe.Cancelled), 1)
		waits.Cancel(nil)
		<-waits.Done
		require.Zero(t, a.Waiting())
		require.NoError(t, l.Release(context.Background()))
	})
}
