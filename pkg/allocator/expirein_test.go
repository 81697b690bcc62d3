package allocator_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
)

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
	for name, end := range map[string]func(w *world, n *proc){
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
		"in place of a longer one": func(w *world, n *proc) {
			_, err := w.pool.Add(ctx, []string{"a"}, &allocator.AddOptions{Expiry: time.Hour})
			require.NoError(w.T, err)
			held := n.takes("a", nil)
			w.expireIn(held, 3*time.Second)
			w.Advance(time.Second)
			w.release(held)
		},
		"in place of a shorter one": func(w *world, n *proc) {
			_, err := w.pool.Add(ctx, []string{"a"}, &allocator.AddOptions{Expiry: 2 * time.Second})
			require.NoError(w.T, err)
			held := n.takes("a", nil)
			w.expireIn(held, 3*time.Second)
			w.Advance(time.Second)
			w.release(held)
		},
		"while it rests": func(w *world, n *proc) {
			held := n.takes("a", nil)
			w.expireIn(held, 3*time.Second)
			require.NoError(w.T, held.Rest(time.Minute, "429"))
			w.Advance(time.Second)
			w.release(held)
			require.Equal(w.T, allocator.Resting, w.status("a").State)
		},
		"in the hands of the next": func(w *world, n *proc) {
			held := n.takes("a", nil)
			q := n.queue(nil)
			w.expireIn(held, 3*time.Second)
			w.Advance(time.Second)
			w.release(held)
			next := q.gets(time.Second, "a")
			w.Advance(time.Second)
			w.release(next)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.add("a")
				n := w.node()
				end(w, n)
				w.requireLeaves("a", 4*time.Second)
			})
		})
	}
}

func TestAnExpiryThatDoesNotCount(t *testing.T) {
	ctx := context.Background()
	for name, end := range map[string]func(w *world, n *proc, held *allocator.Allocation[string]){
		"taken back": func(w *world, _ *proc, held *allocator.Allocation[string]) {
			w.expireIn(held, 0)
			w.release(held)
		},
		"the hold had ended": func(w *world, _ *proc, held *allocator.Allocation[string]) {
			w.Until(lease)
			require.ErrorIs(w.T, held.Release(ctx), berth.ErrExpired)
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
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.add("a")
				n := w.node()
				held := n.takes("a", &allocator.AllocateOptions{NoRenew: true})
				w.expireIn(held, time.Second)
				end(w, n, held)
				require.Equal(t, allocator.Free, w.status("a").State)
				require.Zero(t, w.status("a").Expiry)
				w.inspect()
			})
		})
	}
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

func TestAResourceThatLeavesAnywayLeavesAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		_, err := w.pool.Add(t.Context(), []string{"a"}, &allocator.AddOptions{Expiry: time.Second})
		require.NoError(t, err)
		w.add("b")
		n := w.node()
		a, b := n.takes("a", nil), n.takes("b", nil)
		w.expireIn(a, time.Hour)
		w.expireIn(b, time.Hour)
		_, err = w.pool.Remove(t.Context(), []string{"b"})
		require.NoError(t, err)
		w.Until(time.Second)
		w.release(a)
		w.release(b)
		require.Empty(t, w.states())
		w.inspect()
	})
}

func TestOtherHoldersKeepWhatExpires(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		_, err := w.pool.Add(t.Context(), []string{"a"}, &allocator.AddOptions{MaxSharers: 2})
		require.NoError(t, err)
		n := w.node()
		one, two := n.takes("a", nil), n.takes("a", nil)
		w.expireIn(one, time.Second)
		w.release(one)
		w.Until(time.Minute)
		require.NoError(t, two.Err())
		require.True(t, w.status("a").Leaving)
		w.release(two)
		require.Empty(t, w.states())
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
