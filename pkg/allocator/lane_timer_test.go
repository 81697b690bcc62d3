package allocator_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/node"
)

// calm starts a process whose heartbeats are 20 s apart: what comes in time comes by a timer.
func (w *world) calm() *proc {
	w.T.Helper()
	return w.nodeWith(node.Config{Lease: time.Minute}, allocator.Config[string]{})
}

// A later claim of the node waits for something that comes later.
func TestAClaimThatComesLaterPutsOffNoMomentOfAnotherLane(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b", "c")
		w.bind("anna", "a", 0)
		w.bind("ben", "b", 0)
		holder, n := w.calm(), w.calm()
		holder.takes("a", nil)
		holder.takes("b", nil)
		begins := w.Now()
		first := n.queue(sticks("anna", 5*time.Second))
		w.Advance(time.Second)
		second := n.queue(sticks("ben", 10*time.Second))
		w.add("d")
		w.Until(begins + 6*time.Second)
		first.getsIn(begins+5*time.Second, "c")
		bound, _ := w.binding("anna")
		require.Equal(t, "c", bound)
		w.Until(begins + 12*time.Second)
		second.getsIn(begins+11*time.Second, "d")
		w.inspect()
	})
}

// A beat of many claims goes in several batches.
func TestOneNodeKeepsTheMomentsOfFiftyLanes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		all := numbered(50)
		w.add(all...)
		holder, n := w.calm(), w.calm()
		rests := func(i int) time.Duration { return time.Second + time.Duration(i*37%50)*700*ms }
		began := w.Now()
		var waits []*wait
		for i, r := range all {
			a := holder.takes(r, nil)
			require.NoError(t, a.Rest(rests(i), ""))
			w.release(a)
			waits = append(waits, n.queue(names(r)))
			w.Advance(ms)
		}
		w.Advance(40 * time.Second)
		for i, q := range waits {
			require.Equal(t, all[i], q.GrantedBy(began+time.Duration(i)*ms+rests(i)).Resource())
		}
		w.inspect()
	})
}

// Its own moment is known although its script has stopped at its bound.
func TestAClaimWhoseScriptStoppedAtItsBoundKeepsItsMoment(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		w.bind("anna", "a", 0)
		holder, n := w.calm(), w.calm()
		holder.takes("a", nil)
		n.subscribe()
		for i := range 150 {
			r := fmt.Sprintf("r%03d", i)
			w.add(r)
			require.NoError(t, w.pool.Rest(t.Context(), r, time.Second, "", nil))
		}
		w.Advance(2 * time.Second)
		n.Fresh()
		began := w.Now()
		q := n.queue(sticks("anna", 5*time.Second))
		require.Positive(t, n.Count("pool_sweep"), "more was left")
		w.Advance(6 * time.Second)
		q.GrantedWithin(began+5*time.Second, ms)
		w.inspect()
	})
}

func TestAClaimThatWasRestoredKeepsItsMoment(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b")
		w.bind("anna", "a", 0)
		holder, n := w.node(), w.calm()
		holder.takes("a", nil)
		holder.takes("b", nil)
		began := w.Now()
		q := n.queue(sticks("anna", 15*time.Second))
		holder.Die()
		w.Do("FLUSHALL")
		w.add("a", "b")
		require.NoError(t, w.pool.Rest(t.Context(), "a", berth.Forever, "", nil))
		w.Advance(lease + time.Second)
		require.Equal(t, 1, n.Count("pool_restore"), "when the hold of a would have ended")
		w.Until(began + 16*time.Second)
		require.Equal(t, "b", q.GrantedWithin(began+15*time.Second, ms).Resource())
		w.inspect()
	})
}

// Each waits for a rest of a second, over and over: at each end one question of one claim. A sweep
// looks at all of the pool.
func TestManyLanesOnAsManyNodesAreNoHerd(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const many, rounds = 32, 2
		all := numbered(many)
		w.add(all...)
		nodes := make([]*proc, many)
		for i, r := range all {
			nodes[i] = w.nodeOf(allocator.Config[string]{Cooldown: time.Second})
			w.release(nodes[i].take(names(r)))
		}
		for _, n := range nodes {
			n.Fresh()
		}
		for range rounds {
			var waits []*wait
			for i, r := range all {
				waits = append(waits, nodes[i].queue(names(r)))
			}
			w.Advance(time.Second + 50*ms)
			for i, q := range waits {
				require.Equal(t, all[i], q.Got.Resource())
				w.release(q.Got)
			}
		}
		scripts, total := map[string]int{}, 0
		for _, n := range nodes {
			for name, count := range n.Scripts() {
				scripts[name] += count
				total += count
			}
		}
		require.Zero(t, scripts["pool_sweep"], "%v", scripts)
		require.LessOrEqual(t, total, (3*rounds+2)*many, "%v", scripts)
		w.inspect()
	})
}

// More lanes than one script serves.
func TestTheHeartbeatsOfManyLanesAreFew(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		all := numbered(110)
		w.add(all...)
		holder, n := w.node(), w.node()
		var waits []*wait
		for range all {
			holder.take(nil)
		}
		for _, r := range all {
			waits = append(waits, n.queue(names(r)))
		}
		n.Fresh()
		w.Advance(5 * lease)
		require.LessOrEqual(t, n.Count("pool_renew"), 2*(5*3+2), "%v", n.Scripts())
		require.Zero(t, n.Count("pool_sweep"))
		holder.Die()
		w.Advance(3 * lease)
		for i, q := range waits {
			require.Equal(t, all[i], q.Got.Resource())
		}
		w.inspect()
	})
}
