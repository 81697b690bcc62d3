package allocator_test

import (
	"context"
	"slices"
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
	require.NoError(w.T, w.ops().Set(context.Background(), proxies, resource, s))
	synctest.Wait()
}

// settings are what is stored.
func (w *world) settings() allocator.Settings {
	w.T.Helper()
	s, err := w.ops().Settings(context.Background(), proxies)
	require.NoError(w.T, err)
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

// However a hold ends, and whichever process had it: the resource rests as the pool says.
func TestAProcessThatSaysNothingOfTheCooldownDoesNotEndIt(t *testing.T) {
	ctx := context.Background()
	for name, end := range map[string]func(w *world, n *proc, a *allocator.Allocation[string]){
		"release": func(w *world, _ *proc, a *allocator.Allocation[string]) { w.release(a) },
		"force": func(w *world, n *proc, a *allocator.Allocation[string]) {
			require.NoError(w.T, n.force(a.ID()))
		},
		"swap": func(w *world, _ *proc, a *allocator.Allocation[string]) {
			w.add("b")
			require.NoError(w.T, a.Swap(ctx))
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.add("a")
				says := w.nodeOf(allocator.PoolConfig[string]{Cooldown: 30 * time.Second})
				w.release(says.takes("a", nil)) // from here on it is stored
				w.rests("a", 30*time.Second)
				says.Shut()
				n := w.node()
				a := n.takes("a", nil)
				end(w, n, a)
				w.rests("a", 30*time.Second)
			})
		})
	}
	t.Run("expiry", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			w.add("a")
			_, err := w.nodeOf(allocator.PoolConfig[string]{Cooldown: 30 * time.Second}).Add(ctx, []string{"b"}, nil)
			require.NoError(t, err)
			w.acquireScript("dead", "dead.1")
			w.Advance(lease + time.Second)
			stats := w.stats()
			require.Equal(t, 1, stats.Resting, "it rests already, swept or not")
			_, err = w.ops().Sweep(ctx, proxies)
			require.NoError(t, err)
			stats.Expired = 0
			require.Equal(t, stats, w.inspect())
			w.rests("a", 29*time.Second) // from the end of the lease on
		})
	})
}

func TestACallMayAskForALongerCooldownAndNotForAShorterOne(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		w.set("", allocator.Settings{Cooldown: 10 * time.Second})
		n := w.node()
		for asked, rests := range map[time.Duration]time.Duration{0: 10 * time.Second, time.Second: 10 * time.Second, 20 * time.Second: 20 * time.Second} {
			w.release(n.takes("a", &allocator.AllocateOptions{Cooldown: asked}))
			w.rests("a", rests)
			// The general way does as the plain one.
			require.NoError(t, n.force(n.takes("a", &allocator.AllocateOptions{Cooldown: asked}).ID()))
			w.rests("a", rests)
		}
		a := n.takes("a", nil)
		require.NoError(t, a.Rest(time.Minute, "slow"))
		w.release(a)
		require.Equal(t, "slow", w.status("a").Reason)
		w.rests("a", time.Minute)
		a = n.takes("a", nil)
		require.NoError(t, a.Rest(time.Second, "slow"))
		w.release(a)
		require.Empty(t, w.status("a").Reason, "it rests for the cooldown's sake")
		w.rests("a", 10*time.Second)
	})
}

// A check has used nothing, and a resource that it looked at does not rest.
func TestAHealthCheckHasNoCooldown(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		w.set("", allocator.Settings{Cooldown: 10 * time.Second})
		n := w.node()
		for range 2 {
			report, err := n.CheckHealth(context.Background(), 1)
			require.NoError(t, err)
			require.Equal(t, 1, report.Healthy)
			require.Equal(t, allocator.Free, w.status("a").State)
			w.set("a", allocator.Settings{MaxSharers: 2}) // from here on the general way
		}
	})
}

// What the first process says is stored. Another one that says otherwise goes by it, and is told once.
func TestOfTwoProcessesThatDisagreeTheStoredOneCounts(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		first := w.nodeOf(allocator.PoolConfig[string]{Cooldown: time.Second})
		w.release(first.takes("a", nil))
		w.rests("a", time.Second)
		second := w.nodeOf(allocator.PoolConfig[string]{Cooldown: time.Minute, Policy: allocator.MostRecent})
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
	})
}

func TestAStrictProcessGoesByNothingElse(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		w.add("a")
		strict := w.nodeOf(allocator.PoolConfig[string]{Cooldown: time.Second, BindFor: time.Minute, Strict: true})
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
		_, err := strict.Add(ctx, []string{"b"}, nil)
		requireInvalid(t, "Cooldown", err)
		_, err = strict.Replace(ctx, []string{"b"}, nil)
		requireInvalid(t, "Cooldown", err)
		require.Equal(t, allocator.Absent, w.status("b").State)
		require.Equal(t, before, w.Dump())
		w.set("", allocator.Settings{Cooldown: time.Second})
		strict.takes("a", nil)
	})
}

// A Replace that is refused overtakes no other one.
func TestAStrictProcessEndsNobodysReplace(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		w.add("a")
		w.set("", allocator.Settings{Cooldown: time.Minute})
		strict := w.nodeOf(allocator.PoolConfig[string]{Cooldown: time.Second, Strict: true})
		change, err := w.node().Replace(ctx, []string{"b"}, &allocator.AddOptions{Progress: func(int, int) {
			_, err := strict.Replace(ctx, []string{"c"}, nil)
			requireInvalid(t, "Cooldown", err)
		}})
		require.NoError(t, err)
		require.Equal(t, allocator.Change{Added: 1, Removed: 1}, change)
		require.Equal(t, []string{"b"}, w.list())
	})
}

// An operator's change counts for holds that last already, and no process undoes it, one that starts
// anew either.
func TestAnOperatorsChangeIsLiveAndStays(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		says := allocator.PoolConfig[string]{Cooldown: time.Second, Policy: allocator.LeastRecent}
		n := w.nodeOf(says)
		_, err := n.Add(ctx, []string{"a", "b"}, nil)
		require.NoError(t, err)
		a := n.takes("a", nil)
		w.set("", allocator.Settings{Cooldown: time.Minute, Policy: allocator.MostRecent})
		w.release(a)
		w.rests("a", time.Minute)
		want := allocator.Settings{Cooldown: time.Minute, Policy: allocator.MostRecent, ByOperator: true}
		for range 2 {
			n.Shut()
			n = w.nodeOf(says)
			_, err := n.Replace(ctx, []string{"a", "b"}, nil)
			require.NoError(t, err)
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

// A pool without resources is forgotten, unless an operator has set something of it.
func TestWhatAnOperatorHasSetIsNotForgotten(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		w.set("", allocator.Settings{MaxSharers: 2})
		require.Negative(t, w.Expiry())
		w.Advance(24 * time.Hour)
		require.Equal(t, allocator.Settings{MaxSharers: 2, ByOperator: true}, w.settings())
		w.add("a")
		require.Equal(t, 2, w.status("a").MaxSharers)
		_, err := w.pool.Remove(ctx, []string{"a"})
		require.NoError(t, err)
		require.Negative(t, w.Expiry())
		w.set("", allocator.Settings{Reset: true})
		require.Positive(t, w.Expiry())
		require.Zero(t, w.settings())
		w.Advance(time.Hour)
		require.Empty(t, w.Keys())
		require.Zero(t, w.settings())
	})
}

// Processes' settings are those of the pool, and end with it.
func TestWhatAProcessHasSaidIsForgottenWithThePool(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.nodeOf(allocator.PoolConfig[string]{Cooldown: time.Second})
		_, err := n.Add(context.Background(), []string{"a"}, nil)
		require.NoError(t, err)
		_, err = n.Clear(context.Background())
		require.NoError(t, err)
		w.Advance(time.Hour)
		require.Empty(t, w.Keys())
	})
}

// After a flush what processes say counts again, with the first call that writes.
func TestAfterAFlushProcessesSayAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.nodeOf(allocator.PoolConfig[string]{Cooldown: time.Second})
		w.add("a")
		w.set("", allocator.Settings{Cooldown: time.Minute})
		w.release(n.takes("a", nil))
		w.rests("a", time.Minute)
		w.Do("FLUSHALL")
		w.add("a")
		require.Zero(t, w.settings())
		w.release(n.takes("a", nil))
		w.rests("a", time.Second)
		w.Do("FLUSHALL")
		q := n.queue(nil)
		w.add("a")
		w.release(q.gets(w.Now(), "a"))
		w.rests("a", time.Second)
	})
}

func TestNoCallGetsMoreThanTheLimits(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		w.add("a")
		w.set("", allocator.Settings{MaxLease: time.Second, MaxHold: 30 * time.Second})
		n := w.nodeWith(node.Config{Lease: lease}, allocator.PoolConfig[string]{})
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

		// What the caller leaves open is within the limits, and the limits are known then.
		fresh := w.node()
		fresh.connect()
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

// A health check is a call as others, which leaves its lease open.
func TestAHealthCheckIsWithinTheLimits(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		w.set("", allocator.Settings{MaxLease: 100 * ms, MaxHold: time.Minute})
		report, err := w.node().CheckHealth(context.Background(), 1)
		require.NoError(t, err)
		require.Equal(t, 1, report.Healthy)
	})
}

func TestDefaultsAreTheCallersOwnWords(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		w.set("", allocator.Settings{MaxLease: time.Second})
		n := w.nodeOf(allocator.PoolConfig[string]{Defaults: allocator.AllocateOptions{Lease: time.Minute}})
		_, err := n.Allocate(context.Background(), nil)
		requireField(t, "Lease", err)
		w.release(n.takes("a", &allocator.AllocateOptions{NoDefaults: true}))
	})
}

// What a resource has of its own counts for it alone, and goes with it.
func TestAResourceHasSettingsOfItsOwn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		w.add("a", "b")
		w.set("", allocator.Settings{Cooldown: time.Second})
		w.set("a", allocator.Settings{Cooldown: time.Minute, MaxSharers: 2, BindFor: 10 * time.Minute})
		info := w.status("a")
		require.Equal(t, allocator.Settings{Cooldown: time.Minute, MaxSharers: 2, BindFor: 10 * time.Minute, ByOperator: true}, info.Own)
		require.Equal(t, 2, info.MaxSharers)
		require.Zero(t, w.status("b").Own)
		n := w.node()
		first := n.takes("a", &allocator.AllocateOptions{Bind: "me"})
		b, err := n.Binding(ctx, "me")
		require.NoError(t, err)
		require.Equal(t, 10*time.Minute, b.Left)
		other := n.takes("b", nil)
		second := n.takes("a", nil)
		w.release(other)
		w.rests("b", time.Second)
		w.release(first)
		w.release(second)
		info = w.status("a")
		require.Equal(t, allocator.Resting, info.State)
		require.Equal(t, time.Minute, info.Left)
		w.inspect()

		// A Set of one word leaves the others.
		w.set("a", allocator.Settings{Cooldown: -1})
		require.Equal(t, allocator.Settings{Cooldown: -1, MaxSharers: 2, BindFor: 10 * time.Minute, ByOperator: true}, w.status("a").Own)
		w.set("", allocator.Settings{MaxSharers: 5})
		require.Equal(t, 5, w.status("b").MaxSharers)
		require.Equal(t, 2, w.status("a").MaxSharers, "it has a number of its own")
		_, err = n.Add(ctx, []string{"a", "b"}, &allocator.AddOptions{MaxSharers: 3})
		require.NoError(t, err)
		require.Equal(t, 3, w.status("b").MaxSharers)
		require.Equal(t, 2, w.status("a").MaxSharers, "no process changes what an operator has set")

		w.set("a", allocator.Settings{Reset: true})
		require.Zero(t, w.status("a").Own)
		require.Equal(t, 5, w.status("a").MaxSharers, "as the pool")
		w.set("a", allocator.Settings{Cooldown: time.Minute})
		_, err = n.Remove(ctx, []string{"a"})
		require.NoError(t, err)
		require.Empty(t, w.optional(stateKey, "s:a"))
		w.add("a")
		require.Zero(t, w.status("a").Own)
		w.inspect()
		require.ErrorIs(t, w.ops().Set(ctx, proxies, "none", allocator.Settings{Cooldown: time.Second}), berth.ErrAbsent)
	})
}

// What an Add has said of the sharers stays, until an operator says something of them.
func TestOwnSettingsOfOtherWordsLeaveTheSharersAsTheyAre(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		_, err := n.Add(context.Background(), []string{"a"}, &allocator.AddOptions{MaxSharers: 5})
		require.NoError(t, err)
		for _, s := range []allocator.Settings{{Cooldown: 30 * time.Second}, {Cooldown: time.Minute}, {Reset: true}} {
			w.set("a", s)
			require.Equal(t, 5, w.status("a").MaxSharers)
		}
		w.set("a", allocator.Settings{MaxSharers: 3})
		require.Equal(t, 3, w.status("a").MaxSharers)
		w.set("a", allocator.Settings{Cooldown: time.Minute, Reset: true})
		require.Equal(t, 1, w.status("a").MaxSharers, "as the pool")
		w.inspect()
	})
}

// How many may hold one resource is stored by who adds: what is in the pool has a number.
func TestOnlyAnAddFillsInHowManyMayHoldAResource(t *testing.T) {
	for name, strict := range map[string]bool{"strict": true, "not strict": false} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.add("a", "b")
				n := w.nodeOf(allocator.PoolConfig[string]{MaxSharers: 3, BindFor: time.Minute, Strict: strict})
				n.connect()
				n.take(nil)
				require.Equal(t, allocator.Settings{BindFor: time.Minute}, w.settings())
				w.release(n.take(nil))
				require.Equal(t, 1, w.status("b").MaxSharers)
				require.NotContains(t, n.Kinds(), observe.SettingsDiffer, "nothing else is stored")
				_, err := n.Add(t.Context(), []string{"b"}, nil)
				require.NoError(t, err)
				require.Equal(t, allocator.Settings{MaxSharers: 3, BindFor: time.Minute}, w.settings())
				require.Equal(t, 3, w.status("b").MaxSharers)
				w.set("", allocator.Settings{MaxSharers: 2})
				if strict {
					_, err = n.Allocate(t.Context(), nil)
					requireField(t, "MaxSharers", err)
					return
				}
				n.take(nil)
				require.Len(t, n.Told(observe.SettingsDiffer), 1)
				require.Equal(t, "MaxSharers 3, stored 2", n.Told(observe.SettingsDiffer)[0].Detail)
			})
		})
	}
}

// optional reads a field of a hash, "" for none.
func (w *world) optional(key, name string) string {
	text, _ := w.Do("HGET", key, name).ToString()
	return text
}

// A leased resource keeps its own settings until its last holder gives it back, and a damaged one
// until it is taken out.
func TestOwnSettingsGoWithTheResource(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		n := w.node()
		w.add("a", "b")
		for _, key := range []string{"a", "b"} {
			w.set(key, allocator.Settings{Cooldown: time.Minute})
		}
		held := n.takes("a", nil)
		_, err := n.Remove(ctx, []string{"a"})
		require.NoError(t, err)
		require.NotEmpty(t, w.optional(stateKey, "s:a"))
		w.inspect()
		w.release(held)
		require.Empty(t, w.optional(stateKey, "s:a"))
		w.Do("HSET", itemsKey, "ib", "what is this")
		w.add("b")
		require.NotEmpty(t, w.optional(stateKey, "s:b"), "a damaged resource is made whole with what it had")
		w.inspect()
		w.release(n.takes("b", nil))
		require.Equal(t, allocator.Resting, w.status("b").State)
	})
}

// Who waits gets at once what there is room for; who holds loses nothing.
func TestSharersAreRaisedAndLowered(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b")
		n := w.node()
		held := []*allocator.Allocation[string]{n.takes("a", nil), n.takes("b", nil)}
		var waits []*wait
		for range 4 {
			waits = append(waits, n.queue(nil))
		}
		w.set("", allocator.Settings{MaxSharers: 3})
		for _, q := range waits {
			require.True(t, q.Over())
			require.NoError(t, q.Err)
			held = append(held, q.Got)
		}
		require.Equal(t, 6, w.inspect().Holders)
		w.set("", allocator.Settings{MaxSharers: 1})
		q := n.queue(nil)
		for _, a := range held {
			require.NoError(t, a.Err(), "lowering ends no hold")
		}
		for left := 3; left > 0; left-- { // of each resource
			require.True(t, q.Pending())
			for _, key := range []string{"a", "b"} {
				i := slices.IndexFunc(held, func(a *allocator.Allocation[string]) bool { return a.Resource() == key })
				if key == "b" && left == 1 {
					break
				}
				w.release(held[i])
				held = slices.Delete(held, i, i+1)
				w.inspect()
			}
		}
		q.gets(w.Now(), "a")
		require.Equal(t, 2, w.inspect().Holders)
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
		for _, info := range testkit.Collect(t, w.ops().Resources(context.Background(), proxies)) {
			require.Equal(t, 2, info.MaxSharers)
		}
		require.Equal(t, 440, w.inspect().Holders)
	})
}

func TestABindingLastsAsTheSettingsSay(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		w.add("a")
		n := w.node()
		left := func() time.Duration {
			b, err := n.Binding(ctx, "me")
			require.NoError(t, err)
			require.NoError(t, n.Unbind(ctx, "me"))
			return b.Left
		}
		bound := func(opts allocator.AllocateOptions) time.Duration {
			opts.Bind = "me"
			w.release(n.takes("a", &opts))
			return left()
		}
		require.Equal(t, time.Hour, bound(allocator.AllocateOptions{}))
		w.set("", allocator.Settings{BindFor: time.Minute})
		require.Equal(t, time.Minute, bound(allocator.AllocateOptions{}))
		require.Equal(t, time.Second, bound(allocator.AllocateOptions{BindFor: time.Second}))
		require.NoError(t, n.Bind(ctx, "me", "a", nil))
		require.Equal(t, time.Minute, left())
		w.set("", allocator.Settings{BindFor: berth.Forever})
		require.Equal(t, berth.Forever, bound(allocator.AllocateOptions{}))
		w.set("a", allocator.Settings{BindFor: 2 * time.Minute})
		require.Equal(t, 2*time.Minute, bound(allocator.AllocateOptions{}))
		require.NoError(t, n.Bind(ctx, "me", "a", nil))
		require.Equal(t, 2*time.Minute, left())
	})
}

func TestABadSetIsNamedAndASetIsTold(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		n := w.node()
		n.connect()
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
		require.Equal(t, "0 0 0 0 0 1 0 0 o r 30000 100 0 0 3600000", w.field(stateKey, "pool"))
		w.Do("HSET", stateKey, "pool", "0 0 0 0 0 1 0 0 o r 30000 x 0 0 3600000")
		_, err := w.ops().Settings(ctx, proxies)
		require.Error(t, err)
		require.NotErrorIs(t, err, berth.ErrIncompatible)
	})
}

// A Set whose answer was lost is sent again, and changes nothing more; a late copy of its steps changes
// nothing that was added since.
func TestASetThatIsRepeatedChangesNothingMore(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		w.add("a", "b")
		n := w.node()
		n.connect()
		n.Once("pool_set", link.LoseReply)
		require.NoError(t, n.ops().Set(ctx, proxies, "a", allocator.Settings{Cooldown: time.Minute}))
		n.Once("pool_sharers", link.LoseReply)
		set, _ := w.sent(n, "pool_set", func() error {
			return n.ops().Set(ctx, proxies, "", allocator.Settings{MaxSharers: 2, Cooldown: time.Second})
		})
		copied, _ := w.sent(n, "pool_sharers", func() error { return n.ops().Set(ctx, proxies, "", allocator.Settings{MaxSharers: 3}) })
		w.refused(set, "", "MaxSharers 3")
		w.Advance(ms)
		_, err := w.pool.Add(ctx, []string{"b"}, &allocator.AddOptions{MaxSharers: 5})
		require.NoError(t, err)
		before := w.Dump()
		r := copied()
		require.Equal(t, "page", r.Status())
		require.Equal(t, before, w.Dump())
		require.Equal(t, 5, w.status("b").MaxSharers)
		require.Equal(t, 3, w.status("a").MaxSharers)
	})
}
