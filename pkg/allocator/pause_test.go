package allocator_test

import (
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
	require.NoError(n.w.T, n.node.Operator().Pause(ctx, keyspace.Pool, proxies, lasts, "migration"))
}

// What would give a resource to who waits for that one alone does so at the end of the pause.
func TestThoseWhoWaitForOneResourceWaitAPauseOut(t *testing.T) {
	type row struct {
		waits *allocator.AllocateOptions
		then  func(w *world, held *allocator.Allocation[string])
		gets  string
	}
	inEach(t, map[string]row{
		"it is given back": {names("a"), func(w *world, held *allocator.Allocation[string]) { w.release(held) }, "a"},
		"its rest is over": {names("a"), func(w *world, held *allocator.Allocation[string]) {
			require.NoError(w.T, held.Rest(lease, "tired"))
			w.release(held)
		}, "a"},
		"it has patience no more": {sticks("me", lease), func(w *world, _ *allocator.Allocation[string]) { w.add("b") }, "b"},
		"it is removed": {names("a"), func(w *world, held *allocator.Allocation[string]) {
			w.release(held)
			w.remove("a")
		}, ""},
	}, func(_ *testing.T, w *world, comes row) {
		n, ops := w.node("a"), w.node()
		held := n.take(&allocator.AllocateOptions{Bind: "me"})
		q := n.queue(comes.waits)
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
		n, ops := w.node("a", "b"), w.node()
		held := n.takes("a", nil)
		q := n.queue(names("a"))
		ops.pause(100 * ms)
		w.release(held)
		q.getsIn(100*ms, "a")
	})
}

func TestASwapOfAPausedPoolIsRefused(t *testing.T) {
	inWorld(t, func(_ *testing.T, w *world) {
		n, ops := w.node("a", "b"), w.node()
		held := n.takes("a", nil)
		w.Advance(ms)
		ops.pause(paused)
		before := w.Dump()
		var refused *berth.AcquireError
		require.ErrorAs(w.T, held.Swap(ctx), &refused)
		require.Equal(w.T, berth.ReasonPaused, refused.Reason)
		require.Equal(w.T, berth.Pause{Left: paused, Since: w.Began.Add(ms), Reason: "migration"}, *refused.Pause)
		require.ErrorIs(w.T, refused, berth.ErrBusy)
		require.Equal(w.T, before, w.Dump())
		require.NoError(w.T, held.Err())
		require.Equal(w.T, 2, must(n.CheckHealth(ctx, 1))(w.T).Skipped)
		require.NoError(w.T, ops.node.Operator().Unpause(ctx, keyspace.Pool, proxies))

		sent := 0
		n.on("pool_swap", func() link.Fate {
			if sent++; sent == 1 {
				return link.LoseReply
			}
			ops.pause(paused)
			return link.Pass
		})
		require.NoError(w.T, held.Swap(ctx), "it ran before the pause")
		require.Equal(w.T, "b", held.Resource())
	})
}
