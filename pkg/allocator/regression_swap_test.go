package allocator_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
)

// once makes one attempt of each call.
var once = node.Config{Retry: berth.Retry{Attempts: 1}}

// What Rest has asked for is of the old resource, whoever of them is given back last.
func TestARestIsNotAskedForTwiceWhereASwapIsNotAnswered(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b")
		n := w.nodeWith(once, allocator.PoolConfig[string]{})
		n.connect()
		a := n.takes("a", nil)
		_ = a.Rest(time.Hour, "429")
		n.Once("pool_swap", link.LoseReply)
		require.ErrorIs(t, a.Swap(context.Background()), berth.ErrLost)
		w.Advance(time.Second)
		require.Equal(t, allocator.Resting, w.status("a").State)
		require.Equal(t, allocator.Free, w.status("b").State, "nobody has used it")
	})
}

func TestARestThatWasAskedForOutlastsASwapThatIsRefused(t *testing.T) {
	ctx := context.Background()
	for name, c := range map[string]struct {
		meanwhile func(a *allocator.Allocation[string])
		want      allocator.ResourceInfo
	}{
		"nothing else is said": {
			func(*allocator.Allocation[string]) {},
			allocator.ResourceInfo{Resource: "a", MaxSharers: 1, State: allocator.Resting, Left: time.Hour, Reason: "429"},
		},
		"another rest is asked for meanwhile": {
			func(a *allocator.Allocation[string]) { _ = a.Rest(time.Minute, "later") },
			allocator.ResourceInfo{Resource: "a", MaxSharers: 1, State: allocator.Resting, Left: time.Minute, Reason: "later"},
		},
		"it is taken back meanwhile": {
			func(a *allocator.Allocation[string]) { _ = a.Rest(0, "") },
			allocator.ResourceInfo{Resource: "a", MaxSharers: 1, State: allocator.Free},
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.add("a")
				n := w.node()
				a := n.takes("a", nil)
				_ = a.Rest(time.Hour, "429")
				n.OnCommand(func(cmd link.Command) link.Fate {
					if cmd.Name == "pool_swap" {
						c.meanwhile(a)
					}
					return link.Pass
				})
				require.ErrorIs(t, a.Swap(ctx), berth.ErrBusy)
				w.release(a)
				require.Equal(t, c.want, w.status("a"))
			})
		})
	}
}

// So many dead waiters as the script drops stand before a rest that is over.
func TestASwapFindsOneBehindManyDeadWaiters(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b")
		n := w.node()
		a := n.takes("a", &allocator.AllocateOptions{Lease: time.Hour, NoRenew: true})
		require.NoError(t, w.pool.Rest(t.Context(), "b", time.Second, "", nil))
		for i := range 80 {
			w.acquireScript("dead", fmt.Sprint("dead.", i), func(r *engine.Record) { r.Wait = 500 * ms })
		}
		w.Advance(1500 * ms) // before a heartbeat sweeps
		require.NoError(t, a.Swap(context.Background()))
		require.Equal(t, "b", a.Resource())
	})
}

// Only the swap knows that the old resource has left with it.
func TestAValueIsClosedWithTheSwapOfALeavingResource(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		w.add("a", "b")
		d := w.desk(allocator.PoolConfig[string]{}, nil)
		a := d.takes("a", nil)
		require.NoError(t, change(w.pool.Remove(ctx, []string{"a"})))
		_ = a.Rest(time.Hour, "429")
		require.NoError(t, a.Swap(ctx))
		d.requireClosed("a")
		require.NotContains(t, d.Kinds(), observe.Rested, "it has left")
		require.NoError(t, change(w.pool.Remove(ctx, []string{"b"})))
		_ = a.Rest(time.Hour, "429")
		w.release(a)
		d.requireClosed("a", "b")
		require.False(t, slices.Contains(d.Kinds(), observe.Rested))
	})
}
