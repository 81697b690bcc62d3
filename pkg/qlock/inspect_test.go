package qlock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/qlock"
)

func (n *node) info() seen {
	n.w.T.Helper()
	info, err := n.look(context.Background(), door)
	require.NoError(n.w.T, err)
	require.Equal(n.w.T, door, info.Name)
	return info
}

func TestInfoOfAFreeLock(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		require.Equal(t, seen{Stats: qlock.Stats{Name: door}}, n.info())
		require.False(t, n.info().Held())
		require.NoError(t, n.take(nil).Release(context.Background()))
		require.Equal(t, seen{Stats: qlock.Stats{Name: door}}, n.info())
		require.Empty(t, w.Keys()[1:], "reading makes no key")
		_, err := n.look(context.Background(), "")
		require.ErrorIs(t, err, berth.ErrInvalidConfig)
		_, err = n.locked(context.Background(), "")
		require.ErrorIs(t, err, berth.ErrInvalidConfig)
		_, err = n.queued(context.Background(), "")
		require.ErrorIs(t, err, berth.ErrInvalidConfig)
		for _, err := range n.Operator().Waiters(context.Background(), "") {
			require.ErrorIs(t, err, berth.ErrInvalidConfig)
		}
	})
}

func TestInfoTellsWhatReentriesDid(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(qlock.Config{Label: "one"}), w.node()
		at := func(d time.Duration) time.Time { return time.UnixMilli(w.Began.Add(d).UnixMilli()) }
		outer := a.takeFor("me", &qlock.LockOptions{Lease: 5 * time.Second, NoRenew: true, Meta: map[string]string{"k": "v"}})
		info := a.info()
		require.Equal(t, qlock.Reentry{}, info.Reentry)
		require.Equal(t, "me", info.Owner)
		require.Equal(t, outer.Fence(), info.Fence)
		require.Equal(t, 5*time.Second, info.Left)
		require.Len(t, info.entries, 1)
		e := info.entries[0]
		require.Equal(t, []any{outer.ID(), a.Node(), "one", "me", true, 5 * time.Second}, []any{e.ID, e.Node, e.Label, e.Owner, e.NoRenew, e.Lease})
		require.Equal(t, map[string]string{"k": "v"}, e.Meta)
		w.Until(time.Second)
		work := b.takeFor("me", &qlock.LockOptions{Conflict: qlock.WorkThrough})
		require.Equal(t, qlock.Reentry{Count: 1, WorkedThroughAt: at(time.Second)}, a.info().Reentry)
		w.Until(2 * time.Second)
		extending := a.takeFor("me", extend(3*time.Second))
		want := qlock.Reentry{
			Count: 2, WorkedThroughAt: at(time.Second), Extended: 3 * time.Second, LastLease: 3 * time.Second, ExtendedAt: at(2 * time.Second),
		}
		info = b.info()
		require.Equal(t, want, info.Reentry)
		require.Equal(t, 6*time.Second, info.Left)
		require.Equal(t, []string{outer.ID(), work.ID(), extending.ID()}, []string{info.entries[0].ID, info.entries[1].ID, info.entries[2].ID})
		require.NoError(t, work.Release(context.Background()))
		require.NoError(t, extending.Release(context.Background()))
		require.Equal(t, want, a.info().Reentry, "before anything was given back")
		require.Equal(t, 3*time.Second, a.info().Left)
		require.NoError(t, outer.Release(context.Background()))
		require.Equal(t, seen{Stats: qlock.Stats{Name: door}}, a.info())
		require.NoError(t, a.takeFor("me", nil).Err())
		require.Equal(t, qlock.Reentry{}, a.info().Reentry, "another hold begins anew")
	})
}

func TestInfoOfHoldsWithoutAnEnd(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		l := n.take(&qlock.LockOptions{Lease: berth.Forever})
		w.Advance(time.Minute)
		info := n.info()
		require.Equal(t, berth.Forever, info.Left)
		require.Equal(t, l.ID(), info.Owner, "the claim, where no owner was given")
		require.Equal(t, time.Minute, info.entries[0].Held)
	})
}

func TestListingsOfLocksAndQueues(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		other := w.node(qlock.Config{Namespace: "berth2"})
		other.take(nil)
		for i := range 30 {
			l, err := n.Lock(context.Background(), fmt.Sprint("name", i), nil)
			require.NoError(t, err)
			if i%3 == 0 {
				require.NoError(t, l.Release(context.Background()))
			}
		}
		held := make(map[string]bool)
		for _, stats := range testkit.Collect(t, n.Operator().All(context.Background())) {
			require.Equal(t, []any{true, 1, 0}, []any{stats.Held(), stats.Holders, stats.Waiting})
			require.False(t, held[stats.Name])
			held[stats.Name] = true
		}
		require.Len(t, held, 20)

		n.take(nil)
		for range 3 {
			n.queue(nil)
		}
		waiting := make(map[string]int)
		for _, stats := range testkit.Collect(t, n.Operator().All(context.Background())) {
			if stats.Waiting > 0 {
				waiting[stats.Name] = stats.Waiting
			}
		}
		require.Equal(t, map[string]int{door: 3}, waiting)
		for i, q := range testkit.Collect(t, n.Operator().Waiters(context.Background(), door)) {
			require.Equal(t, i, q.Ahead)
			require.Equal(t, n.Node(), q.Node)
		}
		for _, err := range n.Operator().All(context.Background()) {
			require.NoError(t, err)
			break // an iterator that went on would panic
		}
	})
}

func TestALongLineIsListedToItsEnd(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.take(nil)
		for range 120 {
			n.queue(nil)
		}
		all := testkit.Collect(t, n.Operator().All(context.Background()))
		require.Len(t, all, 1)
		require.Equal(t, 120, all[0].Waiting)
		require.Len(t, testkit.Collect(t, n.Operator().Waiters(context.Background(), door)), 120)
	})
}

func TestAQueueTellsEachWaiterInFull(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		dead, n := w.node(qlock.Config{Lease: 900 * ms}), w.node(qlock.Config{Label: "two"})
		n.take(&qlock.LockOptions{MaxHold: time.Hour})
		dead.queue(nil)
		dead.Die()
		w.Until(100 * ms)
		n.queueOn(berth.WithOwner(context.Background(), "you"), &qlock.LockOptions{Priority: -3, Meta: map[string]string{"k": "v"}})
		w.Until(time.Second)
		queue := testkit.Collect(t, n.Operator().Waiters(context.Background(), door))
		require.Len(t, queue, 1, "the one before it has died")
		q := queue[0]
		since := time.UnixMilli(w.Began.Add(100 * ms).UnixMilli())
		require.Equal(t, []any{n.Node(), "two", "you", -3, 0, 1}, []any{q.Node, q.Label, q.Owner, q.Priority, q.Ahead, q.Weight})
		require.Equal(t, []any{since, 900 * ms}, []any{q.Since, q.Waited})
		require.Greater(t, q.Alive, lease/2)
		require.LessOrEqual(t, q.Alive, lease)
		require.Equal(t, map[string]string{"k": "v"}, q.Meta)
		queued, err := n.queued(context.Background(), door)
		require.NoError(t, err)
		require.True(t, queued)
	})
}

func TestInfoTellsEachEntryInFull(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		outer := n.takeFor("me", &qlock.LockOptions{Lease: time.Minute, NoRenew: true, MaxHold: time.Hour})
		w.Until(time.Second)
		inner := n.takeFor("me", &qlock.LockOptions{Conflict: qlock.WorkThrough, Lease: 2 * time.Second})
		_ = detach(t, inner)
		w.Until(1500 * ms)
		info := n.info()
		require.Equal(t, "me", info.Owner)
		require.Equal(t, []any{outer.Fence(), 58500 * ms}, []any{info.Fence, info.Left})
		at := func(d time.Duration) time.Time { return time.UnixMilli(w.Began.Add(d).UnixMilli()) }
		first, second := info.entries[0], info.entries[1]
		require.Equal(t, []any{at(0), 1500 * ms, time.Hour, false}, []any{first.Granted, first.Held, first.MaxHold, first.Detached})
		require.Equal(t, []any{at(time.Second), 500 * ms, inner.ID(), true}, []any{second.Granted, second.Held, second.ID, second.Detached})
		queued, err := n.queued(context.Background(), door)
		require.NoError(t, err)
		require.False(t, queued)
	})
}
