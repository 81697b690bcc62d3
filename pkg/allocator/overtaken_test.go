package allocator_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/allocator"
)

// A process dies between the two scripts of a Set. Whoever repeats the Set finishes it, for those who wait too.
func TestASetWhoseProcessDiesIsFinishedByARepeat(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add(many("x", 450)...)
		n, operator := w.node(), w.node()
		held := n.takes("x0", nil)
		q := n.queue(names("x0"))
		operator.OnCommand(func(c link.Command) link.Fate {
			if c.Name != "pool_sharers" {
				return link.Pass
			}
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
				calls.Go(func() {
					errs[i] = n.ops().Set(context.Background(), proxies, "", allocator.Settings{MaxSharers: i + 1})
				})
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

// At its expiry, be it held or at rest, nobody can get it any more.
func TestTheLaneOfWhatExpiresAfterItsReleaseEndsAtThatMoment(t *testing.T) {
	for name, rest := range map[string]time.Duration{"held": 0, "at rest": 12 * time.Second} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.add("a", "b")
				w.bind("anna", "a", 0)
				holder, n := w.calm(), w.calm()
				a, b := holder.takes("a", nil), holder.takes("b", nil)
				var first *wait
				if rest == 0 {
					first = n.queue(names("a"))
				}
				second, bound := n.queue(names("a")), n.queue(sticks("anna", berth.Forever))
				require.NoError(t, a.ExpireIn(10*time.Second))
				require.NoError(t, a.Rest(rest, ""))
				began := w.Now()
				w.release(a)
				w.Advance(11 * time.Second)
				require.ErrorIs(t, second.Err, berth.ErrAbsent)
				require.LessOrEqual(t, second.At, began+10*time.Second+50*ms)
				require.True(t, bound.Pending())
				w.release(b)
				bound.gets(w.Now(), "b")
				if first != nil {
					w.release(first.gets(began, "a"))
				}
				require.Equal(t, allocator.Absent, w.status("a").State)
				w.inspect()
			})
		})
	}
}
