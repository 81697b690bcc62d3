package semaphore_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/semaphore"
)

func TestAResizeUpGrantsToManyMoreThanOneScriptMay(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.take(1, nil)
		for range 110 {
			n.queue(1, nil)
		}
		require.NoError(t, n.resize(111))
		synctest.Wait()
		require.Equal(t, counts{Held: 111, Holders: 111, Capacity: 111}, w.stats())
	})
}

func TestAnOverridingSemaphoreStoresItsOwnCapacity(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, override := w.node(), w.with(semaphore.Config{CapacityPolicy: semaphore.CapacityOverride})
		a.take(1, nil)
		waits := []*wait{a.queue(1, nil), a.queue(1, nil)}
		override.take(4, nil)
		for _, q := range waits {
			q.Granted(0) // they came first
		}
		require.Empty(t, override.Told(observe.CapacityDiffers))
		require.Equal(t, counts{Held: 4, Holders: 4, Capacity: 4}, w.stats())
		_, err := override.gpu(1).TryAcquire(context.Background(), &semaphore.AcquireOptions{Weight: 2})
		var refusal *berth.AcquireError
		require.ErrorAs(t, err, &refusal)
		require.Equal(t, berth.ReasonTooHeavy, refusal.Reason)
		require.Equal(t, 4, w.stats().Capacity, "a refusal stores nothing")
	})
}

func TestAnIdleSemaphoreIsForgottenAfterTheLinger(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node(node.Config{Linger: 5 * time.Second})
		require.NoError(t, n.take(2, nil).Release(context.Background()))
		w.Until(5*time.Second - ms)
		require.Equal(t, 2, w.stats().Capacity)
		w.Advance(ms)
		require.Zero(t, w.stats().Capacity)
		n.take(7, nil)
		require.Equal(t, 7, w.stats().Capacity)
	})
}
