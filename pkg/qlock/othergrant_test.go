package qlock_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
)

// A push grants, a failover loses that, and the next hand-off on the new master grants
// anew: whatever checks fences would refuse the one of the handle.
func TestALockWhoseGrantAFailoverHasReplacedIsLost(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		other, n, op := w.node(), w.node(), w.node()
		x := other.take(nil)
		q := n.queue(nil)
		failover := w.Snapshot()
		require.NoError(t, x.Release(ctx))
		held := q.Granted(w.Now())
		failover()
		w.Advance(ms)
		require.NoError(t, op.end(ctx, door))
		require.Greater(t, w.Field("fence"), held.Fence())
		w.Advance(lease / 3)
		require.ErrorIs(t, held.Err(), berth.ErrLost)
		require.ErrorIs(t, held.Release(ctx), berth.ErrLost)
		require.Zero(t, w.Field("used"))
	})
}
