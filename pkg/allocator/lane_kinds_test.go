package allocator_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
)

// By whatever policy the others take theirs.
func TestALaneIsServedUnderEveryPolicy(t *testing.T) {
	for name, policy := range map[string]allocator.Policy{
		"least recent": allocator.LeastRecent, "most recent": allocator.MostRecent, "random": allocator.Random,
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.add("a", "b", "c", "d", "e", "f")
				n := w.nodeOf(allocator.PoolConfig[string]{Policy: policy})
				held := map[string]*allocator.Allocation[string]{}
				for range 6 {
					a := n.take(nil)
					held[a.Resource()] = a
				}
				wants := n.queue(names("d"))
				early, late := n.queue(nil), n.queue(nil)
				second := n.queue(names("d"))
				w.release(held["a"])
				w.release(early.gets(w.Now(), "a"))
				w.release(late.gets(w.Now(), "a"))
				for range 20 {
					w.release(n.takes("a", nil)) // what is left
				}
				w.release(held["d"])
				w.release(wants.gets(w.Now(), "d"))
				w.release(second.gets(w.Now(), "d"))
				for _, r := range []string{"b", "c", "e", "f"} {
					w.release(held[r])
				}
				for range 20 {
					w.release(n.take(nil))
				}
				w.requireIdle()
			})
		})
	}
}

func TestALaneOfAResourceThatThreeMayHold(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		_, err := w.pool.Add(t.Context(), []string{"a"}, &allocator.AddOptions{MaxSharers: 3})
		require.NoError(t, err)
		n := w.node()
		var held []*allocator.Allocation[string]
		for range 3 {
			held = append(held, n.takes("a", names("a")))
		}
		var waits []*wait
		for range 4 {
			waits = append(waits, n.queue(names("a")))
		}
		w.release(held[1])
		waits[0].gets(w.Now(), "a")
		require.True(t, waits[1].Pending())
		_, err = w.pool.Add(t.Context(), []string{"a"}, &allocator.AddOptions{MaxSharers: 5})
		require.NoError(t, err)
		waits[1].gets(w.Now(), "a")
		waits[2].gets(w.Now(), "a")
		require.True(t, waits[3].Pending(), "five hold it")
		require.Len(t, w.status("a").Holders, 5)
		w.release(held[0])
		waits[3].gets(w.Now(), "a")
		w.inspect()
	})
}

func TestInASharedPoolOneWaitsForTheRestOfItsResource(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b")
		n := w.nodeOf(inTurn)
		require.NoError(t, w.pool.Rest(t.Context(), "a", 3*time.Second, "", nil))
		first, second := n.queue(names("a")), n.queue(names("a"))
		w.release(n.takes("b", nil))
		w.release(n.takes("b", names("b")))
		w.Advance(4 * time.Second)
		first.getsIn(3*time.Second, "a")
		second.getsIn(3*time.Second, "a")
		w.inspect()
	})
}

func TestTheHigherPriorityIsFirstInALaneAndBetweenLanes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b")
		n := w.node()
		a := n.takes("a", nil)
		b := n.takes("b", nil)
		of := func(resource string, priority int) *wait {
			return n.queue(&allocator.AllocateOptions{Resource: resource, Priority: priority})
		}
		low, first, urgent := of("a", -128), of("a", 0), of("a", 127)
		free, quick := of("", 0), of("", 127)
		for i, q := range []*wait{urgent, quick, first, free, low} {
			w.release(a)
			a = q.gets(w.Now(), "a")
			require.Equal(t, 4-i, w.inspect().Waiting)
		}
		w.release(b)
		w.release(a)
		w.requireIdle()
	})
}

func TestWhatASwapGivesBackGoesToItsLane(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b", "c")
		n := w.node()
		a := n.takes("a", nil)
		b := n.takes("b", nil)
		wantsA, wantsB := n.queue(names("a")), n.queue(names("b"))
		require.NoError(t, a.Swap(t.Context()), "only lanes wait, for others")
		require.Equal(t, "c", a.Resource())
		wantsA.gets(w.Now(), "a")
		require.ErrorIs(t, b.Swap(t.Context()), berth.ErrBusy)
		require.Equal(t, "b", b.Resource())
		require.True(t, wantsB.Pending())
		require.NoError(t, a.Rest(time.Second, ""))
		w.release(a)
		w.Advance(2 * time.Second)
		require.NoError(t, b.Swap(t.Context()))
		require.Equal(t, "c", b.Resource())
		wantsB.gets(w.Now(), "b")
		w.inspect()
	})
}

// What is damaged may be made whole, or removed; the process that does so may die after its first script.
func TestTheLaneOfADamagedResource(t *testing.T) {
	for how, mends := range map[string]struct {
		does   func(w *world)
		served bool
	}{
		"added":   {func(w *world) { w.add("a") }, true},
		"removed": {func(w *world) { w.remove("a") }, false},
		"mended, and no more": {func(w *world) {
			w.Call("pool_mend", "60000", "berth:wake:", proxies, "1", "a", "")
		}, true},
		"taken out, and no more": {func(w *world) {
			w.Call("pool_mend", "60000", "berth:wake:", proxies, "0", "a", "")
		}, false},
	} {
		t.Run(how, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.add("a", "b", "c")
				w.bind("anna", "a", 0)
				holder, n := w.node(), w.node()
				a := holder.takes("a", nil)
				b := holder.takes("b", nil)
				named, bound := n.queue(names("a")), n.queue(sticks("anna", berth.Forever))
				w.damage("a")
				w.release(a)
				arrives := n.queue(names("a"))
				w.Advance(2 * lease)
				require.True(t, named.Pending())
				require.True(t, bound.Pending())
				require.True(t, arrives.Pending(), "as through a rest")
				began := w.Now()
				mends.does(w)
				if mends.served {
					w.release(named.GrantedBy(began))
					w.release(bound.GrantedBy(began))
					w.release(arrives.GrantedBy(began))
				} else {
					w.Advance(50 * ms)
					for _, q := range []*wait{named, arrives} {
						require.ErrorIs(t, q.Err, berth.ErrAbsent)
						require.LessOrEqual(t, q.At, began+50*ms)
					}
					require.Equal(t, "c", bound.GrantedBy(began).Resource())
					w.release(bound.Got)
				}
				w.release(b)
				w.requireIdle()
			})
		})
	}
}

// Many lanes do not keep what nobody waits for from others.
func TestManyLanesAndAFreeResource(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var all []string
		for i := range 30 {
			all = append(all, fmt.Sprintf("r%02d", i))
		}
		w.add(all...)
		holder, n := w.node(), w.node()
		var held []*allocator.Allocation[string]
		for range all {
			held = append(held, holder.take(nil))
		}
		var waits []*wait
		for _, r := range all[:29] {
			waits = append(waits, n.queue(names(r)))
		}
		w.release(held[29])
		n.connect()
		w.release(n.takes("r29", nil))
		require.Equal(t, map[string]int{"pool_acquire": 1, "pool_release": 1}, n.Scripts())
		free := n.queue(nil)
		require.False(t, free.Pending())
		for i, q := range waits {
			w.release(held[i])
			q.gets(w.Now(), all[i])
		}
		w.inspect()
	})
}
