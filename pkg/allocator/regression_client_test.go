package allocator_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
)

func TestASharedAllocationThatEndsWithItsClientIsToldOf(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		n := w.nodeOf(inTurn)
		a := n.takes("a", nil)
		require.NoError(t, n.client.Close(context.Background()))
		<-a.Done()
		n.requireEnded()
	})
}

func TestAllocateHealthyEndsWithMaxWaitWhereSomethingIsAlwaysFree(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		n := w.nodeOf(allocator.PoolConfig[string]{FailureRest: -1, Healthy: func(context.Context, string) error {
			if w.Now() > 30*time.Second {
				return nil
			}
			return errMine
		}})
		_, err := n.AllocateHealthy(t.Context(), &allocator.AllocateOptions{MaxWait: 2 * time.Second})
		require.ErrorIs(t, err, berth.ErrNotAcquired)
		require.ErrorIs(t, err, errMine)
		require.Less(t, w.Now(), 4*time.Second, "and a pause")
	})
}
