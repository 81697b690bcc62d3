package allocator_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/allocator"
)

// changed requires a call to have done just this.
func changed(t *testing.T, change allocator.Change, err error) func(added, kept, removed int) {
	t.Helper()
	return func(added, kept, removed int) {
		t.Helper()
		require.NoError(t, err)
		require.Equal(t, allocator.Change{Added: added, Kept: kept, Removed: removed}, change)
	}
}

func TestAddPutsNewOnesAtTheEndAndKeepsWhatIsThere(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		n := w.node()
		change, err := n.Add(ctx, nil, nil)
		changed(t, change, err)(0, 0, 0)
		require.Empty(t, w.Keys(), "nothing is written")
		change, err = n.Add(ctx, []string{"c", "a", "c"}, nil)
		changed(t, change, err)(2, 0, 0)
		held := n.takes("c", nil)
		require.NoError(t, n.Rest(ctx, "a", time.Minute, "mine", nil))
		change, err = n.Add(ctx, []string{"b", "a", "c", "d"}, nil)
		changed(t, change, err)(2, 2, 0)
		require.Equal(t, []string{"b", "d"}, w.list())
		require.Equal(t, "mine", w.status("a").Reason, "it goes on resting")
		require.NoError(t, held.Err())
		require.Equal(t, counts{Resources: 4, Free: 2, Leased: 1, Resting: 1, Holders: 1}, w.inspect())
	})
}

// What is removed while it is leased leaves when it comes back, unless it is added again.
func TestALeasedResourceRemovedAndAddedAgainStaysLeasedToItsHolder(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		n := w.node()
		w.add("a", "b")
		held := n.takes("a", nil)
		before := w.status("a")
		change, err := n.Remove(ctx, []string{"a", "b", "absent", "a"})
		changed(t, change, err)(0, 0, 2)
		info := w.status("a")
		require.Equal(t, allocator.Leased, info.State)
		require.True(t, info.Leaving)
		require.Equal(t, held.ID(), info.Holders[0].ID)
		require.ErrorIs(t, n.Rest(ctx, "a", time.Second, "", nil), berth.ErrAbsent)
		require.ErrorIs(t, n.Bind(ctx, "you", "a", nil), berth.ErrAbsent)

		change, err = n.Add(ctx, []string{"a"}, nil)
		changed(t, change, err)(1, 0, 0)
		require.Equal(t, before, w.status("a"), "as if never removed")
		require.Empty(t, w.list())
		q := w.node().queue(nil)
		w.Advance(2 * lease)
		require.NoError(t, held.Err())
		w.release(held)
		next := q.gets(w.Now(), "a")
		require.Greater(t, next.Fence(), held.Fence())
		w.release(next)
		require.Equal(t, []string{"a"}, w.list())
		w.requireIdle()
	})
}

func TestClearEmptiesAPool(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		n := w.node()
		w.add(many("x", 450)...)
		held := n.takes("x0", nil)
		require.NoError(t, n.Rest(ctx, "x1", berth.Forever, "", nil))
		change, err := n.Clear(ctx)
		changed(t, change, err)(0, 0, 450)
		require.Equal(t, map[string]allocator.State{"x0": allocator.Leased}, w.states())
		require.NoError(t, held.Err())
		w.release(held)
		require.Empty(t, w.states())
		w.requireIdle()
		w.Advance(w.Expiry() - w.Now())
		require.Empty(t, w.Keys(), "what is empty is forgotten")
		change, err = n.Clear(ctx)
		changed(t, change, err)(0, 0, 0)
	})
}

func TestManyResourcesGoInStepsWithProgress(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		n := w.node()
		const total = 410
		all := make([]string, total)
		for i := range all {
			all[i] = fmt.Sprint("10.0.", i/250, ".", i%250)
		}
		last, steps := 0, 0
		change, err := n.Add(ctx, all, &allocator.AddOptions{Progress: func(done, of int) {
			require.Equal(t, total, of)
			require.Greater(t, done, last)
			require.LessOrEqual(t, done-last, 200)
			last = done
			steps++
		}})
		changed(t, change, err)(total, 0, 0)
		require.Equal(t, total, last)
		require.Equal(t, 3, steps)
		require.Equal(t, steps, n.Count("pool_add"))
		require.Equal(t, total, w.inspect().Resources)
		a := n.takes(all[0], nil)
		w.release(a)
		change, err = n.Remove(ctx, all[:250])
		changed(t, change, err)(0, 0, 250)
		require.Equal(t, 2, n.Count("pool_remove"))
		w.release(n.takes(all[250], nil))
	})
}

func TestTheListingTellsOfEachResourceOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		n := w.node()
		var want []string
		for i := range 450 {
			want = append(want, fmt.Sprintf("%04d", i))
		}
		w.add(want...)
		held := n.takes("0000", &allocator.AllocateOptions{Meta: map[string]string{"job": "42"}, Lease: berth.Forever, Bind: "b"})
		var got []string
		for _, info := range testkit.Collect(t, n.ops().Resources(ctx, proxies)) {
			got = append(got, info.Resource)
			if info.State == allocator.Leased {
				require.Equal(t, "0000", info.Resource)
				require.Len(t, info.Holders, 1)
				require.Equal(t, held.ID(), info.Holders[0].ID)
				require.Equal(t, "42", info.Holders[0].Meta["job"])
			}
		}
		slices.Sort(got)
		require.Equal(t, want, got)
		for _, err := range n.ops().Resources(ctx, proxies) {
			require.NoError(t, err)
			break // a caller may stop
		}
		w.Advance(lease)
		info := w.status("0000")
		require.Equal(t, berth.Forever, info.Left)
		require.Equal(t, allocator.ResourceInfo{Resource: "nobody", State: allocator.Absent}, w.status("nobody"))
		n.Cut()
		for _, err := range n.ops().Resources(ctx, proxies) {
			require.Error(t, err)
		}
		n.Mend()
	})
}

// What a lost answer of an Add has added counts as kept.
func TestAnAddOrAReplaceWhoseAnswerWasLostIsDoneOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.connect()
		n.Once("pool_add", link.LoseReply)
		change, err := n.Add(context.Background(), []string{"a", "b"}, nil)
		changed(t, change, err)(0, 2, 0)
		n.Once("pool_replace", link.LoseReply)
		change, err = n.Replace(context.Background(), []string{"b", "c"}, nil)
		changed(t, change, err)(1, 1, 1)
		require.Equal(t, []string{"b", "c"}, w.list())
		w.inspect()
	})
}
