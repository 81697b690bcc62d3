package conformance

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/fence"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/once"
	"github.com/berth-go/berth/pkg/qlock"
)

// door is the lock of tests that need only one.
const door = "door"

func lockTests() []test {
	return []test{
		{name: "lock/queued, random and last in, first out", run: lockAccess},
		{name: "lock/work through, and extend", run: lockReenter},
		{name: "lock/several names in several slots", run: lockAll},
		{name: "lock/extend", run: lockExtend},
		{name: "lock/the swarm flushes a dead node that it has forgotten", alone: true, run: lockForgottenSwarm},
	}
}

func lockAccess(w *world) {
	locks := w.locks()
	first := must(w, lock(locks[0], door, nil))
	var line []*testkit.Call[*qlock.Lock]
	for i, access := range []qlock.Access{qlock.LIFO, qlock.Queued, qlock.LIFO, qlock.Random} {
		line = append(line, queue(w, lock(locks[i%2], door, &qlock.LockOptions{Access: access}), w.waiting(keyspace.Lock, door), i+1))
	}
	// The random one stands anywhere among the queued ones, all of them before the rest; of that the last comes first.
	var order []int
	release(w, first)
	for range line {
		w.Await("the next has it", func() bool {
			for i, q := range line {
				if q != nil && q.Over() {
					release(w, q.Wait(w))
					order, line[i] = append(order, i), nil
					return true
				}
			}
			return false
		})
	}
	require.ElementsMatch(w, []int{1, 3}, order[:2])
	require.Equal(w, []int{2, 0}, order[2:])
}

func lockReenter(w *world) {
	locks := w.locks()
	owner := berth.WithOwner(w.Within(patience), "order:7")
	outer, err := locks[0].Lock(owner, door, &qlock.LockOptions{Lease: long, NoRenew: true})
	require.NoError(w, err)
	through, err := locks[0].Lock(owner, door, &qlock.LockOptions{Conflict: qlock.WorkThrough})
	require.NoError(w, err)
	require.Equal(w, qlock.Reentered, through.Via())
	inner, err := locks[0].Lock(owner, door, &qlock.LockOptions{Conflict: qlock.ExtendAndWorkThrough, Lease: long})
	require.NoError(w, err)
	require.Equal(w, qlock.ReenteredExtended, inner.Via())
	require.Equal(w, []int64{outer.Fence(), outer.Fence()}, []int64{through.Fence(), inner.Fence()})
	require.Greater(w, outer.Left(), long)
	n := w.reader().Look(keyspace.Lock, door)
	require.Greater(w, n.Lock.Left, long)
	require.Equal(w, 3, n.Holders)
	q := queue(w, lock(locks[1], door, nil), w.waiting(keyspace.Lock, door), 1)

	release(w, inner) // what it has not used goes back
	require.LessOrEqual(w, w.reader().Look(keyspace.Lock, door).Lock.Left, long)
	release(w, outer)
	require.NoError(w, through.Err(), "the inner entry holds it")
	require.False(w, q.Over())
	release(w, through)
	next := q.Wait(w)
	require.Greater(w, next.Fence(), outer.Fence())
	release(w, next)
}

func lockAll(w *world) {
	locks := w.locks()
	names := numbered(6)
	backwards := []string{names[5], names[0], names[3], names[3]}
	var users sync.WaitGroup
	for i, wanted := range [][]string{names, backwards, names, backwards} {
		users.Go(func() {
			for range 5 {
				set, err := locks[i%2].LockAll(w.Within(patience), wanted, nil)
				if err != nil {
					w.Errorf("lock all: %v", err)
					return
				}
				if err := set.Release(w.Within(patience)); err != nil {
					w.Errorf("release: %v", err)
				}
			}
		})
	}
	users.Wait()

	l := must(w, lock(locks[0], names[2], nil))
	_, err := locks[1].TryLockAll(w.Within(patience), names, nil)
	w.refused(err, berth.ReasonHeld)
	require.Equal(w, names[2], one(w, w.reader().Names(keyspace.Lock)).Name, "all or none")
	release(w, l)
}

func lockExtend(w *world) {
	locks := w.locks()
	l := must(w, lock(locks[0], door, &qlock.LockOptions{Lease: long, NoRenew: true}))
	require.NoError(w, l.Extend(w.Within(patience), long))
	require.Greater(w, l.Left(), long)
	require.NoError(w, l.Renew(w.Within(patience)), "it never brings the end nearer")
	require.Greater(w, l.Left(), long)
	require.NoError(w, qlock.NewOperator(locks[1].Node).Extend(w.Within(patience), door, long))
	require.Greater(w, w.reader().Look(keyspace.Lock, door).Lock.Left, 2*long)
	release(w, l)
	require.ErrorIs(w, l.Extend(w.Within(patience), long), berth.ErrReleased)
}

// zombie is for how long a node may be silent whose end a test waits for. A node that is
// silent for longer because the machine is busy gives back what it has, and nobody has to
// flush it.
const zombie = 8 * time.Second

func swarm(limit time.Duration) node.SwarmConfig {
	return node.SwarmConfig{ProbeEvery: 100 * time.Millisecond, ZombieAfter: limit, FlushEvery: -1}
}

// mortal are the locks of a process that will die.
func (w *world) mortal(conn rueidis.Client) locks {
	w.Helper()
	n, err := node.New(conn, node.Config{Namespace: w.ns, Swarm: swarm(zombie), CallTimeout: calls, CleanupTimeout: short})
	require.NoError(w, err)
	return locks{qlock.New(n, qlock.Config{}), n}
}

// lockForgottenSwarm has the server lose the record of the swarm, in a Cluster with all
// of its shard, and a node die before it has probed again.
func lockForgottenSwarm(w *world) {
	space, err := keyspace.New(w.ns)
	require.NoError(w, err)
	record := space.Probes("nodes")
	names := w.elsewhere(space, record, 2)
	w.cfg.Swarm = swarm(time.Minute)
	lives := w.locks()
	require.NoError(w, lives[0].Swarm().Start(w.Within(patience)))
	// It is closed in the midst of its work: rueidis leaves a further connection open that is made in that moment, and
	// goes on using it.
	conn := w.deployment.Client(w.T, func(o *rueidis.ClientOption) { o.PipelineMultiplex = -1 })
	dead := w.mortal(conn)
	require.NoError(w, dead.Swarm().Start(w.Within(patience)))
	endless := &qlock.LockOptions{Lease: berth.Forever}
	kept := must(w, lock(lives[0], names[0], endless))
	l := must(w, lock(dead, names[1], endless))
	holder := func(name string) berth.Holder {
		return one(w, w.reader().Holders(keyspace.Lock, name))
	}
	w.Await("the server has both without end", func() bool {
		return holder(names[0]).ZombieAfter > 0 && holder(names[1]).ZombieAfter > 0
	})
	q := queue(w, lock(lives[1], names[1], nil), w.waiting(keyspace.Lock, names[1]), 1)

	flushed, err := lives[1].Swarm().FlushNow(w.Within(patience))
	require.NoError(w, err)
	require.Zero(w, flushed.Holds, "it lives")
	conn.Close() // the node is cut off for good
	if w.deployment.Spec().Cluster {
		shard := w.redis[0].Nodes()[w.deployment.Master(w.T, record).Addr]
		require.NoError(w, shard.Do(w.Within(patience), shard.B().Flushall().Build()).Error())
	} else {
		require.NoError(w, w.redis[0].Do(w.Within(patience),
			w.redis[0].B().Del().Key(record, space.State(keyspace.Swarm, "nodes")).Build()).Error())
	}
	require.NoError(w, lives[0].Swarm().ProbeNow(w.Within(patience)))
	w.Await("the swarm has given its lock away", func() bool {
		flushed, err := lives[1].Swarm().FlushNow(w.Within(patience))
		require.NoError(w, err)
		return flushed.Holds > 0
	})
	require.ErrorIs(w, l.Err(), berth.ErrLost, "the node knew before")
	release(w, q.Wait(w))
	require.NoError(w, kept.Err())
	require.Equal(w, kept.ID(), holder(names[0]).ID, "its node lives")
	release(w, kept)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.Error(w, dead.Close(ctx))
}

// elsewhere are names of locks whose keys lie in other shards of a Cluster than a key
// does.
func (w *world) elsewhere(space keyspace.Space, key string, many int) (names []string) {
	w.Helper()
	if !w.deployment.Spec().Cluster {
		return numbered(many)
	}
	shard := w.deployment.Master(w.T, key).Addr
	for _, name := range numbered(100) {
		if w.deployment.Master(w.T, space.State(keyspace.Lock, name)).Addr != shard {
			names = append(names, name)
		}
		if len(names) == many {
			return names
		}
	}
	require.Fail(w, "all names lie in one shard")
	return nil
}

func fenceTests() []test {
	return []test{{name: "fence/a guard refuses an older hold, by itself and in a script", run: guard}}
}

func guard(w *world) {
	var fences []int64
	for _, c := range w.locks() { // one after the other
		l := must(w, lock(c, door, nil))
		fences = append(fences, l.Fence())
		release(w, l)
	}
	older, newer := fences[0], fences[1]
	guard, err := fence.NewRedis(w.redis[0], fence.RedisConfig{Namespace: w.ns})
	require.NoError(w, err)
	require.NoError(w, guard.Admit(w.Within(patience), door, older))
	require.NoError(w, guard.Admit(w.Within(patience), door, newer))
	require.NoError(w, guard.Admit(w.Within(patience), door, newer), "one hold writes often")
	require.ErrorIs(w, guard.Admit(w.Within(patience), door, older), fence.ErrStale)
	require.NoError(w, guard.Forget(w.Within(patience), door, newer))
	require.NoError(w, guard.Admit(w.Within(patience), door, older))

	write := func(of int64) bool {
		w.Helper()
		c := w.redis[1]
		done, err := c.Do(w.Within(patience), c.B().Eval().Script(fence.Lua()+" return admit(KEYS[1], ARGV[1])").
			Numkeys(1).Key(w.ns+":row").Arg(strconv.FormatInt(of, 10)).Build()).AsBool()
		require.True(w, err == nil || rueidis.IsRedisNil(err), err)
		return done
	}
	require.Equal(w, []bool{true, true, false}, []bool{write(older), write(newer), write(older)})
}

func onceTests() []test {
	return []test{{name: "once/a period fails, is taken over and is done once", run: period}}
}

func period(w *world) {
	year := once.Config{Every: 8784 * time.Hour, Wait: true, RetryAfter: time.Millisecond, Lease: long}
	jobs := [...]*once.Job{once.New(w.node(0), door, year), once.New(w.node(1), door, year)}
	noPaper := errors.New("no paper")
	begun := make(chan struct{})
	first := testkit.Begin(w.Within(patience), func(ctx context.Context) (once.Result, error) {
		return jobs[0].Do(ctx, func(context.Context, *once.Run) error {
			<-begun
			return noPaper
		})
	})
	w.Await("it runs", func() bool {
		last, err := jobs[1].Last(w.Within(patience))
		require.NoError(w, err)
		return last.Run != nil
	})
	second := testkit.Begin(w.Within(patience), func(ctx context.Context) (once.Result, error) {
		return jobs[1].Do(ctx, func(context.Context, *once.Run) error { return nil })
	})
	close(begun)
	first.Fails(w, noPaper)
	done := second.Wait(w)
	require.Equal(w, once.Ran, done.Status)
	require.Equal(w, 2, done.Attempt)
	seen, err := jobs[0].Do(w.Within(patience), func(context.Context, *once.Run) error { return noPaper })
	require.NoError(w, err)
	require.Equal(w, once.Done, seen.Status)
	require.Equal(w, done.Fence, seen.Fence)
}
