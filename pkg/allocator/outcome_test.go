package allocator_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
)

func TestDoMatchesAnErrorOfItsContextOnlyIfTheCallersHasEnded(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		n := w.node()
		err := n.Do(context.Background(), nil, func(ctx context.Context, a *allocator.Allocation[string]) error {
			require.NoError(t, w.node().client.ReleaseByID(context.Background(), proxies, a.ID()))
			<-ctx.Done()
			return errors.Join(ctx.Err(), errMine)
		})
		require.ErrorIs(t, err, berth.ErrReleased)
		require.ErrorIs(t, err, errMine)
		require.NotErrorIs(t, err, context.Canceled)
		end, ok := errors.AsType[*berth.EndError](err)
		require.True(t, ok)
		require.Equal(t, proxies, end.Name)
	})
}

// What f itself has given away has not ended behind its back.
func TestDoOfWhatItsFunctionGaveBackOrDetached(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		n := w.node()
		require.NoError(t, n.Do(context.Background(), nil, func(ctx context.Context, a *allocator.Allocation[string]) error {
			return a.Release(ctx)
		}))
		// It has ended its context itself: the caller has not left.
		err := n.Do(context.Background(), nil, func(ctx context.Context, a *allocator.Allocation[string]) error {
			require.NoError(t, a.Release(ctx))
			<-ctx.Done()
			return ctx.Err()
		})
		require.Error(t, err)
		require.NotErrorIs(t, err, context.Canceled)
		var token berth.Token
		require.NoError(t, n.Do(context.Background(), nil, func(ctx context.Context, a *allocator.Allocation[string]) (err error) {
			token, err = a.Detach(ctx)
			return err
		}))
		a, err := n.Resume(context.Background(), token)
		require.NoError(t, err)
		w.release(a)
	})
}

func TestDoWithoutAFunctionIsRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		n, before := w.node(), w.Dump()
		require.ErrorIs(t, n.Do(context.Background(), nil, nil), berth.ErrInvalidConfig)
		require.ErrorIs(t, n.TryDo(context.Background(), nil, nil), berth.ErrInvalidConfig)
		require.Equal(t, before, w.Dump())
	})
}
