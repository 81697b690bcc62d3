package semaphore_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
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
	reply := w.Releases("semaphore", node, node+".1", 0)
	require.Equal(w.T, "released", reply.Status())
	synctest.Wait()
}

// Whatever the server has lost, or heard nothing of for longer than the lease.
func TestAClaimThatTheServerForgotStandsWhereItStood(t *testing.T) {
	for name, stands := range map[string]bool{"a flush": false, "a server that stood still longer than the lease": true} {
		inWorldOf(t, name, func(t *testing.T, w *world) {
			b, c := w.node(), w.node()
			w.occupy("other")
			q := b.queue(1, nil)
			since, id := w.Waiters()[0].Since, w.line()[0]
			secret := w.Secret(id)
			require.Len(t, secret, 11, "64 bits")
			w.Advance(time.Second)
			if stands {
				b.Stall()
				w.Advance(lease + time.Second)
				b.Flow()
			} else {
				w.Do("FLUSHALL")
				w.occupy("other")
			}
			late := c.queue(1, nil)
			w.Advance(lease / 2)
			require.Contains(t, b.Kinds(), observe.Restored)
			waiters := w.Waiters()
			require.Equal(t, []string{b.ID(), c.ID()}, []string{waiters[0].Node, waiters[1].Node})
			require.Equal(t, since, waiters[0].Since, "with the ticket that it had")
			require.Equal(t, secret, w.Secret(id))
			at := w.Now()
			w.vacate("other")
			p := q.Granted(at)
			require.Equal(t, id, p.ID())
			require.Equal(t, byte('h'), w.PhaseOf(id), "confirmed: a push may be about an earlier grant")
			release(t, p)
			late.Granted(at)
		})
	}
}

// line are the claims that wait, in order.
func (w *world) line() []string {
	w.T.Helper()
	var ids []string
	for _, waiter := range w.Waiters() {
		ids = append(ids, waiter.ID)
	}
	return ids
}

// Who is restored may have come by a clock that was ahead of the server's: a newcomer stands behind all the same.
func TestWhoComesAfterARestoreStandsBehindIt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.occupy("other")
		r := record("a", func(r *engine.Record) { r.Ticket = time.Now().Add(time.Minute).UnixMilli() })
		w.Call("semaphore_restore", "60000", "c", gpu, "a", "1", "a.1", fmt.Sprintf("254 %013d", r.Ticket), state.Text(&r))
		w.acquireScript("b", "b.1", 1, semaphore.CapacityStored)
		require.Equal(t, []string{"a.1", "b.1"}, w.line())
	})
}

// turn has the holder a hand on to n, and returns how long n waited for it.
func (n *proc) turn(a *proc) time.Duration {
	w := n.w
	w.T.Helper()
	p := a.take(1, nil)
	q := n.queue(1, nil)
	w.Advance(time.Second)
	freed := w.Now()
	require.NoError(w.T, p.Release(context.Background()))
	<-q.Done
	require.NoError(w.T, q.Err)
	require.NoError(w.T, q.Got.Release(context.Background()))
	return q.At - freed
}

// The server of the subscription leaves its cluster and runs on: nothing tells,
// but that a hand-off is heard of by heartbeat. The node subscribes elsewhere, and
// the next hand-off is a push again.
func TestANodeWhoseSubscriptionIsDeafSubscribesElsewhere(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, n := w.node(), w.node()
		require.Zero(t, n.turn(a), "by push")
		n.Deafen(true)
		n.OnCommand(func(c link.Command) link.Fate {
			if c.Name == "SUBSCRIBE" {
				n.Deafen(false) // it is another server
			}
			return link.Pass
		})
		turn := n.turn(a)
		require.Positive(t, turn, "by heartbeat")
		require.LessOrEqual(t, turn, lease/3)
		require.Empty(t, n.Told(observe.Deaf), "one that was lost is not enough")
		w.Advance(2 * time.Second)
		require.Len(t, n.Told(observe.Deaf), 1)
		require.Len(t, n.Told(observe.Subscribed), 2)
		for range 3 {
			require.Zero(t, n.turn(a), "by push")
		}
		require.Len(t, n.Told(observe.Deaf), 1)
	})
}

// Whoever may publish knows a claim's id from a listing, and nothing else of it: what he
// has is the secret of his own claims.
func TestAForgedPushChangesNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		p := a.take(1, nil)
		q, own := b.queue(1, &semaphore.AcquireOptions{NoRenew: true}), a.queue(1, nil)
		line := w.line()
		w.Until(500 * ms)
		b.Reset()
		w.Publish(b.ID(), "granted", gpu, line[0], strconv.Itoa(1<<62), "6000", "", w.Secret(line[1]))
		require.True(t, q.Pending())
		require.Empty(t, b.Counts(), "it is not even asked about")
		release(t, p)
		require.Equal(t, w.Field("fence"), q.Granted(500*ms).Fence())
		own.Cancel(nil)
	})
}

// What a user, an operator or a log gets to see.
func TestNothingThatIsShownHasTheSecret(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		p := a.take(2, &semaphore.AcquireOptions{Weight: 2, Meta: map[string]string{"k": "v"}})
		q := b.queue(2, &semaphore.AcquireOptions{MaxWait: lease})
		secrets := []string{w.Secret(p.ID()), w.Secret(w.line()[0])}
		require.NotEqual(t, secrets[0], secrets[1])
		busy := testkit.Second(b.gpu(2).TryAcquire(ctx, nil))
		<-q.Done
		token := detach(t, p)
		resumed := w.got(b.Resume(ctx, token))
		require.Equal(t, secrets[0], w.Secret(p.ID()))
		w.Do("HSET", stateKey, "c:"+p.ID(), "h n damaged "+secrets[0])
		damaged := resumed.Renew(ctx)
		reader, err := inspect.New(w.Redis, inspect.Config{})
		require.NoError(t, err)
		listed, err := reader.Holders(ctx, keyspace.Sem, gpu, "", 0)
		require.NoError(t, err)
		shown := fmt.Sprintf("%+v %v %v %v %+v %+v %+v %s", listed, busy, q.Err, damaged, a.Events(), b.Events(), token, token)
		for _, secret := range secrets {
			require.NotContains(t, shown, secret)
		}
		require.Contains(t, shown, p.ID())
		w.Do("DEL", stateKey, lineKey)
	})
}
