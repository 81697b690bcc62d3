package allocator_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
)

func TestAResourceLeavesWhenItExpires(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, for10s := w.node(), &allocator.AddOptions{Expiry: 10 * time.Second}
		require.NoError(t, change(n.Add(t.Context(), []string{"leased", "free"}, for10s)))
		held := n.takes("leased", nil)
		w.requireLeaves("free", 10*time.Second)
		require.True(t, w.status("leased").Leaving)
		require.NoError(t, held.Err(), "it stays with its holder")
		w.release(held)
		require.Empty(t, w.states())
	})
}

// Whoever wants one finds it behind any number of expired ones.
func TestTheOneThatHasNotExpiredIsFound(t *testing.T) {
	type allocate = func(context.Context, *allocator.AllocateOptions) (*allocator.Allocation[string], error)
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		for _, take := range []allocate{n.Allocate, n.TryAllocate} {
			require.NoError(t, change(n.Add(t.Context(), many("x", 210), &allocator.AddOptions{Expiry: time.Second})))
			w.add("fresh")
			w.Advance(time.Second)
			began := w.Now()
			a, err := take(t.Context(), nil)
			require.NoError(t, err)
			require.Equal(t, "fresh", a.Resource())
			require.Less(t, w.Now()-began, time.Second)
			w.release(a)
			w.remove("fresh")
		}
	})
}

// expireIn asks that the resource of a hold leaves, or fails.
func (w *world) expireIn(a *allocator.Allocation[string], d time.Duration) {
	w.T.Helper()
	require.NoError(w.T, a.ExpireIn(d))
}

// requireLeaves fails unless a resource leaves the pool at that moment.
func (w *world) requireLeaves(resource string, at time.Duration) {
	w.T.Helper()
	require.Equal(w.T, at, w.Now()+w.status(resource).Expiry)
	w.inspect()
	w.Until(at - ms)
	require.NotEqual(w.T, allocator.Absent, w.status(resource).State)
	w.Until(at)
	require.Equal(w.T, allocator.Absent, w.status(resource).State)
	require.NoError(w.T, second(w.ops().Sweep(context.Background(), proxies)))
	require.NotContains(w.T, w.states(), resource)
	w.inspect()
}

func TestAResourceExpiresAfterItsReleaseAsItsHolderAsked(t *testing.T) {
	ctx := context.Background()
	inEach(t, map[string]func(w *world, n *proc){
		"Release, rounded up": func(w *world, n *proc) {
			held := n.takes("a", nil)
			w.expireIn(held, 3*time.Second-ms+1)
			w.Advance(time.Second)
			n.Fresh()
			w.release(held)
			require.Equal(w.T, map[string]int{"pool_release": 1}, n.Scripts())
		},
		"Swap": func(w *world, n *proc) {
			held := n.takes("a", nil)
			w.add("b")
			w.expireIn(held, 3*time.Second)
			w.Advance(time.Second)
			require.NoError(w.T, held.Swap(ctx))
			w.release(held)
			require.Zero(w.T, w.status("b").Expiry, "it was for the old one")
		},
		"Do": func(w *world, n *proc) {
			require.NoError(w.T, n.Do(ctx, nil, func(_ context.Context, a *allocator.Allocation[string]) error {
				w.expireIn(a, 3*time.Second)
				w.Advance(time.Second)
				return nil
			}))
		},
		"the last call": func(w *world, n *proc) {
			held := n.takes("a", nil)
			w.expireIn(held, time.Hour)
			w.expireIn(held, 3*time.Second)
			requireInvalid(w.T, "d", held.ExpireIn(-ms))
			requireInvalid(w.T, "d", held.ExpireIn(berth.Forever))
			w.Advance(time.Second)
			w.release(held)
		},
	}, func(t *testing.T, w *world, end func(w *world, n *proc)) {
		w.add("a")
		n := w.node()
		end(w, n)
		w.requireLeaves("a", 4*time.Second)
	})
}

func TestAnExpiryThatDoesNotCount(t *testing.T) {
	ctx := context.Background()
	type row struct {
		end  func(w *world, n *proc, held *allocator.Allocation[string])
		left time.Duration // for the resource, 0 for ever
	}
	swap := func(w *world, held *allocator.Allocation[string]) {
		require.ErrorIs(w.T, held.Swap(ctx), berth.ErrBusy)
	}
	inEach(t, map[string]row{
		"taken back": {func(w *world, _ *proc, held *allocator.Allocation[string]) {
			w.expireIn(held, 0)
			w.release(held)
		}, 0},
		"detached": {func(w *world, n *proc, held *allocator.Allocation[string]) {
			again, err := n.Resume(ctx, detach(w.T, held))
			require.NoError(w.T, err)
			w.release(again)
		}, 0},
		"of a swap that found nothing, and taken back": {func(w *world, _ *proc, held *allocator.Allocation[string]) {
			swap(w, held)
			w.expireIn(held, 0)
			w.release(held)
		}, 0},
		"a swap that finds nothing keeps it": {func(w *world, _ *proc, held *allocator.Allocation[string]) {
			swap(w, held)
			w.release(held)
		}, time.Second},
	}, func(t *testing.T, w *world, c row) {
		w.add("a")
		n := w.node()
		held := n.takes("a", &allocator.AllocateOptions{NoRenew: true})
		w.expireIn(held, time.Second)
		c.end(w, n, held)
		require.Equal(t, allocator.Free, w.status("a").State)
		require.Equal(t, c.left, w.status("a").Expiry)
		w.inspect()
	})
}

func TestAnExpiryAskedForInASharedPoolBeginsWithTheRelease(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b")
		n := w.nodeOf(inTurn)
		a, b := n.takes("a", nil), n.takes("b", nil)
		w.expireIn(a, 3*time.Second)
		require.NoError(t, a.Rest(time.Second, "429"))
		w.Until(time.Second)
		w.release(a)
		require.Equal(t, allocator.Resting, w.status("a").State)
		w.expireIn(b, time.Minute)
		w.remove("b")
		w.release(b)
		w.requireLeaves("a", 4*time.Second)
		require.Empty(t, w.states())
	})
}
