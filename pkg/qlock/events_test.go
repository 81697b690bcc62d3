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
