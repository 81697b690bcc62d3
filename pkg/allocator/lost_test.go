package allocator_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/observe"
)

var fates = map[string]link.Fate{"the reply": link.LoseReply, "the request": link.LoseRequest}

func TestAnAllocationWhoseAnswerIsLostGetsOneResource(t *testing.T) {
	for policy, resource := range map[allocator.Policy]string{allocator.LeastRecent: "a", allocator.MostRecent: "c"} {
		inEach(t, fates, func(t *testing.T, w *world, fate link.Fate) {
			w.add("a", "b", "c")
			n := w.nodeOf(allocator.Config[string]{Policy: policy})
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
			require.NoError(t, second(w.ops().Sweep(t.Context(), proxies)))
			w.requireIdle()
		})
	}
}

func TestAReleaseWhoseAnswerIsLostHasSucceededOnce(t *testing.T) {
	inEach(t, fates, func(t *testing.T, w *world, fate link.Fate) {
		w.add("a", "b")
		n := w.nodeOf(allocator.Config[string]{Cooldown: time.Second})
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
}

func TestASwapWhoseAnswerIsLostHasHappenedOnce(t *testing.T) {
	inEach(t, fates, func(t *testing.T, w *world, fate link.Fate) {
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
		require.Equal(t, w.Field("fence"), held.Fence()+1, "the turn of what it gave back comes next")
		require.Equal(t, []string{"c", "a"}, w.list())
		w.release(held)
		w.requireIdle()
	})
}

// The first copy of a call comes when its node has gone on: it has given back what it got, has again what it gave
// back, or has swapped back to what the call gives away.
func TestALateCopyOfASwapDoesNotTakeAwayWhatWasSwappedBack(t *testing.T) {
	inEach(t, map[string]func(w *world, n *proc) (holder string){
		"nor one of an allocation what was given back": func(w *world, n *proc) string {
			n.Once("pool_acquire", link.Late)
			w.release(n.takes("a", nil))
			return ""
		},
		"nor one of a release what is held again": func(w *world, n *proc) string {
			held := n.takes("a", nil)
			n.Once("pool_release", link.Late)
			w.release(held)
			w.release(n.takes("b", nil))
			return n.takes("a", nil).ID()
		},
		"of a swap": func(w *world, n *proc) string {
			held := n.takes("a", nil)
			n.Once("pool_swap", link.Late)
			for _, resource := range []string{"b", "a"} {
				require.NoError(w.T, held.Swap(context.Background()))
				require.Equal(w.T, resource, held.Resource())
			}
			return held.ID()
		},
	}, func(t *testing.T, w *world, goesOn func(w *world, n *proc) string) {
		w.add("a", "b")
		n := w.node()
		n.connect()
		holder := goesOn(w, n)
		before := w.Dump()
		late, err := n.DeliverLate()
		require.NoError(t, err)
		require.Equal(t, 1, late)
		require.Equal(t, before, w.Dump())
		require.Equal(t, holder, w.holder("a"))
		w.node().takes("b", nil)
		w.Advance(time.Minute)
		require.Equal(t, holder, w.holder("a"))
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

// The hold is of r1, which a push has granted. A failover loses that, and the next release on the new master grants r2.
func TestAHoldWhoseGrantAFailoverHasReplacedIsLost(t *testing.T) {
	inEach(t, map[string]func(w *world, held *allocator.Allocation[string]){
		"by its heartbeat": func(w *world, held *allocator.Allocation[string]) {
			w.Advance(lease / 3)
			require.ErrorIs(w.T, held.Err(), berth.ErrLost)
			require.ErrorIs(w.T, context.Cause(held.Context()), berth.ErrLost)
		},
		"by Release": func(w *world, held *allocator.Allocation[string]) { // which ends it before it is sent
			require.ErrorIs(w.T, held.Release(context.Background()), berth.ErrLost)
		},
	}, func(t *testing.T, w *world, ask func(w *world, held *allocator.Allocation[string])) {
		w.add("r1", "r2")
		n, other := w.node(), w.node()
		x, y := other.takes("r1", nil), other.takes("r2", nil)
		q := n.queue(nil)
		require.True(t, q.Pending())
		failover := w.Snapshot()
		w.release(x)
		held := q.gets(w.Now(), "r1")
		failover()
		w.Advance(ms) // else the two grants have one fence
		w.release(y)
		require.Equal(t, held.ID(), w.holder("r2"))
		require.NotEqual(t, held.ID(), w.holder("r1"), "the lease of x goes on there")
		_ = held.Rest(time.Hour, "429")
		ask(w, held)
		synctest.Wait()
		require.Equal(t, allocator.Free, w.status("r2").State, "it was given back, and nobody has used it")
		require.ElementsMatch(t, []observe.Kind{observe.Subscribed, observe.Queued, observe.Granted, observe.Lost}, n.Kinds())
		w.Advance(lease)
		require.NoError(t, second(w.ops().Sweep(t.Context(), proxies)))
		w.requireIdle()
	})
}
