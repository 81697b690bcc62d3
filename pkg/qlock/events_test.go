package qlock_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/qlock"
)

// What one node says of a course, in its order. TestHowALockEnds has that of each end.
func TestTheEventsOfEveryCourse(t *testing.T) {
	type course struct {
		play func(w *world, n *proc)
		want []observe.Kind
	}
	each(t, map[string]course{
		"a re-entry": {
			func(w *world, n *proc) {
				outer := n.takeFor("me", nil)
				inner := n.takeFor("me", extend(2*time.Second))
				w.Advance(ms)
				require.NoError(w.T, inner.Release(context.Background()))
				require.NoError(w.T, outer.Release(context.Background()))
				e := n.Told(observe.Reentered)[0]
				require.Equal(w.T, 2*time.Second, e.Lease, "by how much it lengthened the outer hold")
				require.Equal(w.T, inner.Fence(), e.Fence)
				require.Positive(w.T, e.Left)
				e = n.Told(observe.ReentryEnded)[0]
				require.Equal(w.T, inner.ID(), e.Claim)
				require.Equal(w.T, ms, e.Held)
				require.Equal(w.T, outer.ID(), n.Told(observe.Released)[0].Claim)
			},
			[]observe.Kind{observe.Granted, observe.Reentered, observe.ReentryEnded, observe.Released},
		},
		"a re-entry that outlives": {
			func(w *world, n *proc) {
				outer := n.takeFor("me", nil)
				inner := n.again("me")
				require.NoError(w.T, outer.Release(context.Background()))
				require.NoError(w.T, inner.Release(context.Background()))
				require.Zero(w.T, n.Told(observe.Reentered)[0].Lease)
			},
			[]observe.Kind{observe.Granted, observe.Reentered, observe.ReentryEnded, observe.Released},
		},
		"a deadlock": {
			func(w *world, n *proc) {
				l := n.takeFor("me", nil)
				_, err := n.Lock(l.Context(), door, nil)
				require.ErrorIs(w.T, n.Told(observe.Deadlock)[0].Err, berth.ErrDeadlock)
				require.ErrorIs(w.T, err, berth.ErrDeadlock)
			},
			[]observe.Kind{observe.Granted, observe.Deadlock},
		},
		"attempts used up": {
			func(w *world, n *proc) {
				w.node().take(nil)
				<-n.queue(&qlock.LockOptions{Attempts: qlock.Attempts{Max: 2}}).Done
				<-n.queue(&qlock.LockOptions{Attempts: qlock.Attempts{Max: 1}}).Done
			},
			[]observe.Kind{observe.Queued, observe.AttemptsUsedUp, observe.AttemptsUsedUp},
		},
		"requeued": {
			func(w *world, n *proc) {
				other := w.node()
				l := other.take(nil)
				q := n.queue(&qlock.LockOptions{RequeueEvery: time.Second})
				other.queue(nil)
				w.Advance(1500 * ms)
				e := n.Told(observe.Requeued)[0]
				require.Equal(w.T, time.Second, e.Waited)
				require.Equal(w.T, 1, e.Ahead)
				q.Cancel(nil)
				<-q.Done
				require.NoError(w.T, l.Release(context.Background()))
			},
			[]observe.Kind{observe.Queued, observe.Requeued, observe.Cancelled},
		},
		"extended by force": {
			func(w *world, n *proc) {
				l := w.node().take(&qlock.LockOptions{NoRenew: true})
				require.NoError(w.T, n.extend(context.Background(), door, time.Second))
				e := n.Told(observe.Extended)[0]
				require.Equal(w.T, []any{time.Second, 7 * time.Second, l.Fence()}, []any{e.Lease, e.Left, e.Fence})
			},
			[]observe.Kind{observe.Extended},
		},
		"what it tells of a hold": {
			func(w *world, n *proc) {
				other := w.node().take(nil)
				q := n.queueOn(berth.WithOwner(context.Background(), "me"), &qlock.LockOptions{Lease: 9 * time.Second, NoRenew: true})
				w.Until(time.Second)
				release(w.T, other)
				l := q.Granted(time.Second)
				w.Until(3 * time.Second)
				require.NoError(w.T, w.node().end(context.Background(), door))
				<-l.Done()
				for kind, held := range map[observe.Kind]time.Duration{observe.Granted: 0, observe.ReleasedByOther: w.Now() - time.Second} {
					e := n.Told(kind)[0]
					require.Equal(w.T, []any{l.ID(), "me", l.Fence()}, []any{e.Claim, e.Owner, e.Fence}, kind)
					require.Equal(w.T, []time.Duration{time.Second, held, 9 * time.Second}, []time.Duration{e.Waited, e.Held, e.Lease}, kind)
				}
				require.NoError(w.T, n.Told(observe.Granted)[0].Err)
				require.ErrorIs(w.T, n.Told(observe.ReleasedByOther)[0].Err, berth.ErrReleased)
			},
			[]observe.Kind{observe.Queued, observe.Granted, observe.ReleasedByOther},
		},
		"what it tells of a detached hold": {
			func(w *world, n *proc) {
				l := n.take(&qlock.LockOptions{NoRenew: true})
				w.Until(time.Second)
				token := detach(w.T, l)
				w.Until(2 * time.Second)
				_ = n.resume(token)
				e := n.Told(observe.Detached)[0]
				require.Equal(w.T, []any{lease - margin - time.Second, time.Second}, []any{e.Left, e.Held})
				require.Equal(w.T, lease-margin-2*time.Second, n.Told(observe.Resumed)[0].Left)
			},
			[]observe.Kind{observe.Granted, observe.Detached, observe.Resumed},
		},
	}, func(t *testing.T, w *world, course course) {
		n := w.node()
		course.play(w, n)
		w.Advance(0)
		for _, e := range n.Events() {
			require.Equal(t, n.ID(), e.Node)
			if e.Kind != observe.Subscribed && e.Kind != observe.Heartbeat {
				require.Equal(t, door, e.Name)
			}
		}
		kinds := slices.DeleteFunc(n.Kinds(), func(k observe.Kind) bool { return k == observe.Subscribed || k == observe.Swept })
		require.Equal(t, course.want, kinds)
	})
}

// One who waits for several locks is a claim after the other.
func TestTheEventsSayHowManyWaitForAllLocksOfASet(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, other := w.node(), w.node()
		names := []string{"a", "b", "c"}
		var held []*qlock.Lock
		for _, name := range names {
			held = append(held, other.hold(name, nil))
		}
		gets, late := n.all(ctx, nil, names...), n.all(ctx, &qlock.LockOptions{MaxWait: time.Second}, names...)
		require.Equal(t, 2, n.Waiting())
		<-late.Done
		require.ErrorIs(t, late.Err, berth.ErrNotAcquired)
		require.Equal(t, 1, n.Waiting())
		for _, l := range held {
			release(t, l)
		}
		set := gets.Granted(w.Now())
		require.Zero(t, n.Waiting())
		require.NoError(t, set.Release(ctx))
	})
}
