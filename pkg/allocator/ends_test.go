package allocator_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
)

// The table of the docs on how a hold ends, as far as it is about pools.
func TestHowAnAllocationEnds(t *testing.T) {
	ctx := context.Background()
	type held = *allocator.Allocation[string]
	plays := map[string]struct {
		pool allocator.Config[string]
		ends func(w *world, n *proc, a held)
	}{
		"Operator.Release by claim": {ends: func(w *world, _ *proc, a held) {
			require.NoError(w.T, w.node().force(a.ID()))
		}},
		"a Swap that may have run was not answered": {ends: func(w *world, n *proc, a held) {
			n.OnCommand(func(c link.Command) link.Fate {
				if c.Name == "pool_swap" {
					return link.LoseReply
				}
				return link.Pass
			})
			require.Error(w.T, a.Swap(ctx))
		}},
		"its resource is removed from the pool: it goes on, and the resource leaves when it ends": {ends: func(w *world, n *proc, a held) {
			require.NoError(w.T, change(n.Remove(ctx, []string{"a"})))
			w.Advance(2 * lease)
			require.NoError(w.T, a.Err())
			require.True(w.T, w.status("a").Leaving)
		}},
		"Close of its pool":                {ends: func(w *world, n *proc, _ held) { require.NoError(w.T, n.Pool.Close(ctx)) }},
		"Release in a pool that is Shared": {pool: inTurn, ends: func(w *world, _ *proc, a held) { w.release(a) }},
		"Close with a pool that is Shared": {pool: inTurn, ends: func(w *world, n *proc, _ held) {
			require.NoError(w.T, n.node.Close(ctx))
		}},
	}
	rows := testkit.Ends(t, "../..", "TestHowAnAllocationEnds")
	require.ElementsMatch(t, slices.Collect(maps.Keys(rows)), slices.Collect(maps.Keys(plays)), "each row is played")
	for how, row := range rows {
		t.Run(how, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.add("a")
				n := w.nodeWith(node.Config{Retry: berth.Retry{Attempts: 1}}, plays[how].pool)
				a := n.takes("a", nil)
				if row.Event != "" {
					w.add("b")
				}
				plays[how].ends(w, n, a)
				w.Advance(2 * lease)
				want := map[string]error{
					"ErrReleased": berth.ErrReleased, "ErrLost": berth.ErrLost, "ErrClosed": berth.ErrClosed, "": nil,
				}[row.Err]
				require.ErrorIs(t, a.Err(), want)
				var told []observe.Kind
				for _, e := range n.Events() {
					ends := []observe.Kind{observe.Released, observe.Detached, observe.ReleasedByOther, observe.Expired, observe.Lost}
					if e.Claim == a.ID() && slices.Contains(ends, e.Kind) {
						told = append(told, e.Kind)
					}
				}
				if row.Event == "" {
					require.Empty(t, told)
					return
				}
				var end *berth.EndError
				require.ErrorAs(t, a.Err(), &end)
				require.Equal(t, proxies, end.Name)
				require.Equal(t, []observe.Kind{observe.Kind(row.Event)}, told)
				require.Equal(t, row.Level, strings.ToLower(told[0].Level().String()))
			})
		})
	}
}
