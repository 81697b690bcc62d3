package allocator_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
)

func TestTheLeastRecentIsTheHeadAndWhatComesBackGoesToTheTail(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		w.add("a", "b", "c", "d")
		a, b := n.takes("a", nil), n.takes("b", nil)
		require.Equal(t, []string{"c", "d"}, w.list())
		w.release(b)
		w.release(a)
		require.Equal(t, []string{"c", "d", "b", "a"}, w.list())
		for range 3 {
			for _, key := range []string{"c", "d", "b", "a"} {
				w.release(n.takes(key, nil))
			}
		}
		w.requireIdle()
	})
}

func TestTheMostRecentIsTheTail(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.nodeOf(allocator.PoolConfig[string]{Policy: allocator.MostRecent})
		w.add("a", "b", "c")
		for range 3 {
			w.release(n.takes("c", nil))
		}
		c, b := n.takes("c", nil), n.takes("b", nil)
		w.release(c)
		w.release(b)
		require.Equal(t, []string{"a", "c", "b"}, w.list())
		n.takes("b", nil)
		n.takes("c", nil)
		n.takes("a", nil)
	})
}

func TestRandomReachesAllAndOnlyWhatIsFree(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.nodeOf(allocator.PoolConfig[string]{Policy: allocator.Random})
		var all []string
		for i := range 8 {
			all = append(all, fmt.Sprint(i))
		}
		w.add(all...)
		leased := w.node().takes("0", nil)
		require.NoError(t, w.pool.Rest(t.Context(), "1", time.Hour, "", nil))
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
		require.NotContains(t, seen, "0")
		require.NotContains(t, seen, "1")
		for key, count := range seen {
			require.Greater(t, count, 3, key) // of about 25
		}

		// All of them at once, each to one.
		held := map[string]bool{leased.Resource(): true}
		for range 6 {
			a := n.take(nil)
			require.False(t, held[a.Resource()], a.Resource())
			held[a.Resource()] = true
			w.inspect()
		}
		_, err := n.TryAllocate(t.Context(), nil)
		require.ErrorIs(t, err, berth.ErrBusy)
	})
}

// All go by the stored policy, whatever their process says, also where a hand-off decides.
func TestAHandOffGoesByTheStoredPolicy(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		last := w.nodeOf(allocator.PoolConfig[string]{Policy: allocator.MostRecent})
		q := last.queue(nil)
		p := w.nodeOf(allocator.PoolConfig[string]{Policy: allocator.LeastRecent}).queue(nil)
		w.add("a", "b", "c")
		q.gets(0, "c")
		p.gets(0, "b")
		require.Equal(t, []string{"a"}, w.list())
	})
}

// A binding goes before the policy.
func TestABoundResourceIsTakenFromAnywhereInTheList(t *testing.T) {
	for _, policy := range []allocator.Policy{allocator.LeastRecent, allocator.MostRecent, allocator.Random} {
		t.Run(policy.String(), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n := w.nodeOf(allocator.PoolConfig[string]{Policy: policy})
				w.add("a", "b", "c")
				require.NoError(t, n.Bind(t.Context(), "me", "b", nil))
				held := n.takes("b", &allocator.AllocateOptions{Bind: "me"})
				require.Equal(t, []string{"a", "c"}, w.list())
				w.release(held)
				require.Equal(t, []string{"a", "c", "b"}, w.list())
				w.requireIdle()
			})
		})
	}
}

// Nobody has to wait for that: the next claim that comes by ends the rest.
func TestWhatHasRestedIsInTurnAgainWhileOthersAreFree(t *testing.T) {
	for policy, turns := range map[allocator.Policy]int{allocator.LeastRecent: 3, allocator.Random: 60} {
		t.Run(policy.String(), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n := w.nodeOf(allocator.PoolConfig[string]{Policy: policy})
				w.add("a", "b", "c")
				require.NoError(t, n.Rest(t.Context(), "a", time.Minute, "", nil))
				w.acquireScript("dead", "dead.1") // has b
				w.Advance(2 * time.Minute)
				seen := make(map[string]bool)
				for range turns {
					a := n.take(nil)
					seen[a.Resource()] = true
					w.release(a)
				}
				require.Equal(t, map[string]bool{"a": true, "b": true, "c": true}, seen)
			})
		})
	}
}
