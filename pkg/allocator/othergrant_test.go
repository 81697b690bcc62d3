package allocator_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/observe"
)

// replaced makes a handle of r1 whose claim holds r2: a push grants r1, a failover
// loses that, and the next release on the new master grants r2.
func (w *world) replaced(n *proc, opts *allocator.AllocateOptions) *allocator.Allocation[string] {
	w.T.Helper()
	w.add("r1", "r2")
	other := w.node()
	x, y := other.takes("r1", nil), other.takes("r2", nil)
	q := n.queue(opts)
	require.True(w.T, q.Pending())
	failover := w.Snapshot()
	w.release(x)
	held := q.gets(w.Now(), "r1")
	failover()
	w.Advance(ms) // else the two grants have one fence
	w.release(y)
	require.Equal(w.T, held.ID(), w.holder("r2"))
	require.NotEqual(w.T, held.ID(), w.holder("r1"), "the lease of x goes on there")
	return held
}

func TestAHoldWhoseGrantAFailoverHasReplacedIsLost(t *testing.T) {
	for name, ask := range map[string]func(w *world, held *allocator.Allocation[string]){
		"by its heartbeat": func(w *world, _ *allocator.Allocation[string]) { w.Advance(lease / 3) },
		"by Release": func(w *world, held *allocator.Allocation[string]) {
			require.ErrorIs(w.T, held.Release(context.Background()), berth.ErrLost)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n := w.node()
				held := w.replaced(n, nil)
				_ = held.Rest(time.Hour, "429")
				ask(w, held)
				synctest.Wait()
				if name != "by Release" { // which ends it before it is sent
					require.ErrorIs(t, held.Err(), berth.ErrLost)
					require.ErrorIs(t, context.Cause(held.Context()), berth.ErrLost)
				}
				require.Equal(t, allocator.Free, w.status("r2").State, "it was given back, and nobody has used it")
				require.Equal(t, []observe.Kind{observe.Subscribed, observe.Queued, observe.Granted, observe.Lost}, order(n.Kinds()))
				w.Advance(lease)
				_, err := w.ops().Sweep(t.Context(), proxies)
				require.NoError(t, err)
				w.requireIdle()
			})
		})
	}
}

// order puts a subscription first, which comes on a goroutine of its own.
func order(kinds []observe.Kind) []observe.Kind {
	sorted := []observe.Kind{observe.Subscribed}
	for _, k := range kinds {
		if k != observe.Subscribed {
			sorted = append(sorted, k)
		}
	}
	return sorted
}
