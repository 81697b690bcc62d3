package qlock_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/qlock"
)

// paused is how long the pauses of these tests last.
const paused = 10 * lease

func (n *proc) pause(lasts time.Duration) {
	n.w.T.Helper()
	require.NoError(n.w.T, n.Operator().Pause(context.Background(), keyspace.Lock, door, lasts, "migration"))
}

// Whoever holds goes on as if there were no pause: it enters again, extends, and detaches.
func TestThePauseOfALockIsNothingToItsOwner(t *testing.T) {
	inWorld(t, func(_ *testing.T, w *world) {
		n, other := w.node(), w.node()
		outer := n.takeFor("me", nil)
		other.pause(paused)
		inner := n.takeFor("me", extend(2*time.Second))
		require.NoError(w.T, inner.Release(context.Background()))
		require.NoError(w.T, outer.Extend(context.Background(), time.Second))
		token, err := outer.Detach(context.Background())
		require.NoError(w.T, err)
		outer, err = n.Resume(context.Background(), token)
		require.NoError(w.T, err)
		_, err = n.Lock(berth.WithOwner(context.Background(), "me"), door, &qlock.LockOptions{Conflict: qlock.FailDeadlock})
		require.ErrorIs(w.T, err, berth.ErrDeadlock)
		w.Advance(2 * lease)
		require.NoError(w.T, outer.Err(), "it renews")
		require.NoError(w.T, outer.Release(context.Background()))

		_, err = other.TryLock(berth.WithOwner(context.Background(), "me"), door, nil)
		var refused *berth.AcquireError
		require.ErrorAs(w.T, err, &refused)
		require.Equal(w.T, berth.ReasonPaused, refused.Reason, "an owner who holds nothing is like others")
		require.Equal(w.T, berth.Pause{Left: paused - 2*lease, Since: w.Began, Reason: "migration"}, *refused.Pause)
	})
}

// A pause keeps the places of those who wait, and is over by itself.
func TestWhoWaitsForAPausedLockKeepsItsPlace(t *testing.T) {
	inWorld(t, func(_ *testing.T, w *world) {
		n, ops := w.node(), w.node()
		held := n.take(nil)
		q, last := n.queue(nil), n.queue(nil)
		ops.pause(paused)
		require.NoError(w.T, held.Release(context.Background()))
		w.Advance(lease)
		first := n.queue(&qlock.LockOptions{Priority: 1})
		w.Until(paused - ms)
		testkit.RequirePending(w.T, q, last, first)
		for _, next := range []*wait{first, q, last} {
			require.NoError(w.T, next.GrantedBy(paused).Release(context.Background()))
		}
	})
}

func TestAnUnpauseOfALockHandsOnInItsRun(t *testing.T) {
	inWorld(t, func(_ *testing.T, w *world) {
		n, ops := w.node(), w.node()
		ops.pause(paused)
		require.Equal(w.T, int64(0), w.Field("fence"), "nobody was there before")
		q := n.queue(nil)
		w.Advance(lease)
		require.NoError(w.T, ops.Operator().Unpause(context.Background(), keyspace.Lock, door))
		require.NoError(w.T, q.Granted(lease).Release(context.Background()))
		require.NoError(w.T, ops.Operator().Unpause(context.Background(), keyspace.Lock, door), "of a lock that has none")
		synctest.Wait()
		require.Equal(w.T, "migration", ops.Told(observe.Paused)[0].Detail)
		require.Equal(w.T, paused, ops.Told(observe.Paused)[0].Left)
		require.Len(w.T, ops.Told(observe.Unpaused), 2)
	})
}

// Attempts that are used up while the lock is paused, and nobody holds it, say the pause, with details and without.
func TestAttemptsThatAreUsedUpInAPauseTellThePause(t *testing.T) {
	for _, detailed := range []bool{false, true} {
		t.Run(fmt.Sprint(detailed), func(t *testing.T) {
			inWorld(t, func(_ *testing.T, w *world) {
				n := w.node()
				n.pause(paused)
				attempts := qlock.Attempts{Max: 10, Delay: time.Second, Jitter: -1}
				q := n.queue(&qlock.LockOptions{Attempts: attempts, DetailedErrors: detailed})
				refused := q.Refused(9*time.Second, berth.ReasonAttempts)
				require.Equal(w.T, &berth.Pause{Left: paused - 9*time.Second, Since: w.Began, Reason: "migration"}, refused.Pause)
				require.EqualError(w.T, refused, `berth: "door" not acquired: attempts used up after 9s; paused for 51s: migration`)
			})
		})
	}
}
