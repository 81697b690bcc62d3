package allocator_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/observe"
)

// once makes one attempt of each call.
var once = allocator.Config{Retry: berth.Retry{Attempts: 1}}

// The first attempt may run when the second has been refused, and give away what the
// handle would go on with.
func TestASwapThatIsRefusedAfterAnUnansweredAttemptEndsTheHold(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		n, m := w.node(), w.node()
		n.connect()
		a := n.takes("a", nil)
		// It runs a moment after the refusal, when something is free.
		n.OnCommand(func(c link.Command) link.Fate {
			switch {
			case c.Name == "pool_swap" && n.Count("pool_swap") <= 1:
				return link.Late
			case c.Name == "pool_release":
				return link.Slow(100 * ms)
			}
			return link.Pass
		})
		err := a.Swap(context.Background())
		w.add("b")
		late, failed := n.DeliverLate()
		require.NoError(t, failed)
		require.Equal(t, 1, late)
		w.Advance(time.Second)
		for range 2 {
			got, failed := m.TryAllocate(context.Background(), nil)
			if failed == nil && a.Err() == nil {
				require.NotEqual(t, a.Resource(), got.Resource(), "it has two holders")
			}
		}
		require.ErrorIs(t, err, berth.ErrLost)
		require.ErrorIs(t, a.Err(), berth.ErrLost)
		require.Equal(t, 2, w.inspect().Leased, "both are somebody else's")
	})
}

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
		require.NoError(t, w.pool.Rest(t.Context(), "b", time.Second, ""))
		for i := range 80 {
			w.acquireScript("dead", fmt.Sprint("dead.", i), func(r *engine.Record) { r.Wait = 500 * ms })
		}
		w.Advance(1500 * ms) // before a heartbeat sweeps
		require.NoError(t, a.Swap(context.Background()))
		require.Equal(t, "b", a.Resource())
	})
}

// The script stops at its bound, and the node goes on.
func TestASwapThatStopsAtItsBoundSweepsOn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		w.add("a", "b")
		n := w.node()
		a := n.takes("a", &allocator.AllocateOptions{Lease: time.Hour, NoRenew: true})
		_, err := n.Add(ctx, many("x", 300), &allocator.AddOptions{Expiry: 500 * ms})
		require.NoError(t, err)
		w.Advance(500 * ms)
		n.Fresh()
		require.NoError(t, a.Swap(ctx))
		require.Equal(t, "b", a.Resource())
		w.Advance(500 * ms)
		require.Equal(t, 2, w.inspect().Resources, "the others have left")
		require.Zero(t, n.Count("pool_renew"), "which would sweep as well")
	})
}

// That a sweep is not answered says nothing of the swap.
func TestASweepThatIsNotAnsweredCostsASwapNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		w.add("a")
		n := w.nodeWith(once, allocator.PoolConfig[string]{})
		n.connect()
		a := n.takes("a", nil)
		_, err := n.Add(ctx, many("x", 300), &allocator.AddOptions{Expiry: time.Second})
		require.NoError(t, err)
		w.Advance(time.Second)
		n.Once("pool_sweep", link.LoseReply)
		require.ErrorIs(t, a.Swap(ctx), berth.ErrBusy)
		require.NoError(t, a.Err())
		require.Equal(t, "a", w.status("a").Resource)
		w.release(a)
		w.requireIdle()
	})
}

// A swap is not for a hold that is being detached: whoever has the token relies on it.
func TestASwapBehindADetachIsRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		w.add("a", "b")
		n := w.node()
		n.connect()
		a := n.takes("a", nil)
		n.Delay(func() time.Duration { return 5 * ms })
		var both sync.WaitGroup
		both.Go(func() {
			if _, err := a.Detach(ctx); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait() // it is on its way
		var err error
		both.Go(func() { err = a.Swap(ctx) })
		both.Wait()
		require.ErrorIs(t, err, berth.ErrReleased)
		require.Equal(t, []string{"b"}, w.list())
		require.Equal(t, a.ID(), w.holder("a"))
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
