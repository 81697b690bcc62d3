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
		require.ErrorIs(t, wants.Got.Swap(t.Context()), berth.ErrInvalidConfig, "it wants no other one")
		require.Equal(t, "a", wants.Got.Resource())
		require.True(t, later.Pending())
		w.release(wants.Got)
		require.Equal(t, "a", later.Granted(w.Now()).Resource())
		w.inspect()
	})
}

func TestAClaimForWhatIsNotInThePoolIsRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		early := n.queue(names("z"))
		require.True(t, early.Pending(), "the pool has not been filled yet")
		w.add("a")
		refused := early.Refused(w.Now(), berth.ReasonAbsent)
		require.ErrorIs(t, refused, berth.ErrAbsent)
		require.NotErrorIs(t, refused, berth.ErrBusy)
		require.ErrorIs(t, second(n.Allocate(t.Context(), names("z"))), berth.ErrAbsent)
		require.ErrorIs(t, second(n.TryAllocate(t.Context(), names("z"))), berth.ErrAbsent)
		w.inspect()
	})
}

func TestATryForOneResourceSaysWhyItGotNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b")
		n := w.node()
		w.bind("anna", "a", 0)
		reason := func(opts *allocator.AllocateOptions) berth.Reason {
			_, err := n.TryAllocate(t.Context(), opts)
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

// It is not there any more: who wants it alone is told, and who is bound to it takes another one.
func TestWhatHappensToAResourceHappensToItsLane(t *testing.T) {
	type row struct {
		happens func(w *world) error
		at      time.Duration
	}
	inEach(t, map[string]row{
		"removed":  {func(w *world) error { return change(w.pool.Remove(w.T.Context(), []string{"a"})) }, 0},
		"replaced": {func(w *world) error { return change(w.pool.Replace(w.T.Context(), []string{"b"}, nil)) }, 0},
		"expired": {func(w *world) error {
			return change(w.pool.Add(w.T.Context(), []string{"a"}, &allocator.AddOptions{Expiry: 500 * ms}))
		}, 500 * ms},
	}, func(t *testing.T, w *world, c row) {
		w.add("a", "b")
		w.bind("anna", "a", 0)
		holder, n := w.node(), w.node()
		a := holder.takes("a", nil)
		b := holder.takes("b", nil)
		named, bound, later := n.queue(names("a")), n.queue(sticks("anna", berth.Forever)), n.queue(nil)
		require.NoError(t, c.happens(w))
		require.ErrorIs(t, named.Refused(c.at, berth.ReasonAbsent), berth.ErrAbsent)
		testkit.RequirePending(t, bound, later)
		w.release(b)
		b = bound.gets(w.Now(), "b")
		require.True(t, later.Pending())
		w.release(a)
		w.release(b)
		later.gets(w.Now(), "b")
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

// A new claim of AllocateHealthy does not have the whole BindWait again.
func TestAllocateHealthyLeavesAnUnhealthyBoundResourceAfterItsBindWait(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("bad", "good")
		n := w.nodeOf(allocator.Config[string]{FailureRest: 10 * time.Second, Healthy: func(_ context.Context, v string) error {
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

// A bind wait of the defaults is for the claims that have a binding and name no resource.
func TestABindWaitOfTheDefaultsIsForClaimsWithABinding(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b")
		w.bind("anna", "a", 0)
		n := w.nodeOf(allocator.Config[string]{Defaults: allocator.AllocateOptions{BindWait: berth.Forever}})
		w.release(n.takes("b", names("b")))
		held := n.takes("a", nil)
		bound := n.queue(to("anna"))
		w.release(n.takes("b", nil))
		require.True(t, bound.Pending(), "it takes no other one")
		w.release(held)
		bound.gets(w.Now(), "a")
		both := &allocator.AllocateOptions{Resource: "a", Bind: "anna", BindWait: time.Second}
		requireInvalid(t, "BindWait", second(n.Allocate(t.Context(), both)))
	})
}

// What is damaged may be made whole, or removed; the process that does so may die after its first script.
func TestTheLaneOfADamagedResource(t *testing.T) {
	type row struct {
		does   func(w *world)
		served bool
	}
	mend := func(whole string) func(w *world) {
		return func(w *world) { w.Call("pool_mend", "60000", "berth:wake:", proxies, whole, "a", "") }
	}
	inEach(t, map[string]row{
		"added":                  {func(w *world) { w.add("a") }, true},
		"removed":                {func(w *world) { w.remove("a") }, false},
		"mended, and no more":    {mend("1"), true},
		"taken out, and no more": {mend("0"), false},
	}, func(t *testing.T, w *world, mends row) {
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
		testkit.RequirePending(t, named, bound, arrives) // as through a rest
		began := w.Now()
		mends.does(w)
		if mends.served {
			for _, q := range []*wait{named, bound, arrives} {
				w.release(q.GrantedBy(began))
			}
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
}

// A Source, its pool and those who wait are flushed, and come back in any order.
func TestALaneAndItsSourceComeBackAfterAFlushInAnyOrder(t *testing.T) {
	inEach(t, map[string]time.Duration{
		"the Source first": 0, "between": lease / 3, "the Source last": 2 * lease,
	}, func(t *testing.T, w *world, takes time.Duration) {
		slow := time.Duration(0)
		catalogue := []string{"a", "b", "c"}
		cfg := allocator.Config[string]{RefreshEvery: lease / 6, Source: func(ctx context.Context) ([]string, error) {
			return slowly(slow, catalogue...)(ctx)
		}}
		source, second, n := w.nodeOf(cfg), w.nodeOf(cfg), w.node()
		w.Advance(ms) // one of the two has asked its Source: a newer answer would have ended this Refresh
		require.NoError(t, change(source.Refresh(t.Context())))
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
}
