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

// What becomes of a resource whose holder is not heard of in time, before it is.
func TestALateReleaseChangesNothing(t *testing.T) {
	ctx := context.Background()
	for name, meanwhile := range map[string]func(w *world, other *proc){
		"another has it": func(_ *world, other *proc) { other.takes("a", nil) },
		"it is free": func(w *world, _ *proc) {
			_, err := w.ops().Sweep(ctx, proxies)
			require.NoError(w.T, err)
		},
		"it was had and given back": func(w *world, other *proc) { w.release(other.takes("a", nil)) },
		"it rests": func(w *world, _ *proc) {
			require.NoError(w.T, w.pool.Rest(ctx, "a", time.Hour, "mine", nil))
		},
		"it is gone": func(w *world, _ *proc) {
			_, err := w.pool.Remove(ctx, []string{"a"})
			require.NoError(w.T, err)
			_, err = w.ops().Sweep(ctx, proxies)
			require.NoError(w.T, err)
		},
		"everything is gone": func(w *world, _ *proc) { w.Do("FLUSHALL") },
	} {
		for ending, c := range map[string]struct {
			opts allocator.AllocateOptions
			err  error
		}{
			"its own lease":  {allocator.AllocateOptions{NoRenew: true}, berth.ErrExpired},
			"a maximum hold": {allocator.AllocateOptions{MaxHold: lease}, berth.ErrExpired},
			"cut off":        {allocator.AllocateOptions{}, berth.ErrLost},
		} {
			if ending != "cut off" && name != "another has it" {
				continue // how it ended is known to the node alone, what became of it to the server
			}
			t.Run(name+", "+ending, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					w.add("a")
					late, other := w.nodeOf(allocator.PoolConfig[string]{Cooldown: 0}), w.node()
					held := late.takes("a", &c.opts)
					_ = held.Rest(time.Hour, "too late")
					late.Cut()
					w.Until(lease)
					meanwhile(w, other)
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
			})
		}
	}
}

// Nobody has swept it, so that the release finds its own record: it is given back as
// what has expired is.
func TestALateReleaseThatIsTheFirstToNoticeGivesBackAsTheClockDid(t *testing.T) {
	ctx := context.Background()
	for name, c := range map[string]struct {
		cooldown time.Duration
		late     time.Duration
		state    allocator.State
		left     time.Duration
	}{
		"free":                           {0, time.Second, allocator.Free, 0},
		"it rests since its deadline":    {5 * time.Second, time.Second, allocator.Resting, 4 * time.Second},
		"its cooldown is over":           {time.Second, time.Second, allocator.Free, 0},
		"its cooldown is not quite over": {time.Second, 999 * ms, allocator.Resting, ms},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.add("a")
				n := w.nodeOf(allocator.PoolConfig[string]{Cooldown: c.cooldown})
				held := n.takes("a", &allocator.AllocateOptions{NoRenew: true})
				_ = held.Rest(2*time.Hour, "has no say any more")
				w.Until(lease + c.late)
				require.ErrorIs(t, held.Release(ctx), berth.ErrExpired)
				info := w.status("a")
				require.Equal(t, c.state, info.State)
				require.Equal(t, c.left, info.Left)
				require.Empty(t, info.Reason)
				w.requireIdle()
			})
		})
	}
}

func TestALeaseHasEndedWhetherItWasSweptOrNot(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		w.acquireScript("dead", "dead.1")
		w.Until(lease - ms)
		require.Equal(t, ms, w.status("a").Left)
		require.Equal(t, "dead.1", w.holder("a"))
		require.Empty(t, w.list())
		w.Until(lease)
		require.Equal(t, allocator.Free, w.status("a").State)
		require.Empty(t, w.holder("a"))
		require.Empty(t, w.list(), "nobody has swept it")
		require.Empty(t, w.Holders())
		w.node().takes("a", nil)
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
