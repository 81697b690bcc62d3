package semaphore_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
)

// requireEnd fails unless an error tells of the end of a hold, once.
func requireEnd(t *testing.T, err, cause error, held time.Duration) *berth.EndError {
	t.Helper()
	require.ErrorIs(t, err, cause)
	end, ok := errors.AsType[*berth.EndError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, gpu, end.Name)
	require.NotZero(t, end.Fence)
	require.Equal(t, held, end.Held)
	require.Contains(t, err.Error(), end.Claim)
	require.Equal(t, 1, strings.Count(err.Error(), end.Claim), "%v", err)
	require.Equal(t, 1, strings.Count(err.Error(), strings.TrimPrefix(cause.Error(), "berth: ")), "%v", err)
	return end
}

func TestTheEndOfAHoldSaysOfWhatAndAfterHowLong(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		p := n.take(1, nil)
		w.Advance(time.Second)
		w.Do("FLUSHALL")
		<-p.Done()
		at := w.Now()
		w.Advance(time.Second)
		for name, err := range map[string]error{
			"Err": p.Err(), "Cause": context.Cause(p.Context()), "Renew": p.Renew(context.Background()),
			"Release": p.Release(context.Background()),
		} {
			require.Equal(t, p.ID(), requireEnd(t, err, berth.ErrLost, at).Claim, name)
			require.ErrorIs(t, err, berth.ErrNotHeld, name)
		}
	})
}

// Who filters the errors of a caller who has left must not filter lost leases.
func TestDoMatchesAnErrorOfItsContextOnlyIfTheCallersHasEnded(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		for name, returned := range map[string]func(ctx context.Context) error{
			"the error":         func(ctx context.Context) error { return ctx.Err() },
			"the cause":         func(ctx context.Context) error { return context.Cause(ctx) },
			"both, and its own": func(ctx context.Context) error { return errors.Join(ctx.Err(), context.Cause(ctx), errMine) },
			"a deadline": func(ctx context.Context) error {
				return errors.Join(context.DeadlineExceeded, &berth.ConfigError{Field: "mine"})
			},
		} {
			began := w.Now()
			err := n.gpu(1).Do(context.Background(), nil, func(ctx context.Context) error {
				w.Do("FLUSHALL")
				<-ctx.Done()
				return returned(ctx)
			})
			_ = requireEnd(t, err, berth.ErrLost, w.Now()-began)
			require.NotErrorIs(t, err, context.Canceled, name)
			require.NotErrorIs(t, err, context.DeadlineExceeded, name)
			switch name {
			case "both, and its own":
				require.ErrorIs(t, err, errMine)
			case "a deadline":
				refused, ok := errors.AsType[*berth.ConfigError](err)
				require.True(t, ok)
				require.Equal(t, "mine", refused.Field)
			}
		}

		ctx, cancel := context.WithCancelCause(context.Background())
		err := n.gpu(1).Do(ctx, nil, func(ctx context.Context) error {
			w.Do("FLUSHALL")
			cancel(errMine)
			<-ctx.Done()
			return ctx.Err()
		})
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, n.gpu(1).Do(context.Background(), nil, func(context.Context) error {
			return context.DeadlineExceeded
		}), context.DeadlineExceeded, "its own, while it holds")
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
