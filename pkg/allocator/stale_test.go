package allocator_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
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

// operated are calls of an operator about the resource a, and newer ones that overtake them.
var operated = map[string]struct {
	script     string
	call, over func(ctx context.Context, n *proc) error
	resource   string // that of the refusal
	changed    string
	forgotten  bool // after a minute
}{
	"a rest, and a newer one": {
		script: "pool_rest", call: rests(time.Hour, "old"), over: rests(30*time.Second, "banned"),
		resource: "a", changed: "rest 30s: banned", forgotten: true,
	},
	"a rest, and its end": {
		script: "pool_rest", call: rests(berth.Forever, "old"), over: rests(0, ""),
		resource: "a", changed: "rest ended", forgotten: true,
	},
	"the end of a rest, and a rest for ever": {
		script: "pool_rest", call: rests(0, ""), over: rests(berth.Forever, ""),
		resource: "a", changed: "rest without end", forgotten: true,
	},
	"a set, and a newer one": {
		script: "pool_set", call: sets("", allocator.Settings{Cooldown: time.Hour}),
		over:    sets("", allocator.Settings{Cooldown: 30 * time.Second, Reset: true}),
		changed: "Cooldown 30s, all else reset", forgotten: true,
	},
	"a set of a resource, and a rest": {
		script: "pool_set", call: sets("a", allocator.Settings{MaxSharers: 2}), over: rests(time.Second, ""),
		resource: "a", changed: "rest 1s", forgotten: true,
	},
	"a rest, and a set of its resource": {
		script: "pool_rest", call: rests(time.Hour, "old"), over: sets("a", allocator.Settings{Cooldown: -1}),
		resource: "a", changed: "Cooldown 0s", forgotten: true,
	},
	"a removal, and an add":    {script: "pool_remove", call: removes, over: adds, resource: "a", changed: "added"},
	"a removal, and a replace": {script: "pool_remove", call: removes, over: replaces("a"), changed: "replaced"},
	"a removal, and a rest": {
		script: "pool_remove", call: both(rests(time.Hour, ""), removes), over: both(adds, rests(time.Minute, "")),
		resource: "a", changed: "rest 60s", forgotten: true,
	},
	"the end of a replace":          {script: "pool_replace", call: replaces("a"), over: replaces("b"), changed: "replaced"},
	"a part of a replace":           {script: "pool_add", call: replaces("a"), over: replaces("b"), changed: "replaced"},
	"the end of one, and a removal": {script: "pool_replace", call: replaces("a", "z"), over: removes, changed: "removed"},
	"a part of one, and a removal":  {script: "pool_add", call: replaces("a", "z"), over: removes, changed: "removed"},
}

func rests(d time.Duration, reason string) func(ctx context.Context, n *proc) error {
	return func(ctx context.Context, n *proc) error { return n.Rest(ctx, "a", d, reason, nil) }
}

func sets(resource string, s allocator.Settings) func(ctx context.Context, n *proc) error {
	return func(ctx context.Context, n *proc) error { return n.ops().Set(ctx, proxies, resource, s) }
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

// The copy of a call comes when a newer one has been answered, be it in the same millisecond.
func TestALateCopyOfAnOperatorsCallIsRefused(t *testing.T) {
	for name, c := range operated {
		for _, pause := range []time.Duration{0, ms, 59 * time.Second} {
			t.Run(name+" "+pause.String(), func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					w.add("a", "z")
					old, n := w.node(), w.node()
					copied, unrun := w.sent(old, c.script, func() error { return c.call(t.Context(), old) })
					w.Advance(pause)
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
						w.Advance(time.Hour)
						w.refused(copied, c.resource, c.changed)
					}
				})
			})
		}
	}
}

// A resource that was removed and added again is another one: that is known for as long as it is there.
func TestWhatHasBeenAddedAgainIsNotRestedByALateCopy(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "z")
		n := w.node()
		copied, _ := w.sent(n, "pool_rest", func() error { return n.Rest(t.Context(), "a", time.Second, "old", nil) })
		w.Advance(61 * time.Second)
		require.NoError(t, second(w.ops().Sweep(t.Context(), proxies)))
		require.NoError(t, both(removes, adds)(t.Context(), n))
		w.refused(copied, "a", "added")
		w.Advance(24 * time.Hour)
		w.refused(copied, "a", "added")
		require.Equal(t, allocator.Free, w.status("a").State)
	})
}

func TestTheBeginningOfAReplaceThatComesLateIsRefused(t *testing.T) {
	for name, over := range map[string]func(ctx context.Context, n *proc) error{
		"replaced": replaces("b"), "removed": removes,
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.add("a", "z")
				old := w.node()
				var args []string
				old.OnCommand(func(c link.Command) link.Fate {
					if c.Name == "pool_replace" && c.Args[2+5+3] == "begin" {
						args = c.Args[2+5:]
					}
					return link.Pass
				})
				require.NoError(t, replaces("a")(t.Context(), old))
				copied := func() scriptkit.Reply { return w.Call("pool_replace", args...) }
				before := w.Dump()
				r, again := copied(), copied()
				require.Equal(t, "begun", r.Status())
				require.Equal(t, r.Int(1), again.Int(1))
				require.Equal(t, before, w.Dump(), "its own repeat is answered the same again")
				require.NoError(t, over(t.Context(), w.node()))
				if name == "removed" { // nobody has begun another one: it goes on to say so, and does nothing
					r = copied()
					require.Equal(t, []any{"begun", again.Int(1)}, []any{r.Status(), r.Int(1)})
					return
				}
				w.refused(copied, "", name)
			})
		})
	}
}

// A call whose answer was lost is sent again, and is told the same.
func TestAnOperatorsCallThatIsRepeatedIsAnsweredTheSameAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		w.add("a", "b", "c", "z")
		n := w.node()
		n.connect()
		n.Once("pool_remove", link.LoseReply)
		removed, err := n.Remove(ctx, []string{"a", "b", "never"})
		changed(t, removed, err)(0, 0, 2)
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
		w.add("a", "z")
		n := w.node()
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
		swept, err := w.ops().Sweep(ctx, proxies)
		require.NoError(t, err)
		require.Zero(t, swept, "it was in nobody's way")
		require.Equal(t, int64(0), w.Int("HEXISTS", stateKey, "o:a"))
		require.Equal(t, int64(0), w.Int("ZCOUNT", lineKey, "4503599627370496", "4521191813414911"))
		w.inspect()
	})
}

// Emptied, a pool stays for as long as it is known what was changed in it, and Linger.
func TestAnEmptiedPoolStaysWhileACopyMayComeLate(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		w.add("a")
		require.NoError(t, w.pool.Rest(ctx, "a", time.Second, "", nil))
		w.Advance(10 * time.Second)
		require.NoError(t, change(w.pool.Remove(ctx, []string{"a"})))
		require.Equal(t, 10*time.Second+time.Minute+time.Minute, w.Expiry())
	})
}

// Another call comes between the look of a call and its script.
func TestACallThatAnotherHasOvertakenSaysWhatWasChanged(t *testing.T) {
	for name, c := range map[string]struct {
		script     string
		call, over func(ctx context.Context, n *proc) error
		want       berth.StaleError
		text       string
	}{
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
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.add("a", "z")
				n, other := w.node(), w.node()
				after, between := "", false
				n.OnCommand(func(cmd link.Command) link.Fate {
					if cmd.Name == c.script && !between {
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
		})
	}
}

// One resource of a step that was added since refuses the whole step.
func TestARemoveThatIsStaleRemovesNothingOfItsStep(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b", "c")
		n := w.node()
		n.OnCommand(func(c link.Command) link.Fate {
			if c.Name == "pool_remove" {
				w.remove("c")
				w.add("c")
			}
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
		r := n.replaceUpTo(200, many("x", 300))
		require.NoError(t, change(w.pool.Remove(t.Context(), []string{"x7"})))
		require.NoError(t, change(w.pool.Remove(t.Context(), []string{"x250"})), "which is not there: that changes nothing")
		r.goOn()
		require.ErrorIs(t, r.err, berth.ErrStale)
		require.Equal(t, allocator.Change{Added: 200}, r.change)
		require.Equal(t, allocator.Absent, w.status("x7").State)
		w.inspect()
	})
}

// An Add before the look is older, however often its resource was added.
func TestWhatWasAddedBeforeIsRemovedAndRests(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for range 3 { // all in one millisecond
			w.add("a", "b")
			require.NoError(t, w.pool.Rest(t.Context(), "a", time.Second, "", nil))
			require.NoError(t, change(w.pool.Remove(t.Context(), []string{"a"})))
		}
		require.Equal(t, []string{"b"}, w.list())
	})
}

// What operators have changed is forgotten by the way: nobody waits for that, and nobody sweeps for it.
func TestWhatIsToBeForgottenKeepsNobodyFromAGrant(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		all := make([]string, 150)
		for i := range all {
			all[i] = fmt.Sprintf("r%03d", i)
		}
		w.add(all...)
		n := w.node()
		for _, r := range all {
			require.NoError(t, n.Rest(t.Context(), r, time.Hour, "", nil))
		}
		w.Advance(61 * time.Second)
		n.Fresh()
		waits := n.queue(names("r000"))
		require.Zero(t, n.Count("pool_sweep"))
		require.NoError(t, w.node().Rest(t.Context(), "r000", 0, "", nil))
		waits.gets(w.Now(), "r000")
		w.inspect()
	})
}
