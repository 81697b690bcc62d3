package semaphore_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/observe"
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
			require.ErrorIs(t, do(ctx, nil, nil), berth.ErrInvalidConfig, name)
			require.Zero(t, w.stats().Held)
			var inner context.Context
			require.Equal(t, errMine, do(ctx, nil, func(ctx context.Context) error {
				inner = ctx
				require.Equal(t, 1, w.stats().Held)
				require.Equal(t, "value", ctx.Value(key{}))
				require.NotNil(t, n.gpu(1).Wanted(ctx))
				require.Equal(t, []string{"me", "me"}, []string{berth.Owner(ctx), w.Holders()[0].Owner})
				return errMine
			}), name)
			require.Error(t, inner.Err())
			w.RequireIdle()
			p := n.take(1, nil)
			opts := &semaphore.AcquireOptions{MaxWait: ms}
			if name == "TryDo" {
				opts = nil
			}
			err := do(ctx, opts, func(context.Context) error { t.Error("it ran"); return nil })
			require.ErrorIs(t, err, berth.ErrNotAcquired, name)
			release(t, p)
			w.RequireIdle() // the claim that left is removed in the background
		}
	})
}

// The call decides, then the semaphore.
func TestALimitIsSaidOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		meta, attrs := map[string]string{"from": "defaults"}, map[string]any{"job": "1"}
		n := w.with(semaphore.Config{Defaults: semaphore.AcquireOptions{
			Weight: 2, Priority: 3, Lease: time.Second, MaxHold: 6 * time.Second, MaxWait: 2 * time.Second,
			Meta: meta, Attrs: attrs, NoRenew: true,
		}})
		s := n.gpu(100)
		meta["from"], attrs["job"] = "changed", "2" // the maps of the defaults are the semaphore's own
		type terms struct {
			weight         int
			lease, maxHold time.Duration
			from           string // of the meta
			noRenew        bool
		}
		for _, c := range []struct {
			opts *semaphore.AcquireOptions
			want terms
		}{
			{nil, terms{2, time.Second, 6 * time.Second, "defaults", true}},
			{
				&semaphore.AcquireOptions{Weight: 1, MaxHold: 4 * time.Second, Meta: map[string]string{}},
				terms{1, time.Second, 4 * time.Second, "", true},
			},
			// A call can say none.
			{&semaphore.AcquireOptions{MaxHold: berth.Forever}, terms{2, time.Second, 0, "defaults", true}},
			{&semaphore.AcquireOptions{NoDefaults: true}, terms{1, lease, 0, "", false}},
		} {
			p := w.got(s.Acquire(context.Background(), c.opts))
			h := w.Holders()[0]
			require.Equal(t, c.want, terms{h.Weight, h.Lease, h.MaxHold, h.Meta["from"], h.NoRenew})
			release(t, p)
		}
		require.Equal(t, map[string]any{"job": "1"}, n.Told(observe.Granted)[0].Attrs)
	})
}

func TestTheDefaultWaitEnds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.with(semaphore.Config{Defaults: semaphore.AcquireOptions{MaxWait: time.Second}}).gpu(1)
		p := w.got(s.Acquire(ctx, nil))
		for lasts, opts := range map[time.Duration]*semaphore.AcquireOptions{
			time.Second: nil, 3 * time.Second: {MaxWait: 3 * time.Second},
		} {
			start := time.Now()
			require.ErrorIs(t, testkit.Second(s.Acquire(ctx, opts)), berth.ErrBusy)
			require.Equal(t, lasts, time.Since(start))
		}
		require.ErrorIs(t, testkit.Second(s.TryAcquire(ctx, nil)), berth.ErrBusy)
		time.AfterFunc(time.Minute, func() { _ = p.Release(ctx) })
		start := time.Now()
		next, err := s.Acquire(ctx, &semaphore.AcquireOptions{MaxWait: berth.Forever, WantAfter: berth.Forever})
		require.NoError(t, err, "a call can say that it waits without end")
		require.Equal(t, time.Minute, time.Since(start))
		release(t, next)
	})
}

// A handle tells where it is held, since when, and for how long.
func TestAPermitTellsItsGrant(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		start := time.Now()
		p := n.take(1, &semaphore.AcquireOptions{Lease: 7 * time.Second})
		time.Sleep(time.Second)
		require.Equal(t, n.ID(), p.Node())
		require.Equal(t, 7*time.Second, p.Lease())
		require.Equal(t, start, p.Granted().Round(0))
		token, err := p.Detach(ctx)
		require.NoError(t, err)
		other := w.node()
		again := w.got(other.Resume(ctx, token))
		require.Equal(t, other.ID(), again.Node())
		require.Equal(t, time.Now(), again.Granted())
		require.NoError(t, again.Release(ctx))
		require.Equal(t, berth.Forever, other.take(1, &semaphore.AcquireOptions{Lease: berth.Forever}).Lease())
	})
}

func TestACancelThatMeetsTheGrantHandsOn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, other := w.node(), w.node()
		p := other.take(1, nil)
		gone := n.queue(1, nil)
		stays := other.queue(1, nil)
		n.Deafen(true) // the grant is not heard of
		require.NoError(t, p.Release(context.Background()))
		synctest.Wait()
		require.True(t, stays.Pending())
		gone.Cancel(nil)
		gone.Refused(0, berth.ReasonCancelled)
		stays.Granted(0)
		require.Equal(t, 1, w.stats().Holders)
	})
}
