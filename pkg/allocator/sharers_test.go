package allocator_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
)

// addFor adds resources that so many may hold at once.
func (w *world) addFor(sharers int, resources ...string) {
	w.T.Helper()
	must(w.pool.Add(ctx, resources, &allocator.AddOptions{MaxSharers: sharers}))(w.T)
}

func TestNoMoreThanMaxSharersHoldOneResource(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.addFor(3, "a", "b")
		n := w.node() // whose own limit is 1: that of the resource counts
		var held []*allocator.Allocation[string]
		for _, key := range []string{"a", "b", "a", "b", "a", "b"} {
			held = append(held, n.takes(key, nil))
		}
		require.Empty(t, w.list(), "full ones leave the list")
		require.ErrorIs(t, second(n.TryAllocate(ctx, nil)), berth.ErrBusy)
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
		w.release(held[0], held[2])
		require.Equal(t, []string{"a"}, w.list())
		require.Equal(t, counts{Resources: 2, Free: 1, Leased: 2, Holders: 4}, w.inspect())
		require.Equal(t, allocator.Leased, w.status("a").State)
		w.release(held[1], held[4], held[5], next)
		w.requireIdle()
	})
}

func TestAnAddThatNamesNoLimitLeavesItAsItIs(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.addFor(3, "a")
		n := w.node() // an operator's, who knows nothing of it
		require.NoError(t, change(n.Add(ctx, []string{"a", "b"}, nil)))
		require.NoError(t, change(n.Replace(ctx, []string{"b", "a"}, nil)))
		require.Equal(t, 3, w.status("a").MaxSharers)
		require.Equal(t, 1, w.status("b").MaxSharers, "a new one")
		w.addFor(2, "a")
		require.Equal(t, 2, w.status("a").MaxSharers)
	})
}
