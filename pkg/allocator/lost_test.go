package allocator_test

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/allocator"
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
					_, err := w.pool.GC(t.Context())
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
		n := w.nodeWith(allocator.Config{Retry: berth.Retry{Base: 500 * ms, Jitter: -1}}, allocator.PoolConfig[string]{})
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

// The grant comes by a push, and the call that confirms it is not answered.
func TestAConfirmationWhoseAnswerIsLostIsRepeated(t *testing.T) {
	for what, fate := range fates {
		t.Run(what, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.add("a")
				w.occupy("x")
				n := w.node()
				n.connect()
				q := n.queue(&allocator.AllocateOptions{NoRenew: true, Lease: time.Minute})
				w.Advance(time.Second)
				n.Once("pool_renew", fate)
				w.vacate("x")
				<-q.Done
				require.NoError(t, q.Err)
				require.Equal(t, "a", q.Got.Resource())
				require.Equal(t, byte('h'), w.PhaseOf(q.Got.ID()))
				left, _ := w.LeftOf(q.Got.ID())
				require.Less(t, q.Got.Left(), left-601*ms)
				require.Greater(t, q.Got.Left(), left-650*ms)
				w.inspect()
			})
		})
	}
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

// The server has lost a grant of a that the claimant never heard of, the claim stands
// in line again and gets b; then the push about a comes.
func TestALatePushOfAnEarlierGrantDoesNotBringAnotherResource(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		w.add("a")
		w.occupy("x")
		n := w.node()
		n.subscribe()
		n.Deafen(true)
		q := n.queue(nil)
		claim := testkit.Collect(t, w.pool.Waiters(ctx))[0].ID
		w.vacate("x")
		require.Equal(t, claim, w.holder("a"))
		fence, secret := w.Field("fence"), w.Secret(claim)
		w.Do("FLUSHALL")
		w.add("b")
		w.occupy("y")
		w.add("a")
		w.occupy("z") // a
		w.Until(3 * time.Second)
		require.True(t, q.Pending(), "it stands in line again")
		require.Equal(t, 1, w.inspect().Waiting)
		n.Deafen(false)
		w.Publish(n.client.Node(), "granted", proxies, claim, millis(fence), "6000", "a", secret)
		require.True(t, q.Pending(), "the server was asked, and knows of no grant")

		n.Deafen(true)
		w.vacate("y")
		n.Deafen(false)
		w.Publish(n.client.Node(), "granted", proxies, claim, millis(fence), "6000", "a", secret)
		held := q.gets(3*time.Second, "b")
		require.Equal(t, w.Field("fence"), held.Fence())
		require.Equal(t, claim, w.holder("b"))
	})
}

// With a resource of the forger's choice.
func TestAForgedPushOpensNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		w.occupy("x")
		opened := make(chan string, 1)
		n := w.nodeOf(allocator.PoolConfig[string]{Open: func(_ context.Context, key string) (string, error) {
			opened <- key
			return key, nil
		}})
		q := n.queue(nil)
		claim := testkit.Collect(t, w.pool.Waiters(context.Background()))[0].ID
		w.Until(500 * ms)
		for _, secret := range []string{"", "-", "AAAAAAAAAAA"} {
			w.Publish(n.client.Node(), "granted", proxies, claim, "9223372036854775807", "3600000", "http://evil", secret)
			require.True(t, q.Pending())
		}
		require.Empty(t, opened)
		w.vacate("x")
		q.gets(500*ms, "a")
	})
}

// Whoever may read the claim's record can write the secret into it.
func TestAFalsePushWithTheSecretIsFoundOutWithTheNextHeartbeat(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		w.occupy("x")
		n := w.node()
		q := n.queue(nil)
		claim := testkit.Collect(t, w.pool.Waiters(context.Background()))[0].ID
		w.Until(500 * ms)
		w.Publish(n.client.Node(), "granted", proxies, claim, "9007199254740993", "3600000", "a", w.Secret(claim))
		held := q.gets(500*ms, "a")
		require.Equal(t, lease-margin-500*ms, held.Left(), "whatever the push says is left")
		e := <-w.Watch(held)
		require.Equal(t, 2*time.Second, e.At)
		require.ErrorIs(t, e.Cause, berth.ErrLost)
		synctest.Wait()
		require.Zero(t, w.inspect().Waiting)
		require.Equal(t, "x.1", w.holder("a"))
	})
}
