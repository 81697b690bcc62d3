package allocator_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/allocator"
)

// It dies, is cancelled or is ended by force at the head of its lane, or in the middle.
func TestAClaimOfALaneLeavesItToTheNext(t *testing.T) {
	for at, head := range map[string]bool{"at the head": true, "in the middle": false} {
		for how, end := range map[string]func(w *world, n *proc, q *wait){
			"dead":      func(w *world, n *proc, _ *wait) { n.Die(); w.Advance(3 * lease) },
			"cancelled": func(w *world, _ *proc, q *wait) { q.cancelled(); w.Advance(ms) },
			"by force": func(w *world, _ *proc, q *wait) {
				stood := w.waiters()[0]
				if len(w.waiters()) == 3 {
					stood = w.waiters()[1]
				}
				require.NoError(w.T, w.force(stood))
				q.Refused(w.Now(), berth.ReasonGone)
			},
		} {
			t.Run(at+" "+how, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					w.add("a", "b")
					holder, n, other := w.node(), w.node(), w.node()
					a := holder.takes("a", nil)
					var first *wait
					if !head {
						first = other.queue(names("a"))
					}
					q := n.queue(names("a"))
					next := other.queue(names("a"))
					end(w, n, q)
					require.True(t, next.Pending())
					require.Equal(t, map[bool]int{true: 1, false: 2}[head], w.parked())
					w.release(a)
					if first != nil {
						w.release(first.gets(w.Now(), "a"))
					}
					w.release(next.gets(w.Now(), "a"))
					w.Advance(time.Minute)
					_, err := w.ops().Sweep(t.Context(), proxies)
					require.NoError(t, err)
					w.requireIdle()
				})
			})
		}
	}
}

func TestAHolderThatIsEndedByForceLeavesItsResourceToTheLane(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b")
		holder, n := w.node(), w.node()
		a := holder.takes("a", nil)
		free := n.takes("b", nil)
		later, q := n.queue(nil), n.queue(names("a"))
		require.NoError(t, w.force(free.ID()))
		later.gets(w.Now(), "b")
		require.True(t, q.Pending())
		require.NoError(t, w.force(a.ID()))
		q.gets(w.Now(), "a")
		w.inspect()
	})
}

// The push of the grant is lost, or nobody is there any more to confirm it.
func TestAGrantInALaneThatIsNotHeardOf(t *testing.T) {
	for name, dies := range map[string]bool{"the push is lost": false, "its process dies": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.add("a", "b")
				holder, n, other := w.node(), w.node(), w.node()
				a := holder.takes("a", nil)
				n.subscribeTo("a")
				q, next := n.queue(names("a")), other.queue(names("a"))
				n.Deafen(true)
				if dies {
					n.Die()
				}
				began := w.Now()
				w.release(a)
				require.NotEmpty(t, w.holder("a"), "it is granted all the same")
				if dies {
					w.Advance(lease + 50*ms)
					require.Equal(t, "a", next.GrantedBy(began+lease).Resource())
				} else {
					w.Advance(lease/3 + 50*ms)
					require.NoError(t, q.Err)
					require.False(t, q.Pending())
					w.release(q.Got)
					w.release(next.gets(w.Now(), "a"))
					w.requireIdle()
				}
			})
		})
	}
}

// subscribeTo has the node wait once for a resource that somebody holds.
func (n *proc) subscribeTo(resource string) {
	n.w.T.Helper()
	q := n.queue(names(resource))
	require.True(n.w.T, q.Pending())
	q.Cancel(nil)
	<-q.Done
	n.w.Advance(0)
	n.Fresh()
}

// The claim leaves while its grant is on its way.
func TestACancelAndAGrantInALaneRace(t *testing.T) {
	for name, first := range map[string]bool{"granted first": true, "cancelled first": false} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.add("a", "b")
				holder, n, other := w.node(), w.node(), w.node()
				a := holder.takes("a", nil)
				q, next := n.queue(names("a")), other.queue(names("a"))
				n.Stall()
				if first {
					w.release(a)
				}
				q.cancelled()
				require.Equal(t, !first, w.holder("a") == a.ID())
				if !first {
					n.Flow()
					w.Advance(ms)
					w.release(a)
				}
				n.Flow()
				w.Advance(ms)
				require.False(t, next.Pending())
				require.Equal(t, "a", next.Got.Resource())
				w.release(next.Got)
				w.Advance(2 * time.Minute)
				_, err := w.ops().Sweep(t.Context(), proxies)
				require.NoError(t, err)
				w.requireIdle()
			})
		})
	}
}

// Its acquire is unanswered, and repeated: it stands there once.
func TestAnAcquireForOneResourceThatIsRepeatedStandsOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b")
		holder, n, other := w.node(), w.node(), w.node()
		a := holder.takes("a", nil)
		n.connect()
		n.Once("pool_acquire", link.LoseReply)
		q := n.queue(names("a"))
		next := other.queue(names("a"))
		w.Advance(time.Second)
		require.Equal(t, 2, w.parked())
		require.Len(t, w.waiters(), 2)
		w.release(a)
		w.release(q.gets(w.Now(), "a"))
		w.release(next.gets(w.Now(), "a"))
		require.Zero(t, w.inspect().Waiting)
	})
}

// A Source, its pool and those who wait are flushed, and come back in any order.
func TestALaneAndItsSourceComeBackAfterAFlushInAnyOrder(t *testing.T) {
	for when, takes := range map[string]time.Duration{"the Source first": 0, "between": lease / 3, "the Source last": 2 * lease} {
		t.Run(when, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				slow := time.Duration(0)
				catalogue := []string{"a", "b", "c"}
				cfg := allocator.PoolConfig[string]{RefreshEvery: lease / 6}
				cfg.Source = func(ctx context.Context) ([]string, error) {
					return slowly(slow, catalogue...)(ctx)
				}
				source, second, n := w.nodeOf(cfg), w.nodeOf(cfg), w.node()
				w.Advance(ms) // one of the two has asked its Source: a newer answer would have ended this Refresh
				_, err := source.Refresh(t.Context())
				require.NoError(t, err)
				w.bind("anna", "b", 0)
				holder := w.node()
				for range 3 {
					holder.take(nil)
				}
				first, late := n.queue(names("a")), second.queue(names("a"))
				bound, gone := second.queue(sticks("anna", berth.Forever)), n.queue(names("c"))
				slow, catalogue = takes, []string{"a", "b"}
				w.Advance(100 * ms)
				w.Do("FLUSHALL")
				w.Advance(6 * lease)
				require.Equal(t, 2, w.inspect().Resources)
				require.False(t, bound.Pending())
				require.NoError(t, bound.Err)
				require.Equal(t, "b", bound.Got.Resource())
				require.False(t, gone.Pending())
				require.ErrorIs(t, gone.Err, berth.ErrAbsent)
				if first.Pending() { // the other node may have asked before
					first, late = late, first
				}
				require.NoError(t, first.Err)
				require.Equal(t, "a", first.Got.Resource())
				require.True(t, late.Pending())
				w.release(first.Got)
				late.gets(w.Now(), "a")
				w.inspect()
			})
		})
	}
}
