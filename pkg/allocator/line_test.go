package allocator_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/pkg/allocator"
)

func TestWhoWaitsGetsWhatComesBackInTheOrderOfTheLine(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		held := w.node().takes("a", nil)
		var line []*wait
		for range 5 {
			w.Advance(7 * ms)
			line = append(line, w.node().queue(nil))
		}
		for _, q := range line {
			w.Advance(time.Second)
			w.release(held)
			held = q.gets(w.Now(), "a")
			w.inspect()
		}
		w.release(held)
		w.requireIdle()
	})
}

func TestAHigherPriorityIsServedFirstAndEqualOnesInTheirOrder(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		held := w.node().takes("a", nil)
		var line []*wait
		for _, priority := range []int{0, 5, -128, 5, 127, 0} {
			w.Advance(ms)
			line = append(line, w.node().queue(&allocator.AllocateOptions{Priority: priority}))
		}
		for _, next := range []int{4, 1, 3, 0, 5, 2} {
			w.Advance(10 * ms)
			w.release(held)
			held = line[next].gets(w.Now(), "a")
		}
	})
}

// Each of these makes something free, in one script of its own.
func TestWhatComesFreeIsHandedOnInTheSameScript(t *testing.T) {
	ctx := context.Background()
	for name, c := range map[string]struct {
		script string
		// before leaves nothing free; after makes something free.
		before func(w *world, op *proc) (after func() error)
	}{
		"released": {"pool_release", func(_ *world, op *proc) func() error {
			a := op.take(nil)
			return func() error { return a.Release(ctx) }
		}},
		"force released": {"pool_force_release", func(w *world, op *proc) func() error {
			w.occupy("x")
			return func() error { return op.force("x.1") }
		}},
		"added": {"pool_add", func(w *world, op *proc) func() error {
			w.occupy("x")
			return func() error { _, err := op.Add(ctx, []string{"new"}, nil); return err }
		}},
		"room for one more holder": {"pool_add", func(w *world, op *proc) func() error {
			w.occupy("x")
			return func() error { _, err := op.Add(ctx, []string{"a"}, nil); return err }
		}},
		"removed while it was leased, and added again after it came back": {"pool_add", func(_ *world, op *proc) func() error {
			a := op.take(nil)
			_, err := op.Remove(ctx, []string{"a"})
			require.NoError(t, err)
			require.NoError(t, a.Release(ctx))
			return func() error { _, err := op.Add(ctx, []string{"a"}, nil); return err }
		}},
		"its rest was ended": {"pool_rest", func(_ *world, op *proc) func() error {
			require.NoError(t, op.Rest(ctx, "a", berth.Forever, "mine", nil))
			return func() error { return op.Rest(ctx, "a", 0, "", nil) }
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.add("a")
				op, n := w.nodeOf(allocator.PoolConfig[string]{MaxSharers: 2}), w.node()
				after := c.before(w, op)
				q := n.queue(nil)
				later := w.node().queue(nil)
				require.True(t, q.Pending())
				w.Advance(time.Second)
				op.Fresh()
				n.Fresh()
				require.NoError(t, after())
				q.Granted(w.Now())
				require.Equal(t, only(c.script), op.Scripts())
				require.Empty(t, n.Scripts(), "the push says it all")
				if c.script != "pool_add" { // of which two have room
					require.True(t, later.Pending())
				}
				w.inspect()
			})
		})
	}
}

// only is one run of a script.
func only(script string) map[string]int { return map[string]int{script: 1} }

// The claim that waits here has no process that would sweep for it.
func TestWhatHasExpiredIsHandedOnByWhateverScriptComesBy(t *testing.T) {
	ctx := context.Background()
	for script, call := range map[string]func(n *proc, held *allocator.Allocation[string]) error{
		"pool_acquire": func(n *proc, _ *allocator.Allocation[string]) error {
			_, err := n.TryAllocate(ctx, nil)
			if _, is := err.(*berth.AcquireError); is { //nolint:errorlint // exactly that
				return nil
			}
			return fmt.Errorf("it has passed the line: %w", err)
		},
		"pool_renew": func(_ *proc, held *allocator.Allocation[string]) error { return held.Renew(ctx) },
		"pool_rest":  func(n *proc, _ *allocator.Allocation[string]) error { return n.Rest(ctx, "kept", time.Second, "", nil) },
		"pool_swap": func(_ *proc, held *allocator.Allocation[string]) error {
			if err := held.Swap(ctx); err == nil {
				return fmt.Errorf("it has passed the line")
			}
			return nil
		},
		"pool_sweep": func(n *proc, _ *allocator.Allocation[string]) error {
			_, err := n.ops().Sweep(ctx, proxies)
			return err
		},
		"pool_add": func(n *proc, _ *allocator.Allocation[string]) error {
			_, err := n.Add(ctx, []string{"kept"}, nil)
			return err
		},
		"pool_force_release": func(n *proc, held *allocator.Allocation[string]) error {
			return n.force(held.ID())
		},
	} {
		for _, what := range []string{"a lease", "a rest"} {
			if what == "a rest" && script != "pool_sweep" {
				continue // one sweep drops both
			}
			t.Run(what+" before "+script, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					w.add("kept", "a")
					n := w.node()
					held := n.takes("kept", &allocator.AllocateOptions{NoRenew: true, Lease: time.Hour})
					if what == "a lease" {
						w.acquireScript("dead", "dead.1")
					} else {
						require.NoError(t, w.pool.Rest(ctx, "a", lease, "", nil))
					}
					w.acquireScript("x", "x.1", func(r *engine.Record) { r.Wait = time.Hour })
					w.Until(lease)
					require.Equal(t, byte('w'), w.PhaseOf("x.1"))
					n.Fresh()
					require.NoError(t, call(n, held))
					require.Equal(t, byte('g'), w.PhaseOf("x.1"))
					if script != "pool_force_release" { // which frees another one first
						require.Equal(t, "x.1", w.holder("a"))
					}
					require.Equal(t, only(script), n.Scripts())
					w.inspect()
				})
			})
		}
	}
}

func TestTryNeverPassesTheLineNorStandsInIt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		try := func() *berth.AcquireError {
			t.Helper()
			_, err := n.TryAllocate(t.Context(), nil)
			var refused *berth.AcquireError
			require.ErrorAs(t, err, &refused)
			require.ErrorIs(t, err, berth.ErrBusy)
			return refused
		}
		refused := try()
		require.Equal(t, berth.ReasonEmpty, refused.Reason)
		require.Zero(t, refused.Capacity, "there is no such pool")
		require.Empty(t, w.Keys(), "and it does not make one")

		w.add("a", "b")
		w.occupy("x")
		held := n.takes("b", nil)
		refused = try()
		require.Equal(t, berth.ReasonFull, refused.Reason)
		require.Equal(t, 2, refused.Capacity)
		require.Equal(t, 2, refused.Held)
		require.Zero(t, refused.Waiting)
		require.Zero(t, w.inspect().Waiting)

		q := w.node().queue(nil)
		w.vacate("x")
		got := q.gets(w.Now(), "a")
		_ = try()
		w.release(held)
		n.takes("b", nil)
		w.release(got)
	})
}

// More waiters have died than one script drops: what is free is not for Try while
// one that lives stands behind them.
func TestTryDoesNotPassALineThatIsFullOfTheDead(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for i := range 120 {
			w.acquireScript("dead", fmt.Sprint("dead.", i))
		}
		w.acquireScript("x", "x.1", func(r *engine.Record) { r.Wait = time.Hour })
		w.Advance(lease)
		// A process that dies with this call does not sweep on.
		w.Call("pool_add", "60000", "berth:wake:", proxies, "0", "1", "0", "1", "", "a")
		require.Equal(t, allocator.Free, w.status("a").State)
		_, err := w.node().TryAllocate(t.Context(), nil)
		require.ErrorIs(t, err, berth.ErrBusy)
		require.Equal(t, "x.1", w.holder("a"))
		require.Zero(t, w.inspect().Waiting)
	})
}

func TestAnEmptyPoolIsWaitedFor(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		first, second := n.queue(nil), n.queue(nil)
		w.Until(time.Minute)
		w.add("a")
		a := first.gets(time.Minute, "a")
		require.True(t, second.Pending())
		_, err := w.pool.Clear(t.Context())
		require.NoError(t, err)
		w.release(a)
		w.Until(2 * time.Minute)
		require.True(t, second.Pending())
		w.add("b")
		second.gets(2*time.Minute, "b")
	})
}

func TestADeadWaiterAheadIsPassedAtTheEndOfItsLease(t *testing.T) {
	for name, free := range map[string]time.Duration{
		"what comes free goes to one that has died a moment ago": 1600 * ms,
		"what comes free goes by one that died long ago":         lease + 500*ms,
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.add("a")
				w.occupy("x")
				dead, n := w.node(), w.node()
				dead.queue(nil)
				q := n.queue(nil)
				w.Until(1500 * ms) // before its first heartbeat
				dead.Die()
				w.Until(free)
				w.vacate("x")
				q.getsIn(max(free, lease), "a")
				w.inspect()
			})
		})
	}
}

// Nobody has swept the one that died: the release itself goes by it.
func TestAReleaseGoesByTheDead(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		w.occupy("x")
		w.acquireScript("dead", "dead.1")
		w.acquireScript("y", "y.1", func(r *engine.Record) { r.Wait = time.Hour })
		w.Until(lease)
		require.Equal(t, 2, w.inspect().Waiting)
		w.vacate("x")
		require.Equal(t, "y.1", w.holder("a"))
		require.Zero(t, w.inspect().Waiting)
	})
}

func TestAWaitEndsAtItsBound(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		w.occupy("x")
		n := w.node()
		q := n.queue(&allocator.AllocateOptions{MaxWait: 7 * time.Second})
		ctx, cancel := context.WithTimeout(context.Background(), 8*time.Second)
		defer cancel()
		bounded := n.queueOn(ctx, nil)
		refused := q.Refused(7*time.Second, berth.ReasonTimedOut)
		require.Equal(t, proxies, refused.Name)
		require.NotErrorIs(t, refused, context.DeadlineExceeded, "ctx has not ended")
		refused = bounded.Refused(8*time.Second, berth.ReasonTimedOut)
		require.ErrorIs(t, refused, context.DeadlineExceeded)
		synctest.Wait()
		require.Zero(t, w.inspect().Waiting)
		w.vacate("x")
		n.takes("a", &allocator.AllocateOptions{MaxWait: ms})
		w.inspect()
	})
}
