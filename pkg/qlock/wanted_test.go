package qlock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/qlock"
)

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
		inner := m.takeFor("me", &qlock.LockOptions{Conflict: qlock.WorkThrough})
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
		fresh := n.takeFor("me", &qlock.LockOptions{Conflict: qlock.WorkThrough})
		w.Advance(lease)
		require.False(t, wanted(fresh), "nobody has asked for this one")
	})
}

func TestASetIsWantedWithTheFirstOfItsLocks(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, op := w.node(), w.node()
		set, err := n.LockAll(context.Background(), []string{"a", door, "z"}, nil)
		require.NoError(t, err)
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
		inner := m.takeFor("me", &qlock.LockOptions{Conflict: qlock.WorkThrough})
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
