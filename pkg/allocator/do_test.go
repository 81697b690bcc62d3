package allocator_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/allocator"
)

type doing func(context.Context, *allocator.AllocateOptions, func(context.Context, *allocator.Allocation[string]) error) error

func TestDoRunsUnderAHoldAndGivesItBack(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		n := w.node()
		type key struct{}
		ctx := berth.WithOwner(context.WithValue(context.Background(), key{}, "value"), "me")
		for name, do := range map[string]doing{"Do": n.Do, "TryDo": n.TryDo} {
			var inner context.Context
			var held *allocator.Allocation[string]
			err := do(ctx, nil, func(ctx context.Context, a *allocator.Allocation[string]) error {
				inner, held = ctx, a
				require.Equal(t, "a", a.Value())
				require.Equal(t, a.Fence(), n.Fence(ctx))
				require.Equal(t, a.Fence(), n.Fence(a.Context()))
				require.Equal(t, 1, w.inspect().Leased)
				require.Equal(t, "me", berth.Owner(ctx))
				require.Equal(t, "value", ctx.Value(key{}))
				require.Equal(t, "me", testkit.Collect(t, n.Holders(ctx))[0].Owner)
				return errMine
			})
			require.Equal(t, errMine, err, name)
			require.Error(t, inner.Err())
			require.ErrorIs(t, held.Err(), berth.ErrReleased)
			w.requireIdle()
		}
		require.Zero(t, n.Fence(ctx), "there is none")
	})
}

func TestDoReturnsTheAllocatesErrorAndDoesNotRun(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		run := func(context.Context, *allocator.Allocation[string]) error { t.Error("it ran"); return nil }
		require.ErrorIs(t, n.TryDo(context.Background(), nil, run), berth.ErrNotAcquired)
		require.ErrorIs(t, n.Do(context.Background(), &allocator.AllocateOptions{MaxWait: ms}, run), berth.ErrNotAcquired)
	})
}

func TestAPanicInDoGivesBack(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		n := w.node()
		for _, do := range []doing{n.Do, n.TryDo} {
			require.PanicsWithError(t, errMine.Error(), func() {
				_ = do(context.Background(), nil, func(context.Context, *allocator.Allocation[string]) error { panic(errMine) })
			})
			require.Equal(t, []string{"a"}, w.list())
			w.requireIdle()
		}
	})
}

func TestAPanicOfOpenGoesOnAndTheResourceRests(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		panics := true
		n := w.nodeOf(allocator.PoolConfig[string]{Open: func(_ context.Context, key string) (string, error) {
			if panics {
				panic(errMine)
			}
			return key, nil
		}})
		for _, do := range []doing{n.Do, n.TryDo} {
			require.PanicsWithError(t, errMine.Error(), func() {
				_ = do(context.Background(), nil, func(context.Context, *allocator.Allocation[string]) error { return nil })
			})
			w.Advance(0)
			a := w.status("a")
			require.Equal(t, allocator.Resting, a.State, "as one whose Open failed")
			require.Equal(t, time.Minute, a.Left)
			require.Contains(t, a.Reason, "berth: Open panicked: my own reason")
			w.requireIdle()
			w.Advance(time.Minute)
		}
		told := failures(n)
		require.Len(t, told, 2)
		require.ErrorContains(t, told[0].Err, "berth: Open panicked: my own reason")
		require.ErrorContains(t, told[0].Err, "TestAPanicOfOpenGoesOnAndTheResourceRests", "where it did")
		panics = false
		w.release(n.takes("a", nil))
	})
}

func TestAPanicOfHealthyGoesOnAndTheResourceRests(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		n := w.nodeOf(allocator.PoolConfig[string]{Healthy: func(context.Context, string) error { panic(errMine) }})
		require.PanicsWithError(t, errMine.Error(), func() { _, _ = n.AllocateHealthy(context.Background(), nil) })
		w.Advance(0)
		require.Equal(t, allocator.Resting, w.status("a").State)
		require.Equal(t, "berth: Healthy panicked", w.status("a").Reason)
		w.requireIdle()
	})
}

func TestTheContextOfDoEndsWithTheHold(t *testing.T) {
	for name, c := range map[string]struct {
		opts  allocator.AllocateOptions
		after func(w *world, n *node, a *allocator.Allocation[string])
		want  error
	}{
		"lost": {want: berth.ErrLost, after: func(w *world, _ *node, _ *allocator.Allocation[string]) {
			w.Do("FLUSHALL")
		}},
		"expired": {want: berth.ErrExpired, opts: allocator.AllocateOptions{MaxHold: lease / 2}},
		"released by an operator": {want: berth.ErrReleased, after: func(w *world, n *node, a *allocator.Allocation[string]) {
			require.NoError(w.T, n.client.ReleaseByID(context.Background(), proxies, a.ID()))
		}},
		"cut off": {want: berth.ErrLost, after: func(_ *world, n *node, _ *allocator.Allocation[string]) { n.Die() }},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.add("a")
				n := w.node()
				err := n.Do(context.Background(), &c.opts, func(ctx context.Context, a *allocator.Allocation[string]) error {
					if c.after != nil {
						c.after(w, n, a)
					}
					<-ctx.Done()
					require.ErrorIs(t, context.Cause(ctx), c.want)
					return errMine
				})
				require.ErrorIs(t, err, errMine)
				require.ErrorIs(t, err, c.want)
			})
		})
	}
}

// f does not notice that the hold is gone; Do says so.
func TestDoSaysThatTheHoldHadEndedWhenNobodyHadHeardOfIt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		err := w.node().Do(context.Background(), nil, func(context.Context, *allocator.Allocation[string]) error {
			w.Do("FLUSHALL")
			return nil
		})
		require.ErrorIs(t, err, berth.ErrLost)
	})
}

func TestTheContextOfDoEndsWithTheCallers(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		ctx, cancel := context.WithCancelCause(context.Background())
		err := w.node().Do(ctx, nil, func(ctx context.Context, _ *allocator.Allocation[string]) error {
			cancel(errMine)
			<-ctx.Done()
			return context.Cause(ctx)
		})
		require.Equal(t, errMine, err, "the hold had not ended")
		require.NotErrorIs(t, err, berth.ErrNotHeld)
		w.requireIdle()
	})
}

// What a function asks for under Do counts at its end.
func TestUnderDoAResourceCanRestAndBeSwapped(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b")
		n := w.node()
		require.NoError(t, n.Do(context.Background(), nil, func(ctx context.Context, a *allocator.Allocation[string]) error {
			fence := a.Fence()
			require.NoError(t, a.Swap(ctx))
			require.NoError(t, ctx.Err())
			require.Greater(t, a.Fence(), fence)
			require.Equal(t, a.Fence(), n.Fence(ctx), "the fence of what it has now")
			_ = a.Rest(lease, "mine")
			return nil
		}))
		require.Equal(t, map[string]allocator.State{"a": allocator.Free, "b": allocator.Resting}, w.states())
		w.requireIdle()
	})
}
