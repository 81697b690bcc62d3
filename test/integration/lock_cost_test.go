package integration

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/test/harness"
)

func TestAnUncontendedLockCostsTwoScripts(t *testing.T) {
	b := privateLocks(t)
	c := b.locker(qlock.Config{Lease: time.Minute})
	b.subscribeLocker(c)
	b.busyLocker(c)
	ctx := b.within(patience)
	var l, inner *qlock.Lock
	require.Equal(t, 1, b.cost(func() { l = b.lockFor(c, "me", nil) }), "lock")
	require.Equal(t, 1, b.cost(func() { _, err := c.TryLock(ctx, door, nil); require.ErrorIs(t, err, qlock.ErrBusy) }), "try, held")
	work := &qlock.LockOptions{Conflict: qlock.WorkThrough}
	require.Equal(t, 1, b.cost(func() { inner = b.lockFor(c, "me", work) }), "work through")
	require.Equal(t, 1, b.cost(func() { b.unlock(inner) }), "its release")
	require.Equal(t, 1, b.cost(func() { b.unlock(l) }), "release")
	require.Equal(t, 1, b.cost(func() {
		var err error
		l, err = c.TryLock(ctx, door, nil)
		require.NoError(t, err)
	}), "try")
	b.unlock(l)
	var set *qlock.LockSet
	require.Equal(t, 3, b.cost(func() {
		var err error
		set, err = c.LockAll(ctx, []string{"c", "a", "b", "a"}, nil)
		require.NoError(t, err)
	}), "lock all of three")
	require.Equal(t, 3, b.cost(func() { require.NoError(t, set.Release(ctx)) }), "their release")
}

func TestAHandOffOfALockCostsNoScriptBeyondAcquireAndRelease(t *testing.T) {
	b := privateLocks(t)
	// Heartbeats would come after 20 s.
	var crew []*qlock.Client
	for range 3 {
		c := b.locker(qlock.Config{Lease: time.Minute})
		b.subscribeLocker(c)
		b.busyLocker(c)
		crew = append(crew, c)
	}
	const many = 300
	scripts := b.cost(func() {
		var all sync.WaitGroup
		for i := range many {
			all.Go(func() {
				l, err := crew[i%len(crew)].Lock(b.within(patience), door, nil)
				if err == nil {
					err = l.Release(b.within(patience))
				}
				if err != nil {
					t.Errorf("lock and release: %v", err)
				}
			})
		}
		all.Wait()
	})
	t.Logf("%d scripts for %d contended locks", scripts, many)
	require.Equal(t, 2*many, scripts)
	b.idle(door)
}

func TestAThousandWaitersForALockSendNothingButHeartbeats(t *testing.T) {
	b := privateLocks(t).turn()
	const many, batch, lease = 1000, 200, 3 * time.Second
	c := b.locker(qlock.Config{Lease: lease})
	b.busyLocker(c) // it has not subscribed yet
	l := b.lock(b.locker(qlock.Config{Lease: time.Minute}), nil)
	before := b.connections()
	waits := make([]*locking, many)
	for i := range waits {
		waits[i] = b.lockLater(c, nil)
	}
	b.await("all wait", func() bool { return b.waiting(door) == many })
	connections := b.connections() - before
	require.LessOrEqual(t, connections, 1, "connections for %d waiters", many)

	// Six thirds of a lease: each may come a tenth early, and one has begun.
	const thirds = 7.7 // 6 / 0.9 and 1
	start := b.now()
	scripts := b.cost(func() {
		b.await("two leases have passed", func() bool { return b.now()-start >= 2*lease.Milliseconds() })
	})
	t.Logf("%d waiters: %d more connections, %d scripts within two leases", many, connections, scripts)
	require.Positive(t, scripts)
	require.LessOrEqual(t, float64(scripts), thirds*many/batch)

	b.unlock(l)
	b.drainLocks(waits)
	b.idle(door)
}

// Sixteen who want a lock for 2 ms each, one after the other, against one who
// does nothing but hold: what is missing is what the hand-offs take. It has the
// machine to itself: no other test runs beside one that is not parallel.
func TestSixteenWaitersLoseLittleToHandOffs(t *testing.T) {
	const (
		waiters, nodes = 16, 4
		hold           = 2 * time.Millisecond
		groups, rounds = 5, 5
		holds          = 96
	)
	b := newBed(t, harness.Shared(t))
	b.kind = keyspace.Lock
	var crew []*qlock.Client
	for range nodes {
		c := b.locker(qlock.Config{})
		b.subscribeLocker(c)
		crew = append(crew, c)
	}
	bare := func() {
		for range holds {
			work(hold)
		}
	}
	locked := func() {
		var all sync.WaitGroup
		for i := range waiters {
			all.Go(func() {
				for range holds / waiters {
					l, err := crew[i%nodes].Lock(b.within(patience), door, nil)
					if err != nil {
						t.Errorf("lock: %v", err)
						return
					}
					work(hold)
					if err := l.Release(b.within(patience)); err != nil {
						t.Errorf("release: %v", err)
					}
				}
			})
		}
		all.Wait()
	}
	took := func(loop func()) time.Duration {
		start := time.Now()
		loop()
		return time.Since(start)
	}
	locked() // opens the connections
	var medians []float64
	for range groups {
		var ratios []float64
		for range rounds {
			// Side by side, so that what else the machine does meets both.
			alone := took(bare)
			ratios = append(ratios, float64(alone)/float64(took(locked)))
		}
		slices.Sort(ratios)
		t.Logf("%.2f of a bare loop, median of %d rounds, %.2f to %.2f", ratios[rounds/2], rounds, ratios[0], ratios[rounds-1])
		medians = append(medians, ratios[rounds/2])
	}
	// A hand-off wakes three processes, so a machine that is busy with others
	// shows in it first: the best median has met the least of that.
	require.GreaterOrEqual(t, slices.Max(medians), leastOfBare)
	b.idle(door)
}

// work is to do something for as long: a timer, as what is locked mostly waits
// for something itself.
func work(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	<-timer.C
}
