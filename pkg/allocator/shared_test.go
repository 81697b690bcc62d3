package allocator_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
)

var inTurn = allocator.Config[string]{Shared: true}

func TestASharedPoolHandsItsResourcesOutInTurn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b", "c")
		n, m := w.nodeOf(inTurn), w.nodeOf(inTurn)
		var all []*allocator.Allocation[string]
		for i, key := range []string{"a", "b", "c", "a", "b", "c", "a"} {
			all = append(all, []*proc{n, m}[i%2].takes(key, nil))
		}
		for i, a := range all[1:] {
			require.Greater(t, a.Fence(), all[i].Fence())
		}
		synctest.Wait()
		w.requireIdle()
		require.Equal(t, counts{Resources: 3, Free: 3}, w.inspect(), "nothing is leased")
		n.Fresh()
		w.Advance(10 * lease)
		require.Empty(t, n.Scripts(), "nothing is renewed")
		for _, a := range all {
			require.NoError(t, a.Err())
			require.Equal(t, berth.Forever, a.Left())
			require.NoError(t, a.Renew(ctx))
			w.release(a)
			require.NoError(t, a.Release(ctx))
			require.ErrorIs(t, a.Err(), berth.ErrReleased)
		}
		require.Empty(t, n.Scripts(), "nothing is given back")

		a := n.takes("b", nil)
		requireInvalid(t, "Swap", a.Swap(ctx))
		requireInvalid(t, "Detach", second(a.Detach(ctx)))
		requireInvalid(t, "RenewFor", a.RenewFor(ctx, time.Minute))
		require.NoError(t, a.Err(), "it goes on")
	})
}

func TestARestAskedForInASharedPoolBeginsWithTheRelease(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		cfg, opened := inTurn, 0
		cfg.Open = func(_ context.Context, key string) (string, error) { opened++; return key, nil }
		n := w.nodeOf(cfg, "a", "b")
		a := n.takes("a", nil)
		_ = a.Rest(time.Minute, "429")
		require.Equal(t, allocator.Free, w.status("a").State)
		w.release(a)
		require.Equal(t, allocator.ResourceInfo{Resource: "a", MaxSharers: 1, State: allocator.Resting, Left: time.Minute, Reason: "429"}, w.status("a"))
		for range 3 {
			n.takes("b", nil)
		}
		require.Equal(t, 2, opened, "each once")
		w.release(a)
		w.Advance(time.Second)
		require.Equal(t, time.Minute-time.Second, w.status("a").Left, "a second Release does nothing")
	})
}

func TestDoInASharedPool(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.nodeOf(inTurn, "a")
		err := n.Do(context.Background(), nil, func(ctx context.Context, a *allocator.Allocation[string]) error {
			require.NoError(t, ctx.Err())
			require.Equal(t, a.Fence(), n.Fence(ctx))
			_ = a.Rest(time.Second, "")
			return errMine
		})
		require.Equal(t, errMine, err)
		synctest.Wait()
		require.Equal(t, allocator.Resting, w.status("a").State)
		w.requireIdle()
	})
}

// Who shares a resource says of it what became of it, whatever the others say in that moment.
func TestSharersThatHaveAResourceRestAtOnceAreInNobodysWay(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		var all []*allocator.Allocation[string]
		for range 3 {
			n := w.nodeOf(inTurn)
			n.Delay(func() time.Duration { return time.Millisecond })
			a := n.takes("a", nil)
			require.NoError(t, a.Rest(time.Minute, "banned"))
			all = append(all, a)
		}
		errs := make(chan error, len(all))
		for _, a := range all {
			go func() { errs <- a.Release(ctx) }()
		}
		for range all {
			require.NoError(t, <-errs)
		}
		require.Equal(t, allocator.Resting, w.status("a").State)
	})
}
