package qlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/qlock"
)

func TestDoAllMatchesAnErrorOfItsContextOnlyIfTheCallersHasEnded(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		err := n.DoAll(context.Background(), []string{door, "window"}, nil, func(ctx context.Context) error {
			require.NoError(t, w.node().end(context.Background(), "window"))
			<-ctx.Done()
			return errors.Join(ctx.Err(), errMine)
		})
		require.ErrorIs(t, err, berth.ErrReleased)
		require.ErrorIs(t, err, errMine)
		require.NotErrorIs(t, err, context.Canceled)
		end, ok := errors.AsType[*berth.EndError](err)
		require.True(t, ok)
		require.Equal(t, "window", end.Name)
		require.Equal(t, 1, strings.Count(err.Error(), `"window"`), "%v", err)
		ctx, cancel := context.WithCancel(context.Background())
		err = n.DoAll(ctx, []string{door}, nil, func(ctx context.Context) error {
			cancel()
			return ctx.Err()
		})
		require.ErrorIs(t, err, context.Canceled)
	})
}

func TestDoWithoutAFunctionIsRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx, n := context.Background(), w.node()
		for name, err := range map[string]error{
			"Do": n.Do(ctx, door, nil, nil), "TryDo": n.TryDo(ctx, door, nil, nil),
			"DoAll": n.DoAll(ctx, []string{door}, nil, nil), "TryDoAll": n.TryDoAll(ctx, []string{door}, nil, nil),
		} {
			require.ErrorIs(t, err, berth.ErrInvalidConfig, name)
		}
		require.Empty(t, w.Keys())
	})
}

// A sum of extensions that nobody can count any more must not end what it was to keep.
func TestAnExtensionBeyondAllTimeIsRefused(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for name, opts := range map[string]*qlock.LockOptions{"renews": nil, "NoRenew": {NoRenew: true}} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				ctx, n := context.Background(), w.node()
				l := n.take(opts)
				require.NoError(t, l.Extend(ctx, 200*year))
				before, left := w.Dump(), l.Left()
				n.Reset()
				err := l.Extend(ctx, 200*year)
				require.ErrorIs(t, err, berth.ErrInvalidConfig)
				require.ErrorContains(t, err, "by")
				require.Empty(t, n.Counts(), "nothing is sent")
				require.Equal(t, before, w.Dump())
				require.Equal(t, left, l.Left())
				w.Advance(time.Minute)
				require.NoError(t, l.Err())
				w.requireHonest(l)

				set, err := n.LockAll(ctx, []string{"a", "b"}, nil)
				require.NoError(t, err)
				require.NoError(t, set.Locks()[1].Extend(ctx, 200*year))
				left = set.Locks()[0].Left()
				require.ErrorIs(t, set.Extend(ctx, 100*year), berth.ErrInvalidConfig)
				require.LessOrEqual(t, set.Locks()[0].Left(), left, "none of them is extended")
				require.NoError(t, set.Err())
			})
		})
	}
}

// An operator, and entries that extend, may move an end further off than a process can
// count. To the holder that is no end.
func TestAnEndFurtherOffThanAllTimeEndsNothing(t *testing.T) {
	const year = 365 * 24 * time.Hour
	inWorld(t, func(t *testing.T, w *world) {
		ctx, n := context.Background(), w.node()
		l := n.take(nil)
		for range 2 {
			require.NoError(t, w.node().extend(ctx, door, 200*year))
		}
		w.Advance(time.Minute)
		require.NoError(t, l.Err())
		release(t, l)

		outer := n.takeFor("me", nil)
		n.takeFor("me", extend(150*year))
		n.takeFor("me", extend(150*year))
		w.Advance(time.Minute)
		require.NoError(t, outer.Err())
	})
}
