package allocator_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/pkg/allocator"
)

// inEach runs a test in a world of its own for each of some cases.
func inEach[C any](t *testing.T, cases map[string]C, test func(t *testing.T, w *world, c C)) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) { test(t, w, c) })
		})
	}
}

// In whichever line they stand: in that for any, or in the lane of the only one.
func TestAHigherPriorityIsServedFirstAndEqualOnesInTheirOrder(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		held := w.node().takes("a", nil)
		var line []*wait
		for i, priority := range []int{0, 5, -128, 5, 127, 0} {
			w.Advance(ms)
			opts := &allocator.AllocateOptions{Priority: priority, Resource: []string{"", "a"}[i/3]}
			line = append(line, w.node().queue(opts))
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
	type row struct {
		script string
		// before leaves nothing free; after makes something free.
		before func(w *world, op *proc) (after func() error)
	}
	inEach(t, map[string]row{
		"released": {"pool_release", func(_ *world, op *proc) func() error {
			a := op.take(nil)
			return func() error { return a.Release(ctx) }
		}},
		"added": {"pool_add", func(w *world, op *proc) func() error {
			w.occupy("x")
			return func() error { _, err := op.Add(ctx, []string{"new"}, nil); return err }
		}},
		"room for one more holder": {"pool_add", func(w *world, op *proc) func() error {
			w.occupy("x")
			return func() error { _, err := op.Add(ctx, []string{"a"}, nil); return err }
		}},
		"its rest was ended": {"pool_rest", func(_ *world, op *proc) func() error {
			require.NoError(t, op.Rest(ctx, "a", berth.Forever, "mine", nil))
			return func() error { return op.Rest(ctx, "a", 0, "", nil) }
		}},
	}, func(t *testing.T, w *world, c row) {
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
}

// only is one run of a script.
func only(script string) map[string]int { return map[string]int{script: 1} }

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
		require.ErrorIs(t, second(w.node().TryAllocate(t.Context(), nil)), berth.ErrBusy)
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
		require.NoError(t, change(w.pool.Clear(t.Context())))
		w.release(a)
		w.Until(2 * time.Minute)
		require.True(t, second.Pending())
		w.add("b")
		second.gets(2*time.Minute, "b")
	})
}

func TestADeadWaiterAheadIsPassedAtTheEndOfItsLease(t *testing.T) {
	inEach(t, map[string]time.Duration{
		"what comes free goes to one that has died a moment ago": 1600 * ms,
		"what comes free goes by one that died long ago":         lease + 500*ms,
	}, func(t *testing.T, w *world, free time.Duration) {
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
}

// cancelled ends a wait, and checks what it returns and when.
func (a *wait) cancelled() {
	a.W.T.Helper()
	at := a.W.Now()
	a.Cancel(errMine)
	refused := a.Refused(at, berth.ReasonCancelled)
	require.ErrorIs(a.W.T, refused, errMine)
	require.ErrorIs(a.W.T, refused, context.Canceled)
	require.NotErrorIs(a.W.T, refused, berth.ErrBusy)
}
