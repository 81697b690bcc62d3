package allocator_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
)

// requireField requires a refused call to name a field.
func requireField(t *testing.T, field string, err error) {
	t.Helper()
	var bad *berth.ConfigError
	require.ErrorAs(t, err, &bad)
	require.Equal(t, field, bad.Field)
	require.ErrorIs(t, err, berth.ErrNotAcquired)
}

// set is an operator's call, or fails.
func (w *world) set(resource string, s allocator.Settings) {
	w.T.Helper()
	require.NoError(w.T, w.ops().Set(ctx, proxies, resource, s))
	synctest.Wait()
}

// settings are what is stored.
func (w *world) settings() allocator.Settings {
	w.T.Helper()
	s := must(w.ops().Settings(ctx, proxies))(w.T)
	return s
}

// rests requires a resource to rest for exactly so long from now on, and is there at its end.
func (w *world) rests(resource string, d time.Duration) {
	w.T.Helper()
	info := w.status(resource)
	require.Equal(w.T, allocator.Resting, info.State)
	require.Equal(w.T, d, info.Left)
	w.inspect()
	w.Advance(d)
	require.Equal(w.T, allocator.Free, w.status(resource).State)
}

func TestACallMayAskForALongerCooldownAndNotForAShorterOne(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		w.set("", allocator.Settings{Cooldown: 10 * time.Second})
		n := w.node()
		for asked, rests := range map[time.Duration]time.Duration{0: 10 * time.Second, time.Second: 10 * time.Second, 20 * time.Second: 20 * time.Second} {
			w.release(n.takes("a", &allocator.AllocateOptions{Cooldown: asked}))
			w.rests("a", rests)
		}
		// A check has used nothing, and a resource that it looked at does not rest. It is a call as others, which
		// leaves its lease open.
		w.set("", allocator.Settings{MaxLease: 100 * ms, MaxHold: time.Minute})
		require.Equal(t, 1, must(w.node().CheckHealth(ctx, 1))(t).Healthy)
		require.Equal(t, allocator.Free, w.status("a").State)
	})
}

// What the first process says is stored. Another one that says otherwise goes by it, and is told once.
func TestOfTwoProcessesThatDisagreeTheStoredOneCounts(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		first := w.nodeOf(allocator.Config[string]{Cooldown: time.Second}, "a")
		w.release(first.takes("a", nil))
		w.rests("a", time.Second)
		second := w.nodeOf(allocator.Config[string]{Cooldown: time.Minute, Policy: allocator.MostRecent})
		for range 3 {
			w.release(second.takes("a", nil))
			w.rests("a", time.Second)
		}
		told := second.Told(observe.SettingsDiffer)
		require.Len(t, told, 1)
		require.Equal(t, "Cooldown 1m0s, stored 1s", told[0].Detail)
		require.Empty(t, first.Told(observe.SettingsDiffer))
		require.Equal(t, allocator.Settings{Cooldown: time.Second, Policy: allocator.MostRecent}, w.settings(), "what was unset is filled in")

		w.set("", allocator.Settings{Cooldown: 2 * time.Second})
		w.release(second.takes("a", nil))
		w.rests("a", 2*time.Second)
		require.Len(t, second.Told(observe.SettingsDiffer), 2, "what is stored has changed")

		// After a flush what processes say counts again, with the first call that writes.
		w.Do("FLUSHALL")
		w.add("a")
		require.Zero(t, w.settings())
		w.release(second.takes("a", nil))
		w.rests("a", time.Minute)
	})
}

func TestAStrictProcessGoesByNothingElse(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		strict := w.nodeOf(allocator.Config[string]{Cooldown: time.Second, BindFor: time.Minute, Strict: true})
		w.release(strict.takes("a", nil))
		w.rests("a", time.Second)
		require.Equal(t, allocator.Settings{Cooldown: time.Second, BindFor: time.Minute}, w.settings())

		w.set("", allocator.Settings{Cooldown: time.Minute})
		before := w.Dump()
		for _, acquire := range []func(context.Context, *allocator.AllocateOptions) (*allocator.Allocation[string], error){strict.Allocate, strict.TryAllocate} {
			_, err := acquire(ctx, nil)
			var refused *berth.AcquireError
			require.ErrorAs(t, err, &refused)
			require.Equal(t, berth.ReasonDiffers, refused.Reason)
			requireField(t, "Cooldown", err)
			require.ErrorContains(t, err, "1s is not the stored one, 1m0s")
			require.NotErrorIs(t, err, berth.ErrBusy)
		}
		requireInvalid(t, "Cooldown", second(strict.Add(ctx, []string{"b"}, nil)))
		requireInvalid(t, "Cooldown", second(strict.Replace(ctx, []string{"b"}, nil)))
		require.Equal(t, allocator.Absent, w.status("b").State)
		require.Equal(t, before, w.Dump())
		overtakes := func(int, int) { requireInvalid(t, "Cooldown", second(strict.Replace(ctx, []string{"c"}, nil))) }
		change := must(w.node().Replace(ctx, []string{"a", "b"}, &allocator.AddOptions{Progress: overtakes}))(t)
		require.Equal(t, allocator.Change{Added: 1, Kept: 1}, change, "one that is refused overtakes no other one")
		require.Equal(t, []string{"a", "b"}, w.list())
		w.set("", allocator.Settings{Cooldown: time.Second})
		strict.takes("a", nil)
	})
}

// An operator's change counts for holds that last already, and no process undoes it, one that starts
// anew either.
func TestAnOperatorsChangeIsLiveAndStays(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		says := allocator.Config[string]{Cooldown: time.Second, Policy: allocator.LeastRecent}
		n := w.nodeOf(says)
		require.NoError(t, change(n.Add(ctx, []string{"a", "b"}, nil)))
		a := n.takes("a", nil)
		w.set("", allocator.Settings{Cooldown: time.Minute, Policy: allocator.MostRecent})
		w.release(a)
		w.rests("a", time.Minute)
		want := allocator.Settings{Cooldown: time.Minute, Policy: allocator.MostRecent, ByOperator: true}
		for range 2 {
			n.Shut()
			n = w.nodeOf(says)
			require.NoError(t, change(n.Replace(ctx, []string{"a", "b"}, nil)))
			w.release(n.takes("a", nil)) // it came back last
			require.Equal(t, want, w.settings())
			w.rests("a", time.Minute)
		}
		w.set("", allocator.Settings{Cooldown: -1, Policy: allocator.LeastRecent})
		w.release(n.takes("b", nil))
		require.Equal(t, allocator.Free, w.status("b").State)
		require.Equal(t, time.Duration(-1), w.settings().Cooldown)
	})
}

func TestNoCallGetsMoreThanTheLimits(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		w.set("", allocator.Settings{MaxLease: time.Second, MaxHold: 30 * time.Second})
		n := w.nodeWith(node.Config{Lease: lease}, allocator.Config[string]{})
		refused := func(field string, opts allocator.AllocateOptions) {
			t.Helper()
			before := w.Dump()
			_, err := n.Allocate(ctx, &opts)
			var e *berth.AcquireError
			require.ErrorAs(t, err, &e)
			require.Equal(t, berth.ReasonLimited, e.Reason)
			requireField(t, field, err)
			require.Equal(t, before, w.Dump(), "nothing is written")
		}
		refused("Lease", allocator.AllocateOptions{Lease: 1001 * ms})
		refused("Lease", allocator.AllocateOptions{Lease: berth.Forever})
		refused("MaxHold", allocator.AllocateOptions{MaxHold: 30*time.Second + ms})
		refused("MaxHold", allocator.AllocateOptions{MaxHold: berth.Forever})
		w.release(n.takes("a", &allocator.AllocateOptions{Lease: time.Second, MaxHold: 30 * time.Second}))
		says := w.nodeOf(allocator.Config[string]{Defaults: allocator.AllocateOptions{Lease: time.Minute}})
		requireField(t, "Lease", second(says.Allocate(ctx, nil))) // defaults are the caller's own words
		w.release(says.takes("a", &allocator.AllocateOptions{NoDefaults: true}))

		// What the caller leaves open is within the limits, and the limits are known then.
		fresh := w.node().connect()
		a := fresh.takes("a", nil)
		info := w.status("a")
		require.Equal(t, time.Second, info.Holders[0].Lease)
		require.Equal(t, 2, fresh.Scripts()["pool_acquire"])
		require.Zero(t, fresh.Scripts()["pool_release"], "of a refused claim nothing is left")
		w.Advance(29 * time.Second)
		require.NoError(t, a.Err())
		w.Advance(time.Second)
		require.ErrorIs(t, a.Err(), berth.ErrExpired)
		fresh.Fresh()
		w.release(fresh.takes("a", nil))
		require.Equal(t, 1, fresh.Scripts()["pool_acquire"], "the limits are known")

		// An operator who raises them is heard of within a minute.
		w.set("", allocator.Settings{MaxLease: berth.Forever, MaxHold: berth.Forever})
		w.Advance(time.Minute)
		w.release(fresh.takes("a", nil))
		a = fresh.takes("a", nil)
		require.Equal(t, lease, w.status("a").Holders[0].Lease)
		w.release(a)
	})
}

// What a resource has of its own counts for it alone.
func TestAResourceHasSettingsOfItsOwn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b")
		w.set("", allocator.Settings{Cooldown: time.Second})
		own := allocator.Settings{Cooldown: time.Minute, MaxSharers: 2, BindFor: 10 * time.Minute}
		w.set("a", own)
		own.ByOperator = true
		require.Equal(t, own, w.status("a").Own)
		require.Zero(t, w.status("b").Own)
		n := w.node()
		first := n.takes("a", &allocator.AllocateOptions{Bind: "me"})
		other, second := n.takes("b", nil), n.takes("a", nil)
		require.Equal(t, 10*time.Minute, must(n.Binding(ctx, "me"))(t).Left)
		w.release(first, second, other)
		w.rests("b", time.Second)
		require.Equal(t, time.Minute-time.Second, w.status("a").Left)

		// A Set of one word leaves the others.
		w.set("a", allocator.Settings{Cooldown: -1})
		own.Cooldown = -1
		require.Equal(t, own, w.status("a").Own)
		w.set("a", allocator.Settings{Reset: true})
		require.Zero(t, w.status("a").Own)
		require.ErrorIs(t, w.ops().Set(ctx, proxies, "none", allocator.Settings{Cooldown: time.Second}), berth.ErrAbsent)
	})
}

// How many may hold one resource is stored by who adds: what is in the pool has a number.
func TestOnlyAnAddFillsInHowManyMayHoldAResource(t *testing.T) {
	inEach(t, map[string]bool{"strict": true, "not strict": false}, func(t *testing.T, w *world, strict bool) {
		n := w.nodeOf(allocator.Config[string]{MaxSharers: 3, BindFor: time.Minute, Strict: strict}, "a", "b")
		n.connect()
		n.take(nil)
		require.Equal(t, allocator.Settings{BindFor: time.Minute}, w.settings())
		w.release(n.take(nil))
		require.Equal(t, 1, w.status("b").MaxSharers)
		require.NotContains(t, n.Kinds(), observe.SettingsDiffer, "nothing else is stored")
		must(n.Add(t.Context(), []string{"b"}, nil))(t)
		require.Equal(t, allocator.Settings{MaxSharers: 3, BindFor: time.Minute}, w.settings())
		require.Equal(t, 3, w.status("b").MaxSharers)
		w.set("", allocator.Settings{MaxSharers: 2})
		if strict {
			requireField(t, "MaxSharers", second(n.Allocate(t.Context(), nil)))
			return
		}
		n.take(nil)
		require.Len(t, n.Told(observe.SettingsDiffer), 1)
		require.Equal(t, "MaxSharers 3, stored 2", n.Told(observe.SettingsDiffer)[0].Detail)
	})
}

// A pool of more resources than one script changes is changed in steps, and so are those who wait.
func TestSharersOfManyResourcesAreRaised(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add(many("x", 320)...)
		for i := range 320 {
			w.acquireScript("x", "x."+millis(int64(i)), func(r *engine.Record) { r.Lease, r.Wait = time.Hour, time.Hour })
		}
		n := w.node()
		var waits []*wait
		for range 120 {
			waits = append(waits, n.queue(nil))
		}
		w.set("", allocator.Settings{MaxSharers: 2})
		for _, q := range waits {
			require.True(t, q.Over())
			require.NoError(t, q.Err)
		}
		for _, info := range testkit.Collect(t, w.ops().Resources(ctx, proxies)) {
			require.Equal(t, 2, info.MaxSharers)
		}
		require.Equal(t, 440, w.inspect().Holders)
	})
}

func TestABadSetIsNamedAndASetIsTold(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node().connect()
		for _, bad := range []struct {
			field, resource string
			s               allocator.Settings
		}{
			{"s", "", allocator.Settings{}},
			{"s", "a", allocator.Settings{Policy: allocator.Random}},
			{"s", "a", allocator.Settings{MaxLease: time.Second}},
			{"s", "a", allocator.Settings{MaxHold: time.Second}},
			{"Policy", "", allocator.Settings{Policy: allocator.Random + 1}},
			{"Cooldown", "", allocator.Settings{Cooldown: berth.Forever}},
			{"Cooldown", "", allocator.Settings{Cooldown: ms + 1}},
			{"MaxSharers", "", allocator.Settings{MaxSharers: 101}},
			{"MaxSharers", "", allocator.Settings{MaxSharers: -1}},
			{"BindFor", "", allocator.Settings{BindFor: -ms}},
			{"MaxLease", "", allocator.Settings{MaxLease: 19 * ms}},
			{"MaxHold", "", allocator.Settings{MaxHold: 19 * ms}},
		} {
			requireInvalid(t, bad.field, n.ops().Set(ctx, proxies, bad.resource, bad.s))
		}
		require.Equal(t, "unknown", (allocator.Random + 1).String())
		requireInvalid(t, "name", n.ops().Set(ctx, "", "", allocator.Settings{Reset: true}))
		requireInvalid(t, "name", testkit.Second(n.ops().Settings(ctx, "")))
		require.Empty(t, n.Scripts())
		all := allocator.Settings{
			Policy: allocator.Random, Cooldown: 30 * time.Second, MaxSharers: 100, BindFor: berth.Forever, MaxLease: berth.Forever, MaxHold: time.Hour,
		}
		require.NoError(t, n.ops().Set(ctx, proxies, "", all))
		told := n.Told(observe.SettingsChanged)
		require.Len(t, told, 1)
		require.Equal(t, "Policy random, Cooldown 30s, MaxSharers 100, BindFor forever, MaxLease no limit, MaxHold 1h0m0s", told[0].Detail)
		all.ByOperator = true
		require.Equal(t, all, w.settings())
		const none = "1000000000000000 0000000000000 2000000000000000 2000000000000000 1000000000000000 1000000000000000 0 "
		require.Equal(t, none+"o r 30000 100 0 0 3600000", w.field(stateKey, "pool"))
		w.Do("HSET", stateKey, "pool", none+"o r 30000 x 0 0 3600000")
		_, err := w.ops().Settings(ctx, proxies)
		require.Error(t, err)
		require.NotErrorIs(t, err, berth.ErrIncompatible)
	})
}

// Each step of a Set whose answer was lost is sent again.
func TestASetIsRepeated(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node("a").connect()
		n.Once("pool_set", link.LoseReply)
		n.Once("pool_sharers", link.LoseReply)
		require.NoError(t, n.ops().Set(ctx, proxies, "", allocator.Settings{MaxSharers: 2}))
		require.Equal(t, 2, w.status("a").MaxSharers)
		require.Equal(t, allocator.Settings{MaxSharers: 2, ByOperator: true}, w.settings())

		// One dies between its two scripts. Whoever repeats its Set finishes it.
		dies := w.nodeWith(once, allocator.Config[string]{}).connect()
		dies.Once("pool_sharers", link.LoseRequest)
		require.ErrorIs(t, dies.ops().Set(ctx, proxies, "", allocator.Settings{MaxSharers: 3}), berth.ErrUnavailable)
		require.Equal(t, 2, w.status("a").MaxSharers)
		w.set("", allocator.Settings{MaxSharers: 3})
		require.Equal(t, 3, w.status("a").MaxSharers)
	})
}
