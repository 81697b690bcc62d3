package allocator_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/node"
)

var fates = map[string]link.Fate{"the reply": link.LoseReply, "the request": link.LoseRequest}

func TestAnAllocationWhoseAnswerIsLostGetsOneResource(t *testing.T) {
	for what, fate := range fates {
		for policy, resource := range map[allocator.Policy]string{allocator.LeastRecent: "a", allocator.MostRecent: "c"} {
			t.Run(what+", "+policy.String(), func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					w.add("a", "b", "c")
					n := w.nodeOf(allocator.PoolConfig[string]{Policy: policy})
					n.connect()
					n.Once("pool_acquire", fate)
					held := n.take(nil)
					require.Equal(t, resource, held.Resource())
					require.Equal(t, held.ID(), w.holder(resource))
					require.Equal(t, 2, n.Count("pool_acquire"))
					require.Equal(t, 1, w.inspect().Leased)
					w.release(held)
					require.EqualValues(t, 1, w.Field("gone"), "the lost one may still come")
					w.Advance(time.Minute)
					_, err := w.ops().Sweep(t.Context(), proxies)
					require.NoError(t, err)
					w.requireIdle()
				})
			})
		}
	}
}

// The answer that says "queued" is lost, a resource is handed to the claim meanwhile,
// and the acquire that runs again meets that.
func TestAnAllocationThatRunsAgainMeetsItsGrant(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b")
		w.occupy("x")
		w.occupy("y")
		n := w.nodeWith(node.Config{Retry: berth.Retry{Base: 500 * ms, Jitter: -1}}, allocator.PoolConfig[string]{})
		n.Once("pool_acquire", link.LoseReply)
		q := n.queue(nil)
		w.vacate("y")
		w.vacate("x")
		require.True(t, q.Pending())
		q.gets(500*ms, "b")
		require.Equal(t, []string{"a"}, w.list())
		w.inspect()
	})
}

func TestAReleaseWhoseAnswerIsLostHasSucceededOnce(t *testing.T) {
	for what, fate := range fates {
		t.Run(what, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.add("a", "b")
				n := w.nodeOf(allocator.PoolConfig[string]{Cooldown: time.Second})
				n.connect()
				held := n.takes("a", nil)
				_ = held.Rest(3*time.Second, "429")
				n.Once("pool_release", fate)
				w.release(held)
				info := w.status("a")
				require.Equal(t, allocator.Resting, info.State)
				require.LessOrEqual(t, info.Left, 3*time.Second)
				require.Greater(t, info.Left, 3*time.Second-50*ms)
				require.Equal(t, "429", info.Reason)
				w.requireIdle()
			})
		})
	}
}

// The copy of a release comes when the same node has the resource again.
func TestALateCopyOfAReleaseDoesNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		n := w.node()
		n.connect()
		held := n.takes("a", nil)
		n.Once("pool_release", link.Late)
		w.release(held)
		again := n.takes("a", nil)
		before := w.Dump()
		late, err := n.DeliverLate()
		require.NoError(t, err)
		require.Equal(t, 1, late)
		require.Equal(t, before, w.Dump())
		require.Equal(t, again.ID(), w.holder("a"))
	})
}

func TestALateCopyOfAnAllocationTakesNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b")
		n := w.node()
		n.connect()
		n.Once("pool_acquire", link.Late)
		held := n.takes("a", nil)
		w.release(held)
		before := w.Dump()
		late, err := n.DeliverLate()
		require.NoError(t, err)
		require.Equal(t, 1, late)
		require.Equal(t, before, w.Dump(), "it is gone")
		require.Equal(t, []string{"b", "a"}, w.list())
	})
}

func TestASwapWhoseAnswerIsLostHasHappenedOnce(t *testing.T) {
	for what, fate := range fates {
		t.Run(what, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.add("a", "b", "c")
				n := w.node()
				n.connect()
				held := n.takes("a", nil)
				fence := held.Fence()
				n.Once("pool_swap", fate)
				require.NoError(t, held.Swap(context.Background()))
				require.Equal(t, "b", held.Resource())
				require.Equal(t, "b", held.Value())
				require.Equal(t, held.ID(), w.holder("b"))
				require.Greater(t, held.Fence(), fence)
				require.Equal(t, w.Field("fence"), held.Fence())
				require.Equal(t, []string{"c", "a"}, w.list())
				w.release(held)
				w.requireIdle()
			})
		})
	}
}

// A to B, of which a first copy is on its way yet, and back to A: when that copy
// comes, A is in use.
func TestALateCopyOfASwapDoesNotTakeAwayWhatWasSwappedBack(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		w.add("a", "b")
		n := w.node()
		n.connect()
		held := n.takes("a", nil)
		n.Once("pool_swap", link.Late)
		require.NoError(t, held.Swap(ctx))
		require.Equal(t, "b", held.Resource())
		require.NoError(t, held.Swap(ctx))
		require.Equal(t, "a", held.Resource())
		before := w.Dump()
		late, err := n.DeliverLate()
		require.NoError(t, err)
		require.Equal(t, 1, late)
		require.Equal(t, before, w.Dump())
		require.Equal(t, held.ID(), w.holder("a"))
		w.node().takes("b", nil)
		w.Advance(time.Minute)
		require.NoError(t, held.Err())
		w.inspect()
	})
}

func TestAPushSaysWhichResourceItIs(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		keys := []string{"a", "|b", "a|", "#ALLOCATED", "with space", "new\nline", "ü", "\xff\x00", "7:granted"}
		w.add(keys...)
		for i := range keys {
			w.occupy(strconv.Itoa(i))
		}
		n := w.node()
		var line []*wait
		for range keys {
			line = append(line, n.queue(nil))
		}
		w.Advance(1500 * ms)
		n.Fresh()
		for _, i := range []int{4, 7, 0, 8, 2, 1, 6, 3, 5} {
			w.vacate(strconv.Itoa(i))
			held := line[0].gets(1500*ms, keys[i])
			line = line[1:]
			require.Equal(t, held.ID(), w.holder(keys[i]))
			require.Equal(t, lease-1500*ms-margin, held.Left(), "what it had when it was last heard of")
			require.NotZero(t, held.Fence())
		}
		require.Empty(t, n.Scripts())
		w.inspect()
	})
}

func TestAGrantWhosePushIsLostIsHeardOfWithTheNextHeartbeat(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b")
		w.occupy("x")
		w.occupy("y")
		n := w.node()
		n.subscribe()
		n.Deafen(true)
		q, r := n.queue(nil), n.queue(nil)
		w.Until(ms)
		w.vacate("y")
		w.vacate("x")
		require.True(t, q.Pending())
		first := q.gets(2*time.Second, "b")
		second := r.gets(2*time.Second, "a")
		require.Equal(t, lease-margin, first.Left())
		require.Equal(t, first.ID(), w.holder("b"))
		require.Equal(t, second.ID(), w.holder("a"))
		require.Equal(t, w.Field("fence"), second.Fence())
	})
}
