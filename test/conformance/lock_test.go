package conformance

import (
	"context"
	"sync"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/qlock"
)

// door is the lock of tests that need only one.
const door = "door"

func lockTests() []test {
	return []test{
		{name: "lock/queued, random and last in, first out", run: lockAccess},
		{name: "lock/work through", run: lockWorkThrough},
		{name: "lock/extend and work through", run: lockExtendAndWorkThrough},
		{name: "lock/deadlock", run: lockDeadlock},
		{name: "lock/several names in several slots", run: lockAll},
		{name: "lock/extend", run: lockExtend},
		{name: "lock/maximum hold", run: lockMaxHold},
		{name: "lock/detach and resume", run: lockDetach},
		{name: "lock/the swarm flushes a dead node", run: lockSwarm},
		{name: "lock/the swarm flushes a dead node that it has forgotten", alone: true, run: lockForgottenSwarm},
		{name: "lock/force release and listings", run: lockForce},
	}
}

func lockAccess(b *bed) {
	locks := b.locks(qlock.Config{Lease: long})
	first := must(b, lock(locks[0], door, nil))
	var line []*pending[*qlock.Lock]
	for i, access := range []qlock.Access{qlock.LIFO, qlock.Queued, qlock.LIFO, qlock.Random, qlock.Queued, qlock.LIFO} {
		line = append(line, queue(b, lock(locks[i%2], door, &qlock.LockOptions{Access: access}), b.lockWaiting(locks[0], door), i+1))
	}
	// The random one stands anywhere among the queued ones, all of them before the
	// rest; of that the last comes first.
	var order []int
	release(b, first)
	for range line {
		b.await("the next has it", func() bool {
			for i, w := range line {
				if w != nil && !w.waits() {
					release(b, w.wait(b))
					order, line[i] = append(order, i), nil
					return true
				}
			}
			return false
		})
	}
	require.ElementsMatch(b, []int{1, 3, 4}, order[:3])
	require.Equal(b, []int{5, 2, 0}, order[3:])
	queued := order[:0:0]
	for _, i := range order {
		if i == 1 || i == 4 {
			queued = append(queued, i)
		}
	}
	require.Equal(b, []int{1, 4}, queued)
}

func lockWorkThrough(b *bed) {
	locks := b.locks(qlock.Config{Lease: long})
	owner := berth.WithOwner(b.within(patience), "order:7")
	outer, err := locks[0].Lock(owner, door, nil)
	require.NoError(b, err)
	inner, err := locks[0].Lock(owner, door, &qlock.LockOptions{Conflict: qlock.WorkThrough})
	require.NoError(b, err)
	require.Equal(b, qlock.Reentered, inner.Process())
	require.Equal(b, outer.Fence(), inner.Fence())
	w := queue(b, lock(locks[1], door, nil), b.lockWaiting(locks[0], door), 1)

	release(b, outer)
	require.True(b, must(b, locked(locks[1], door)), "the inner entry holds it")
	require.NoError(b, inner.Err())
	require.True(b, w.waits())
	release(b, inner)
	next := w.wait(b)
	require.Greater(b, next.Fence(), outer.Fence())
	release(b, next)
	require.False(b, must(b, locked(locks[0], door)))
}

func lockExtendAndWorkThrough(b *bed) {
	locks := b.locks(qlock.Config{Lease: long})
	owner := berth.WithOwner(b.within(patience), "order:7")
	outer, err := locks[0].Lock(owner, door, &qlock.LockOptions{Lease: long, NoRenew: true})
	require.NoError(b, err)
	inner, err := locks[0].Lock(owner, door, &qlock.LockOptions{Conflict: qlock.ExtendAndWorkThrough, Lease: long})
	require.NoError(b, err)
	require.Equal(b, qlock.ReenteredExtended, inner.Process())
	require.Greater(b, outer.Left(), long)
	info, err := locks[1].Info(b.within(patience), door)
	require.NoError(b, err)
	require.Greater(b, info.Left, long)
	require.Len(b, info.Entries, 2)

	release(b, inner) // what it has not used goes back
	require.LessOrEqual(b, outer.Left(), long)
	require.NoError(b, outer.Err())
	info, err = locks[1].Info(b.within(patience), door)
	require.NoError(b, err)
	require.LessOrEqual(b, info.Left, long)
	release(b, outer)
}

func lockDeadlock(b *bed) {
	locks := b.locks(qlock.Config{Lease: long})
	err := locks[0].Do(b.within(patience), door, nil, func(ctx context.Context) error {
		_, err := locks[0].Lock(ctx, door, nil)
		require.ErrorIs(b, err, berth.ErrDeadlock)
		b.refused(err, berth.ReasonDeadlock)
		// The owner is known everywhere, not in the process alone.
		_, err = locks[1].Lock(ctx, door, nil)
		require.ErrorIs(b, err, berth.ErrDeadlock)
		_, err = locks[1].TryLock(b.within(patience), door, nil)
		b.refused(err, berth.ReasonHeld)
		return nil
	})
	require.NoError(b, err)
}

func lockAll(b *bed) {
	locks := b.locks(qlock.Config{Lease: long})
	names := numbered(6)
	backwards := []string{names[5], names[0], names[3], names[3]}
	var users sync.WaitGroup
	for i, wanted := range [][]string{names, backwards, names, backwards} {
		users.Go(func() {
			for range 5 {
				set, err := locks[i%2].LockAll(b.within(patience), wanted, nil)
				if err != nil {
					b.Errorf("lock all: %v", err)
					return
				}
				if err := set.Release(b.within(patience)); err != nil {
					b.Errorf("release: %v", err)
				}
			}
		})
	}
	users.Wait()

	l := must(b, lock(locks[0], names[2], nil))
	_, err := locks[1].TryLockAll(b.within(patience), names, nil)
	b.refused(err, berth.ReasonHeld)
	require.Equal(b, names[2], one(b, locks[1].Locks(b.within(patience))).Name, "all or none")
	release(b, l)
}

func lockExtend(b *bed) {
	locks := b.locks(qlock.Config{Lease: long})
	l := must(b, lock(locks[0], door, &qlock.LockOptions{Lease: long, NoRenew: true}))
	require.NoError(b, l.Extend(b.within(patience), long))
	require.Greater(b, l.Left(), long)
	require.NoError(b, l.Renew(b.within(patience)), "it never brings the end nearer")
	require.Greater(b, l.Left(), long)
	require.NoError(b, locks[1].ForceExtend(b.within(patience), door, long))
	info, err := locks[1].Info(b.within(patience), door)
	require.NoError(b, err)
	require.Greater(b, info.Left, 2*long)
	release(b, l)
	require.ErrorIs(b, l.Extend(b.within(patience), long), berth.ErrReleased)
}

func lockMaxHold(b *bed) {
	locks := b.locks(qlock.Config{Lease: long})
	l := must(b, lock(locks[0], door, &qlock.LockOptions{MaxHold: short}))
	next := must(b, lock(locks[1], door, nil))
	require.ErrorIs(b, l.Err(), berth.ErrExpired)
	b.ended(l, berth.ErrExpired)
	release(b, next)
}

func lockDetach(b *bed) {
	locks := b.locks(qlock.Config{Lease: long})
	l := afterAWait(b, lock(locks[0], door, nil), lock(locks[1], door, nil), b.lockWaiting(locks[0], door))
	resumed, err := locks[1].Resume(b.within(patience), must(b, l.Detach))
	require.NoError(b, err)
	require.Equal(b, qlock.Resumed, resumed.Process())
	require.Equal(b, l.Fence(), resumed.Fence())
	b.ended(l, berth.ErrReleased)
	release(b, resumed)
	require.False(b, must(b, locked(locks[0], door)))
}

// zombie is for how long a node may be silent whose end a test waits for. A node that is
// silent for longer because the machine is busy gives back what it has, and nobody has to
// flush it.
const zombie = 8 * time.Second

// oneConnection is for a client that is closed in the midst of its work: rueidis leaves a
// further connection open that is made in that moment, and goes on using it.
func oneConnection(o *rueidis.ClientOption) { o.PipelineMultiplex = -1 }

func lockSwarm(b *bed) {
	swarm := qlock.SwarmConfig{ProbeEvery: 100 * time.Millisecond, ZombieAfter: zombie, FlushEvery: -1}
	locks := b.locks(qlock.Config{Lease: long})
	conn := b.deployment.Client(b.T, oneConnection)
	dead, err := qlock.New(conn, qlock.Config{Namespace: b.ns, Swarm: swarm, CallTimeout: calls, CleanupTimeout: short})
	require.NoError(b, err)
	require.NoError(b, dead.Swarm().Start(b.within(patience)))
	l := must(b, lock(dead, door, &qlock.LockOptions{Lease: berth.Forever}))
	w := queue(b, lock(locks[0], door, nil), b.lockWaiting(locks[0], door), 1)
	require.NoError(b, dead.Swarm().ProbeNow(b.within(patience)))
	flushed, err := locks[1].Swarm().FlushNow(b.within(patience))
	require.NoError(b, err)
	require.Zero(b, flushed.Locks, "it lives")

	conn.Close() // the node is cut off for good
	var locksEnded int
	b.await("the swarm has given its lock away", func() bool {
		flushed, err := locks[1].Swarm().FlushNow(b.within(patience))
		require.NoError(b, err)
		locksEnded += flushed.Locks
		return locksEnded > 0
	})
	require.ErrorIs(b, l.Err(), berth.ErrLost, "the node knew before")
	release(b, w.wait(b))
	require.Error(b, dead.Close(canceled()))
}

// lockForgottenSwarm has the server lose the record of the swarm, in a Cluster with all
// of its shard, and a node die before it has probed again.
func lockForgottenSwarm(b *bed) {
	space, err := keyspace.New(b.ns)
	require.NoError(b, err)
	record := space.Probes("nodes")
	names := b.elsewhere(space, record, 2)
	swarm := func(limit time.Duration) qlock.SwarmConfig {
		return qlock.SwarmConfig{ProbeEvery: 100 * time.Millisecond, ZombieAfter: limit, FlushEvery: -1}
	}
	lives := b.locks(qlock.Config{Lease: long, Swarm: swarm(time.Minute)})
	require.NoError(b, lives[0].Swarm().Start(b.within(patience)))
	conn := b.deployment.Client(b.T, oneConnection)
	dead, err := qlock.New(conn, qlock.Config{Namespace: b.ns, Swarm: swarm(zombie), CallTimeout: calls, CleanupTimeout: short})
	require.NoError(b, err)
	require.NoError(b, dead.Swarm().Start(b.within(patience)))
	endless := &qlock.LockOptions{Lease: berth.Forever}
	kept := must(b, lock(lives[0], names[0], endless))
	l := must(b, lock(dead, names[1], endless))
	holder := func(name string) berth.Holder {
		info, err := lives[1].Info(b.within(patience), name)
		require.NoError(b, err)
		require.Len(b, info.Entries, 1)
		return info.Entries[0]
	}
	b.await("the server has both without end", func() bool {
		return holder(names[0]).ZombieAfter > 0 && holder(names[1]).ZombieAfter > 0
	})
	w := queue(b, lock(lives[1], names[1], nil), b.lockWaiting(lives[0], names[1]), 1)

	conn.Close() // the node is cut off for good
	if b.deployment.Spec().Cluster {
		shard := b.redis[0].Nodes()[b.deployment.Master(b.T, record).Addr]
		require.NoError(b, shard.Do(b.within(patience), shard.B().Flushall().Build()).Error())
	} else {
		require.NoError(b, b.redis[0].Do(b.within(patience),
			b.redis[0].B().Del().Key(record, space.State(keyspace.Swarm, "nodes")).Build()).Error())
	}
	require.NoError(b, lives[0].Swarm().ProbeNow(b.within(patience)))
	b.await("the swarm has given its lock away", func() bool {
		flushed, err := lives[1].Swarm().FlushNow(b.within(patience))
		require.NoError(b, err)
		return flushed.Locks > 0
	})
	require.ErrorIs(b, l.Err(), berth.ErrLost, "the node knew before")
	release(b, w.wait(b))
	require.NoError(b, kept.Err())
	require.Equal(b, kept.ID(), holder(names[0]).ID, "its node lives")
	release(b, kept)
	require.Error(b, dead.Close(canceled()))
}

// elsewhere are names of locks whose keys lie in other shards of a Cluster than a key
// does.
func (b *bed) elsewhere(space keyspace.Space, key string, many int) (names []string) {
	b.Helper()
	if !b.deployment.Spec().Cluster {
		return numbered(many)
	}
	shard := b.deployment.Master(b.T, key).Addr
	for _, name := range numbered(100) {
		if b.deployment.Master(b.T, space.State(keyspace.Lock, name)).Addr != shard {
			names = append(names, name)
		}
		if len(names) == many {
			return names
		}
	}
	require.Fail(b, "all names lie in one shard")
	return nil
}

func lockForce(b *bed) {
	locks := b.locks(qlock.Config{Lease: long})
	release(b, afterAWait(b, lock(locks[1], door, nil), lock(locks[0], door, nil), b.lockWaiting(locks[0], door)))
	names := numbered(12)
	var held []*qlock.Lock
	for i, name := range names {
		held = append(held, must(b, lock(locks[i%2], name, nil)))
	}
	var listed []string
	for _, info := range all(b, locks[1].Locks(b.within(patience))) {
		listed = append(listed, info.Name)
	}
	require.ElementsMatch(b, names, listed)

	w := queue(b, lock(locks[0], names[1], nil), b.lockWaiting(locks[1], names[1]), 1)
	line := one(b, locks[1].Queues(b.within(patience)))
	require.Equal(b, names[1], line.Name)
	require.Len(b, line.Waiters, 1)
	require.NoError(b, locks[0].ForceRelease(b.within(patience), names[1]))
	b.ended(held[1], berth.ErrReleased)
	release(b, w.wait(b))
	require.ErrorIs(b, locks[0].ForceRelease(b.within(patience), names[1]), berth.ErrNotHeld)

	many, err := locks[0].ForceReleaseNode(b.within(patience), locks[1].Node())
	require.NoError(b, err)
	require.Equal(b, 5, many)
	many, err = locks[1].ForceReleaseAll(b.within(patience))
	require.NoError(b, err)
	require.Equal(b, 6, many)
	for _, l := range held {
		b.ended(l, berth.ErrReleased)
	}
}

// locked asks whether somebody holds a lock.
func locked(c *qlock.Client, name string) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) { return c.Locked(ctx, name) }
}

// canceled is a context that has ended.
func canceled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
