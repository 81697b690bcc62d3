package semaphore_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/semaphore"
)

func TestAnAcquireWhoseReplyIsLostGetsOneGrant(t *testing.T) {
	for name, opts := range map[string]semaphore.AcquireOptions{
		"renewing":               {},
		"fixed":                  {NoRenew: true, Lease: time.Second},
		"with a maximum hold":    {MaxHold: 2 * time.Second},
		"without end":            {Lease: berth.Forever},
		"longer than the wait's": {Lease: time.Minute},
	} {
		for i, fate := range []link.Fate{link.LoseReply, link.LoseRequest, link.LoseReply, link.LoseRequest} {
			t.Run(name, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					capacity := 1 + i/2
					n := w.node()
					n.connect()
					script := "thin_acquire"
					if capacity > 1 || opts.Lease > lease {
						script = "semaphore_acquire"
					}
					n.Once(script, fate)
					p := n.take(capacity, &opts)
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

// The reply that says "queued" is lost, the claim is handed the place meanwhile,
// and the acquire that runs again meets a grant that nobody has confirmed: its
// fixed lease begins only with the claimant's next call.
func TestAnAcquireThatRunsAgainMeetsAGrant(t *testing.T) {
	for name, opts := range map[string]semaphore.AcquireOptions{
		"renewing":            {},
		"a short lease":       {Lease: 300 * ms},
		"fixed":               {NoRenew: true, Lease: time.Second},
		"with a maximum hold": {MaxHold: 2 * time.Second},
		"without end":         {Lease: berth.Forever},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				a, b := w.node(), w.node(semaphore.Config{Retry: berth.Retry{Base: 500 * ms, Jitter: -1}})
				p := a.take(1, nil)
				b.Once("semaphore_acquire", link.LoseReply)
				q := b.queue(1, &opts)
				require.True(t, q.Pending())
				require.Equal(t, 1, w.stats().Waiting)
				require.NoError(t, p.Release(context.Background()))
				held := q.Granted(500 * ms)
				for range 10 {
					w.honest(held)
					w.Advance(10 * ms)
				}
				b.Cut()
				for held.Err() == nil && opts.Lease != berth.Forever {
					w.honest(held)
					w.Advance(10 * ms)
				}
			})
		})
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

func TestAReleaseThatFailedAndWasRunAllTheSameIsNilTheNextTime(t *testing.T) {
	for capacity, script := range map[int]string{1: "thin_release", 2: "semaphore_release"} {
		t.Run(script, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n := w.node(semaphore.Config{Retry: berth.Retry{Attempts: 1}})
				p := n.take(capacity, nil)
				n.Once(script, link.LoseReply)
				require.Error(t, p.Release(context.Background()))
				require.ErrorIs(t, p.Err(), berth.ErrReleased)
				w.RequireIdle()
				require.NoError(t, p.Release(context.Background()))
				require.NoError(t, p.Release(context.Background()))
			})
		})
	}
}

func TestAReleaseThatNobodyAnswersLeavesThePermitToItsLease(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		p := n.take(1, nil)
		n.Die()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		require.Error(t, p.Release(ctx))
		require.ErrorIs(t, p.Err(), berth.ErrReleased)
		w.Until(lease)
		require.Zero(t, w.stats().Held)
	})
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

func TestALostPushIsMadeUpForByTheHeartbeat(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		p := a.take(1, nil)
		q := b.queue(1, nil)
		b.Deafen(true)
		w.Advance(100 * ms)
		require.NoError(t, p.Release(context.Background()))
		require.True(t, q.Pending())
		<-q.Done
		require.NoError(t, q.Err)
		require.LessOrEqual(t, q.At, lease/3)
		w.honest(q.Got)
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
			_, err := b.gpu(1).Stats(context.Background())
			require.NoError(t, err)
		}
		<-q.Done
		require.NoError(t, q.Err)
		require.LessOrEqual(t, q.At, 600*ms, "the new subscription asks, no heartbeat is due before 1.8 s")
	})
}

// The push overtakes the reply of the acquire that it is about.
func TestAPushBeforeTheReplyCounts(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		p := a.take(1, nil)
		b.subscribe(t)
		b.Once("semaphore_acquire", link.Slow(500*ms))
		q := b.queue(1, nil)
		require.Equal(t, 1, w.stats().Waiting)
		require.NoError(t, p.Release(context.Background()))
		require.True(t, q.Pending())
		q.Granted(500 * ms)
		w.honest(q.Got)
	})
}

// subscribe makes the subscription.
func (n *node) subscribe(t *testing.T) {
	t.Helper()
	q := n.queue(1, nil)
	q.Cancel(nil)
	<-q.Done
	synctest.Wait()
}

// grantedPush is what a hand-off publishes, or whoever may read the claim's record.
func (w *world) grantedPush(claim string, fence int64) string {
	return grantedPush(claim, fence, w.Secret(claim))
}

// grantedPush is what anybody may publish who knows the claim's id.
func grantedPush(claim string, fence int64, secret string) string {
	var payload string
	for _, field := range []string{"granted", gpu, claim, strconv.FormatInt(fence, 10), "6000", "", secret} {
		payload += strconv.Itoa(len(field)) + ":" + field
	}
	return payload
}

func TestAFalsePushIsBelievedNoLongerThanTheLawAllows(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		a, b := w.node(), w.node()
		p := a.take(1, nil)
		q := b.queue(1, nil)
		behind := a.queue(1, nil)
		w.Until(2500 * ms) // last heard of at 2 s
		claim := testkit.Collect(t, b.gpu(1).Waiters(ctx))[0].ID
		w.Do("PUBLISH", "berth:wake:"+b.Node(), w.grantedPush(claim, p.Fence()+1))
		false1 := q.Granted(2500 * ms)
		// No push sets a deadline: it is that of the last heartbeat.
		require.LessOrEqual(t, false1.Left(), 2*time.Second+lease-margin-w.Now())
		e := <-w.Watch(false1)
		require.ErrorIs(t, e.Cause, berth.ErrLost)
		require.LessOrEqual(t, e.At, 2500*ms+lease/3+ms, "the next heartbeat says that it waits")
		synctest.Wait()
		require.Equal(t, 1, w.stats().Waiting, "its place is given up")
		require.NoError(t, p.Release(ctx))
		behind.Granted(w.Now())
	})
}

func TestAFalsePushLongAfterTheLastHeartbeatIsNotBelieved(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		a, b := w.node(), w.node()
		p := a.take(1, nil)
		q := b.queue(1, nil)
		claim := testkit.Collect(t, b.gpu(1).Waiters(ctx))[0].ID
		b.OnCommand(func(c link.Command) link.Fate {
			if c.Name == "semaphore_renew" {
				return link.LoseRequest
			}
			return link.Pass
		})
		w.Until(3001 * ms)
		b.OnCommand(nil)
		b.Reset()
		w.Do("PUBLISH", "berth:wake:"+b.Node(), w.grantedPush(claim, p.Fence()+1))
		synctest.Wait()
		require.True(t, q.Pending())
		require.GreaterOrEqual(t, b.Count("semaphore_renew"), 1, "it asked")
		require.Equal(t, 1, w.stats().Waiting)
	})
}

func TestAFalsePushForAFixedLeaseIsNotBelieved(t *testing.T) {
	for name, opts := range map[string]semaphore.AcquireOptions{
		"fixed": {NoRenew: true}, "maximum hold": {MaxHold: time.Minute}, "forever": {Lease: berth.Forever},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				ctx := context.Background()
				a, b := w.node(), w.node()
				p := a.take(1, nil)
				q := b.queue(1, &opts)
				claim := testkit.Collect(t, b.gpu(1).Waiters(ctx))[0].ID
				for range 3 {
					w.Do("PUBLISH", "berth:wake:"+b.Node(), w.grantedPush(claim, p.Fence()+1))
					synctest.Wait()
					require.True(t, q.Pending())
				}
				require.NoError(t, p.Release(ctx))
				q.Granted(0)
			})
		})
	}
}

func TestPushesThatNobodyWaitsForAreIgnored(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		n := w.node()
		p := n.take(1, nil)
		q := n.queue(1, nil)
		claim := testkit.Collect(t, n.gpu(1).Waiters(ctx))[0].ID
		channel := "berth:wake:" + n.Node()
		for _, payload := range []string{
			"", "garbage", "7:granted", "7:granted3:gpu", "99:granted3:gpu", "-1:x", "7:granted3:gpu3:abc",
			grantedPush("nobody.1", 1, "-"), w.grantedPush(p.ID(), 1),
			"7:granted5:other" + strconv.Itoa(len(claim)) + ":" + claim, // of another name
			"8:whatever3:gpu" + strconv.Itoa(len(claim)) + ":" + claim,  // a word to come
			"4:next3:gpu1:x", "4:next3:gpu", "4:next3:gpu3:-50",
		} {
			w.Do("PUBLISH", channel, payload)
		}
		for _, word := range []string{"released", "too_heavy"} {
			for _, id := range []string{claim, p.ID()} {
				w.Do("PUBLISH", channel, strconv.Itoa(len(word))+":"+word+"3:gpu"+strconv.Itoa(len(id))+":"+id)
			}
		}
		synctest.Wait()
		require.True(t, q.Pending(), "what ends a claim is for the server to say")
		require.NoError(t, p.Err())
		fence := p.Fence()
		require.NoError(t, p.Release(ctx))
		require.Greater(t, q.Granted(0).Fence(), fence)
	})
}

// What an acquire got has expired by the time that it is repeated: it asks anew.
func TestAnAcquireThatIsRepeatedAfterItsGrantHasExpiredAsksAnew(t *testing.T) {
	for capacity, script := range map[int]string{1: "thin_acquire", 2: "semaphore_acquire"} {
		t.Run(script, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n := w.node(semaphore.Config{Lease: 300 * ms, Retry: berth.Retry{Base: time.Second, Jitter: -1}})
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

// What it got may have been a place that was granted, and told, and has expired:
// a push about that place is not about the new one.
func TestAPushAboutAnEarlierPlaceIsNotBelievedForTheNewOne(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node(semaphore.Config{Retry: berth.Retry{Base: 7 * time.Second, Cap: time.Minute, Jitter: -1}})
		b.connect()
		p := a.take(1, nil)
		b.Once("semaphore_acquire", link.LoseReply)
		q := b.queue(1, nil)
		id := testkit.Collect(t, a.gpu(1).Waiters(context.Background()))[0].ID
		require.NoError(t, p.Release(context.Background()))
		earlier := testkit.Collect(t, a.gpu(1).Holders(context.Background()))[0]
		require.Equal(t, id, earlier.ID)
		w.Until(lease)
		p = a.take(1, nil)
		w.Until(7 * time.Second)
		require.Equal(t, 1, w.stats().Waiting, "it has asked anew")
		b.Reset()
		w.Do("PUBLISH", "berth:wake:"+b.Node(), w.grantedPush(id, earlier.Fence))
		synctest.Wait()
		require.True(t, q.Pending())
		require.Equal(t, 1, b.Count("semaphore_renew"), "it asked")
		require.NoError(t, p.Release(context.Background()))
		require.Greater(t, q.Granted(7*time.Second).Fence(), earlier.Fence)
	})
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
		n.Cut()
		w.Advance(10 * time.Minute)
		require.NoError(t, p.Err())
		require.Equal(t, 1, w.stats().Held)
		n.Mend()
		require.NoError(t, p.Release(context.Background()))
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

func TestAWaitThatEndsBeforeTheServerAnsweredIsAFailure(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.Cut()
		q := n.queue(1, &semaphore.AcquireOptions{MaxWait: time.Second})
		q.Refused(time.Second, berth.ReasonFailed)
		n.Mend()
	})
}
