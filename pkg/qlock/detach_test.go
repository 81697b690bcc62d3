package qlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/qlock"
)

func detach(t *testing.T, l *qlock.Lock) berth.Token {
	t.Helper()
	token, err := l.Detach(context.Background())
	require.NoError(t, err)
	require.Equal(t, []any{keyspace.Lock, l.Name(), l.ID(), l.Fence()}, []any{token.Kind, token.Name, token.Claim, token.Fence})
	return token
}

func (n *proc) resume(token berth.Token) *qlock.Lock {
	n.w.T.Helper()
	l := n.w.got(n.Resume(context.Background(), token))
	require.Equal(n.w.T, qlock.Resumed, l.Via())
	require.Equal(n.w.T, token.Fence, l.Fence())
	require.Equal(n.w.T, token.Claim, l.ID())
	return l
}

func TestADetachedLockIsTakenUpElsewhere(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		old := a.takeFor("me", nil)
		w.Advance(time.Second)
		token := detach(t, old)
		require.NoError(t, old.Release(context.Background()), "it is not this handle's any more")
		w.Advance(time.Second)
		l := b.resume(token)
		require.Equal(t, "me", l.Owner())
		require.ErrorIs(t, old.Err(), berth.ErrReleased)
		require.ErrorIs(t, old.Extend(context.Background(), time.Second), berth.ErrReleased)
		w.Advance(time.Minute)
		require.NoError(t, l.Err(), "it renews again")
		_, err := b.Lock(l.Context(), door, nil)
		require.ErrorIs(t, err, berth.ErrDeadlock, "its context carries the owner")
		require.ErrorIs(t, testkit.Second(a.Resume(context.Background(), token)), berth.ErrReleased)
		require.ErrorIs(t, testkit.Second(b.Resume(context.Background(), token)), berth.ErrInvalidConfig, "it is in use")
		require.NoError(t, l.Release(context.Background()))
		w.RequireIdle()
		require.ErrorIs(t, testkit.Second(b.Resume(context.Background(), token)), berth.ErrNotHeld)
	})
}

func TestInnerAndOuterEntriesAreDetachedApart(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		outer := a.takeFor("me", nil)
		inner := a.takeFor("me", extend(2*time.Second))
		token := detach(t, inner)
		require.NoError(t, outer.Err())
		resumed := b.resume(token)
		w.Advance(time.Minute)
		require.NoError(t, outer.Err())
		require.NoError(t, resumed.Err(), "it follows the outer one")

		token = detach(t, outer)
		w.Advance(ms)
		taken := b.resume(token)
		w.Advance(time.Minute)
		require.NoError(t, taken.Err(), "the outer one renews there")
		require.NoError(t, resumed.Err())
		require.NoError(t, taken.Release(context.Background()))
		w.Advance(time.Minute)
		require.NoError(t, resumed.Err(), "and the inner one takes that over")
		require.NoError(t, resumed.Release(context.Background()))
		w.RequireIdle()
	})
}

func TestAResumedLockKeepsItsMaximumHold(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		token := detach(t, a.take(&qlock.LockOptions{MaxHold: 8 * time.Second}))
		w.Until(4 * time.Second)
		l := b.resume(token)
		b.Cut()
		testkit.RequireWithin(t, 8*time.Second-42*ms, (<-w.Watch(l)).At) // 2 ms and 1 % of what was left
		require.ErrorIs(t, l.Err(), berth.ErrExpired, "its maximum has ended it")
	})
}

func TestAResumedLockIsReportedAsForgottenByTheOptionsOfItsLocks(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		quiet := qlock.New(n.Node, qlock.Config{WarnHeldLongerThan: -1})
		token := detach(t, n.take(nil))
		l := w.got(quiet.Resume(t.Context(), token))
		w.Advance(time.Hour)
		require.Empty(t, n.Told(observe.HeldLong))
		n.resume(detach(t, l))
		w.Advance(time.Hour)
		require.Len(t, n.Told(observe.HeldLong), 1)
	})
}
