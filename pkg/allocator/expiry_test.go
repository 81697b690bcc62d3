package allocator_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
)

func TestAResourceLeavesWhenItExpires(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		n := w.node()
		_, err := n.Add(ctx, []string{"leased", "free", "resting", "removed"}, &allocator.AddOptions{Expiry: 10 * time.Second})
		require.NoError(t, err)
		held := n.takes("leased", nil)
		require.NoError(t, n.Rest(ctx, "resting", time.Minute, "", nil))
		_, err = n.Remove(ctx, []string{"removed"})
		require.NoError(t, err)
		w.add("stays")
		require.Equal(t, 10*time.Second, w.status("free").Expiry)
		w.Advance(10*time.Second - ms)
		require.Equal(t, ms, w.status("free").Expiry)
		require.Equal(t, map[string]allocator.State{
			"leased": allocator.Leased, "free": allocator.Free, "resting": allocator.Resting, "stays": allocator.Free,
		}, w.states())
		w.Advance(ms)
		dump := w.Dump()
		require.Equal(t, map[string]allocator.State{"leased": allocator.Leased, "stays": allocator.Free}, w.states(), "swept or not")
		require.True(t, w.status("leased").Leaving)
		require.Equal(t, allocator.Absent, w.status("free").State)
		require.ErrorIs(t, n.Bind(ctx, "b", "free", nil), berth.ErrAbsent)
		require.Equal(t, dump, w.Dump())
		n.takes("stays", nil)
		_, err = n.TryAllocate(ctx, nil)
		require.ErrorIs(t, err, berth.ErrBusy)
		w.Advance(2 * lease)
		require.NoError(t, held.Err(), "it stays with its holder")
		w.release(held)
		require.Equal(t, map[string]allocator.State{"stays": allocator.Leased}, w.states())
		require.Equal(t, 1, w.inspect().Resources)
	})
}

func TestTheExpiryOfWhatIsKeptIsCountedAnew(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		n := w.node()
		expires := func(d time.Duration) *allocator.AddOptions { return &allocator.AddOptions{Expiry: d} }
		_, err := n.Add(ctx, []string{"a", "b", "c", "d"}, expires(10*time.Second))
		require.NoError(t, err)
		w.Advance(5 * time.Second)
		change, err := n.Add(ctx, []string{"a"}, expires(10*time.Second))
		changed(t, change, err)(0, 1, 0)
		change, err = n.Add(ctx, []string{"b"}, nil)
		changed(t, change, err)(0, 1, 0)
		change, err = n.Add(ctx, []string{"c"}, expires(time.Second))
		changed(t, change, err)(0, 1, 0)
		require.Equal(t, 10*time.Second, w.status("a").Expiry)
		require.Zero(t, w.status("b").Expiry)
		require.Equal(t, time.Second, w.status("c").Expiry)
		w.Advance(time.Second)
		require.Equal(t, allocator.Absent, w.status("c").State)
		w.Advance(4 * time.Second)
		require.Equal(t, allocator.Absent, w.status("d").State)
		// One that has expired is added, not kept, swept or not.
		change, err = n.Add(ctx, []string{"a", "d"}, nil)
		changed(t, change, err)(1, 1, 0)
		w.Advance(time.Hour)
		require.Equal(t, map[string]allocator.State{"a": allocator.Free, "b": allocator.Free, "d": allocator.Free}, w.states())
		require.Equal(t, []string{"a", "b", "d"}, w.list(), "what was kept stands where it was")
		w.inspect()
	})
}

// A leased one that expired and is added again is as if it had never gone.
func TestAnExpiredLeasedResourceAddedAgainStays(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		n := w.node()
		_, err := n.Add(ctx, []string{"a"}, &allocator.AddOptions{Expiry: time.Second})
		require.NoError(t, err)
		held := n.takes("a", nil)
		w.Advance(2 * time.Second)
		require.True(t, w.status("a").Leaving)
		change, err := n.Add(ctx, []string{"a"}, nil)
		changed(t, change, err)(1, 0, 0)
		require.False(t, w.status("a").Leaving)
		w.release(held)
		require.Equal(t, []string{"a"}, w.list())
		w.requireIdle()
	})
}

func TestManyExpiredEntriesCostNoScriptMoreThanABoundedSweep(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		n := w.node()
		var all []string
		for i := range 300 {
			all = append(all, fmt.Sprint(i))
		}
		_, err := n.Add(ctx, all, &allocator.AddOptions{Expiry: time.Second})
		require.NoError(t, err)
		w.add("fresh")
		w.Advance(time.Second)
		n.Fresh()
		swept := w.Call("pool_sweep", "60000", "berth:wake:", proxies, "looks-on", "0")
		require.Equal(t, int64(100), swept.Int(4))
		require.Equal(t, 201, w.inspect().Resources)
		require.Equal(t, 200, w.stats().Expired)
		n.Fresh()
		for _, want := range []int{200, 0} {
			count, err := n.ops().Sweep(ctx, proxies)
			require.NoError(t, err)
			require.Equal(t, want, count)
		}
		require.Equal(t, map[string]int{"pool_sweep": 4}, n.Scripts())
		n.takes("fresh", nil)
	})
}

// Whoever wants one finds it behind any number of expired ones.
func TestTheOneThatHasNotExpiredIsFound(t *testing.T) {
	for name, take := range map[string]func(*proc) (*allocator.Allocation[string], error){
		"Allocate":    func(n *proc) (*allocator.Allocation[string], error) { return n.Allocate(context.Background(), nil) },
		"TryAllocate": func(n *proc) (*allocator.Allocation[string], error) { return n.TryAllocate(context.Background(), nil) },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n := w.node()
				var all []string
				for i := range 210 {
					all = append(all, fmt.Sprint(i))
				}
				_, err := n.Add(context.Background(), all, &allocator.AddOptions{Expiry: time.Second})
				require.NoError(t, err)
				w.add("fresh")
				w.Advance(time.Second)
				a, err := take(n)
				require.NoError(t, err)
				require.Equal(t, "fresh", a.Resource())
				require.Less(t, w.Now(), 2*time.Second)
			})
		})
	}
}
