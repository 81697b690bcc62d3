package integration

import (
	"slices"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/test/harness"
)

// lockAmnesias are ways in which a server forgets those who wait.
var lockAmnesias = map[string]func(w *world){
	"a flush":                func(w *world) { w.do("FLUSHALL") },
	"a restart without data": func(w *world) { w.server.Restart(w.T) },
}

func TestTheLineOfALockSurvives(t *testing.T) {
	t.Parallel()
	const many, nodes = 30, 3
	for what, strike := range lockAmnesias {
		t.Run(what, func(t *testing.T) {
			w := privateLocks(t)
			var crew []*locker
			for range nodes {
				crew = append(crew, w.locker(node.Config{Lease: safe}))
			}
			holder := w.locker(node.Config{Lease: safe})
			outer := w.lockFor(holder, "me", nil)
			inner := w.lockFor(holder, "me", &qlock.LockOptions{Conflict: qlock.ExtendAndWorkThrough})
			var waits []*locking
			for i := range many {
				opts := &qlock.LockOptions{Priority: i % 2}
				if i%5 == 0 {
					opts.Access = qlock.LIFO
				}
				waits = append(waits, w.lockQueue(crew[i%nodes], opts, i+1))
			}
			order := w.whole(door).inLine()

			strike(w)
			for _, l := range []*qlock.Lock{outer, inner} {
				w.Signalled("the holder to hear", l.Done())
				require.ErrorIs(t, l.Err(), berth.ErrLost)
			}
			// Whoever asked first was granted before the others stood again: the
			// capacity is one.
			_, first := w.firstOf(waits)
			order = slices.DeleteFunc(order, func(claim string) bool { return claim == first.ID() })
			w.Await("all others stand in line again", func() bool { return w.look(door).waiting() == many-1 })
			require.Equal(t, order, w.whole(door).inLine(), "the line has another order")

			fence := outer.Fence()
			for i, l := range w.drainLocks(waits) {
				require.Greater(t, l.Fence(), fence, "fences fell back")
				fence = l.Fence()
				if i > 0 {
					require.Equal(t, order[i-1], l.ID(), "the %dth is out of turn", i)
				}
			}
			for _, l := range []*qlock.Lock{outer, inner} {
				require.ErrorIs(t, l.Release(w.Within(patience)), berth.ErrNotHeld)
			}
			w.tombstones(door)
		})
	}
}

func TestManyCancelledLocksLeaveNothing(t *testing.T) {
	const cancels = 500
	w := sharedLocks(t)
	// A ghost would live for the whole lease, and no call is so slow that it
	// counts as unanswered.
	cfg := node.Config{Lease: time.Hour, CallTimeout: patience, CleanupTimeout: patience, Retry: heard}
	s := w.storm(door, 1)
	proxy := harness.Proxy(t, w.server)
	proxy.AddLatency(time.Millisecond)
	for _, pipelines := range []int{1, 3, 5} {
		edit := heardOn(pipelines)
		cfg.Observer = s.failures()
		for _, redis := range []rueidis.Client{w.server.Client(t, edit), proxy.Client(t, edit)} {
			s.ways = append(s.ways, way{forLock(w.lockerOn(redis, cfg)), redis})
		}
	}
	s.rage(30, cancels)
	s.settled()
	require.Zero(t, s.failed.Load())
	w.idle(door) // without a tombstone: every call was answered
	n := w.reader().Look(keyspace.Lock, door)
	require.Nil(t, n.Lock)
	require.Zero(t, n.Waiting)
}
