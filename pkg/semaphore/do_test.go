package semaphore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/semaphore"
)

func TestDoRunsUnderAPermitAndGivesItBack(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		type key struct{}
		ctx := berth.WithOwner(context.WithValue(context.Background(), key{}, "value"), "me")
		for name, do := range map[string]func(context.Context, *semaphore.AcquireOptions, func(context.Context) error) error{
			"Do": n.gpu(1).Do, "TryDo": n.gpu(1).TryDo,
		} {
			var inner context.Context
			err := do(ctx, nil, func(ctx context.Context) error {
				inner = ctx
				require.Equal(t, 1, w.stats().Held)
				require.Equal(t, "me", berth.Owner(ctx))
				require.Equal(t, "value", ctx.Value(key{}))
				require.Equal(t, "me", w.Holders()[0].Owner)
				return errMine
			})
			require.Equal(t, errMine, err, name)
			require.Error(t, inner.Err())
			w.RequireIdle()
			require.PanicsWithError(t, errMine.Error(), func() {
				_ = do(ctx, nil, func(context.Context) error { panic(errMine) })
			}, name)
			w.RequireIdle()
			p := n.take(1, nil)
			opts := &semaphore.AcquireOptions{MaxWait: ms}
			if name == "TryDo" {
				opts = nil
			}
			err = do(ctx, opts, func(context.Context) error { t.Error("it ran"); return nil })
			require.ErrorIs(t, err, berth.ErrNotAcquired, name)
			require.NoError(t, p.Release(ctx))
			w.RequireIdle() // the claim that left is removed in the background
		}
	})
}

func TestDoWithoutAFunctionIsRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		require.ErrorIs(t, n.gpu(1).Do(context.Background(), nil, nil), berth.ErrInvalidConfig)
		require.ErrorIs(t, n.gpu(1).TryDo(context.Background(), nil, nil), berth.ErrInvalidConfig)
		require.Empty(t, w.Keys())
	})
}

func TestDoWithoutAnOwnerMakesTheClaimTheOwner(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		require.NoError(t, n.gpu(1).Do(context.Background(), nil, func(ctx context.Context) error {
			require.Equal(t, w.Holders()[0].ID, berth.Owner(ctx))
			return nil
		}))
	})
}

func TestTheContextOfDoEndsWithThePermit(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		err := w.node().gpu(1).Do(context.Background(), nil, func(ctx context.Context) error {
			w.Do("FLUSHALL")
			<-ctx.Done()
			require.ErrorIs(t, context.Cause(ctx), berth.ErrLost)
			return errors.Join(ctx.Err(), errMine)
		})
		require.ErrorIs(t, err, errMine)
		require.ErrorIs(t, err, berth.ErrLost)
		require.NotErrorIs(t, err, context.Canceled, "its caller has not left")
		require.LessOrEqual(t, w.Now(), lease+20*time.Second)
	})
}

func TestWithinEndsWithEitherContext(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		p := n.take(1, nil)
		ctx, cancel := context.WithCancelCause(berth.WithOwner(context.Background(), "another"))
		first, stop := p.Within(ctx)
		defer stop()
		second, stop := p.Within(context.Background())
		defer stop()
		require.Equal(t, p.ID(), berth.Owner(first))
		require.NoError(t, first.Err())
		cancel(errMine)
		require.Equal(t, errMine, context.Cause(first))
		require.NoError(t, second.Err())
		require.NoError(t, p.Release(context.Background()))
		<-second.Done()
		require.ErrorIs(t, context.Cause(second), berth.ErrReleased)
		third, stop := p.Within(context.Background())
		stop()
		<-third.Done()
		require.True(t, errors.Is(context.Cause(third), berth.ErrReleased) || errors.Is(third.Err(), context.Canceled))
	})
}
