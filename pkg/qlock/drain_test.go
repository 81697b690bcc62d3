package qlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
)

// drains has all processes drain, and waits until they have heard.
func (w *world) drains() {
	w.Advance(time.Second)
	w.Notice("l:*", 0, "drain")
	w.Advance(5 * time.Second)
}

// An owner that holds the lock may take it again: else what the process does could not end.
func TestAReentryPassesADrain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		ctx := berth.WithOwner(context.Background(), "me")
		l := n.takeOn(ctx, nil)
		w.drains()
		inner := n.takeOn(ctx, &qlock.LockOptions{Conflict: qlock.WorkThrough})
		require.Equal(t, l.Fence(), inner.Fence())
		_, err := n.Lock(berth.WithOwner(context.Background(), "you"), door, nil)
		require.ErrorIs(t, err, berth.ErrDraining)
		_, err = n.Lock(ctx, "window", nil)
		require.ErrorIs(t, err, berth.ErrDraining, "it does not hold that one")
		require.NoError(t, inner.Release(ctx))
		require.NoError(t, l.Release(ctx))
		_, err = n.Lock(ctx, door, nil)
		require.ErrorIs(t, err, berth.ErrDraining)
	})
}

// The hold has ended on the server, and its process does not know yet.
func TestAReentryThatIsNoneIsRefusedInADrain(t *testing.T) {
	for name, taken := range map[string]bool{"the lock is free": false, "somebody else holds it": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n := w.node()
				ctx := berth.WithOwner(context.Background(), "me")
				n.takeOn(ctx, nil)
				w.drains()
				w.Do("DEL", stateKey, lineKey)
				if taken {
					defer func(l *qlock.Lock) { require.NoError(t, l.Release(ctx)) }(w.node().take(nil))
				}
				_, err := n.Lock(ctx, door, &qlock.LockOptions{MaxWait: time.Minute, Conflict: qlock.WorkThrough})
				require.ErrorIs(t, err, berth.ErrDraining)
				w.Advance(time.Second)
				other, err := w.node().look(ctx, door)
				require.NoError(t, err)
				require.Equal(t, taken, other.Owner != "", "what it got was given back")
				require.Zero(t, other.waiting)
			})
		})
	}
}

func TestANodeThatReplacesAnotherDrainsAsWell(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node(node.Config{Swarm: node.SwarmConfig{Auto: true}})
		n.take(nil)
		former := n.ID()
		w.Advance(time.Second)
		w.Notice("n:"+former, 0, "drain")
		w.Advance(5 * time.Second)
		require.True(t, n.Draining())
		n.Cut()
		w.Advance(time.Minute)
		n.Mend()
		w.Advance(time.Minute)
		require.NotEqual(t, former, n.ID())
		require.True(t, n.Draining())
		_, err := n.TryLock(context.Background(), door, nil)
		require.ErrorIs(t, err, berth.ErrDraining)
		w.Notice("n:"+former, 0, "stop")
		w.Advance(5 * time.Second)
		require.False(t, n.Draining(), "it hears what is said to the id that it had")
	})
}
