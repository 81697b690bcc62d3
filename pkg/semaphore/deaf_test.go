package semaphore_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/observe"
)

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
		require.Positive(t, n.turn(a), "by heartbeat")
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
