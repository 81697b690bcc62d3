package semaphore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
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
				require.Equal(t, "me", testkit.Collect(t, n.gpu(1).Holders(ctx))[0].Owner)
				return errMine
			})
			require.Equal(t, errMine, err, name)
			require.Error(t, inner.Err())
			w.RequireIdle()
		}
	})
}

func TestDoWithoutAnOwnerMakesTheClaimTheOwner(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		require.NoError(t, n.gpu(1).Do(context.Background(), nil, func(ctx context.Context) error {
			require.Equal(t, testkit.Collect(t, n.gpu(1).Holders(ctx))[0].ID, berth.Owner(ctx))
			return nil
		}))
	})
}

func TestDoReturnsTheAcquiresErrorAndDoesNotRun(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.take(1, nil)
		run := func(context.Context) error { t.Error("it ran"); return nil }
		require.ErrorIs(t, n.gpu(1).TryDo(context.Background(), nil, run), berth.ErrNotAcquired)
		err := n.gpu(1).Do(context.Background(), &semaphore.AcquireOptions{MaxWait: ms}, run)
		require.ErrorIs(t, err, berth.ErrNotAcquired)
	})
}

func TestAPanicInDoGivesThePermitBack(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		require.PanicsWithError(t, errMine.Error(), func() {
			_ = n.gpu(1).Do(context.Background(), nil, func(context.Context) error { panic(errMine) })
		})
		w.RequireIdle()
	})
}

func TestTheContextOfDoEndsWithThePermit(t *testing.T) {
	for name, c := range map[string]struct {
		opts  semaphore.AcquireOptions
		after func(w *world, n *node)
		want  error
	}{
		"lost": {want: berth.ErrLost, after: func(w *world, n *node) {
			w.Do("FLUSHALL")
		}},
		"expired": {want: berth.ErrExpired, opts: semaphore.AcquireOptions{MaxHold: time.Second}},
		"released by an operator": {want: berth.ErrReleased, after: func(w *world, n *node) {
			id := testkit.Collect(w.T, n.gpu(1).Holders(context.Background()))[0].ID
			require.NoError(w.T, n.ReleaseByID(context.Background(), gpu, id))
		}},
		"cut off": {want: berth.ErrLost, after: func(w *world, n *node) { n.Die() }},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n := w.node()
				err := n.gpu(1).Do(context.Background(), &c.opts, func(ctx context.Context) error {
					if c.after != nil {
						c.after(w, n)
					}
					<-ctx.Done()
					require.ErrorIs(t, context.Cause(ctx), c.want)
					return errMine
				})
				require.ErrorIs(t, err, errMine)
				require.ErrorIs(t, err, c.want)
				require.LessOrEqual(t, w.Now(), lease+20*time.Second)
			})
		})
	}
}

func TestTheContextOfDoEndsWithTheCallers(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		ctx, cancel := context.WithCancelCause(context.Background())
		err := n.gpu(1).Do(ctx, nil, func(ctx context.Context) error {
			cancel(errMine)
			<-ctx.Done()
			return context.Cause(ctx)
		})
		require.Equal(t, errMine, err, "the permit had not ended")
		require.NotErrorIs(t, err, berth.ErrNotHeld)
		w.RequireIdle()
	})
}

// f does not notice that the permit is gone; Do says so.
func TestDoSaysThatThePermitHadEndedWhenNobodyHadHeardOfIt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		err := n.gpu(1).Do(context.Background(), nil, func(context.Context) error {
			w.Do("FLUSHALL")
			return nil
		})
		require.ErrorIs(t, err, berth.ErrLost)
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
