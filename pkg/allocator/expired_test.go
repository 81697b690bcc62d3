package allocator_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
)

func TestAHolderThatIsCutOffLosesItsResourceBeforeTheServerDoes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		n := w.node()
		held := n.takes("a", nil)
		w.Advance(10 * time.Second)
		require.NoError(t, held.Err())
		ended := w.Watch(held)
		synctest.Wait()
		n.Cut()
		left, ok := w.LeftOf(held.ID())
		require.True(t, ok)
		deadline := w.Now() + left
		q := w.node().queue(nil)
		e := <-ended
		require.ErrorIs(t, e.Cause, berth.ErrLost)
		require.NotErrorIs(t, e.Cause, berth.ErrExpired)
		testkit.RequireWithin(t, deadline-margin, e.At)
		// The deadline is a whole millisecond of the server.
		q.getsIn(deadline.Truncate(ms), "a")
	})
}

// Far more leases have run out than one script drops: the next allocation gets one of
// them at once all the same, and sees to it that the others are dropped.
func TestOfManyExpiredLeasesTheNextAllocationGetsOneAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const all = 120
		w.add(many("r", all)...)
		for i := range all {
			w.acquireScript("dead", fmt.Sprint("dead.", i))
		}
		require.Equal(t, all, w.inspect().Leased)
		w.Advance(lease)
		n := w.node()
		held, err := n.TryAllocate(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, held.ID(), w.holder(held.Resource()))
		synctest.Wait()
		require.Equal(t, 1, n.Count("pool_acquire"))
		require.LessOrEqual(t, n.Count("pool_sweep"), 2, "about a hundred each")
		stats := w.inspect()
		require.Equal(t, 1, stats.Leased)
		require.Equal(t, all-1, stats.Free)
	})
}
