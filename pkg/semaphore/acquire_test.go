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

func TestMaxWaitEndsAWaitThatNoContextEnds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.take(1, nil)
		q := n.queue(1, &semaphore.AcquireOptions{MaxWait: 1234 * ms})
		refusal := q.Refused(1234*ms, berth.ReasonTimedOut)
		require.NotErrorIs(t, refusal, context.DeadlineExceeded)
		require.NotErrorIs(t, refusal, context.Canceled)
		synctest.Wait()
		require.Zero(t, w.stats().Waiting)
	})
}

func TestAPermitOutlivesTheContextItWasAcquiredWith(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		type key struct{}
		ctx, cancel := context.WithCancel(context.WithValue(context.Background(), key{}, "value"))
		n := w.node()
		p := w.got(n.gpu(1).Acquire(ctx, nil))
		cancel()
		w.Advance(time.Minute)
		require.NoError(t, p.Err())
		require.NoError(t, p.Context().Err())
		require.Equal(t, "value", p.Context().Value(key{}))
		require.Equal(t, p.Fence(), n.gpu(1).Fence(p.Context()))
		require.Zero(t, n.gpu(1).Fence(ctx))
		require.NoError(t, p.Release(ctx), "it works after ctx has ended")
		w.RequireIdle()
	})
}

func TestCloseEndsWaitsAndGivesBackWhatIsHeld(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		p := a.take(1, nil)
		ours, theirs := a.queue(1, nil), b.queue(1, nil)
		require.NoError(t, a.Close(context.Background()))
		require.ErrorIs(t, ours.Refused(0, berth.ReasonClosed), berth.ErrClosed)
		theirs.Granted(0)
		require.Equal(t, counts{Held: 1, Holders: 1, Capacity: 1}, w.stats())
		require.NoError(t, p.Release(context.Background()), "it has been given back")
		require.ErrorIs(t, testkit.Second(a.gpu(1).Acquire(context.Background(), nil)), berth.ErrClosed)
	})
}

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

func TestWithinEndsWithEitherContext(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.node().take(1, nil)
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
		release(t, p)
		<-second.Done()
		require.ErrorIs(t, context.Cause(second), berth.ErrReleased)
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

// What a target means is proved in internal/line; this is the way there, for all of a namespace.
func TestAnOperatorEndsWhatTheTargetMeans(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		held := []*semaphore.Permit{a.take(2, nil), b.take(2, nil)}
		next := b.queue(2, nil)
		w.Advance(time.Second)
		ended, err := w.node().Operator().Release(context.Background(), berth.Target{All: true})
		require.NoError(t, err)
		require.Equal(t, 2, ended)
		next.Granted(time.Second)
		w.Advance(lease / 3)
		for _, p := range held {
			require.ErrorIs(t, p.Err(), berth.ErrReleased)
		}
		require.Equal(t, counts{Held: 1, Holders: 1, Capacity: 2}, w.stats())
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
