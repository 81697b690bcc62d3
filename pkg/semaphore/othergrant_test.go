package semaphore_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
)

// A push grants, a failover loses that, and the next release on the new master grants
// anew: the fence of the handle is one that others may have passed.
func TestAPermitWhoseGrantAFailoverHasReplacedIsLost(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		other, n := w.node(), w.node()
		x, y := other.take(2, nil), other.take(2, nil)
		q := n.queue(2, nil)
		failover := w.Snapshot()
		require.NoError(t, x.Release(ctx))
		held := q.Granted(w.Now())
		failover()
		w.Advance(ms)
		require.NoError(t, y.Release(ctx))
		require.Greater(t, w.Field("fence"), held.Fence())
		w.Advance(lease / 3)
		require.ErrorIs(t, held.Err(), berth.ErrLost)
		require.ErrorIs(t, held.Release(ctx), berth.ErrLost)
		w.Advance(lease)
		w.stats()
		w.RequireIdle()
	})
}
