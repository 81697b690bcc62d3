package allocator_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/observe"
)

// The end of every process in these tests looks at that too: see testkit.Process.Shut.
func TestTheEventsSayHowManyWaitForAResource(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		granted, leaves, late := n.queue(nil), n.queue(nil), n.queue(&allocator.AllocateOptions{MaxWait: 10 * lease})
		require.Equal(t, 3, n.Waiting(), "for a pool that is empty")
		w.add("a")
		<-granted.Done
		require.Equal(t, 2, n.Waiting())
		leaves.Cancel(nil)
		<-leaves.Done
		require.Equal(t, 1, n.Waiting())
		<-late.Done
		require.Zero(t, n.Waiting())

		n.queue(nil)
		require.Equal(t, 1, n.Waiting())
		require.NoError(t, n.node.Close(context.Background()))
		require.Zero(t, n.Waiting())
	})
}

// Each claim of the call is one who waits, and none is counted between two of them.
func TestTheEventsSayHowManyWaitForAHealthyResource(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		bad := 2
		n := w.nodeOf(allocator.PoolConfig[string]{
			FailureRest: time.Second,
			Healthy: func(context.Context, string) error {
				if bad--; bad >= 0 {
					return errors.New("worn out")
				}
				return nil
			},
		})
		q := testkit.Queue(ctx, w.World, func(ctx context.Context) (*allocator.Allocation[string], error) {
			return n.AllocateHealthy(ctx, nil)
		})
		require.Equal(t, 1, n.Waiting())
		w.add("a")
		<-q.Done
		require.NoError(t, q.Err)
		require.Zero(t, n.Waiting())
		require.Len(t, n.Told(observe.Queued), 3)
		require.Len(t, n.Told(observe.Granted), 3)
	})
}

func TestATryThatWaitsForTheSourceDoesNotWaitInLine(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.nodeOf(allocator.PoolConfig[string]{Source: slowly(3*time.Second, "a")})
		_, err := n.TryAllocate(context.Background(), nil)
		require.NoError(t, err)
		require.Zero(t, n.Waiting())
		require.Empty(t, n.Told(observe.Queued))
		require.Len(t, n.Told(observe.Refused), 1)
		require.Len(t, n.Told(observe.Granted), 1)
	})
}
