package allocator_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
)

// addFor adds resources that so many may hold at once.
func (w *world) addFor(sharers int, resources ...string) {
	w.T.Helper()
	_, err := w.pool.Add(context.Background(), resources, &allocator.AddOptions{MaxSharers: sharers})
	require.NoError(w.T, err)
}

func TestNoMoreThanMaxSharersHoldOneResource(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		w.addFor(3, "a", "b")
		n := w.node() // whose own limit is 1: that of the resource counts
		var held []*allocator.Allocation[string]
		for _, key := range []string{"a", "b", "a", "b", "a", "b"} {
			held = append(held, n.takes(key, nil))
		}
		require.Empty(t, w.list(), "full ones leave the list")
		_, err := n.TryAllocate(ctx, nil)
		require.ErrorIs(t, err, berth.ErrBusy)
		require.Equal(t, counts{Resources: 2, Leased: 2, Holders: 6}, w.inspect())
		info := w.status("a")
		require.Len(t, info.Holders, 3)
		fences := make(map[int64]bool)
		for _, h := range info.Holders {
			require.Equal(t, "a", h.Resource)
			fences[h.Fence] = true
		}
		require.Len(t, fences, 3)

		q := n.queue(nil)
		w.release(held[3])
		next := q.gets(w.Now(), "b")
		require.Greater(t, next.Fence(), held[5].Fence())
		w.release(held[0])
		w.release(held[2])
		require.Equal(t, []string{"a"}, w.list())
		require.Equal(t, counts{Resources: 2, Free: 1, Leased: 2, Holders: 4}, w.inspect())
		require.Equal(t, allocator.Leased, w.status("a").State)
		for _, a := range []*allocator.Allocation[string]{held[1], held[4], held[5], next} {
			w.release(a)
		}
		w.requireIdle()
	})
}

func TestAnAddThatNamesNoLimitLeavesItAsItIs(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		w.addFor(3, "a")
		n := w.nodeOf(allocator.PoolConfig[string]{}) // an operator's, who knows nothing of it
		_, err := n.Add(ctx, []string{"a", "b"}, nil)
		require.NoError(t, err)
		require.Equal(t, 3, w.status("a").MaxSharers)
		require.Equal(t, 1, w.status("b").MaxSharers, "a new one")
		_, err = n.Replace(ctx, []string{"b", "a"}, nil)
		require.NoError(t, err)
		require.Equal(t, 3, w.status("a").MaxSharers)
		_, err = n.Add(ctx, []string{"a"}, &allocator.AddOptions{MaxSharers: 2})
		require.NoError(t, err)
		require.Equal(t, 2, w.status("a").MaxSharers)
		_, err = n.Remove(ctx, []string{"a"})
		require.NoError(t, err)
		_, err = n.Add(ctx, []string{"a"}, nil)
		require.NoError(t, err)
		require.Equal(t, 1, w.status("a").MaxSharers, "nothing is left of what was removed")
		w.inspect()
	})
}

func TestALimitIsRaisedAndLoweredByALaterAdd(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		w.addFor(2, "a")
		n := w.node()
		one, two := n.takes("a", nil), n.takes("a", nil)
		q := n.queue(nil)
		require.True(t, q.Pending())
		w.addFor(3, "a")
		three := q.gets(w.Now(), "a")

		w.addFor(1, "a")
		for _, a := range []*allocator.Allocation[string]{one, two, three} {
			require.NoError(t, a.Err(), "lowering ends no hold")
		}
		require.Empty(t, w.list())
		w.release(one)
		w.release(two)
		require.Empty(t, w.list())
		_, err := n.TryAllocate(ctx, nil)
		require.ErrorIs(t, err, berth.ErrBusy)
		w.release(three)
		n.takes("a", nil)
		_, err = n.TryAllocate(ctx, nil)
		require.ErrorIs(t, err, berth.ErrBusy)
		w.inspect()
	})
}

// A cooldown keeps newcomers away; who holds it still goes on.
func TestASharedResourceRestsWhileOthersHoldIt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		w.addFor(2, "a")
		n := w.nodeOf(allocator.PoolConfig[string]{Cooldown: time.Second})
		one, two := n.takes("a", nil), n.takes("a", nil)
		w.release(one)
		require.Empty(t, w.list())
		require.NoError(t, two.Err())
		require.Equal(t, 1, w.inspect().Resting)
		require.Equal(t, 1, w.inspect().Leased)
		_, err := n.TryAllocate(ctx, nil)
		require.ErrorIs(t, err, berth.ErrBusy)
		q := n.queue(nil)
		three := q.gets(time.Second, "a")
		w.release(two)
		w.release(three)
		w.requireIdle()
		w.Advance(time.Second)
		require.Equal(t, allocator.Free, w.status("a").State)
	})
}

// Pool.Rest of a leased one waits for the next that comes back, not for all.
func TestAPendingRestBeginsWithTheFirstReturn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		w.addFor(3, "a")
		n := w.node()
		one, two := n.takes("a", nil), n.takes("a", nil)
		require.NoError(t, n.Rest(ctx, "a", time.Minute, "mine", nil))
		require.Equal(t, allocator.Leased, w.status("a").State)
		require.Equal(t, "mine", w.status("a").Reason)
		w.release(one)
		require.Empty(t, w.list())
		w.inspect()
		w.release(two)
		require.Equal(t, allocator.ResourceInfo{Resource: "a", MaxSharers: 3, State: allocator.Resting, Left: time.Minute, Reason: "mine"}, w.status("a"))
		require.Equal(t, "a", n.queue(nil).GrantedBy(time.Minute).Resource())
	})
}

func TestALeavingSharedResourceLeavesWithItsLastHolder(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		w.addFor(3, "a")
		n := w.node()
		one, two := n.takes("a", nil), n.takes("a", nil)
		_, err := n.Remove(ctx, []string{"a"})
		require.NoError(t, err)
		_, err = n.TryAllocate(ctx, nil)
		require.ErrorIs(t, err, berth.ErrBusy, "there is room, but it is leaving")
		w.release(one)
		require.Len(t, w.status("a").Holders, 1)
		w.inspect()
		w.release(two)
		require.Equal(t, allocator.Absent, w.status("a").State)
		w.requireIdle()
	})
}

func TestASharerThatDiesLeavesTheOthersAlone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.addFor(2, "a")
		dead, n := w.node(), w.node()
		dead.takes("a", nil)
		held := n.takes("a", nil)
		q := n.queue(nil)
		dead.Die()
		next := q.GrantedBy(lease)
		require.Equal(t, "a", next.Resource())
		require.NoError(t, held.Err())
		require.Equal(t, 2, w.inspect().Holders)
	})
}

// Its limit may have been lowered since: others hold it still.
func TestAResourceDoesNotRestWhileOthersHoldIt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.addFor(2, "a")
		first := w.node().takes("a", nil)
		second := w.nodeOf(allocator.PoolConfig[string]{Cooldown: time.Second}).takes("a", nil)
		w.addFor(1, "a")
		w.release(second)
		info := w.status("a")
		require.Equal(t, allocator.Leased, info.State)
		require.Len(t, info.Holders, 1)
		w.Advance(2 * time.Second)
		_, err := w.node().TryAllocate(context.Background(), nil)
		require.ErrorIs(t, err, berth.ErrBusy, "the first one holds it")
		w.release(first)
		w.Advance(2 * time.Second)
		w.requireIdle()
	})
}
