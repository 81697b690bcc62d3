package integration

import (
	"slices"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/test/harness"
)

// lockAmnesias are ways in which a server forgets those who wait.
var lockAmnesias = map[string]func(b *bed){
	"a flush":                func(b *bed) { b.do("FLUSHALL") },
	"a restart without data": func(b *bed) { b.server.Restart(b.T) },
}

func TestTheLineOfALockSurvives(t *testing.T) {
	t.Parallel()
	const many, nodes = 30, 3
	for what, strike := range lockAmnesias {
		t.Run(what, func(t *testing.T) {
			b := privateLocks(t)
			var crew []*qlock.Client
			for range nodes {
				crew = append(crew, b.locker(qlock.Config{Lease: safe}))
			}
			holder := b.locker(qlock.Config{Lease: safe})
			outer := b.lockFor(holder, "me", nil)
			inner := b.lockFor(holder, "me", &qlock.LockOptions{Conflict: qlock.ExtendAndWorkThrough})
			var waits []*locking
			for i := range many {
				opts := &qlock.LockOptions{Priority: i % 2}
				if i%5 == 0 {
					opts.Access = qlock.LIFO
				}
				waits = append(waits, b.lockQueue(crew[i%nodes], opts, i+1))
			}
			order := b.whole(door).inLine()

			strike(b)
			for _, l := range []*qlock.Lock{outer, inner} {
				b.signalled("the holder to hear", l.Done())
				require.ErrorIs(t, l.Err(), qlock.ErrLost)
			}
			// Whoever asked first was granted before the others stood again: the
			// capacity is one.
			_, first := b.firstOf(waits)
			order = slices.DeleteFunc(order, func(claim string) bool { return claim == first.ID() })
			b.await("all others stand in line again", func() bool { return b.look(door).waiting() == many-1 })
			require.Equal(t, order, b.whole(door).inLine(), "the line has another order")

			fence := outer.Fence()
			for i, l := range b.drainLocks(waits) {
				require.Greater(t, l.Fence(), fence, "fences fell back")
				fence = l.Fence()
				if i > 0 {
					require.Equal(t, order[i-1], l.ID(), "the %dth is out of turn", i)
				}
			}
			for _, l := range []*qlock.Lock{outer, inner} {
				require.ErrorIs(t, l.Release(b.within(patience)), qlock.ErrNotHeld)
			}
			b.tombstones(door)
		})
	}
}

func TestManyCancelledLocksLeaveNothing(t *testing.T) {
	const cancels = 500
	b := sharedLocks(t)
	// A ghost would live for the whole lease, and no call is so slow that it
	// counts as unanswered.
	cfg := qlock.Config{Lease: time.Hour, CallTimeout: patience, CleanupTimeout: patience, Retry: heard}
	s := b.storm(door, 1)
	proxy := harness.Proxy(t, b.server)
	proxy.AddLatency(time.Millisecond)
	for _, pipelines := range []int{1, 3, 5} {
		edit := heardOn(pipelines)
		cfg.Observer = s.failures()
		for _, redis := range []rueidis.Client{b.server.Client(t, edit), proxy.Client(t, edit)} {
			s.ways = append(s.ways, way{forLock(b.lockerOn(redis, cfg)), redis})
		}
	}
	s.rage(30, cancels)
	s.settled()
	require.Zero(t, s.failed.Load())
	b.idle(door) // without a tombstone: every call was answered
	info, err := b.locker(qlock.Config{}).Info(b.within(patience), door)
	require.NoError(t, err)
	require.False(t, info.Held())
	require.Zero(t, info.Waiting)
}
