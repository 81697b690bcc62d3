package allocator_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/allocator"
)

// Another call comes between the look of a call and its script.
func TestACallThatAnotherHasOvertakenSaysWhatWasChanged(t *testing.T) {
	type op = func(n *proc) error
	rests := func(d time.Duration, reason string) op {
		return func(n *proc) error { return n.Rest(ctx, "a", d, reason, nil) }
	}
	sets := func(s allocator.Settings) op { return func(n *proc) error { return n.ops().Set(ctx, proxies, "", s) } }
	removes := func(n *proc) error { return change(n.Remove(ctx, []string{"a"})) }
	adds := func(n *proc) error { return change(n.Add(ctx, []string{"a"}, nil)) }
	replaces := func(resources ...string) op {
		return func(n *proc) error { return change(n.Replace(ctx, resources, nil)) }
	}
	clears := func(n *proc) error { return change(n.Clear(ctx)) }
	type row struct {
		script            string
		call, over        op
		resource, changed string
	}
	inEach(t, map[string]row{
		"Rest":    {"pool_rest", rests(time.Hour, ""), rests(30*time.Second, "banned"), "a", "rest 30s: banned"},
		"Remove":  {"pool_remove", removes, func(n *proc) error { return errors.Join(removes(n), adds(n)) }, "a", "added"},
		"Replace": {"pool_replace", replaces("b"), replaces("a", "c"), "", "replaced"},
		"Clear":   {"pool_replace", clears, removes, "", "removed"},
		"Set": {
			"pool_set", sets(allocator.Settings{Cooldown: time.Hour}),
			sets(allocator.Settings{Cooldown: 30 * time.Second, Reset: true}), "", "Cooldown 30s, all else reset",
		},
	}, func(t *testing.T, w *world, c row) {
		n, other := w.node("a", "z"), w.node()
		after, between := "", false
		n.on(c.script, func() link.Fate {
			if !between {
				between = true
				require.NoError(t, c.over(other))
				after = w.Dump()
			}
			return link.Pass
		})
		err := c.call(n)
		require.ErrorIs(t, err, berth.ErrOvertaken)
		var stale *berth.OvertakenError
		require.ErrorAs(t, err, &stale)
		require.Equal(t, berth.OvertakenError{Name: proxies, Resource: c.resource, Changed: c.changed}, *stale)
		about := ""
		if c.resource != "" {
			about = ` resource "a"`
		}
		require.EqualError(t, err, fmt.Sprintf(`berth: "proxies":%s changed by another call meanwhile: %s`, about, c.changed))
		require.Equal(t, after, w.Dump(), "it has written nothing")
		n.OnCommand(nil)
		require.NoError(t, c.call(n), "who calls again has seen that")
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
		require.ErrorIs(t, err, berth.ErrOvertaken)
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
		require.ErrorIs(t, err, berth.ErrOvertaken)
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
