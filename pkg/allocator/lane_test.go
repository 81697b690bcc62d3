package allocator_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/observe"
)

// sticks is a claim that waits for the resource that it is bound to for so long.
func sticks(name string, patience time.Duration) *allocator.AllocateOptions {
	return &allocator.AllocateOptions{Bind: name, BindWait: patience}
}

// names is a claim for one resource.
func names(resource string) *allocator.AllocateOptions {
	return &allocator.AllocateOptions{Resource: resource}
}

func TestACustomerKeepsAnAccountThatRests(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b", "c", "d", "e", "f")
		n := w.nodeOf(allocator.PoolConfig[string]{Cooldown: 30 * time.Second})
		account := map[string]string{}
		for _, customer := range []string{"anna", "ben", "cleo"} {
			held := n.take(sticks(customer, berth.Forever))
			account[customer] = held.Resource()
			w.release(held)
		}
		for round := range 5 {
			began := w.Now()
			var waits []*wait
			for _, customer := range []string{"cleo", "anna", "ben"} {
				q := n.queue(sticks(customer, berth.Forever))
				waits = append(waits, q)
			}
			if round == 0 {
				w.release(n.takes("d", nil)) // who is bound to nothing does not wait
			}
			w.Advance(30 * time.Second)
			for i, customer := range []string{"cleo", "anna", "ben"} {
				<-waits[i].Done
				require.NoError(t, waits[i].Err)
				require.Equal(t, account[customer], waits[i].Got.Resource())
				w.release(waits[i].Got)
			}
			testkit.RequireWithin(t, began+30*time.Second, w.Now())
		}
		w.inspect()
	})
}

func TestAClaimForOneResourceLetsOthersPass(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b")
		n, other := w.node(), w.node()
		a := n.takes("a", nil)
		wants := other.queue(names("a"))
		require.True(t, wants.Pending())
		b := n.takes("b", nil)
		w.release(b)
		require.True(t, wants.Pending())
		w.release(n.takes("b", nil))
		free, later := n.queue(nil), n.queue(nil)
		<-free.Done
		require.Equal(t, "b", free.Got.Resource())
		require.True(t, later.Pending())
		w.release(a)
		require.Equal(t, "a", wants.Granted(w.Now()).Resource(), "it came before")
		require.True(t, later.Pending())
		w.release(wants.Got)
		require.Equal(t, "a", later.Granted(w.Now()).Resource())
		w.inspect()
	})
}

func TestOfALaneAndTheLineWhoeverStandsAheadIsFirst(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		n := w.node()
		a := n.takes("a", nil)
		first, second := n.queue(nil), n.queue(names("a"))
		third, urgent := n.queue(nil), n.queue(&allocator.AllocateOptions{Resource: "a", Priority: 1})
		for _, q := range []*wait{urgent, first, second, third} {
			w.Advance(time.Second)
			w.release(a)
			a = q.gets(w.Now(), "a")
		}
		w.inspect()
	})
}

func TestWhoeverHasWaitedLongEnoughForAResourceTakesAny(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b")
		n, other := w.node(), w.node()
		w.bind("anna", "a", 0)
		a := n.takes("a", nil)
		b := n.takes("b", nil)
		begins := w.Now()
		q := other.queue(sticks("anna", 700*ms))
		behind := n.queue(nil)
		w.Advance(300 * ms)
		w.release(b)
		b = behind.gets(w.Now(), "b")
		w.Until(begins + 700*ms)
		require.True(t, q.Pending())
		w.release(b)
		w.Advance(time.Second)
		q.getsIn(begins+700*ms, "b")
		bound, _ := w.binding("anna")
		require.Equal(t, "b", bound)
		w.release(a)
		w.inspect()
	})
}

func TestTheEndOfAWaitForOneResourceNeedsNobodysCall(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b")
		n, other := w.node(), w.node()
		w.bind("anna", "a", 0)
		n.takes("a", nil)
		begins := w.Now()
		q := other.queue(sticks("anna", 700*ms))
		w.Advance(time.Second)
		q.getsIn(begins+700*ms, "b")
		w.inspect()
	})
}

func TestAClaimForWhatIsNotInThePoolIsRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		n := w.node()
		early := n.queue(names("z"))
		require.True(t, early.Pending(), "the pool has not been filled yet")
		w.add("a")
		refused := early.Refused(w.Now(), berth.ReasonAbsent)
		require.ErrorIs(t, refused, berth.ErrAbsent)
		require.NotErrorIs(t, refused, berth.ErrBusy)
		_, err := n.Allocate(ctx, names("z"))
		require.ErrorIs(t, err, berth.ErrAbsent)
		_, err = n.TryAllocate(ctx, names("z"))
		require.ErrorIs(t, err, berth.ErrAbsent)
		w.inspect()
	})
}

func TestATryForOneResourceSaysWhyItGotNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		w.add("a", "b")
		n := w.node()
		w.bind("anna", "a", 0)
		reason := func(opts *allocator.AllocateOptions) berth.Reason {
			_, err := n.TryAllocate(ctx, opts)
			require.ErrorIs(t, err, berth.ErrBusy)
			return err.(*berth.AcquireError).Reason //nolint:errorlint // it is one
		}
		a := n.takes("a", nil)
		require.Equal(t, berth.ReasonHeld, reason(names("a")))
		require.Equal(t, berth.ReasonHeld, reason(sticks("anna", berth.Forever)))
		require.NoError(t, a.Rest(time.Second, "worn out"))
		w.release(a)
		require.Equal(t, berth.ReasonResting, reason(names("a")))
		require.Equal(t, berth.ReasonResting, reason(sticks("anna", time.Second)))
		w.Advance(2 * time.Second)
		w.release(n.takes("a", names("a")))
		w.release(n.takes("a", sticks("anna", berth.Forever)))
	})
}

// What happens to a resource happens to its lane.
func TestWhatHappensToAResourceHappensToItsLane(t *testing.T) {
	ctx := context.Background()
	remove := func(t *testing.T, w *world) {
		_, err := w.pool.Remove(ctx, []string{"a"})
		require.NoError(t, err)
	}
	for name, happens := range map[string]func(t *testing.T, w *world){
		"removed": remove,
		"replaced": func(t *testing.T, w *world) {
			_, err := w.pool.Replace(ctx, []string{"b"}, nil)
			require.NoError(t, err)
		},
		"expired": func(t *testing.T, w *world) {
			_, err := w.pool.Add(ctx, []string{"a"}, &allocator.AddOptions{Expiry: 500 * ms})
			require.NoError(t, err)
			w.Advance(500*ms + 50*ms)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.add("a", "b")
				w.bind("anna", "a", 0)
				holder, n := w.node(), w.node()
				a := holder.takes("a", nil)
				b := holder.takes("b", nil)
				named, bound, later := n.queue(names("a")), n.queue(sticks("anna", berth.Forever)), n.queue(nil)
				happens(t, w)
				<-named.Done
				require.ErrorIs(t, named.Err, berth.ErrAbsent)
				testkit.RequirePending(t, bound, later)
				w.release(b)
				b = bound.gets(w.Now(), "b")
				require.True(t, later.Pending())
				w.release(a)
				w.release(b)
				later.gets(w.Now(), "b")
				w.inspect()
			})
		})
	}
}

func TestALaneWaitsThroughARestWithoutEnd(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		w.add("a", "b")
		n := w.node()
		require.NoError(t, w.pool.Rest(ctx, "a", berth.Forever, "banned", nil))
		named := n.queue(names("a"))
		w.Advance(5 * lease)
		require.True(t, named.Pending())
		require.NoError(t, w.pool.Rest(ctx, "a", 0, "", nil))
		named.gets(w.Now(), "a")
		w.inspect()
	})
}

func TestALaneStandsAgainAfterAFlush(t *testing.T) {
	for name, filled := range map[string]bool{"before it is filled": false, "after it was filled": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.add("a", "b", "c")
				w.bind("anna", "b", 0)
				holder, n := w.node(), w.node()
				for range 3 {
					holder.take(nil)
				}
				begins := w.Now()
				first, second := n.queue(names("a")), n.queue(names("a"))
				bound, gone := n.queue(sticks("anna", berth.Forever)), n.queue(names("c"))
				w.Do("FLUSHALL")
				if filled {
					w.add("a", "b")
				}
				w.Advance(lease)
				if !filled {
					testkit.RequirePending(t, first, second, bound, gone)
					w.add("a", "b")
				}
				w.Advance(lease)
				require.Equal(t, "a", first.Got.Resource())
				require.Equal(t, "b", bound.Got.Resource())
				require.ErrorIs(t, gone.Err, berth.ErrAbsent)
				require.True(t, second.Pending())
				w.release(first.Got)
				second.gets(w.Now(), "a")
				require.Less(t, begins, w.Now())
				w.inspect()
			})
		})
	}
}

func TestADeadHolderFreesItsResourceForTheLane(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b")
		holder, n := w.node(), w.node()
		holder.takes("a", nil)
		named := n.queue(names("a"))
		began := w.Now()
		holder.Die()
		w.Advance(lease - ms)
		require.True(t, named.Pending())
		w.Until(began + lease + 50*ms)
		<-named.Done
		require.Equal(t, "a", named.Got.Resource())
		w.inspect()
	})
}

func TestDeadClaimsOfALaneArePassed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b")
		holder, dead, n := w.node(), w.node(), w.node()
		a := holder.takes("a", nil)
		dead.queue(names("a"))
		named := n.queue(names("a"))
		dead.Die()
		w.Advance(2 * lease)
		w.release(a)
		named.gets(w.Now(), "a")
		w.inspect()
	})
}

func TestManyWaitForOneResourceEach(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var all []string
		for i := range 110 {
			all = append(all, fmt.Sprintf("r%03d", i))
		}
		w.add(all...)
		holder, n := w.node(), w.node()
		var held []*allocator.Allocation[string]
		for range all {
			held = append(held, holder.take(nil))
		}
		var waits []*wait
		for _, r := range all {
			waits = append(waits, n.queue(names(r)))
		}
		w.add("free")
		w.release(n.takes("free", nil))
		holder.Die()
		w.Advance(3 * lease)
		for i, q := range waits {
			require.Equal(t, all[i], q.Got.Resource())
		}
		_ = held
		w.inspect()
	})
}

func TestListingsTellWhatAClaimWaitsFor(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b")
		w.bind("anna", "b", 0)
		n := w.node()
		n.takes("a", nil)
		n.takes("b", nil)
		n.queue(names("a"))
		n.queue(nil)
		n.queue(sticks("anna", time.Minute))
		n.queue(names("a"))
		var told []string
		for _, waiter := range w.Waiters() {
			told = append(told, fmt.Sprintf("%q %d %s", waiter.Resource, waiter.Ahead, waiter.BindWait))
		}
		require.Equal(t, []string{
			`"" 0 0s`, fmt.Sprintf(`"a" 0 %s`, berth.Forever), fmt.Sprintf(`"a" 1 %s`, berth.Forever), `"b" 0 1m0s`,
		}, told)
		require.Equal(t, 4, w.inspect().Waiting)
		told = nil
		for _, ev := range n.Told(observe.Queued) {
			told = append(told, fmt.Sprintf("%q %d", ev.Resource, ev.Ahead))
		}
		require.Equal(t, []string{`"a" 0`, `"" 0`, `"b" 0`, `"a" 1`}, told)
	})
}

// Add makes a damaged resource whole in one step: who asks for it by its key is not told that it is
// absent, and who waits for it gets it.
func TestALaneGetsADamagedResourceThatIsMadeWhole(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		w.add("a", "b")
		w.bind("anna", "a", 0)
		n := w.node()
		w.damage("a")
		first, bound := n.queue(names("a")), n.queue(sticks("anna", berth.Forever))
		testkit.RequirePending(t, first, bound)
		w.Call("pool_mend", "60000", "berth:wake:", proxies, "1", "a", "") // as Add begins
		first.gets(w.Now(), "a")
		later := n.queue(names("a"))
		require.True(t, later.Pending(), "it is not absent")
		w.add("a")
		require.NoError(t, first.Got.Release(ctx))
		bound.gets(w.Now(), "a")
		require.NoError(t, bound.Got.Release(ctx))
		later.gets(w.Now(), "a")
		w.inspect()
	})
}

// The node has one timer for the name. What a claim that comes later waits for must not set it later.
func TestPatienceEndsInTimeThoughAnotherClaimOfTheProcessWaitsForLonger(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b")
		w.bind("me", "a", 0)
		w.node().takes("a", nil)
		n := w.node()
		w.Advance(time.Second)
		q := n.queue(sticks("me", 300*ms))
		n.queue(names("a"))
		w.Advance(time.Second)
		q.getsIn(1300*ms, "b")
	})
}

// F1: each new claim of AllocateHealthy has the whole BindWait again.
func TestAllocateHealthyLeavesAnUnhealthyBoundResourceAfterItsBindWait(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("bad", "good")
		n := w.nodeOf(allocator.PoolConfig[string]{FailureRest: 10 * time.Second, Healthy: func(_ context.Context, v string) error {
			if v == "bad" {
				return errMine
			}
			return nil
		}})
		require.NoError(t, n.Bind(t.Context(), "customer", "bad", nil))
		a, err := n.AllocateHealthy(t.Context(), &allocator.AllocateOptions{Bind: "customer", BindWait: 15 * time.Second, MaxWait: 10 * time.Minute})
		require.NoError(t, err)
		require.Equal(t, "good", a.Resource())
		require.LessOrEqual(t, w.Now(), 20*time.Second)
	})
}

// F4: SPEC 2.8: a claim that named its resource may not swap.
func TestANamedClaimDoesNotSwap(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b")
		a := w.node().takes("a", names("a"))
		require.ErrorIs(t, a.Swap(t.Context()), berth.ErrInvalidConfig)
		require.Equal(t, "a", a.Resource())
	})
}

// A bind wait of the defaults is for the claims that have a binding and name no resource.
func TestABindWaitOfTheDefaultsIsForClaimsWithABinding(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b")
		w.bind("anna", "a", 0)
		n := w.nodeOf(allocator.PoolConfig[string]{Defaults: allocator.AllocateOptions{BindWait: berth.Forever}})
		w.release(n.takes("b", names("b")))
		held := n.takes("a", nil)
		bound := n.queue(to("anna"))
		w.release(n.takes("b", nil))
		require.True(t, bound.Pending(), "it takes no other one")
		w.release(held)
		bound.gets(w.Now(), "a")
		_, err := n.Allocate(context.Background(), &allocator.AllocateOptions{Resource: "a", Bind: "anna", BindWait: time.Second})
		requireInvalid(t, "BindWait", err)
	})
}
