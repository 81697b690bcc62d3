package allocator_test

import (
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
		n := w.node()
		require.Equal(t, allocator.Change{}, must(n.Add(ctx, nil, nil))(t))
		require.Empty(t, w.Keys(), "nothing is written")
		require.Equal(t, allocator.Change{Added: 2}, must(n.Add(ctx, []string{"c", "a", "c"}, nil))(t))
		held := n.takes("c", nil)
		require.NoError(t, n.Rest(ctx, "a", time.Minute, "mine", nil))
		require.Equal(t, allocator.Change{Added: 2, Kept: 2}, must(n.Add(ctx, []string{"b", "a", "c", "d"}, nil))(t))
		require.Equal(t, []string{"b", "d"}, w.list())
		require.Equal(t, "mine", w.status("a").Reason, "it goes on resting")
		require.NoError(t, held.Err())
		require.Equal(t, counts{Resources: 4, Free: 2, Leased: 1, Resting: 1, Holders: 1}, w.inspect())
	})
}

// What is removed while it is leased leaves when it comes back, unless it is added again.
func TestALeasedResourceRemovedAndAddedAgainStaysLeasedToItsHolder(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node("a", "b")
		held := n.takes("a", nil)
		before := w.status("a")
		require.Equal(t, allocator.Change{Removed: 2}, must(n.Remove(ctx, []string{"a", "b", "absent", "a"}))(t))
		require.True(t, w.status("a").Leaving)
		require.ErrorIs(t, n.Rest(ctx, "a", time.Second, "", nil), berth.ErrAbsent)
		require.ErrorIs(t, n.Bind(ctx, "you", "a", nil), berth.ErrAbsent)
		require.Equal(t, allocator.Change{Added: 1}, must(n.Add(ctx, []string{"a"}, nil))(t))
		require.Equal(t, before, w.status("a"), "as if never removed")
		w.release(held)
		require.Equal(t, []string{"a"}, w.list())
		w.requireIdle()
	})
}

func TestClearEmptiesAPool(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node(many("x", 450)...)
		held := n.takes("x0", nil)
		require.NoError(t, n.Rest(ctx, "x1", berth.Forever, "", nil))
		require.Equal(t, allocator.Change{Removed: 450}, must(n.Clear(ctx))(t))
		require.Equal(t, map[string]allocator.State{"x0": allocator.Leased}, w.states())
		require.NoError(t, held.Err())
		w.release(held)
		require.Empty(t, w.states())
		w.requireIdle()
		w.Advance(w.Expiry() - w.Now())
		require.Empty(t, w.Keys(), "what is empty is forgotten")
		require.Equal(t, allocator.Change{}, must(n.Clear(ctx))(t))
	})
}

func TestManyResourcesGoInStepsWithProgress(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		const total = 410
		all := many("10.0.0.", total)
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
		require.Equal(t, allocator.Change{Removed: 250}, must(n.Remove(ctx, all[:250]))(t))
		require.Equal(t, 2, n.Count("pool_remove"))
		w.release(n.takes(all[250], nil))
	})
}

func TestTheListingTellsOfEachResourceOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		want := numbered(450)
		w.add(want...)
		meta := map[string]string{"job": "42"}
		held := n.takes("r0000", &allocator.AllocateOptions{Meta: meta, Lease: berth.Forever, Bind: "b"})
		var got []string
		for _, info := range testkit.Collect(t, n.ops().Resources(ctx, proxies)) {
			got = append(got, info.Resource)
			if info.State == allocator.Leased {
				require.Equal(t, "r0000", info.Resource)
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
		info := w.status("r0000")
		require.Equal(t, berth.Forever, info.Left)
		require.Equal(t, allocator.ResourceInfo{Resource: "nobody", State: allocator.Absent}, w.status("nobody"))
		n.Cut()
		for _, err := range n.ops().Resources(ctx, proxies) {
			require.Error(t, err)
		}
		n.Mend()
	})
}

// What a lost answer of an Add has added counts as kept. Each call is one, however often it is sent.
func TestAnOperatorsCallWhoseAnswerWasLostIsDoneOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node().connect()
		n.Once("pool_add", link.LoseReply)
		require.Equal(t, allocator.Change{Kept: 2}, must(n.Add(ctx, []string{"a", "b"}, nil))(t))
		n.Once("pool_replace", link.LoseReply)
		change := must(n.Replace(ctx, []string{"b", "c"}, nil))(t)
		require.Equal(t, allocator.Change{Added: 1, Kept: 1, Removed: 1}, change)
		n.Once("pool_remove", link.LoseReply)
		require.Equal(t, allocator.Change{Removed: 1}, must(n.Remove(ctx, []string{"b", "never"}))(t))
		n.Once("pool_rest", link.LoseReply)
		require.NoError(t, n.Rest(ctx, "c", time.Minute, "mine", nil))
		require.Equal(t, map[string]allocator.State{"c": allocator.Resting}, w.states())
		w.inspect()
	})
}

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
		require.ErrorIs(t, second(n.TryAllocate(ctx, nil)), berth.ErrBusy)
		require.Equal(t, counts{Resources: 2, Leased: 2, Holders: 6}, w.inspect())
		require.Len(t, w.status("a").Holders, 3)
		q := n.queue(nil)
		w.release(held[3])
		q.gets(w.Now(), "b")
		w.release(held[0])
		require.Equal(t, counts{Resources: 2, Free: 1, Leased: 2, Holders: 5}, w.inspect())
	})
}
