package allocator_test

import (
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
		require.ErrorIs(t, a.Release(ctx), berth.ErrReleased)
		require.NoError(t, next.Err(), "a late release changes nothing")
		require.ErrorIs(t, op.force(a.ID()), berth.ErrNotHeld)
		w.inspect()
	})
}

func TestAnOperatorEndsWhatTheTargetMeansAndTheLineGetsIt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		x := berth.WithOwner(ctx, "x")
		n, op := w.node("a", "b"), w.node()
		require.NoError(t, change(allocator.New(n.node, "other", allocator.Config[string]{}).Add(x, []string{"a"}, nil)))
		mine := must(n.TryAllocate(x, nil))(t)
		another := n.takes("b", nil)
		elsewhere := must(allocator.New(op.node, "other", allocator.Config[string]{}).TryAllocate(x, nil))(t)
		first, second := n.queueOn(x, nil), n.queue(nil)
		require.Equal(t, 3, must(op.ops().Release(ctx, berth.Target{Owner: "x"}))(t), "of all pools")
		require.Len(t, op.Told(observe.ForceReleased), 3)
		first.Refused(w.Now(), berth.ReasonGone)
		second.gets(w.Now(), "a")
		for _, a := range []*allocator.Allocation[string]{mine, elsewhere} {
			require.ErrorIs(t, a.Renew(ctx), berth.ErrReleased)
		}
		require.NoError(t, another.Renew(ctx))
		w.inspect()
	})
}

func TestASweepOfNoNameSweepsAllPools(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node("a")
		n.take(nil)
		n.named("other", 1, 1)
		n.Die()
		w.Advance(2 * lease)
		for _, want := range []int{2, 0} {
			require.Equal(t, want, must(w.ops().Sweep(ctx))(t))
		}
	})
}
