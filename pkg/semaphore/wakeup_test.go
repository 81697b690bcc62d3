package semaphore_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/semaphore"
)

// occupy takes all of the semaphore for an hour, without a process.
func (w *world) occupy(node string) {
	w.T.Helper()
	reply := w.acquireScript(node, node+".1", 1, semaphore.CapacityStored, func(r *engine.Record) { r.Lease, r.Wait = time.Hour, time.Hour })
	require.Equal(w.T, "granted", reply.Status())
}

// vacate gives that back.
func (w *world) vacate(node string) {
	w.T.Helper()
	reply := w.Call("semaphore_release", "60000", "berth:wake:", gpu, node, node+".1", "0")
	require.Equal(w.T, "released", reply.Status())
	synctest.Wait()
}

func TestWithoutPushesEveryGrantIsHeardOfWithinAThirdOfTheLease(t *testing.T) {
	for _, after := range []time.Duration{ms, 7 * time.Second} {
		t.Run(after.String(), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				b := w.node()
				w.occupy("other")
				b.subscribe(t) // a subscription that comes later asks at once
				q := b.queue(1, nil)
				b.Deafen(true)
				w.Until(after)
				w.vacate("other")
				<-q.Done
				require.NoError(t, q.Err)
				require.LessOrEqual(t, q.At-after, lease/3)
				if after < 2*time.Second {
					require.Equal(t, 2*time.Second, q.At, "the first heartbeat has no jitter")
				}
				require.Equal(t, byte('h'), w.PhaseOf(q.Got.ID()), "that call has confirmed it")
				require.Equal(t, lease-margin, q.Got.Left(), "and its lease counts from there")
			})
		})
	}
}

func TestAGrantThatAPushTellsEndsWithTheLastAnsweredCall(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		b := w.node()
		w.occupy("other")
		q := b.queue(1, nil)
		w.Until(1500 * ms)
		b.Reset()
		w.vacate("other")
		p := q.Granted(1500 * ms)
		require.Empty(t, b.Counts(), "no script beyond the two")
		require.Equal(t, lease-margin-1500*ms, p.Left())
		require.Equal(t, byte('g'), w.PhaseOf(p.ID()))
		require.Equal(t, w.Field("fence"), p.Fence())
		w.Until(2 * time.Second)
		require.Equal(t, lease-margin, p.Left())
		require.Equal(t, byte('h'), w.PhaseOf(p.ID()))
	})
}

func TestAPushThatOvertakesItsReplyIsKeptUntilTheReplyHasCome(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		b := w.node()
		w.occupy("other")
		b.subscribe(t)
		b.Reset()
		b.Once("semaphore_acquire", link.Slow(700*ms))
		q := b.queue(1, nil)
		w.Until(300 * ms)
		w.vacate("other")
		require.True(t, q.Pending(), "nothing is believed of a claim that may not wait at all")
		p := q.Granted(700 * ms)
		require.Equal(t, 1, b.Count("semaphore_acquire"))
		require.Zero(t, b.Count("semaphore_renew"))
		require.Equal(t, lease-margin-700*ms, p.Left(), "counted from the start of the acquire")
	})
}

func TestAHandedOnPermitWithALimitIsConfirmedBeforeItIsReturned(t *testing.T) {
	for name, c := range map[string]struct {
		opts semaphore.AcquireOptions
		left time.Duration
	}{
		"fixed":        {semaphore.AcquireOptions{NoRenew: true}, lease - margin},
		"maximum hold": {semaphore.AcquireOptions{MaxHold: 3 * time.Second}, 3*time.Second - 32*ms},
		"without end":  {semaphore.AcquireOptions{Lease: berth.Forever}, berth.Forever},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				b := w.node()
				w.occupy("other")
				q := b.queue(1, &c.opts)
				w.Until(time.Second)
				b.Reset()
				w.vacate("other")
				p := q.Granted(time.Second)
				require.Equal(t, 1, b.Count("semaphore_renew"))
				require.Equal(t, byte('h'), w.PhaseOf(p.ID()))
				require.Equal(t, c.left, p.Left(), "it runs from that call")
			})
		})
	}
}

func TestAWaiterLivesByItsHeartbeatsAndDiesWithoutThem(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		b := w.node()
		w.occupy("other")
		b.subscribe(t) // a subscription that comes later asks at once
		b.queue(1, nil)
		waiting := func() time.Duration {
			waiters := w.Waiters()
			require.Len(t, waiters, 1)
			return waiters[0].Alive
		}
		require.Equal(t, lease, waiting())
		w.Until(2*time.Second - ms)
		require.Equal(t, 4*time.Second+ms, waiting())
		w.Until(2 * time.Second)
		require.Equal(t, lease, waiting())
		for range 30 {
			w.Advance(2 * time.Second)
			require.GreaterOrEqual(t, waiting(), lease*2/3)
		}
		dies := w.Now() + waiting()
		b.Die()
		w.Until(dies - ms)
		require.Equal(t, 1, w.stats().Waiting)
		w.Until(dies)
		require.Zero(t, w.stats().Waiting)
	})
}

func TestAClaimThatTheServerForgotStandsWhereItStood(t *testing.T) {
	for name, forget := range map[string]func(w *world, b *proc){
		"a flush": func(w *world, _ *proc) { w.Do("FLUSHALL") },
		"a server that stood still longer than the lease": func(w *world, b *proc) {
			b.Stall()
			w.Advance(lease + time.Second)
			b.Flow()
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				ctx := context.Background()
				b, c := w.node(), w.node()
				w.occupy("other")
				q := b.queueOn(berth.WithOwner(ctx, "old"), b.gpu(1), nil)
				since := w.Waiters()[0].Since
				w.Advance(time.Second)
				forget(w, b)
				if w.Int("EXISTS", stateKey) == 0 {
					w.occupy("other")
				}
				late := c.queueOn(berth.WithOwner(ctx, "late"), c.gpu(1), nil)
				w.Advance(lease / 2)
				require.Contains(t, b.Kinds(), observe.Restored)
				waiters := w.Waiters()
				require.Len(t, waiters, 2)
				require.Equal(t, "old", waiters[0].Owner)
				require.Equal(t, since, waiters[0].Since, "with the ticket that it had")
				require.Equal(t, "late", waiters[1].Owner)
				at := w.Now()
				w.vacate("other")
				p := q.Granted(at)
				require.Equal(t, byte('h'), w.PhaseOf(p.ID()), "confirmed: a push may be about an earlier grant")
				require.NoError(t, p.Release(ctx))
				late.Granted(at)
			})
		})
	}
}
