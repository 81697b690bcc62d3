package allocator_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/allocator"
)

// Whatever ended the hold, what it had is not its process's any more: another one has it, or all is gone.
func TestALateReleaseChangesNothing(t *testing.T) {
	ctx := context.Background()
	flushed := func(w *world, _ *proc) { w.Do("FLUSHALL") }
	had := func(_ *world, other *proc) { other.takes("a", nil) }
	type row struct {
		opts      allocator.AllocateOptions
		err       error
		meanwhile func(w *world, other *proc)
	}
	inEach(t, map[string]row{
		"its own lease":              {allocator.AllocateOptions{NoRenew: true}, berth.ErrExpired, had},
		"a maximum hold":             {allocator.AllocateOptions{MaxHold: lease}, berth.ErrExpired, had},
		"cut off":                    {allocator.AllocateOptions{}, berth.ErrLost, had},
		"cut off, and all is gone":   {allocator.AllocateOptions{}, berth.ErrLost, flushed},
		"its lease, and all is gone": {allocator.AllocateOptions{NoRenew: true}, berth.ErrExpired, flushed},
	}, func(t *testing.T, w *world, c row) {
		w.add("a")
		late, other := w.node(), w.node()
		held := late.takes("a", &c.opts)
		_ = held.Rest(time.Hour, "too late")
		late.Cut()
		w.Until(lease)
		c.meanwhile(w, other)
		late.Mend()
		before := w.Dump()
		w.Advance(100 * ms)
		for range 2 {
			err := held.Release(ctx)
			require.ErrorIs(t, err, c.err)
			require.ErrorIs(t, err, berth.ErrNotHeld)
		}
		require.ErrorIs(t, held.Err(), c.err)
		require.ErrorIs(t, held.Renew(ctx), c.err)
		require.ErrorIs(t, held.Swap(ctx), berth.ErrNotHeld)
		synctest.Wait()
		require.Equal(t, before, w.Dump())
	})
}

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
