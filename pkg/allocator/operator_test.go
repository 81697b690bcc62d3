package allocator_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/observe"
)

func TestReleaseByIDEndsAHoldAndHandsOn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, op := w.node(), w.node()
		n.subscribe()
		w.add("a")
		a := n.takes("a", nil)
		_ = a.Rest(time.Hour, "not asked for by its holder's release")
		q := op.queue(nil)
		w.Advance(time.Second)
		at := w.Now()
		require.NoError(t, op.force(a.ID()))
		next := q.gets(at, "a")
		require.Greater(t, next.Fence(), a.Fence())
		e := <-w.Watch(a)
		require.ErrorIs(t, e.Cause, berth.ErrReleased)
		require.Equal(t, at, e.At, "a push has told it")
		require.ErrorIs(t, a.Release(context.Background()), berth.ErrReleased)
		require.NoError(t, next.Err(), "a late release changes nothing")
		require.ErrorIs(t, op.force(a.ID()), berth.ErrNotHeld)
		w.inspect()
	})
}

func TestAnOperatorEndsWhatTheTargetMeansAndTheLineGetsIt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		x := berth.WithOwner(context.Background(), "x")
		w.add("a", "b")
		n, op := w.node(), w.node()
		require.NoError(t, change(allocator.New(n.node, "other", allocator.PoolConfig[string]{}).Add(x, []string{"a"}, nil)))
		mine, err := n.TryAllocate(x, nil)
		require.NoError(t, err)
		another := n.takes("b", nil)
		elsewhere, err := allocator.New(op.node, "other", allocator.PoolConfig[string]{}).TryAllocate(x, nil)
		require.NoError(t, err)
		first, second := n.queueOn(x, nil), n.queue(nil)
		ended, err := op.ops().Release(context.Background(), berth.Target{Owner: "x"})
		require.NoError(t, err)
		require.Equal(t, 3, ended, "of all pools")
		require.Len(t, op.Told(observe.ForceReleased), 3)
		first.Refused(w.Now(), berth.ReasonGone)
		second.gets(w.Now(), "a")
		for _, a := range []*allocator.Allocation[string]{mine, elsewhere} {
			require.ErrorIs(t, a.Renew(context.Background()), berth.ErrReleased)
		}
		require.NoError(t, another.Renew(context.Background()))
		w.inspect()
	})
}

func TestASweepOfNoNameSweepsAllPools(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		w.add("a")
		n.take(nil)
		n.named("other", 1, 1)
		n.Die()
		w.Advance(2 * lease)
		for _, want := range []int{2, 0} {
			swept, err := w.ops().Sweep(context.Background())
			require.NoError(t, err)
			require.Equal(t, want, swept)
		}
	})
}
