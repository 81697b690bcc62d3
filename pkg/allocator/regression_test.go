package allocator_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
)

// More than one script drops have expired before it: it is no longer there for anybody, and is added anew and not kept.
func TestWhatHasExpiredIsNoLongerThere(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		all := many("x", 600)
		must(w.pool.Add(ctx, all, &allocator.AddOptions{Expiry: time.Second}))(t)
		last := all[len(all)-1]
		require.NoError(t, w.pool.Rest(ctx, last, time.Hour, "of its former life", nil))
		w.Advance(time.Second)
		require.ErrorIs(t, w.pool.Rest(ctx, last, time.Hour, "", nil), berth.ErrAbsent)
		require.Equal(t, allocator.Change{Added: 1}, must(w.pool.Add(ctx, []string{last}, nil))(t))
		require.Equal(t, allocator.ResourceInfo{Resource: last, State: allocator.Free, MaxSharers: 1}, w.status(last))
	})
}

// Nothing sweeps a pool that always has a free one: each binding takes ended ones along.
func TestBindingsThatEndedDoNotGrowInNumber(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node("a", "b")
		for i := range 40 {
			w.release(n.take(&allocator.AllocateOptions{Bind: fmt.Sprint("customer ", i), BindFor: time.Second}))
			w.Advance(400 * ms)
		}
		require.Less(t, w.Int("HLEN", bindingsKey), int64(8))
		require.Less(t, w.Int("ZCARD", lineKey), int64(8))
	})
}

// However few resources a pool has, what it knows of bindings and waiters may be much.
// Nor does a listing of the resources read it.
func TestAPoolWithMuchBesideItsResourcesIsInspectedInSteps(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node().connect()
		w.add("a")
		for i := range 101 {
			require.NoError(t, w.pool.Bind(t.Context(), fmt.Sprint("customer ", i), "a", nil))
		}
		reply := w.Call("pool_inspect", "items", "0", "10", "10")
		require.Equal(t, "part", reply.Status())
		require.NotEmpty(t, reply.Str(1), "there is a next step")
		reply = w.Call("pool_inspect", "items", "0", "10", "100")
		require.Empty(t, reply.Str(1))
		n.Fresh()
		require.Len(t, testkit.Collect(t, n.ops().Resources(t.Context(), proxies)), 1)
		require.Equal(t, map[string]int{"HELLO": 2, "TIME": 2, "HMGET": 2, "HSCAN": 1}, n.Counts())
		require.Equal(t, int64(2), w.Int("HLEN", itemsKey), "a field for each, and one that keeps it")
	})
}

// A claim that waits finds the pool empty with its next heartbeat, as much as a new one does. Its Source is asked then,
// and once.
func TestAFlushUnderAWaitIsFilledAgainSoon(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var asked atomic.Int64
		n := w.nodeOf(allocator.Config[string]{RefreshEvery: time.Hour, Source: func(context.Context) ([]string, error) {
			asked.Add(1)
			return []string{"a"}, nil
		}})
		n.takes("a", nil)
		q := n.queue(nil)
		w.Advance(time.Minute)
		require.EqualValues(t, 1, asked.Load())
		w.Do("FLUSHALL")
		w.Advance(lease / 3)
		require.False(t, q.Pending())
		require.NoError(t, q.Err)
		w.Advance(time.Minute)
		require.EqualValues(t, 2, asked.Load())
	})
}

// A resource of which sharers have taken one place since it was listed is in use.
func TestCheckHealthLeavesAloneWhatASharerHasTakenMeanwhile(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		sharing := allocator.Config[string]{MaxSharers: 2}
		m := w.nodeOf(sharing)
		must(m.Add(t.Context(), []string{"a"}, nil))(t)
		asked := 0
		sharing.Healthy = func(context.Context, string) error { asked++; return nil }
		n := w.nodeOf(sharing)
		var taken *allocator.Allocation[string]
		n.on("pool_acquire", func() link.Fate {
			if taken == nil {
				taken = must(m.TryAllocate(ctx, nil))(t)
			}
			return link.Pass
		})
		require.Equal(t, allocator.HealthReport{Skipped: 1}, must(n.CheckHealth(t.Context(), 1))(t))
		require.NotNil(t, taken)
		require.Zero(t, asked)
	})
}

// What is not healthy and does not rest may be the next one again: not in a tight loop, and not for longer than
// the call waits.
func TestWithoutAFailureRestAllocateHealthyPauses(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		tries := 0
		n := w.nodeOf(allocator.Config[string]{FailureRest: -1, Healthy: func(context.Context, string) error {
			if tries++; tries == 1000 {
				return nil
			}
			return errMine
		}})
		_, err := n.AllocateHealthy(t.Context(), &allocator.AllocateOptions{MaxWait: 2 * time.Second})
		require.ErrorIs(t, err, berth.ErrNotAcquired)
		require.ErrorIs(t, err, errMine)
		began := w.Now()
		require.Less(t, began, 4*time.Second, "and a pause")
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		tries = 0
		require.ErrorIs(t, second(n.AllocateHealthy(ctx, nil)), context.DeadlineExceeded)
		require.Less(t, tries, 200)
		require.Equal(t, began+10*time.Second, w.Now())
	})
}

// Whatever fails on the way.
func TestACheckLeavesNothingBehind(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.nodeWith(once, allocator.Config[string]{}).connect()
		n.Once("pool_renew", link.LoseRequest)
		require.Error(t, second(n.node.Check(ctx)))
		w.Advance(2*time.Minute + lease)
		require.NotContains(t, strings.Join(w.Keys(), " "), "check")
	})
}

// An answer takes longer than a lease: the trial finds its resource all the same.
func TestACheckOfAServerThatIsSlowerThanALease(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.nodeWith(node.Config{Lease: 200 * time.Millisecond}, allocator.Config[string]{})
		n.Delay(func() time.Duration { return 300 * time.Millisecond })
		must(n.node.Check(ctx))(t)
	})
}

// The copy of a call that has begun a Replace comes when another one has begun.
func TestALateCopyOfAReplaceDoesNotSupersedeTheNext(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, m := w.node("a"), w.node()
		n.connect()
		begun := false
		n.OnCommand(func(c link.Command) link.Fate {
			if c.Name == "pool_replace" && strings.Contains(fmt.Sprint(c.Args), "begin") && !begun {
				begun = true
				return link.Late
			}
			return link.Pass
		})
		must(n.Replace(t.Context(), []string{"b"}, nil))(t)
		delivered := 0
		m.on("pool_add", func() link.Fate {
			if delivered == 0 {
				delivered, _ = n.DeliverLate()
			}
			return link.Pass
		})
		must(m.Replace(t.Context(), []string{"c"}, nil))(t)
		require.Equal(t, 1, delivered)
		require.Equal(t, map[string]allocator.State{"c": allocator.Free}, w.states())
	})
}

// Open outlasts the hold, and heeds its context or not: the caller gets no handle of
// something that is over, and hears why, as it has not left itself.
func TestAHoldThatEndsWhileOpenRunsIsNotReturned(t *testing.T) {
	fixed := &allocator.AllocateOptions{Lease: time.Second, NoRenew: true}
	allocate := func(_ *world, d *proc) error { return second(d.Allocate(ctx, fixed)) }
	type row struct {
		heeds bool
		get   func(w *world, d *proc) error
	}
	inEach(t, map[string]row{
		"Allocate that goes on":            {false, allocate}, // one goroutine opens for all of them
		"Allocate that is told to stop":    {true, allocate},
		"TryAllocate that is told to stop": {true, func(_ *world, d *proc) error { return second(d.TryAllocate(ctx, fixed)) }},
		"AllocateHealthy that is told to stop": {true, func(_ *world, d *proc) error {
			return second(d.AllocateHealthy(ctx, fixed))
		}},
		"Resume that is told to stop": {true, func(w *world, d *proc) error {
			return second(d.Resume(ctx, detach(w.T, w.node().takes("a", fixed))))
		}},
	}, func(t *testing.T, w *world, c row) {
		w.add("a")
		closed := 0
		d := w.nodeOf(allocator.Config[string]{
			Open: func(ctx context.Context, key string) (string, error) {
				if c.heeds {
					<-ctx.Done()
					return "", ctx.Err()
				}
				<-time.After(2 * time.Second)
				return key, nil
			},
			Close: func(string) error { closed++; return nil },
		})
		err := c.get(w, d)
		require.ErrorIs(t, err, berth.ErrExpired)
		require.ErrorIs(t, err, berth.ErrNotAcquired)
		require.NotErrorIs(t, err, context.Canceled, "the caller has not left")
		w.Advance(2 * time.Second)
		require.Equal(t, allocator.Free, w.status("a").State, "it had no say")
		require.NoError(t, change(d.Remove(ctx, []string{"a"})))
		synctest.Wait()
		if !c.heeds {
			require.Equal(t, 1, closed, "nobody uses it")
		}
	})
}

// The usual deferred Close: ctx has ended, and a hold cannot be given back.
func TestCloseUnderAnEndedContextClosesValuesAllTheSame(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		shut := false
		cfg := allocator.Config[string]{
			Open: func(_ context.Context, key string) (string, error) { return key, nil },
			Close: func(string) error {
				<-time.After(100 * ms)
				shut = true
				return nil
			},
		}
		n := w.nodeWith(once, cfg).connect()
		n.takes("a", nil)
		n.Once("pool_release", link.LoseRequest)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		require.Error(t, n.node.Close(ctx))
		require.True(t, shut)
	})
}

// What a claim wants is one text of its record, which scripts/pool/wants.lua reads: word
// by word it is what was asked for.
func TestTheRecordSaysWhatAClaimWants(t *testing.T) {
	for want, c := range map[string]struct {
		cfg  allocator.Config[string]
		opts allocator.AllocateOptions
	}{
		"o 0 - 0 0:":          {},
		"o 1500 - 0 0:":       {opts: allocator.AllocateOptions{Cooldown: 1500 * ms}},
		"o 0 - 0 0:x y\n\xff": {opts: allocator.AllocateOptions{Bind: "x y\n\xff"}},
		"o 0 2500 0 0:me":     {opts: allocator.AllocateOptions{Bind: "me", BindFor: 2500 * ms}},
		"o 0 - 0 1:a":         {opts: allocator.AllocateOptions{Resource: "a"}},
		"o 0 - 1500 0:me":     {opts: allocator.AllocateOptions{Bind: "me", BindWait: 1500 * ms}},
		"s 0 0 0 0:me":        {cfg: allocator.Config[string]{Shared: true}, opts: allocator.AllocateOptions{Bind: "me", BindFor: berth.Forever}},
	} {
		t.Run(want, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n := w.nodeOf(c.cfg)
				q := n.queue(&c.opts)
				waiting := w.Waiters()
				require.Len(t, waiting, 1)
				text := must(w.Do("HGET", stateKey, "c:"+waiting[0].ID).ToString())(t)
				require.Equal(t, want, must(state.ParseRecord(text))(t).Extra)
				// The scripts read it as well.
				w.add("a")
				q.GrantedBy(0)
				if c.opts.Bind != "" {
					require.Equal(t, "a", must(n.Binding(t.Context(), c.opts.Bind))(t).Resource)
				}
			})
		})
	}
}

// What a Shared pool hands out has no lease that would end it: whatever is of no use
// must be ended by who finds out.
func TestWhatIsOfNoUseInASharedPoolIsEnded(t *testing.T) {
	fails := func(context.Context, string) (string, error) { return "", errMine }
	panics := func(context.Context, string) (string, error) { panic(errMine) }
	opens := func(_ context.Context, key string) (string, error) { return key, nil }
	sick := func(context.Context, string) error { return errMine }
	type row struct {
		cfg    allocator.Config[string]
		closed []string
	}
	inEach(t, map[string]row{
		"Open fails":        {allocator.Config[string]{Open: fails}, nil},
		"Open panics":       {allocator.Config[string]{Open: panics}, nil},
		"it is not healthy": {allocator.Config[string]{Open: opens, Healthy: sick}, []string{"a"}},
		"Healthy panics": {
			allocator.Config[string]{Open: opens, Healthy: func(context.Context, string) error { panic(errMine) }},
			[]string{"a"},
		},
	}, func(t *testing.T, w *world, c row) {
		w.add("a")
		var closed []string
		c.cfg.Shared = true
		c.cfg.Close = func(key string) error { closed = append(closed, key); return nil }
		n := w.nodeOf(c.cfg)
		func() {
			defer func() { _ = recover() }()
			require.Error(t, second(n.AllocateHealthy(ctx, &allocator.AllocateOptions{MaxWait: time.Second})))
		}()
		w.Advance(time.Second)
		require.Equal(t, c.closed, closed)
		require.Contains(t, n.Kinds(), observe.Granted)
		require.Zero(t, n.Held(), "each has ended once")
		// Nobody uses the value any more.
		require.NoError(t, change(n.Remove(ctx, []string{"a"})))
		synctest.Wait()
		if c.cfg.Healthy != nil {
			require.Equal(t, []string{"a"}, closed)
		}
		w.requireIdle()
	})
}

// Not to rest is not to end what somebody else has asked for.
func TestWithoutAFailureRestTheRestOfSomebodyElseGoesOn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		asked := 0
		n := w.nodeOf(allocator.Config[string]{Shared: true, FailureRest: -1, Healthy: func(ctx context.Context, key string) error {
			if asked++; asked > 1 {
				return nil // its rest was ended
			}
			if err := w.pool.Rest(ctx, key, time.Hour, "theirs", nil); err != nil {
				return err
			}
			return errMine
		}})
		_, err := n.AllocateHealthy(ctx, &allocator.AllocateOptions{MaxWait: time.Second})
		require.ErrorIs(t, err, berth.ErrBusy)
		require.Equal(t, allocator.Resting, w.status("a").State)
		require.Equal(t, "theirs", w.status("a").Reason)
	})
}

// There is no release that could carry the rest, so Release sends it, and says whether
// that worked.
func TestTheReleaseOfASharedAllocationSaysWhetherItsRestWasHeard(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.nodeWith(once, allocator.Config[string]{Shared: true}, "a").connect()
		a := n.takes("a", nil)
		_ = a.Rest(time.Hour, "429")
		n.Once("pool_rest", link.LoseRequest)
		require.Error(t, a.Release(ctx))
		require.NoError(t, a.Release(ctx))
		require.NoError(t, n.node.Close(ctx))
		require.Equal(t, allocator.Resting, w.status("a").State)
		require.Equal(t, "429", w.status("a").Reason)
		require.Contains(t, n.Kinds(), observe.Granted)
		require.Zero(t, n.Held(), "each has ended once")
	})
}

// The claim goes back in the background when the handle is there already: it must not
// take along what was asked for at once.
func TestARestThatIsAskedForAtOnceInASharedPoolIsToldOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.nodeOf(inTurn, "a").connect()
		var a *allocator.Allocation[string]
		for range 10 {
			a = must(n.TryAllocate(ctx, nil))(t)
			_ = a.Rest(time.Minute, "429")
		}
		w.Advance(time.Second)
		require.NotContains(t, n.Kinds(), observe.Rested, "not yet")
		require.Equal(t, allocator.Free, w.status("a").State)
		w.release(a)
		require.Equal(t, allocator.Resting, w.status("a").State)
		require.Len(t, n.Told(observe.Rested), 1)
	})
}

// once makes one attempt of each call.
var once = node.Config{Retry: berth.Retry{Attempts: 1}}

// What Rest has asked for is of the old resource, whoever of them is given back last.
func TestASwapThatIsNeverAnsweredEndsTheHold(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.nodeWith(once, allocator.Config[string]{}, "a", "b").connect()
		a := n.takes("a", nil)
		_ = a.Rest(time.Hour, "429")
		n.Once("pool_swap", link.LoseReply)
		require.ErrorIs(t, a.Swap(ctx), berth.ErrLost)
		require.ErrorIs(t, a.Err(), berth.ErrLost, "nobody can tell which resource it is of")
		<-a.Done()
		w.Advance(time.Second)
		require.Equal(t, allocator.Resting, w.status("a").State)
		require.Equal(t, []string{"b"}, w.list(), "it is given back, and nobody has used it")
		w.requireIdle()
	})
}

func TestARestThatWasAskedForOutlastsASwapThatIsRefused(t *testing.T) {
	type row struct {
		meanwhile func(a *allocator.Allocation[string])
		want      allocator.ResourceInfo
	}
	inEach(t, map[string]row{
		"nothing else is said": {
			func(*allocator.Allocation[string]) {},
			allocator.ResourceInfo{Resource: "a", MaxSharers: 1, State: allocator.Resting, Left: time.Hour, Reason: "429"},
		},
		"another rest is asked for meanwhile": {
			func(a *allocator.Allocation[string]) { _ = a.Rest(time.Minute, "later") },
			allocator.ResourceInfo{Resource: "a", MaxSharers: 1, State: allocator.Resting, Left: time.Minute, Reason: "later"},
		},
		"it is taken back meanwhile": {
			func(a *allocator.Allocation[string]) { _ = a.Rest(0, "") },
			allocator.ResourceInfo{Resource: "a", MaxSharers: 1, State: allocator.Free},
		},
	}, func(t *testing.T, w *world, c row) {
		n := w.node("a")
		a := n.takes("a", nil)
		_ = a.Rest(time.Hour, "429")
		n.on("pool_swap", func() link.Fate { c.meanwhile(a); return link.Pass })
		require.ErrorIs(t, a.Swap(ctx), berth.ErrBusy)
		w.release(a)
		require.Equal(t, c.want, w.status("a"))
	})
}

// So many dead waiters as the script drops stand before a rest that is over.
func TestASwapFindsOneBehindManyDeadWaiters(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node("a", "b")
		a := n.takes("a", &allocator.AllocateOptions{Lease: time.Hour, NoRenew: true})
		require.NoError(t, w.pool.Rest(t.Context(), "b", time.Second, "", nil))
		for i := range 80 {
			w.acquireScript("dead", fmt.Sprint("dead.", i), func(r *engine.Record) { r.Wait = 500 * ms })
		}
		w.Advance(1500 * ms) // before a heartbeat sweeps
		require.NoError(t, a.Swap(ctx))
		require.Equal(t, "b", a.Resource())
	})
}
