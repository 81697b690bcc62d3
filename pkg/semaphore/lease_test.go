package semaphore_test

import (
	"cmp"
	"context"
	"strings"
	"testing"
	"testing/synctest"
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

func TestAHolderThatIsCutOffLosesItsPermitBeforeTheServerDoes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		p := n.take(1, nil)
		w.Advance(10 * time.Second)
		require.NoError(t, p.Err())
		ended := w.Watch(p)
		synctest.Wait()
		n.Cut()
		left, ok := w.LeftOf(p.ID())
		require.True(t, ok)
		deadline := w.Now() + left
		e := <-ended
		require.ErrorIs(t, e.Cause, berth.ErrLost)
		require.ErrorIs(t, e.Cause, berth.ErrNotHeld)
		testkit.RequireWithin(t, deadline-margin, e.At)
		require.ErrorIs(t, p.Renew(context.Background()), berth.ErrLost)
	})
}

func TestTheLocalDeadlineCountsFromTheStartOfTheRequest(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.connect()
		n.Delay(func() time.Duration { return 50 * ms })
		start := w.Now()
		p := n.take(1, &semaphore.AcquireOptions{NoRenew: true})
		require.Equal(t, start+100*ms, w.Now())
		e := <-w.Watch(p)
		testkit.RequireWithin(t, start+lease-margin, e.At)
		require.ErrorIs(t, e.Cause, berth.ErrExpired)
	})
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

func TestAMaxHoldThatEndsWhileItsHolderRenewsHasExpired(t *testing.T) {
	inWorld(t, func(_ *testing.T, w *world) {
		opts := &semaphore.AcquireOptions{MaxHold: 8 * time.Second}
		w.RequireRenewedToItsMaximum(opts.MaxHold, func() berth.Hold { return w.node().take(1, opts) })
	})
}

func TestMaxHoldEndsAPermitHoweverItIsRenewed(t *testing.T) {
	for name, opts := range map[string]semaphore.AcquireOptions{
		"longer than the lease":   {MaxHold: 8 * time.Second},
		"of a permit without end": {MaxHold: 8 * time.Second, Lease: berth.Forever},
	} {
		inWorldOf(t, name, func(t *testing.T, w *world) {
			n := w.node()
			p := n.take(1, &opts)
			ended := w.Watch(p)
			limit := opts.MaxHold
			for w.Now() < limit*9/10 {
				w.Advance(limit / 10)
				require.NoError(t, p.Renew(context.Background()))
			}
			e := <-ended
			require.ErrorIs(t, e.Cause, berth.ErrExpired)
			testkit.RequireWithin(t, limit-2*ms-min(cmp.Or(opts.Lease, lease), limit)/100, e.At)
			w.Until(limit - ms)
			require.Equal(t, 1, w.stats().Held)
			w.Until(limit)
			require.Zero(t, w.stats().Held)
		})
	}
}

func TestAnAcquireWhoseReplyIsLostGetsOneGrant(t *testing.T) {
	for capacity, script := range map[int]string{1: "thin_acquire", 2: "semaphore_acquire"} {
		for name, fate := range map[string]link.Fate{"the reply": link.LoseReply, "the request": link.LoseRequest} {
			inWorldOf(t, name+" of "+script, func(t *testing.T, w *world) {
				n := w.node()
				n.connect()
				n.Once(script, fate)
				p := n.take(capacity, nil)
				require.Equal(t, 2, n.Count(script))
				require.Equal(t, 1, w.stats().Holders)
				w.honest(p)
				require.NoError(t, p.Release(context.Background()))
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

func TestAReleaseWhoseReplyIsLostHasSucceeded(t *testing.T) {
	for name, fate := range map[string]link.Fate{"the reply": link.LoseReply, "the request": link.LoseRequest} {
		for capacity, script := range map[int]string{1: "thin_release", 2: "semaphore_release"} {
			inWorldOf(t, name+" of "+script, func(t *testing.T, w *world) {
				n := w.node()
				p := n.take(capacity, nil)
				n.Once(script, fate)
				require.NoError(t, p.Release(context.Background()))
				require.Equal(t, 2, n.Count(script))
				w.RequireIdle()
			})
		}
	}
}

func TestAWaitOutlivesEveryLostReply(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		p := a.take(1, nil)
		n := 0
		b.OnCommand(func(c link.Command) link.Fate {
			if !strings.Contains(c.Name, "_") { // no script
				return link.Pass
			}
			n++
			return []link.Fate{link.LoseReply, link.LoseRequest, link.Pass}[n%3]
		})
		q := b.queue(1, nil)
		w.Advance(10 * time.Second)
		require.Equal(t, 1, w.stats().Waiting)
		require.NoError(t, p.Release(context.Background()))
		b.OnCommand(nil)
		<-q.Done
		require.NoError(t, q.Err)
		require.LessOrEqual(t, q.At, 10*time.Second+lease/3)
		require.Equal(t, 1, w.stats().Holders)
	})
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

// subscribe makes the subscription.
func (n *proc) subscribe(t *testing.T) {
	t.Helper()
	q := n.queue(1, nil)
	q.Cancel(nil)
	<-q.Done
	synctest.Wait()
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

// Nothing long is granted before the claimant has spoken: whose acquire runs and
// is never heard of holds for a wait lease at the most.
func TestNoGrantOutlivesTheWaitLeaseBeforeItIsConfirmed(t *testing.T) {
	for name, opts := range map[string]semaphore.AcquireOptions{
		"fixed":               {NoRenew: true, Lease: time.Hour},
		"renewing":            {Lease: time.Hour},
		"with a maximum hold": {Lease: time.Hour, MaxHold: 30 * time.Minute},
		"forever":             {Lease: berth.Forever},
	} {
		for _, direct := range []bool{true, false} {
			inWorldOf(t, name, func(t *testing.T, w *world) {
				a, b := w.node(), w.node()
				b.connect()
				b.OnCommand(lose("semaphore_renew"))
				at, handOn := w.Now(), func() {}
				if !direct {
					p := a.take(1, nil)
					handOn = func() { release(t, p) }
				}
				q := b.queue(1, &opts)
				handOn()
				require.NotEqual(t, -1, w.Int("PTTL", stateKey))
				w.Advance(time.Second)
				b.Die()
				w.Until(at + lease)
				require.Zero(t, w.stats().Held)
				require.Zero(t, w.Field("forever"))
				q.Cancel(nil)
				<-q.Done
			})
		}
	}
}
