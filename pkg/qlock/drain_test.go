package qlock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/keyspace"
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
		require.ErrorIs(t, testkit.Second(n.Lock(ctx, "window", nil)), berth.ErrDraining, "it does not hold that one")
		require.NoError(t, inner.Release(ctx))
		require.NoError(t, l.Release(ctx))
		require.ErrorIs(t, testkit.Second(n.Lock(ctx, door, nil)), berth.ErrDraining)
	})
}

// The hold has ended on the server, and its process does not know yet.
func TestAReentryThatIsNoneIsRefusedInADrain(t *testing.T) {
	each(t, map[string]bool{
		"the lock is free": false, "somebody else holds it": true,
	}, func(t *testing.T, w *world, taken bool) {
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
		other := w.node().info()
		require.Equal(t, taken, other.Owner != "", "what it got was given back")
		require.Zero(t, other.waiting)
	})
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
		require.ErrorIs(t, testkit.Second(n.TryLock(context.Background(), door, nil)), berth.ErrDraining)
		w.Notice("n:"+former, 0, "stop")
		w.Advance(5 * time.Second)
		require.False(t, n.Draining(), "it hears what is said to the id that it had")
	})
}

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
		outer = n.resume(detach(w.T, outer))
		require.ErrorIs(w.T, reenter(n, "me", qlock.FailDeadlock), berth.ErrDeadlock)
		w.Advance(2 * lease)
		require.NoError(w.T, outer.Err(), "it renews")
		require.NoError(w.T, outer.Release(context.Background()))

		_, err := other.TryLock(berth.WithOwner(ctx, "me"), door, nil)
		refusal := refused(w.T, berth.ReasonPaused, err, "an owner who holds nothing is like others")
		require.Equal(w.T, berth.Pause{Left: paused - 2*lease, Since: w.Began, Reason: "migration"}, *refusal.Pause)
	})
}

// Attempts that are used up while the lock is paused, and nobody holds it, say the pause, with details and without.
func TestAttemptsThatAreUsedUpInAPauseTellThePause(t *testing.T) {
	each(t, map[string]bool{"with details": true, "without": false}, func(t *testing.T, w *world, detailed bool) {
		n := w.node()
		n.pause(paused)
		attempts := qlock.Attempts{Max: 10, Delay: time.Second, Jitter: -1}
		q := n.queue(&qlock.LockOptions{Attempts: attempts, DetailedErrors: detailed})
		refusal := q.Refused(9*time.Second, berth.ReasonAttempts)
		require.Equal(t, &berth.Pause{Left: paused - 9*time.Second, Since: w.Began, Reason: "migration"}, refusal.Pause)
		require.EqualError(t, refusal, `berth: "door" not acquired: attempts used up after 9s; paused for 51s: migration`)
	})
}

// wanted says whether somebody wants a lock back, as its process knows.
func wanted(h berth.Handle) bool {
	select {
	case <-h.Wanted():
		return true
	default:
		return false
	}
}

// want asks for what a target has, and lets a push come.
func (n *proc) want(count int, target berth.Target) {
	n.w.T.Helper()
	asked, err := n.Operator().Want(context.Background(), target)
	require.NoError(n.w.T, err)
	require.Equal(n.w.T, count, asked)
	synctest.Wait()
}

// Each entry has its own process: a claim is asked for that one, a name or an owner for all.
func TestTheEntriesOfAnOwnerAreWantedEachByItself(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, m, op := w.node(), w.node(), w.node()
		outer := n.takeFor("me", nil)
		inner := m.again("me")
		last := m.takeFor("me", &qlock.LockOptions{Conflict: qlock.ExtendAndWorkThrough})
		all := func() []bool { return []bool{wanted(outer), wanted(inner), wanted(last)} }
		require.Equal(t, []bool{false, false, false}, all())
		w.Advance(time.Second)
		op.want(1, berth.Target{Kind: keyspace.Lock, Name: door, Claim: inner.ID()})
		require.Equal(t, []bool{false, true, false}, all())
		require.NoError(t, last.Extend(context.Background(), time.Second))
		require.NoError(t, inner.Release(context.Background()))
		op.want(2, berth.Target{Owner: "me"})
		require.Equal(t, []bool{true, true, true}, all())
		require.NoError(t, outer.Release(context.Background()))
		w.Advance(2 * lease)
		require.NoError(t, last.Err(), "it goes on")
		for _, h := range w.Holders() {
			require.Equal(t, 2*lease, h.Wanted)
		}
		fresh := n.again("me")
		w.Advance(lease)
		require.False(t, wanted(fresh), "nobody has asked for this one")
	})
}

func TestASetIsWantedWithTheFirstOfItsLocks(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, op := w.node(), w.node()
		set := w.gotAll(n.LockAll(context.Background(), []string{"a", door, "z"}, nil))
		require.False(t, wanted(set))
		w.Advance(time.Second)
		op.want(1, berth.Target{Kind: keyspace.Lock, Name: door})
		require.True(t, wanted(set))
		require.True(t, wanted(set.Locks()[1]))
		require.False(t, wanted(set.Locks()[0]))
		require.NoError(t, set.Err())
		require.NoError(t, n.DoAll(context.Background(), []string{"b", "c"}, nil, func(ctx context.Context) error {
			op.want(1, berth.Target{Kind: keyspace.Lock, Name: "c"})
			<-n.Wanted(ctx, "c")
			require.Nil(t, n.Wanted(ctx, door))
			select {
			case <-n.Wanted(ctx, "b"):
				require.Fail(t, "it is another lock")
			default:
			}
			return nil
		}))
		require.NoError(t, set.Release(context.Background()))
	})
}

// A lock is free when its last entry has ended, so the first in line asks for all.
func TestWhoWaitsForALockAsksForAllEntries(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, m := w.node(), w.node()
		outer := n.takeFor("me", &qlock.LockOptions{Lease: berth.Forever})
		inner := m.again("me")
		next := m.queue(&qlock.LockOptions{WantAfter: 10 * time.Second, Access: qlock.LIFO})
		first := m.queue(nil)
		w.Until(20 * time.Second)
		require.False(t, wanted(outer) || wanted(inner), "the first in line does not ask")
		first.Cancel(nil)
		<-first.Done
		w.Advance(lease)
		require.True(t, wanted(outer) && wanted(inner))
		require.NoError(t, outer.Release(context.Background()))
		require.NoError(t, inner.Release(context.Background()))
		<-next.Done
		require.NoError(t, next.Err)
		_, err := n.TryLock(context.Background(), "other", &qlock.LockOptions{WantAfter: time.Second})
		require.ErrorIs(t, err, berth.ErrInvalidConfig)
	})
}
