package semaphore_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/pkg/semaphore"
)

func TestAHigherPriorityThatFitsPassesAHeadThatDoesNot(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.take(2, nil)
		heavy := n.queue(2, &semaphore.AcquireOptions{Weight: 2})
		n.queue(2, &semaphore.AcquireOptions{Priority: 1}).Granted(0)
		require.True(t, heavy.Pending())
		require.True(t, n.queue(2, nil).Pending())
	})
}

func TestTryAcquireSweepsEverythingInItsWay(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for i := range 250 {
			w.acquireScript("dead", fmt.Sprintf("dead.%d", i), 250, semaphore.CapacityStored)
		}
		w.Advance(lease)
		p, err := w.node().gpu(250).TryAcquire(context.Background(), &semaphore.AcquireOptions{Weight: 250})
		require.NoError(t, err)
		require.Equal(t, 250, p.Weight())
	})
}

func TestADeadHoldersPlaceIsGrantedThoughItsRenewalsMovedTheEnd(t *testing.T) {
	for _, i := range []int{0, 1, 4, 6, 9} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				a, b := w.node(), w.node()
				p := a.take(1, nil)
				q := b.queue(1, nil)
				w.Advance(time.Duration(i) * 1777 * ms)
				a.Die()
				left, _ := w.LeftOf(p.ID())
				at := w.Now() + left
				q.GrantedBy(at)
			})
		})
	}
}

func TestADeadHeavyHeadIsSkippedWhenItExpires(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b, c := w.node(), w.node(), w.node()
		a.take(3, nil)
		b.queue(3, &semaphore.AcquireOptions{Weight: 3})
		q := c.queue(3, &semaphore.AcquireOptions{Weight: 2})
		b.Die()
		q.GrantedBy(lease)
	})
}

// The holder has a short fixed lease, which its waiters hear of through a push:
// their last reply said that the place would be held for long.
func TestAnEarlierEndIsPushedToTheFirstInLine(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		p := a.take(1, nil)
		short := a.queue(1, &semaphore.AcquireOptions{NoRenew: true, Lease: 300 * ms})
		q := b.queue(1, nil)
		w.Advance(500 * ms)
		require.NoError(t, p.Release(context.Background()))
		short.Granted(500 * ms)
		a.Die()
		q.Granted(800 * ms)
	})
}

// The same, where the one that is granted at once stands before the head.
func TestAnEarlierEndOfADirectGrantIsPushedToTheFirstInLine(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		a.take(2, nil)
		q := b.queue(2, &semaphore.AcquireOptions{Weight: 2})
		w.Advance(100 * ms)
		p := a.take(2, &semaphore.AcquireOptions{Priority: 1, NoRenew: true, Lease: 300 * ms})
		require.ErrorIs(t, (<-w.Watch(p)).Cause, berth.ErrExpired)
		w.Until(400 * ms)
		require.True(t, q.Pending())
		require.Equal(t, int64(1), w.Field("used"), "its node swept at that very instant")
	})
}

func TestAClaimIsRefusedOnceItsIDIsOnRecordForAnotherNode(t *testing.T) {
	for _, capacity := range capacities {
		t.Run(fmt.Sprint(capacity), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				ask := func(node string) string {
					r := w.acquireScript(node, "a.1", capacity, semaphore.CapacityStored)
					return r.Status()
				}
				require.Equal(t, "granted", ask("a"))
				require.Equal(t, "foreign", ask("b"))
				require.Equal(t, 1, w.stats().Holders)
			})
		})
	}
}

func TestAnAcquireThatRunsAgainGetsTheSameAnswer(t *testing.T) {
	for _, capacity := range capacities {
		t.Run(fmt.Sprint(capacity), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				text := func(claim string) string {
					r := w.acquireScript("a", claim, capacity, semaphore.CapacityStored, heavy(capacity))
					var all string
					for i := range r.Len() {
						word := r.Str(i)
						if n, err := strconv.ParseInt(word, 10, 64); err == nil {
							word = millis(n) // however many zeros stand before it
						}
						all += word + " "
					}
					return all
				}
				text("a.0") // so that there is an idle name
				w.Call("semaphore_release", "60000", "berth:wake:", gpu, "a", "a.0", "0")
				w.Advance(ms)
				held := text("a.1")
				require.Equal(t, capacity == 1, w.Thin())
				require.Equal(t, held, text("a.1"))
				waiting := text("a.2")
				require.Equal(t, held, text("a.1"))
				require.Equal(t, waiting, text("a.2"))
				require.Equal(t, 1, w.stats().Holders)
				require.Equal(t, 1, w.stats().Waiting)
				require.EqualValues(t, capacity, w.Field("used"))
			})
		})
	}
}

// Fences rise through an idle name that was forgotten, and through a flush.
func TestFencesRiseThroughEverything(t *testing.T) {
	for _, capacity := range capacities {
		t.Run(fmt.Sprint(capacity), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n := w.node()
				var last int64
				for i := range 5 {
					p := n.take(capacity, nil)
					require.Equal(t, capacity == 1, w.Thin())
					require.Greater(t, p.Fence(), last)
					last = p.Fence()
					if i%2 == 0 {
						w.Do("FLUSHALL")
						w.Advance(ms)
						require.Error(t, p.Release(context.Background()))
					} else {
						require.NoError(t, p.Release(context.Background()))
						w.Advance(2 * time.Minute)
						require.Empty(t, w.Keys())
					}
				}
				for range 10 { // in one instant
					p := n.take(capacity, nil)
					require.Greater(t, p.Fence(), last)
					last = p.Fence()
					require.NoError(t, p.Release(context.Background()))
				}
			})
		})
	}
}

func TestAClaimThatCannotBeReadIsNobodysConcern(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		p := n.take(1, nil)
		w.acquireScript("dead", "dead.1", 1, semaphore.CapacityStored, func(r *engine.Record) { r.Wait = time.Hour })
		q := n.queue(1, nil)
		w.Do("HDEL", stateKey, "c:dead.1")
		require.NoError(t, p.Release(context.Background()))
		q.Granted(0)
	})
}
