package semaphore_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/semaphore"
)

func TestAPermitIsRenewedAtAThirdOfItsLease(t *testing.T) {
	for capacity, script := range map[int]string{1: "thin_renew", 2: "semaphore_renew"} {
		inWorldOf(t, script, func(t *testing.T, w *world) {
			n := w.node()
			p := n.take(capacity, nil)
			w.Until(2*time.Second - ms)
			require.Zero(t, n.Count(script))
			w.Until(2 * time.Second)
			require.Equal(t, 1, n.Count(script))
			left, _ := w.LeftOf(p.ID())
			require.Equal(t, lease, left)
			w.Until(time.Minute)
			require.NoError(t, p.Err())
			release(t, p)
			release(t, p) // nil ever after
			require.ErrorIs(t, context.Cause(p.Context()), berth.ErrReleased)
			w.RequireIdle()
			p = n.take(capacity, nil)
			w.Do("FLUSHALL")
			w.Advance(lease / 3)
			require.ErrorIs(t, p.Err(), berth.ErrLost, "the server does not know it")
		})
	}
}

func TestAMaxHoldThatEndsWhileItsHolderRenewsHasExpired(t *testing.T) {
	inWorld(t, func(_ *testing.T, w *world) {
		opts := &semaphore.AcquireOptions{MaxHold: 8 * time.Second}
		w.RequireRenewedToItsMaximum(opts.MaxHold, func() berth.Hold { return w.node().take(1, opts) })
	})
}

func TestAnAcquireWhoseReplyIsLostGetsOneGrantAndSuchAReleaseHasSucceeded(t *testing.T) {
	for capacity, scripts := range map[int]string{1: "thin", 2: "semaphore"} {
		for name, fate := range map[string]link.Fate{"the reply": link.LoseReply, "the request": link.LoseRequest} {
			inWorldOf(t, name+" of "+scripts, func(t *testing.T, w *world) {
				n := w.node()
				n.connect()
				p := n.take(capacity, nil)
				n.Once(scripts+"_release", fate)
				release(t, p)
				require.Equal(t, 2, n.Count(scripts+"_release"))
				w.RequireIdle()

				n.Reset()
				w.Advance(ms)
				n.Once(scripts+"_acquire", fate)
				p = n.take(capacity, nil)
				require.Equal(t, 2, n.Count(scripts+"_acquire"))
				require.Equal(t, 1, w.stats().Holders)
				w.honest(p)
				release(t, p)
				require.EqualValues(t, 1, w.Field("gone"), "the lost one may still come")
				w.Advance(time.Minute)
				w.stats() // sweeps
				w.RequireIdle()
			})
		}
	}
}

// honest checks law 2 for a permit that lives: its handle ends before the server
// lets it go.
func (w *world) honest(p *semaphore.Permit) {
	w.T.Helper()
	left, ok := w.LeftOf(p.ID())
	require.True(w.T, ok, "the server does not know it")
	require.NoError(w.T, p.Err())
	if p.Left() != berth.Forever {
		require.LessOrEqual(w.T, p.Left(), left-2*ms)
	}
}

func TestABrokenSubscriptionAsksAnewAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		p := a.take(1, nil)
		q := b.queue(1, nil)
		w.Advance(100 * ms)
		b.Break()
		require.NoError(t, p.Release(context.Background())) // nobody hears it
		require.True(t, q.Pending())
		// With RESP2, rueidis subscribes again only when it has noticed that its
		// connections for calls are broken too.
		for range 64 {
			require.NoError(t, b.Redis.Do(context.Background(), b.Redis.B().Exists().Key(stateKey).Build()).Error())
		}
		<-q.Done
		require.NoError(t, q.Err)
		require.LessOrEqual(t, q.At, 600*ms, "the new subscription asks, no heartbeat is due before 1.8 s")
	})
}

// What an acquire got has expired by the time that it is repeated: it asks anew.
func TestAnAcquireThatIsRepeatedAfterItsGrantHasExpiredAsksAnew(t *testing.T) {
	for capacity, script := range map[int]string{1: "thin_acquire", 2: "semaphore_acquire"} {
		inWorldOf(t, script, func(t *testing.T, w *world) {
			n := w.node(node.Config{Lease: 300 * ms, Retry: berth.Retry{Base: time.Second, Jitter: -1}})
			n.connect()
			at := w.Now()
			n.Once(script, link.LoseReply)
			q := n.queue(capacity, nil)
			p := q.Granted(at + time.Second)
			w.honest(p)
			require.Equal(t, 1, w.stats().Held)
			w.Advance(time.Second)
			require.NoError(t, p.Err())
		})
	}
}

func TestAPermitThatDoesNotRenewExpiresAtTheEndOfItsLease(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.node().take(1, &semaphore.AcquireOptions{NoRenew: true})
		successor := w.node().queue(1, nil)
		e := <-w.Watch(p)
		testkit.RequireWithin(t, lease-margin, e.At)
		require.ErrorIs(t, e.Cause, berth.ErrExpired)
		require.ErrorIs(t, p.Err(), berth.ErrNotHeld)
		held := successor.GrantedWithin(lease, ms)
		before := w.Dump()
		for range 2 {
			err := p.Release(context.Background())
			require.ErrorIs(t, err, berth.ErrNotHeld)
			require.ErrorIs(t, err, berth.ErrExpired)
		}
		require.Equal(t, before, w.Dump(), "it is the successor's")
		release(t, held)
		w.RequireIdle()
	})
}

func TestRenewSetsAFixedLeaseAnew(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		p := n.take(1, &semaphore.AcquireOptions{NoRenew: true, Lease: time.Second})
		ended := w.Watch(p)
		for range 10 {
			w.Advance(900 * ms)
			require.NoError(t, p.Renew(context.Background()))
			left, _ := w.LeftOf(p.ID())
			require.Equal(t, time.Second, left)
		}
		testkit.RequireWithin(t, 10*time.Second-12*ms, (<-ended).At)
	})
}
