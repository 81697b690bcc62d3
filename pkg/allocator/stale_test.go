package allocator_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// sent has a node call, and returns what gives the server a copy of the script that it has sent
// last, with the same arguments. unrun is that of a call that the server has not run before.
func (w *world) sent(n *proc, script string, call func() error) (copied, unrun func() scriptkit.Reply) {
	w.T.Helper()
	var args []string
	n.OnCommand(func(c link.Command) link.Fate {
		if c.Name == script {
			args = c.Args[2+5:] // behind the text, and the Redis keys with their number
		}
		return link.Pass
	})
	require.NoError(w.T, call())
	n.OnCommand(nil)
	require.NotEmpty(w.T, args)
	other := slices.Clone(args)
	if at, ok := map[string]int{"pool_rest": 7, "pool_set": 7, "pool_remove": 4}[script]; ok {
		other[at] = "another.1"
	}
	give := func(args []string) func() scriptkit.Reply {
		return func() scriptkit.Reply {
			w.T.Helper()
			return w.Call(script, args...)
		}
	}
	return give(args), give(other)
}

// refused gives the server a copy that comes late, which must write nothing.
func (w *world) refused(copied func() scriptkit.Reply, resource, changed string) {
	w.T.Helper()
	before, expiry := w.Dump(), w.Expiry()
	r := copied()
	require.Equal(w.T, "stale", r.Status())
	require.Equal(w.T, []string{resource, changed}, []string{r.Str(2), r.Str(3)})
	require.Equal(w.T, before, w.Dump())
	require.Equal(w.T, expiry, w.Expiry())
}

func rests(d time.Duration, reason string) func(ctx context.Context, n *proc) error {
	return func(ctx context.Context, n *proc) error { return n.Rest(ctx, "a", d, reason, nil) }
}

func sets(resource string, s allocator.Settings) func(ctx context.Context, n *proc) error {
	return func(ctx context.Context, n *proc) error { return n.ops().Set(ctx, proxies, resource, s) }
}

// forgets has a sweep forget what was changed.
func forgets(ctx context.Context, n *proc) error {
	n.w.Advance(61 * time.Second)
	return second(n.ops().Sweep(ctx, proxies))
}

func removes(ctx context.Context, n *proc) error { return change(n.Remove(ctx, []string{"a"})) }

func adds(ctx context.Context, n *proc) error { return change(n.Add(ctx, []string{"a"}, nil)) }

func replaces(resources ...string) func(ctx context.Context, n *proc) error {
	return func(ctx context.Context, n *proc) error { return change(n.Replace(ctx, resources, nil)) }
}

func both(calls ...func(ctx context.Context, n *proc) error) func(ctx context.Context, n *proc) error {
	return func(ctx context.Context, n *proc) error {
		for _, call := range calls {
			if err := call(ctx, n); err != nil {
				return err
			}
		}
		return nil
	}
}

// The copy of a call comes when a newer one has been answered, be it in the same millisecond. It is known for a minute
// what was changed, and what was added or replaced for as long as that is there.
func TestALateCopyOfAnOperatorsCallIsRefused(t *testing.T) {
	type row struct {
		script     string
		call, over func(ctx context.Context, n *proc) error
		resource   string // that of the refusal
		changed    string
		forgotten  bool
	}
	inEach(t, map[string]row{
		"a rest, and its end": {"pool_rest", rests(berth.Forever, "old"), rests(0, ""), "a", "rest ended", true},
		"a rest that is forgotten, and another resource of that key": {
			"pool_rest", rests(time.Second, "old"), both(forgets, removes, adds), "a", "added", false,
		},
		"a set, and a newer one": {
			"pool_set", sets("", allocator.Settings{Cooldown: time.Hour}),
			sets("", allocator.Settings{Cooldown: 30 * time.Second, Reset: true}), "", "Cooldown 30s, all else reset", true,
		},
		"a removal, and a replace":     {"pool_remove", removes, replaces("a"), "", "replaced", false},
		"a part of one, and a removal": {"pool_add", replaces("a", "z"), removes, "", "removed", false},
	}, func(t *testing.T, w *world, c row) {
		w.add("a", "z")
		old, n := w.node(), w.node()
		copied, unrun := w.sent(old, c.script, func() error { return c.call(t.Context(), old) })
		require.NoError(t, c.over(t.Context(), n))
		if c.script == "pool_remove" { // it is known what the last Remove has done
			before := w.Dump()
			r := copied()
			require.Equal(t, []any{"removed", int64(1)}, []any{r.Status(), r.Int(1)})
			require.Equal(t, before, w.Dump())
			copied = unrun
		}
		w.refused(copied, c.resource, c.changed)
		w.refused(unrun, c.resource, c.changed)
		w.Advance(time.Minute - ms)
		w.refused(copied, c.resource, c.changed)
		w.inspect()
		if !c.forgotten {
			w.Advance(24 * time.Hour)
			w.refused(copied, c.resource, c.changed)
		}
	})
}

// A call whose answer was lost is sent again, and is told the same.
func TestAnOperatorsCallThatIsRepeatedIsAnsweredTheSameAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		n := w.node("a", "b", "c", "z").connect()
		n.Once("pool_remove", link.LoseReply)
		require.Equal(t, allocator.Change{Removed: 2}, must(n.Remove(ctx, []string{"a", "b", "never"}))(t))
		n.Once("pool_rest", link.LoseReply)
		require.NoError(t, n.Rest(ctx, "c", time.Second, "mine", nil))
		copied, _ := w.sent(n, "pool_rest", func() error { return n.Rest(ctx, "c", time.Minute, "mine", nil) })
		w.Advance(30 * time.Second)
		before := w.Dump()
		r := copied()
		require.Equal(t, "rested", r.Status())
		require.Equal(t, before, w.Dump(), "the rest does not begin anew")
		require.Equal(t, 30*time.Second, w.status("c").Left)
		w.inspect()
	})
}

func TestWhatAnOperatorHasChangedIsForgottenAfterAMinute(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		n := w.node("a", "z")
		copied, _ := w.sent(n, "pool_rest", func() error { return n.Rest(ctx, "a", time.Hour, "old", nil) })
		require.NoError(t, n.Rest(ctx, "a", 0, "", nil))
		w.Advance(time.Minute - ms)
		w.refused(copied, "a", "rest ended")
		w.Advance(ms)
		r := copied()
		require.Equal(t, "rested", r.Status(), "nobody knows any more")
		require.NoError(t, n.Rest(ctx, "a", 0, "", nil))
		require.Equal(t, int64(1), w.Int("HEXISTS", stateKey, "o:a"))
		w.Advance(time.Minute)
		require.Zero(t, must(w.ops().Sweep(ctx, proxies))(t), "it was in nobody's way")
		require.Equal(t, int64(0), w.Int("HEXISTS", stateKey, "o:a"))
		require.Equal(t, int64(0), w.Int("ZCOUNT", lineKey, "4503599627370496", "4521191813414911"))
		w.inspect()
	})
}

// Another call comes between the look of a call and its script.
func TestACallThatAnotherHasOvertakenSaysWhatWasChanged(t *testing.T) {
	type row struct {
		script     string
		call, over func(ctx context.Context, n *proc) error
		want       berth.StaleError
		text       string
	}
	inEach(t, map[string]row{
		"Rest": {
			"pool_rest", rests(time.Hour, ""), rests(30*time.Second, "banned"),
			berth.StaleError{Name: proxies, Resource: "a", Changed: "rest 30s: banned"},
			`berth: "proxies": resource "a" changed by another call meanwhile: rest 30s: banned`,
		},
		"Remove": {
			"pool_remove", removes, both(removes, adds),
			berth.StaleError{Name: proxies, Resource: "a", Changed: "added"},
			`berth: "proxies": resource "a" changed by another call meanwhile: added`,
		},
		"Replace": {
			"pool_replace", replaces("b"), replaces("a", "c"),
			berth.StaleError{Name: proxies, Changed: "replaced"},
			`berth: "proxies": changed by another call meanwhile: replaced`,
		},
		"Clear": {
			"pool_replace", func(ctx context.Context, n *proc) error { return change(n.Clear(ctx)) }, removes,
			berth.StaleError{Name: proxies, Changed: "removed"},
			`berth: "proxies": changed by another call meanwhile: removed`,
		},
	}, func(t *testing.T, w *world, c row) {
		n, other := w.node("a", "z"), w.node()
		after, between := "", false
		n.on(c.script, func() link.Fate {
			if !between {
				between = true
				require.NoError(t, c.over(t.Context(), other))
				after = w.Dump()
			}
			return link.Pass
		})
		err := c.call(t.Context(), n)
		require.ErrorIs(t, err, berth.ErrStale)
		var stale *berth.StaleError
		require.ErrorAs(t, err, &stale)
		require.Equal(t, c.want, *stale)
		require.EqualError(t, err, c.text)
		require.Equal(t, after, w.Dump(), "it has written nothing")
		n.OnCommand(nil)
		require.NoError(t, c.call(t.Context(), n), "who calls again has seen that")
	})
}

// One resource of a step that was added since refuses the whole step.
func TestARemoveThatIsStaleRemovesNothingOfItsStep(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node("a", "b", "c")
		n.on("pool_remove", func() link.Fate {
			w.remove("c")
			w.add("c")
			return link.Pass
		})
		removed, err := n.Remove(t.Context(), []string{"a", "b", "c"})
		require.ErrorIs(t, err, berth.ErrStale)
		require.Equal(t, allocator.Change{}, removed)
		require.Equal(t, []string{"a", "b", "c"}, w.list())
	})
}

// What is removed during a Replace stays away.
func TestARemoveEndsAReplaceThatIsUnderWay(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		goOn := n.replaceUpTo(200, many("x", 300))
		require.NoError(t, change(w.pool.Remove(t.Context(), []string{"x7"})))
		require.NoError(t, change(w.pool.Remove(t.Context(), []string{"x250"})), "which is not there: that changes nothing")
		change, err := goOn()
		require.ErrorIs(t, err, berth.ErrStale)
		require.Equal(t, allocator.Change{Added: 200}, change)
		require.Equal(t, allocator.Absent, w.status("x7").State)
		w.inspect()
	})
}

// What operators have changed is forgotten by the way: nobody waits for that, and nobody sweeps for it.
func TestWhatIsToBeForgottenKeepsNobodyFromAGrant(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		all := numbered(150)
		n := w.node(all...)
		for _, r := range all {
			require.NoError(t, n.Rest(t.Context(), r, time.Hour, "", nil))
		}
		w.Advance(61 * time.Second)
		n.Fresh()
		waits := n.queue(names(all[0]))
		require.Zero(t, n.Count("pool_sweep"))
		require.NoError(t, w.node().Rest(t.Context(), all[0], 0, "", nil))
		waits.gets(w.Now(), all[0])
		w.inspect()
	})
}

// A process dies between the two scripts of a Set. Whoever repeats the Set finishes it, for those who wait too.
func TestASetWhoseProcessDiesIsFinishedByARepeat(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, operator := w.node(many("x", 450)...), w.node()
		held := n.takes("x0", nil)
		q := n.queue(names("x0"))
		operator.on("pool_sharers", func() link.Fate {
			operator.Cut()
			return link.LoseRequest
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.Error(t, operator.ops().Set(ctx, proxies, "", allocator.Settings{MaxSharers: 2}))
		require.Equal(t, 2, w.settings().MaxSharers)
		w.Advance(2 * lease)
		require.True(t, q.Pending())
		w.inspect()
		w.set("", allocator.Settings{MaxSharers: 2})
		q.gets(w.Now(), "x0")
		w.set("", allocator.Settings{MaxSharers: 1})
		q = n.queue(names("x0"))
		w.release(held)
		require.True(t, q.Pending(), "one holds it still")
		w.inspect()
	})
}

// Four operators call at once, over and over: whoever was overtaken is told, and what is stored is
// what one of the others has said.
func TestOperatorsWhoRaceAreToldWhoWasFirst(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "z")
		var nodes []*proc
		for range 4 {
			nodes = append(nodes, w.node())
			nodes[len(nodes)-1].connect()
		}
		stale := 0
		for range 8 {
			w.Advance(time.Second)
			errs := make([]error, len(nodes))
			var calls sync.WaitGroup
			for i, n := range nodes {
				calls.Go(func() { errs[i] = n.ops().Set(ctx, proxies, "", allocator.Settings{MaxSharers: i + 1}) })
			}
			calls.Wait()
			synctest.Wait()
			set := w.settings().MaxSharers
			require.NoError(t, errs[set-1])
			require.Equal(t, set, w.status("a").MaxSharers)
			for _, err := range errs {
				if errors.Is(err, berth.ErrStale) {
					stale++
				} else {
					require.NoError(t, err)
				}
			}
		}
		require.Positive(t, stale)
		w.inspect()
	})
}
