package allocator_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/observe"
)

// wanted says whether somebody wants an allocation back, as its process knows.
func wanted(a *allocator.Allocation[string]) bool {
	select {
	case <-a.Wanted():
		return true
	default:
		return false
	}
}

// want asks for what a target has, and lets a push come.
func (w *world) want(count int, target berth.Target) {
	w.T.Helper()
	require.Equal(w.T, count, must(w.ops().Want(ctx, target))(w.T))
	synctest.Wait()
}

// A hold that is asked for while a Swap is under way stays wanted with its next resource.
func TestAnAllocationIsWantedThroughASwap(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node("a", "b")
		a := n.takes("a", nil)
		require.False(t, wanted(a))
		synctest.Wait()
		n.on("pool_swap", func() link.Fate { return link.Slow(time.Second) })
		swapped := make(chan error, 1)
		go func() { swapped <- a.Swap(ctx) }()
		synctest.Wait()
		w.want(1, berth.Target{Name: proxies, Claim: a.ID()})
		<-a.Wanted()
		require.NoError(t, <-swapped)
		require.Equal(t, "b", a.Resource())
		synctest.Wait() // the event comes after the channel is closed
		require.Len(t, n.Told(observe.Wanted), 1)
		b := must(w.node().Resume(ctx, detach(t, a)))(t)
		require.True(t, wanted(b), "its record says so yet")
		require.NoError(t, b.Release(ctx))
		w.requireIdle()
	})
}

func TestWantedUnderDo(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node("a")
		require.Nil(t, n.Wanted(context.Background()))
		require.NoError(t, n.Do(context.Background(), nil, func(ctx context.Context, a *allocator.Allocation[string]) error {
			w.want(1, berth.Target{All: true})
			<-n.Wanted(ctx)
			require.True(t, wanted(a))
			return nil
		}))
	})
}

// In a pool that is Shared the server knows no holds: nobody can ask.
func TestASharedAllocationIsNeverWanted(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.nodeOf(inTurn, "a").take(nil)
		w.Advance(time.Second)
		require.ErrorIs(t, second(w.ops().Want(ctx, berth.Target{Name: proxies})), berth.ErrNotHeld)
		w.Advance(lease)
		require.False(t, wanted(a))
	})
}

// Who waits for any resource asks for the one that was taken first, and who waits for one of its own for that.
func TestWhoWaitsForLongAsksForOneResource(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, m := w.node("a", "b", "c"), w.node()
		var held []*allocator.Allocation[string]
		for range 3 {
			held = append(held, n.take(nil))
			require.False(t, wanted(held[len(held)-1]))
			w.Advance(10 * ms)
		}
		asked := func() (all []bool) {
			synctest.Wait()
			for _, a := range held {
				all = append(all, wanted(a))
			}
			return all
		}
		own := m.queue(&allocator.AllocateOptions{Resource: held[2].Resource(), WantAfter: 10 * time.Second})
		behind := m.queue(&allocator.AllocateOptions{Resource: held[2].Resource(), WantAfter: time.Second}) // is not the first there
		w.Until(9 * time.Second)
		require.Equal(t, []bool{false, false, false}, asked())
		w.Until(10*time.Second + 100*ms)
		require.Equal(t, []bool{false, false, true}, asked())
		behind.Cancel(nil)
		<-behind.Done
		other := m.queue(&allocator.AllocateOptions{WantAfter: time.Second})
		w.Advance(2 * time.Second)
		require.Equal(t, []bool{false, false, true}, asked(), "that one is wanted already")
		w.release(held[2])
		<-own.Done
		require.NoError(t, own.Err)
		require.True(t, other.Pending())
		w.Advance(2 * time.Second)
		require.Equal(t, []bool{true, false}, asked()[:2])
		w.release(held[0])
		<-other.Done
		require.NoError(t, other.Err)
	})
}

// A resource that rests is held by nobody who could be asked.
func TestWhoWaitsForARestAsksNobody(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node("a", "b")
		b := n.take(nil)
		require.NoError(t, w.pool.Rest(ctx, map[string]string{"a": "b", "b": "a"}[b.Resource()], time.Hour, "", nil))
		n.queue(&allocator.AllocateOptions{Resource: map[string]string{"a": "b", "b": "a"}[b.Resource()], WantAfter: 200 * ms})
		w.Advance(2 * lease)
		require.False(t, wanted(b))
		_, err := n.TryAllocate(ctx, &allocator.AllocateOptions{WantAfter: time.Second})
		require.ErrorIs(t, err, berth.ErrInvalidConfig)
	})
}
