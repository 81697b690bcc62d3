package allocator_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/observe"
)

func TestASwapGivesBackAndTakesTheNext(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node("a", "b", "c").connect()
		a := n.takes("a", nil)
		id, fence := a.ID(), a.Fence()
		for _, key := range []string{"b", "c", "a", "b"} {
			n.Fresh()
			require.NoError(t, a.Swap(ctx))
			require.Equal(t, map[string]int{"pool_swap": 1}, n.Counts(), "in one step")
			require.Equal(t, []string{key, key, id}, []string{a.Resource(), a.Value(), a.ID()})
			require.Greater(t, a.Fence(), fence)
			fence = a.Fence()
			h := w.Holders()
			require.Len(t, h, 1)
			require.Equal(t, key, h[0].Resource)
			require.Equal(t, fence, h[0].Fence)
			w.Advance(lease)
		}
		require.NoError(t, a.Err(), "the handle stays")
		w.release(a)
		require.Equal(t, []string{"c", "a", "b"}, w.list())
		w.requireIdle()
	})
}

func TestASwapHandsOnWhatItGivesBackInTheSameScript(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, m := w.node("a", "b"), w.node()
		a := n.takes("a", nil)
		waits := m.queue(&allocator.AllocateOptions{Resource: "a"})
		n.Fresh()
		m.Fresh()
		require.NoError(t, a.Swap(ctx))
		waits.gets(w.Now(), "a")
		require.Zero(t, n.Count("pool_sweep")+m.Count("pool_sweep"), "nobody had to look for it")
	})
}

func TestASwapNeverWaitsAndChangesNothingThen(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, m := w.node("a", "b"), w.node()
		a, _ := n.takes("a", nil), m.takes("b", nil)
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
		m.queue(nil)
		unchanged(berth.ReasonQueuedAhead)
	})
}

func TestOfTwoSwapsAtOnceOneComesAfterTheOther(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node("a", "b", "c").connect()
		a := n.takes("a", nil)
		n.Delay(func() time.Duration { return ms })
		errs := make(chan error, 3)
		swap := func(ctx context.Context) { errs <- a.Swap(ctx) }
		go swap(context.Background())
		go swap(context.Background())
		synctest.Wait()
		// One that waits for another goes with its ctx.
		ctx, cancel := context.WithCancelCause(context.Background())
		go swap(ctx)
		synctest.Wait()
		cancel(errMine)
		err := <-errs
		require.ErrorIs(t, err, errMine)
		require.ErrorIs(t, err, context.Canceled)
		require.NoError(t, <-errs)
		require.NoError(t, <-errs)
		require.Equal(t, "c", a.Resource())
		require.Equal(t, "c", a.Value())
		require.Equal(t, []string{"a", "b"}, w.list())
		w.inspect()
	})
}

// Whichever comes first, nothing is held in the end and nothing is lost.
func TestASwapAndAReleaseAtOnce(t *testing.T) {
	type row struct{ swap, release time.Duration }
	inEach(t, map[string]row{
		"the swap first": {0, ms}, "the release first": {ms, 0}, "at the same time": {0, 0},
	}, func(t *testing.T, w *world, order row) {
		w.add("a", "b")
		var mu sync.Mutex
		open := make(map[string]int)
		n := w.nodeOf(allocator.Config[string]{
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
			swapped = a.Swap(ctx)
		})
		both.Go(func() {
			<-time.After(order.release)
			if err := a.Release(ctx); err != nil {
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
}

func TestASwapWhoseOpenFailsEndsTheHold(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b")
		closed := []string{}
		n := w.nodeOf(allocator.Config[string]{
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
		err := a.Swap(ctx)
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
	type row struct {
		ends func(w *world, a *allocator.Allocation[string])
		want error
	}
	inEach(t, map[string]row{
		"flushed": {want: berth.ErrLost, ends: func(w *world, _ *allocator.Allocation[string]) {
			w.Do("FLUSHALL")
			w.add("a", "b")
		}},
		"released by an operator": {want: berth.ErrReleased, ends: func(w *world, a *allocator.Allocation[string]) {
			require.NoError(w.T, w.node().force(a.ID()))
		}},
		"taken by another node": {want: berth.ErrReleased, ends: func(w *world, a *allocator.Allocation[string]) {
			require.NoError(w.T, second(w.node().Resume(ctx, detach(w.T, a))))
		}},
	}, func(t *testing.T, w *world, c row) {
		a := w.node("a", "b").takes("a", nil)
		c.ends(w, a)
		require.ErrorIs(t, a.Swap(ctx), c.want)
		require.Equal(t, "a", a.Resource())
		require.Equal(t, 2, w.inspect().Resources)
	})
}

// Its script stops at its bound, with one or before it has found one, and the node goes on.
func TestASwapFindsOneBehindWhatHasExpired(t *testing.T) {
	inEach(t, map[string]bool{"before it": true, "behind it": false}, func(t *testing.T, w *world, first bool) {
		n := w.node("a")
		a := n.takes("a", &allocator.AllocateOptions{Lease: time.Hour, NoRenew: true})
		if first {
			w.add("b")
		}
		require.NoError(t, change(n.Add(ctx, many("x", 300), &allocator.AddOptions{Expiry: 500 * ms})))
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
}
