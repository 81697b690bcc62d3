package allocator_test

import (
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

// Whoever becomes the first in line learns of the next end.
func TestRestsThatEndOneAfterTheOtherWakeTheLineOneAfterTheOther(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b", "c", "d")
		rests := map[string]time.Duration{"a": 1300 * ms, "b": time.Second, "c": 1700 * ms, "d": 20 * time.Second}
		for key, ends := range rests {
			require.NoError(t, w.pool.Rest(t.Context(), key, ends, "", nil))
		}
		nodes := []*proc{w.calm(), w.calm(), w.calm()}
		var line []*wait
		for i := range 4 {
			line = append(line, nodes[i%3].queue(nil))
		}
		line[0].getsIn(time.Second, "b")
		line[1].getsIn(1300*ms, "a")
		line[2].getsIn(1700*ms, "c")
		w.Until(2 * time.Second)
		require.NoError(t, w.pool.Rest(t.Context(), "d", time.Second, "", exactly))
		line[3].getsIn(3*time.Second, "d")
		w.inspect()
	})
}

// Each of these makes something free, in one script of its own.
func TestWhatComesFreeIsHandedOnInTheSameScript(t *testing.T) {
	type row struct {
		script string
		does   func(op *proc, held *allocator.Allocation[string]) error
	}
	inEach(t, map[string]row{
		"released": {"pool_release", func(_ *proc, held *allocator.Allocation[string]) error { return held.Release(ctx) }},
		"added": {"pool_add", func(op *proc, _ *allocator.Allocation[string]) error {
			return change(op.Add(ctx, []string{"new"}, nil))
		}},
		"its rest was ended": {"pool_rest", func(op *proc, _ *allocator.Allocation[string]) error {
			return op.Rest(ctx, "rests", 0, "", nil)
		}},
	}, func(t *testing.T, w *world, c row) {
		op, n := w.node("a", "rests"), w.node()
		require.NoError(t, op.Rest(ctx, "rests", berth.Forever, "mine", nil))
		held := op.take(nil)
		q := n.queue(nil)
		w.Advance(time.Second)
		op.Fresh()
		n.Fresh()
		require.NoError(t, c.does(op, held))
		q.Granted(w.Now())
		require.Equal(t, map[string]int{c.script: 1}, op.Scripts())
		require.Empty(t, n.Scripts(), "the push says it all")
	})
}

// A lease has run out, and nobody has swept it: these scripts give what it held to the first in line as well, whose
// node would not sweep here. Random histories meet it often with the others.
func TestWhatHasExpiredIsHandedOnByWhateverScriptComesBy(t *testing.T) {
	inEach(t, map[string]func(n *proc, held *allocator.Allocation[string]){
		"pool_rest": func(n *proc, _ *allocator.Allocation[string]) {
			require.NoError(n.w.T, n.Rest(ctx, "kept", time.Second, "", nil))
		},
		"pool_swap": func(n *proc, held *allocator.Allocation[string]) {
			require.ErrorIs(n.w.T, held.Swap(ctx), berth.ErrBusy, "it does not pass the line")
		},
	}, func(t *testing.T, w *world, comes func(n *proc, held *allocator.Allocation[string])) {
		n := w.node("kept", "a")
		held := n.takes("kept", &allocator.AllocateOptions{NoRenew: true, Lease: time.Hour})
		w.acquireScript("dead", "dead.1")
		w.stands("x", "x.1", wants("", "", 0))
		w.Until(lease)
		require.Equal(t, byte('w'), w.PhaseOf("x.1"))
		comes(n, held)
		require.Equal(t, "x.1", w.holder("a"))
		w.inspect()
	})
}

// The first alone is told of the end of a rest; the next one hears of it when the first goes, also where it has ended.
func TestTheNextInLineHearsOfADeadlineWhenTheFirstGoes(t *testing.T) {
	type row struct {
		goes     time.Duration
		resource string // that they wait for, "" for any
	}
	inEach(t, map[string]row{
		"that is to come": {100 * ms, ""}, "that has passed": {801 * ms, ""}, "that is to come, in a lane": {100 * ms, "a"},
	}, func(t *testing.T, w *world, c row) {
		held, n := w.node("a").take(nil), w.calm()
		w.stands("x", "x.1", wants(c.resource, "", 0))
		q := n.queue(names(c.resource))
		require.NoError(t, held.Rest(400*ms, ""))
		w.release(held)
		w.Until(c.goes)
		w.releaseScript("x", "x.1")
		q.GrantedBy(max(c.goes, 400*ms))
	})
}

func TestADeadClaimAtTheHeadOfALaneIsPassed(t *testing.T) {
	inWorld(t, func(_ *testing.T, w *world) {
		w.add("a")
		held := w.calm().take(nil)
		w.stands("dead", "dead.1", func(r *engine.Record) { r.Extra = "o 0 - 0 1:a" })
		q := w.calm().queue(names("a"))
		w.Advance(lease)
		w.release(held)
		q.gets(lease, "a")
	})
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
