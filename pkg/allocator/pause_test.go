package allocator_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/keyspace"
)

// paused is how long the pauses of these tests last.
const paused = 10 * lease

func (n *proc) pause(lasts time.Duration) {
	n.w.T.Helper()
	require.NoError(n.w.T, n.node.Operator().Pause(context.Background(), keyspace.Pool, proxies, lasts, "migration"))
}

// What would give a resource to who waits for that one alone does so at the end of the pause.
func TestThoseWhoWaitForOneResourceWaitAPauseOut(t *testing.T) {
	only := func(key string) *allocator.AllocateOptions { return &allocator.AllocateOptions{Resource: key} }
	type row struct {
		waits func(n *proc) *wait
		then  func(w *world, held *allocator.Allocation[string])
		gets  string
	}
	inEach(t, map[string]row{
		"it is given back": {
			func(n *proc) *wait { return n.queue(only("a")) },
			func(w *world, held *allocator.Allocation[string]) { w.release(held) }, "a",
		},
		"its rest is over": {
			func(n *proc) *wait { return n.queue(only("a")) },
			func(w *world, held *allocator.Allocation[string]) {
				require.NoError(w.T, held.Rest(lease, "tired"))
				w.release(held)
			}, "a",
		},
		"it has patience no more": {
			func(n *proc) *wait {
				return n.queue(&allocator.AllocateOptions{Bind: "me", BindWait: lease})
			},
			func(w *world, _ *allocator.Allocation[string]) { w.add("b") }, "b",
		},
		"it is removed": {
			func(n *proc) *wait { return n.queue(only("a")) },
			func(w *world, held *allocator.Allocation[string]) {
				w.release(held)
				_, err := w.pool.Remove(context.Background(), []string{"a"})
				require.NoError(w.T, err)
			}, "",
		},
	}, func(_ *testing.T, w *world, comes row) {
		n, ops := w.node(), w.node()
		w.add("a")
		held := n.take(&allocator.AllocateOptions{Bind: "me"})
		q := comes.waits(n)
		ops.pause(paused)
		comes.then(w, held)
		w.inspect()
		w.Advance(lease)
		n.Reset()
		w.Until(paused - ms)
		testkit.RequirePending(w.T, q)
		require.Equal(w.T, "a", w.Waiters()[0].Resource)
		sent := 0
		for _, times := range n.Scripts() {
			sent += times
		}
		beats := 3 * int(paused/lease)
		if held.Err() == nil {
			beats *= 2 // those of holds and of waits leave apart
		}
		require.LessOrEqual(w.T, sent, beats, "heartbeats alone")
		if comes.gets == "" {
			q.Returned(paused + 50*ms)
			require.ErrorIs(w.T, q.Err, berth.ErrAbsent)
			return
		}
		require.Equal(w.T, comes.gets, q.GrantedBy(paused).Resource())
	})
}

// The last heartbeat of who waits for one resource may be long ago when a pause begins that ends before the
// next.
func TestTheFirstOfALaneHearsOfTheEndOfAPause(t *testing.T) {
	inWorld(t, func(_ *testing.T, w *world) {
		n, ops := w.node(), w.node()
		w.add("a", "b")
		held := n.takes("a", nil)
		q := n.queue(&allocator.AllocateOptions{Resource: "a"})
		ops.pause(100 * ms)
		w.release(held)
		q.getsIn(100*ms, "a")
	})
}

func TestASwapOfAPausedPoolIsRefused(t *testing.T) {
	inWorld(t, func(_ *testing.T, w *world) {
		n, ops := w.node(), w.node()
		w.add("a", "b")
		held := n.takes("a", nil)
		w.Advance(ms)
		ops.pause(paused)
		before := w.Dump()
		var refused *berth.AcquireError
		require.ErrorAs(w.T, held.Swap(context.Background()), &refused)
		require.Equal(w.T, berth.ReasonPaused, refused.Reason)
		require.Equal(w.T, berth.Pause{Left: paused, Since: w.Began.Add(ms), Reason: "migration"}, *refused.Pause)
		require.ErrorIs(w.T, refused, berth.ErrBusy)
		require.Equal(w.T, before, w.Dump())
		require.NoError(w.T, held.Err())
		report, err := n.CheckHealth(context.Background(), 1)
		require.NoError(w.T, err)
		require.Equal(w.T, 2, report.Skipped)
		require.NoError(w.T, ops.node.Operator().Unpause(context.Background(), keyspace.Pool, proxies))

		sent := 0
		n.OnCommand(func(c link.Command) link.Fate {
			if c.Name != "pool_swap" {
				return link.Pass
			} else if sent++; sent == 1 {
				return link.LoseReply
			}
			ops.pause(paused)
			return link.Pass
		})
		require.NoError(w.T, held.Swap(context.Background()), "it ran before the pause")
		require.Equal(w.T, "b", held.Resource())
	})
}
