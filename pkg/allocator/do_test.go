package allocator_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/observe"
)

type doing func(context.Context, *allocator.AllocateOptions, func(context.Context, *allocator.Allocation[string]) error) error

func TestDoRunsUnderAHoldAndGivesItBack(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		n := w.node()
		type key struct{}
		ctx := berth.WithOwner(context.WithValue(context.Background(), key{}, "value"), "me")
		for name, do := range map[string]doing{"Do": n.Do, "TryDo": n.TryDo, "DoHealthy": n.DoHealthy} {
			require.ErrorIs(t, do(ctx, nil, nil), berth.ErrInvalidConfig, name)
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
				require.Equal(t, "me", w.Holders()[0].Owner)
				return errMine
			})
			require.Equal(t, errMine, err, name)
			require.Error(t, inner.Err())
			require.ErrorIs(t, held.Err(), berth.ErrReleased)
			w.requireIdle()
			require.PanicsWithError(t, errMine.Error(), func() {
				_ = do(ctx, nil, func(context.Context, *allocator.Allocation[string]) error { panic(errMine) })
			}, name)
			require.Equal(t, []string{"a"}, w.list())
			held = n.takes("a", nil)
			opts := &allocator.AllocateOptions{MaxWait: ms}
			if name == "TryDo" {
				opts = nil // it does not wait
			}
			err = do(ctx, opts, func(context.Context, *allocator.Allocation[string]) error {
				t.Error("it ran")
				return nil
			})
			require.ErrorIs(t, err, berth.ErrNotAcquired, name)
			w.release(held)
		}
		require.Zero(t, n.Fence(ctx), "there is none")
	})
}

func TestAPanicOfOpenGoesOnAndTheResourceRests(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		panics := true
		n := w.nodeOf(allocator.Config[string]{Open: func(_ context.Context, key string) (string, error) {
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
		told := n.Told(observe.OpenFailed)
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
		n := w.nodeOf(allocator.Config[string]{Healthy: func(context.Context, string) error { panic(errMine) }})
		require.PanicsWithError(t, errMine.Error(), func() { _, _ = n.AllocateHealthy(context.Background(), nil) })
		w.Advance(0)
		require.Equal(t, allocator.Resting, w.status("a").State)
		require.Equal(t, "berth: Healthy panicked", w.status("a").Reason)
		w.requireIdle()
	})
}

// What a function asks for under Do counts at its end.
func TestUnderDoAResourceCanRestAndBeSwapped(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b")
		n := w.node()
		require.NoError(t, n.Do(context.Background(), nil, func(ctx context.Context, a *allocator.Allocation[string]) error {
			require.NoError(t, a.Swap(ctx))
			require.NoError(t, ctx.Err())
			require.Equal(t, a.Fence(), n.Fence(ctx), "the fence of what it has now")
			_ = a.Rest(lease, "mine")
			return nil
		}))
		require.Equal(t, map[string]allocator.State{"a": allocator.Free, "b": allocator.Resting}, w.states())
		w.requireIdle()
	})
}

// A resource that cannot be opened is as useless as one that is not healthy.
func TestAllocateHealthyTakesTheNextWhereOpenFails(t *testing.T) {
	inEach(t, map[string]bool{"each for itself": false, "shared": true}, func(t *testing.T, w *world, shared bool) {
		ctx := context.Background()
		w.add("bad", "good")
		n := w.nodeOf(allocator.Config[string]{Shared: shared, Open: func(_ context.Context, key string) (string, error) {
			if key == "bad" {
				return "", errMine
			}
			return key, nil
		}})
		a, err := n.AllocateHealthy(ctx, nil)
		require.NoError(t, err)
		require.Equal(t, "good", a.Resource())
		require.Equal(t, allocator.ResourceInfo{
			Resource: "bad", MaxSharers: 1, State: allocator.Resting, Left: time.Minute, Reason: errMine.Error(),
		}, w.status("bad"))
		require.Zero(t, w.Now())

		require.NoError(t, w.pool.Rest(ctx, "bad", 0, "", nil))
		w.remove("good")
		require.ErrorIs(t, second(n.Allocate(ctx, nil)), errMine, "the plain forms stay as they are")
		err = second(n.AllocateHealthy(ctx, &allocator.AllocateOptions{MaxWait: time.Second}))
		require.ErrorIs(t, err, berth.ErrNotAcquired)
	})
}
