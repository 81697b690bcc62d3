package berthtest_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/berthtest"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
)

func TestLoseEndsOneHoldAndNoOther(t *testing.T) {
	inBoth(t, func(t *testing.T, server *berthtest.Server) {
		ctx := context.Background()
		a, b := start(t, server, "10.0.0.1:3128", "10.0.0.2:3128"), start(t, server)
		entered := berth.WithOwner(ctx, "order")
		outer := a.lock(entered, nil)
		for name, take := range map[string]func() berth.Hold{
			"a permit":                     func() berth.Hold { return a.permit(nil) },
			"a permit that does not renew": func() berth.Hold { return a.permit(&semaphore.AcquireOptions{NoRenew: true}) },
			"a permit without end":         func() berth.Hold { return a.permit(&semaphore.AcquireOptions{Lease: berth.Forever}) },
			"a permit with a limit":        func() berth.Hold { return a.permit(&semaphore.AcquireOptions{MaxHold: time.Hour}) },
			"an entry of a lock":           func() berth.Hold { return a.lock(entered, &qlock.LockOptions{Conflict: qlock.ExtendAndWorkThrough}) },
			"an allocation":                func() berth.Hold { return a.proxy() },
			"a lock of its own":            func() berth.Hold { return must(a.locks.Lock(ctx, "other", nil))(t) },
			"a permit that was taken up by another node": func() berth.Hold {
				return must(b.gpu.Resume(ctx, must(a.permit(nil).Detach(ctx))(t)))(t)
			},
		} {
			others := []berth.Hold{outer, b.permit(nil), b.proxy()}
			hold := take()
			began := time.Now()
			server.Lose(hold)
			require.ErrorIs(t, hold.Err(), berth.ErrLost, name)
			require.NotErrorIs(t, hold.Err(), berth.ErrReleased, name)
			require.ErrorIs(t, context.Cause(hold.Context()), berth.ErrLost, name)
			require.ErrorIs(t, hold.Release(ctx), berth.ErrLost, name)
			if t.Name() == "TestLoseEndsOneHoldAndNoOther/virtual_time" {
				require.Zero(t, time.Since(began), name)
			}
			for _, other := range others {
				require.NoError(t, other.Renew(ctx), name)
			}
			for _, other := range others[1:] {
				require.NoError(t, other.Release(ctx), name)
			}
		}
		require.NoError(t, outer.Release(ctx))
	})
}

func TestWhatIsLostGoesToTheNextInLine(t *testing.T) {
	inBoth(t, func(t *testing.T, server *berthtest.Server) {
		ctx := context.Background()
		a, b := start(t, server, "10.0.0.1:3128"), start(t, server)
		for _, acquire := range []func(p *process) (berth.Hold, error){
			func(p *process) (berth.Hold, error) { return p.gpu.Acquire(ctx, &semaphore.AcquireOptions{Weight: 2}) },
			func(p *process) (berth.Hold, error) { return p.locks.Lock(ctx, "order:7", nil) },
			func(p *process) (berth.Hold, error) { return p.pool.Allocate(ctx, nil) },
		} {
			hold := must(acquire(a))(t)
			next := begin(t, func() (berth.Hold, error) { return acquire(b) })
			<-b.queued
			server.Lose(hold)
			require.Greater(t, next().Fence(), hold.Fence())
		}
	})
}

func TestLoseAllEndsAllOfAName(t *testing.T) {
	inBubble(t, func(t *testing.T, server *berthtest.Server) {
		ctx := context.Background()
		a, b := start(t, server, "10.0.0.1:3128", "10.0.0.2:3128"), start(t, server)
		lock := a.lock(ctx, nil)
		permits := []berth.Hold{a.permit(nil), b.permit(nil)}
		proxies := []berth.Hold{a.proxy(), b.proxy()}
		server.LoseAll("gpu")
		server.LoseAll("proxies")
		b.permit(&semaphore.AcquireOptions{Weight: 2}) // free at once
		pass(lease / 3)
		for _, hold := range append(permits, proxies...) {
			require.ErrorIs(t, hold.Err(), berth.ErrLost)
		}
		require.NoError(t, lock.Err())
		server.LoseAll("order:7")
		<-lock.Done()
		require.ErrorIs(t, lock.Err(), berth.ErrLost)
		require.ErrorIs(t, a.locks.Do(ctx, "order:7", nil, func(ctx context.Context) error {
			server.LoseAll("order:7")
			<-ctx.Done()
			return context.Cause(ctx)
		}), berth.ErrLost)
	})
}
