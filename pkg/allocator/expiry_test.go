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
		require.EqualValues(t, -1, w.Expiry(), "a pool with resources stays")
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

// Whoever wants one finds it behind any number of expired ones.
func TestTheOneThatHasNotExpiredIsFound(t *testing.T) {
	inEach(t, map[string]func(*proc) (*allocator.Allocation[string], error){
		"Allocate":    func(n *proc) (*allocator.Allocation[string], error) { return n.Allocate(context.Background(), nil) },
		"TryAllocate": func(n *proc) (*allocator.Allocation[string], error) { return n.TryAllocate(context.Background(), nil) },
	}, func(t *testing.T, w *world, take func(*proc) (*allocator.Allocation[string], error)) {
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
	_, err := w.ops().Sweep(context.Background(), proxies)
	require.NoError(w.T, err)
	require.NotContains(w.T, w.states(), resource)
	w.inspect()
}

func TestAResourceExpiresAfterItsReleaseAsItsHolderAsked(t *testing.T) {
	ctx := context.Background()
	inEach(t, map[string]func(w *world, n *proc){
		"Release": func(w *world, n *proc) {
			held := n.takes("a", nil)
			w.expireIn(held, 3*time.Second)
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
		"rounded up": func(w *world, n *proc) {
			held := n.takes("a", nil)
			w.expireIn(held, 3*time.Second-ms+1)
			w.Advance(time.Second)
			w.release(held)
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
	inEach(t, map[string]func(w *world, n *proc, held *allocator.Allocation[string]){
		"taken back": func(w *world, _ *proc, held *allocator.Allocation[string]) {
			w.expireIn(held, 0)
			w.release(held)
		},
		"detached": func(w *world, n *proc, held *allocator.Allocation[string]) {
			again, err := n.Resume(ctx, detach(w.T, held))
			require.NoError(w.T, err)
			w.release(again)
		},
		"of a swap that found nothing, and taken back": func(w *world, _ *proc, held *allocator.Allocation[string]) {
			require.ErrorIs(w.T, held.Swap(ctx), berth.ErrBusy)
			w.expireIn(held, 0)
			w.release(held)
		},
	}, func(t *testing.T, w *world, end func(w *world, n *proc, held *allocator.Allocation[string])) {
		w.add("a")
		n := w.node()
		held := n.takes("a", &allocator.AllocateOptions{NoRenew: true})
		w.expireIn(held, time.Second)
		end(w, n, held)
		require.Equal(t, allocator.Free, w.status("a").State)
		require.Zero(t, w.status("a").Expiry)
		w.inspect()
	})
}

func TestASwapThatFindsNothingKeepsTheExpiryThatWasAskedFor(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		held := w.node().takes("a", nil)
		w.expireIn(held, time.Second)
		require.ErrorIs(t, held.Swap(t.Context()), berth.ErrBusy)
		w.release(held)
		require.Equal(t, time.Second, w.status("a").Expiry)
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
		_, err := w.pool.Remove(t.Context(), []string{"b"})
		require.NoError(t, err)
		w.release(b)
		w.requireLeaves("a", 4*time.Second)
		require.Empty(t, w.states())
	})
}

func TestWhoWaitsForWhatExpiresIsToldAtThatMoment(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b")
		n, only := w.node(), &allocator.AllocateOptions{Resource: "a"}
		held := n.takes("a", only)
		next, last := n.queue(only), n.queue(only)
		w.expireIn(held, 3*time.Second)
		w.Until(time.Second)
		w.release(held)
		next.gets(time.Second, "a")
		w.Until(4*time.Second - ms)
		require.True(t, last.Pending())
		w.Until(4 * time.Second)
		<-last.Done
		require.ErrorIs(t, last.Err, berth.ErrAbsent)
		w.inspect()
	})
}
