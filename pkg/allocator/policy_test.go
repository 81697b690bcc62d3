package allocator_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/allocator"
)

func TestTheLeastRecentIsTheHeadAndWhatComesBackGoesToTheTail(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node("a", "b", "c", "d")
		a, b := n.takes("a", nil), n.takes("b", nil)
		require.Equal(t, []string{"c", "d"}, w.list())
		w.release(b, a)
		require.Equal(t, []string{"c", "d", "b", "a"}, w.list())
		w.release(n.takes("c", nil))
		w.release(n.takes("d", nil))
		w.release(n.takes("b", nil))
		w.requireIdle()
	})
}

func TestRandomReachesAllAndOnlyWhatIsFree(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.nodeOf(allocator.Config[string]{Policy: allocator.Random})
		w.add(many("x", 8)...)
		w.node().takes("x0", nil)
		require.NoError(t, w.pool.Rest(t.Context(), "x1", time.Hour, "", nil))
		seen, before, again := make(map[string]int), "", 0
		for range 150 {
			a := n.take(nil)
			seen[a.Resource()]++
			if a.Resource() == before {
				again++ // it was at the tail
			}
			before = a.Resource()
			w.release(a)
		}
		require.Greater(t, again, 3) // of about 25
		require.Less(t, again, 100)
		require.Len(t, seen, 6)
		require.NotContains(t, seen, "x0")
		require.NotContains(t, seen, "x1")
		for key, count := range seen {
			require.Greater(t, count, 3, key) // of about 25
		}
	})
}
