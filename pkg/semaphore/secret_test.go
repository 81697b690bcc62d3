package semaphore_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/semaphore"
)

// Whoever may publish knows a claim's id from a listing, and nothing else of it.
func TestAForgedPushChangesNothing(t *testing.T) {
	for name, forge := range map[string]func(w *world, own string) string{
		"without a secret":             func(*world, string) string { return "" },
		"as of a claim without one":    func(*world, string) string { return "-" },
		"with a guess":                 func(*world, string) string { return "AAAAAAAAAAA" },
		"with the secret of one's own": func(w *world, own string) string { return w.Secret(own) },
	} {
		t.Run(name, func(t *testing.T) {
			for name, opts := range map[string]*semaphore.AcquireOptions{"a lease": nil, "a fixed lease": {NoRenew: true}} {
				t.Run(name, func(t *testing.T) {
					inWorld(t, func(t *testing.T, w *world) {
						ctx := context.Background()
						a, b := w.node(), w.node()
						p := a.take(1, nil)
						q, own := b.queue(1, opts), a.queue(1, nil)
						line := testkit.Collect(t, a.gpu(1).Waiters(ctx))
						w.Until(500 * ms)
						b.Reset()
						w.Do("PUBLISH", "berth:wake:"+b.Node(), grantedPush(line[0].ID, 1<<63-1, forge(w, line[1].ID)))
						synctest.Wait()
						require.True(t, q.Pending())
						require.Empty(t, b.Counts(), "it is not even asked about")
						require.NoError(t, p.Release(ctx))
						held := q.Granted(500 * ms)
						require.Equal(t, w.Field("fence"), held.Fence())
						own.Cancel(nil)
					})
				})
			}
		})
	}
}

func TestARestoredClaimHasItsSecret(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		a.take(1, nil)
		q := b.queue(1, nil)
		id := lineOf(t, b.gpu(1))[0]
		secret := w.Secret(id)
		require.Len(t, secret, 11, "64 bits")
		w.Do("FLUSHALL")
		p := w.node().take(1, nil)
		w.Advance(lease / 3)
		require.Equal(t, secret, w.Secret(id))
		require.NoError(t, p.Release(context.Background()))
		require.Equal(t, id, q.Granted(w.Now()).ID(), "its push is believed, once it was asked about")
		require.Equal(t, secret, w.Secret(id))
	})
}

// What a user, an operator or a log gets to see.
func TestNothingThatIsShownHasTheSecret(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		a, b := w.node(), w.node()
		p := a.take(2, &semaphore.AcquireOptions{Weight: 2, Meta: map[string]string{"k": "v"}})
		q := b.queue(2, &semaphore.AcquireOptions{MaxWait: lease})
		waiting := lineOf(t, b.gpu(2))[0]
		secrets := []string{w.Secret(p.ID()), w.Secret(waiting)}
		require.NotEqual(t, secrets[0], secrets[1])
		_, busy := b.gpu(2).TryAcquire(ctx, nil)
		require.Error(t, busy)
		<-q.Done
		token, err := p.Detach(ctx)
		require.NoError(t, err)
		resumed, err := b.Resume(ctx, token)
		require.NoError(t, err)
		require.Equal(t, secrets[0], w.Secret(p.ID()))
		w.Do("HSET", stateKey, "c:"+p.ID(), "h n damaged "+secrets[0])
		damaged := resumed.Renew(ctx)
		var listed []any
		for h, err := range a.gpu(2).Holders(ctx) {
			listed = append(listed, h, err)
		}
		shown := fmt.Sprintf("%+v %v %v %v %+v %+v %+v %s", listed, busy, q.Err, damaged, a.Events(), b.Events(), token, token)
		for _, secret := range secrets {
			require.NotContains(t, shown, secret)
		}
		require.Contains(t, shown, p.ID())
		w.Do("DEL", stateKey, lineKey)
	})
}

// Each other word has the server asked, once for as many as come at once.
func TestAFloodOfPushesAsksNoMoreThanTheServerAnswers(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		p := a.take(1, nil)
		q := b.queue(1, nil)
		id := lineOf(t, b.gpu(1))[0]
		w.Until(100 * ms)
		b.Reset()
		for _, field := range []string{"next3:gpu1:0", "next3:gpu1:x", "released3:gpu" + strconv.Itoa(len(id)) + ":" + id} {
			word, _, _ := cut(field)
			for range 200 {
				w.Redis.Do(context.Background(), w.Redis.B().Publish().Channel("berth:wake:"+b.Node()).Message(strconv.Itoa(len(word))+":"+field).Build())
			}
		}
		w.Advance(time.Second)
		require.Less(t, b.Count("semaphore_sweep"), 200)
		require.Less(t, b.Count("semaphore_renew"), 600)
		b.Reset()
		w.Advance(lease/3 - ms - time.Second)
		require.LessOrEqual(t, b.Count("semaphore_sweep")+b.Count("semaphore_renew"), 1, "and nothing when it is over")
		require.True(t, q.Pending())
		require.NoError(t, p.Err())
		require.NoError(t, p.Release(context.Background()))
		q.Granted(w.Now())
	})
}

// cut splits a payload behind its word.
func cut(payload string) (word, rest string, found bool) {
	for i, r := range payload {
		if r >= '0' && r <= '9' {
			return payload[:i], payload[i:], true
		}
	}
	return payload, "", false
}

// A number of milliseconds that a time.Duration cannot hold.
func TestAPushAboutADeadlineFarOffDelaysNothing(t *testing.T) {
	for _, far := range []string{"27670116110564", "9223372036854775807", "18446744073710", "8796093022209"} {
		t.Run(far, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				a, b := w.node(), w.node()
				a.take(1, &semaphore.AcquireOptions{NoRenew: true, Lease: time.Second})
				a.Die()
				q := b.queue(1, nil)
				w.Until(500 * ms)
				w.Do("PUBLISH", "berth:wake:"+b.Node(), "4:next3:gpu"+strconv.Itoa(len(far))+":"+far)
				q.GrantedBy(time.Second)
			})
		})
	}
}
