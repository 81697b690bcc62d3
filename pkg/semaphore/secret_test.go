package semaphore_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/semaphore"
)

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

func TestARestoredClaimHasItsSecret(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		a.take(1, nil)
		q := b.queue(1, nil)
		id := w.line()[0]
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
		waiting := w.line()[0]
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
