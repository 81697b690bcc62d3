package allocator_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
)

func TestASwapGivesBackAndTakesTheNext(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		w.add("a", "b", "c")
		n := w.node()
		n.connect()
		a := n.takes("a", nil)
		id, fence := a.ID(), a.Fence()
		done := a.Done()
		for _, key := range []string{"b", "c", "a", "b"} {
			n.Fresh()
			require.NoError(t, a.Swap(ctx))
			require.Equal(t, map[string]int{"pool_swap": 1}, n.Counts(), "in one step")
			require.Equal(t, key, a.Resource())
			require.Equal(t, key, a.Value())
			require.Equal(t, id, a.ID())
			require.Greater(t, a.Fence(), fence)
			fence = a.Fence()
			h := w.Holders()
			require.Len(t, h, 1)
			require.Equal(t, key, h[0].Resource)
			require.Equal(t, fence, h[0].Fence)
			require.Equal(t, 1, w.inspect().Leased)
			w.Advance(lease)
		}
		require.NoError(t, a.Err())
		select {
		case <-done:
			t.Fatal("the handle stays")
		default:
		}
		w.release(a)
		require.Equal(t, []string{"c", "a", "b"}, w.list())
		w.requireIdle()
	})
}

func TestWhatRestHasAskedForIsForTheOldResource(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		w.add("a", "b")
		n := w.nodeOf(allocator.PoolConfig[string]{Cooldown: time.Second})
		a := n.takes("a", nil)
		_ = a.Rest(time.Minute, "blocked")
		require.NoError(t, a.Swap(ctx))
		require.Equal(t, allocator.ResourceInfo{Resource: "a", MaxSharers: 1, State: allocator.Resting, Left: time.Minute, Reason: "blocked"}, w.status("a"))
		w.release(a)
		require.Equal(t, allocator.ResourceInfo{Resource: "b", MaxSharers: 1, State: allocator.Resting, Left: time.Second}, w.status("b"))
	})
}

func TestASwapNeverWaitsAndChangesNothingThen(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		w.add("a", "b")
		n, m := w.node(), w.node()
		a, b := n.takes("a", nil), m.takes("b", nil)
		fence := a.Fence()
		unchanged := func(reason berth.Reason) {
			t.Helper()
			before := w.Dump()
			err := a.Swap(ctx)
			require.ErrorIs(t, err, berth.ErrBusy)
			var refusal *berth.AcquireError
			require.ErrorAs(t, err, &refusal)
			require.Equal(t, reason, refusal.Reason)
			require.Equal(t, proxies, refusal.Name)
			require.Equal(t, a.ID(), refusal.Claim)
			require.Equal(t, 2, refusal.Capacity)
			require.NoError(t, a.Err())
			require.Equal(t, "a", a.Resource())
			require.Equal(t, fence, a.Fence())
			require.Equal(t, before, w.Dump())
		}
		unchanged(berth.ReasonFull)
		q := m.queue(nil)
		unchanged(berth.ReasonQueuedAhead)
		w.release(b)
		b = q.gets(0, "b")
		require.NoError(t, n.Rest(ctx, "b", time.Minute, "", nil))
		w.release(b)
		unchanged(berth.ReasonFull)
		w.release(a)
	})
}

func TestOfTwoSwapsAtOnceOneComesAfterTheOther(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b", "c")
		n := w.node()
		n.connect()
		a := n.takes("a", nil)
		n.Delay(func() time.Duration { return ms })
		var swaps sync.WaitGroup
		for range 2 {
			swaps.Go(func() {
				if err := a.Swap(context.Background()); err != nil {
					t.Error(err)
				}
			})
		}
		swaps.Wait()
		require.Equal(t, "c", a.Resource())
		require.Equal(t, "c", a.Value())
		require.Equal(t, []string{"a", "b"}, w.list())
		w.inspect()

		// One that waits for another goes with its ctx.
		ctx, cancel := context.WithCancelCause(context.Background())
		swaps.Go(func() {
			if err := a.Swap(context.Background()); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		var err error
		swaps.Go(func() { err = a.Swap(ctx) })
		synctest.Wait()
		cancel(errMine)
		swaps.Wait()
		require.ErrorIs(t, err, errMine)
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, "a", a.Value())
	})
}

// Whichever comes first, nothing is held in the end and nothing is lost.
func TestASwapAndAReleaseAtOnce(t *testing.T) {
	for name, order := range map[string]struct{ swap, release time.Duration }{
		"the swap first": {0, ms}, "the release first": {ms, 0}, "at the same time": {0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.add("a", "b")
				var mu sync.Mutex
				open := make(map[string]int)
				n := w.nodeOf(allocator.PoolConfig[string]{
					Open: func(_ context.Context, key string) (string, error) {
						mu.Lock()
						defer mu.Unlock()
						open[key]++
						return key, nil
					},
				})
				n.connect()
				a := n.takes("a", nil)
				n.Delay(func() time.Duration { return 5 * ms })
				var both sync.WaitGroup
				var swapped error
				both.Go(func() {
					<-time.After(order.swap)
					swapped = a.Swap(context.Background())
				})
				both.Go(func() {
					<-time.After(order.release)
					if err := a.Release(context.Background()); err != nil {
						t.Error(err)
					}
				})
				both.Wait()
				w.Advance(time.Second)
				if swapped != nil {
					require.ErrorIs(t, swapped, berth.ErrReleased)
				}
				require.Len(t, w.list(), 2)
				w.requireIdle()
				for key, count := range open {
					require.Equal(t, 1, count, key)
				}
			})
		})
	}
}

// Nobody can tell which resource it is of: the hold ends.
func TestASwapThatIsNeverAnsweredEndsTheHold(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b")
		n := w.nodeWith(node.Config{Retry: berth.Retry{Attempts: 1}}, allocator.PoolConfig[string]{})
		n.connect()
		a := n.takes("a", nil)
		n.Once("pool_swap", link.LoseReply)
		require.Error(t, a.Swap(context.Background()))
		require.ErrorIs(t, a.Err(), berth.ErrLost)
		<-a.Done()
		w.Advance(time.Second)
		require.Len(t, w.list(), 2, "it is given back")
		w.requireIdle()
	})
}

func TestASwapWhoseOpenFailsEndsTheHold(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b")
		closed := []string{}
		n := w.nodeOf(allocator.PoolConfig[string]{
			Open: func(_ context.Context, key string) (string, error) {
				if key == "b" {
					return "", errMine
				}
				return key, nil
			},
			Close:       func(key string) error { closed = append(closed, key); return nil },
			FailureRest: time.Minute,
		})
		a := n.takes("a", nil)
		err := a.Swap(context.Background())
		require.ErrorIs(t, err, errMine)
		require.ErrorIs(t, a.Err(), berth.ErrReleased)
		require.Equal(t, allocator.Resting, w.status("b").State)
		require.Equal(t, errMine.Error(), w.status("b").Reason)
		require.Equal(t, []string{"a"}, w.list())
		require.Contains(t, n.Kinds(), observe.OpenFailed)
		w.requireIdle()
		require.Empty(t, closed)
		n.Shut()
		require.Equal(t, []string{"a"}, closed)
	})
}

func TestASwapOfWhatHasEnded(t *testing.T) {
	ctx := context.Background()
	for name, c := range map[string]struct {
		opts   allocator.AllocateOptions
		ends   func(w *world, a *allocator.Allocation[string])
		want   error
		leased int // the server still has what it had
	}{
		"expired": {opts: allocator.AllocateOptions{NoRenew: true}, want: berth.ErrExpired, ends: func(w *world, _ *allocator.Allocation[string]) {
			w.Advance(lease)
		}},
		"flushed": {want: berth.ErrLost, ends: func(w *world, _ *allocator.Allocation[string]) {
			w.Do("FLUSHALL")
			w.add("a", "b")
		}},
		"released by an operator": {want: berth.ErrReleased, ends: func(w *world, a *allocator.Allocation[string]) {
			require.NoError(w.T, w.node().force(a.ID()))
		}},
		"taken by another node": {want: berth.ErrReleased, leased: 1, ends: func(w *world, a *allocator.Allocation[string]) {
			_, err := w.node().Resume(ctx, detach(w.T, a))
			require.NoError(w.T, err)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.add("a", "b")
				n := w.node()
				a := n.takes("a", &c.opts)
				c.ends(w, a)
				require.ErrorIs(t, a.Swap(ctx), c.want)
				require.Equal(t, "a", a.Resource())
				stats := w.stats()
				require.Equal(t, c.leased, stats.Leased)
				require.Equal(t, 2, w.inspect().Resources)
			})
		})
	}
}

// Its script stops at its bound, with one or before it has found one, and the node goes on.
func TestASwapFindsOneBehindWhatHasExpired(t *testing.T) {
	for name, first := range map[string]bool{"before it": true, "behind it": false} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				ctx := context.Background()
				w.add("a")
				n := w.node()
				a := n.takes("a", &allocator.AllocateOptions{Lease: time.Hour, NoRenew: true})
				if first {
					w.add("b")
				}
				_, err := n.Add(ctx, many("x", 300), &allocator.AddOptions{Expiry: 500 * ms})
				require.NoError(t, err)
				if !first {
					w.add("b")
				}
				w.Advance(500 * ms)
				n.Fresh()
				require.NoError(t, a.Swap(ctx))
				require.Equal(t, "b", a.Resource())
				w.Advance(500 * ms)
				require.Equal(t, 2, w.inspect().Resources, "the others have left")
				require.Zero(t, n.Count("pool_renew"), "which would sweep as well")
			})
		})
	}
}

func TestASwapOfABoundClaimBindsTheNewResource(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b")
		n := w.node()
		a := n.takes("a", &allocator.AllocateOptions{Bind: "me"})
		require.NoError(t, a.Swap(context.Background()))
		b, err := n.Binding(context.Background(), "me")
		require.NoError(t, err)
		require.Equal(t, "b", b.Resource)
		w.inspect()
	})
}
