package semaphore_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/semaphore"
)

func TestAnAcquireWhoseReplyIsLostGetsOneGrant(t *testing.T) {
	for capacity, script := range map[int]string{1: "thin_acquire", 2: "semaphore_acquire"} {
		for name, fate := range map[string]link.Fate{"the reply": link.LoseReply, "the request": link.LoseRequest} {
			t.Run(name+" of "+script, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
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
			t.Run(name+" of "+script, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					n := w.node()
					p := n.take(capacity, nil)
					n.Once(script, fate)
					require.NoError(t, p.Release(context.Background()))
					require.Equal(t, 2, n.Count(script))
					w.RequireIdle()
				})
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
		t.Run(script, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
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
			t.Run(name, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					a, b := w.node(), w.node()
					b.connect()
					b.OnCommand(func(c link.Command) link.Fate {
						if c.Name == "semaphore_renew" {
							return link.LoseRequest
						}
						return link.Pass
					})
					at := w.Now()
					var q *wait
					if direct {
						q = b.queue(1, &opts)
					} else {
						p := a.take(1, nil)
						q = b.queue(1, &opts)
						require.NoError(t, p.Release(context.Background()))
					}
					require.NotEqual(t, -1, w.Int("PTTL", stateKey))
					w.Advance(time.Second)
					b.Die()
					w.Until(at + lease)
					require.Zero(t, w.stats().Held)
					require.Zero(t, w.Field("forever"))
					q.Cancel(nil)
					<-q.Done
				})
			})
		}
	}
}

func TestForeverIsConfirmedBeforeTheCallReturns(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.connect()
		p := n.take(1, &semaphore.AcquireOptions{Lease: berth.Forever})
		require.Equal(t, map[string]int{"semaphore_acquire": 1, "semaphore_renew": 1}, n.Counts())
		require.EqualValues(t, 1, w.Field("forever"))
		require.Equal(t, berth.Forever, p.Left())
		require.EqualValues(t, -1, w.Int("PTTL", stateKey))
		release(t, p)
		w.RequireIdle()
	})
}

func TestTheServersErrorsEndAWaitOnlyWhenTheyStay(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.Cut()
		q := n.queue(1, nil)
		w.Advance(20 * time.Second)
		require.True(t, q.Pending(), "a wait is not bounded by Retry")
		n.Mend()
		<-q.Done
		require.NoError(t, q.Err)

		n.Cut()
		_, err := n.gpu(2).TryAcquire(context.Background(), nil)
		var refusal *berth.AcquireError
		require.ErrorAs(t, err, &refusal)
		require.Equal(t, berth.ReasonFailed, refusal.Reason, "a call that does not wait is")
		n.Mend()
	})
}
