package integration

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/qlock"
)

// lockCrash is one trial on a lock: children are killed, and somebody waits in
// this process who calls nothing.
type lockCrash struct {
	*bed
	lag    *lag
	client *qlock.Client

	killed   int64 // by the server's clock, ms, just before the kill
	deadline int64 // when the last claim of the killed ends
}

// kill ends children, and reads when the last of their claims ends.
func (c *lockCrash) kill(children ...*child) {
	c.Helper()
	c.lag.reset()
	c.killed = c.now()
	for _, child := range children {
		child.kill()
	}
	v := c.look(door)
	for _, r := range v.records {
		if r.Node != c.client.Node() {
			c.deadline = max(c.deadline, slices.Max(v.deadlines(r.Node)))
		}
	}
	require.NotZero(c, c.deadline, "the killed had no claim")
}

// lockCrashes are the scenarios. Each returns the lock that was waited for.
var lockCrashes = map[string]func(c *lockCrash) *qlock.Lock{
	"a holder": func(c *lockCrash) *qlock.Lock {
		holder := c.spawn(crashLease)
		holder.acquire(door, 1)
		w := c.lockQueue(c.client, nil, 1)
		c.kill(holder)
		return w.got(c.bed)
	},
	"the first in line": func(c *lockCrash) *qlock.Lock {
		l, waiter := c.lock(c.client, nil), c.spawn(crashLease)
		waiter.queue(door, 1, 1)
		w := c.lockQueue(c.client, nil, 2)
		c.kill(waiter)
		c.unlock(l)
		return w.got(c.bed)
	},
	"the first in line, of a higher priority": func(c *lockCrash) *qlock.Lock {
		l, waiter := c.lock(c.client, nil), c.spawn(crashLease)
		w := c.lockQueue(c.client, &qlock.LockOptions{Priority: -1}, 1)
		waiter.queue(door, 1, 2)
		c.kill(waiter)
		c.unlock(l)
		return w.got(c.bed)
	},
	"the first in line, in the moment of its grant": func(c *lockCrash) *qlock.Lock {
		l, waiter := c.lock(c.client, nil), c.spawn(crashLease)
		waiter.queue(door, 1, 1)
		w := c.lockQueue(c.client, nil, 2)
		waiter.stop() // so that it never hears of the grant
		c.unlock(l)
		c.kill(waiter)
		return w.got(c.bed)
	},
	"a holder and the first in line": func(c *lockCrash) *qlock.Lock {
		holder, waiter := c.spawn(crashLease), c.spawn(crashLease)
		holder.acquire(door, 1)
		waiter.queue(door, 1, 1)
		w := c.lockQueue(c.client, nil, 2)
		c.kill(holder, waiter)
		return w.got(c.bed)
	},
	// Each of ten dead would cost its lease if they ended one after the other.
	"the first ten in line": func(c *lockCrash) *qlock.Lock {
		l, crowd := c.lock(c.client, nil), c.spawn(crashLease)
		crowd.ask(order{Do: "crowd", Name: door, Count: 10})
		c.await("all wait", func() bool { return c.waiting(door) == 10 })
		w := c.lockQueue(c.client, nil, 11)
		c.kill(crowd)
		c.unlock(l)
		return w.got(c.bed)
	},
}

func TestACrashCostsALockAtMostALease(t *testing.T) {
	for what, run := range lockCrashes {
		t.Run("of "+what, func(t *testing.T) {
			b := sharedLocks(t)
			c := &lockCrash{bed: b, lag: b.measure(), client: b.locker(qlock.Config{Lease: crashLease})}
			l := run(c)
			v := c.whole(door)
			granted := v.records[l.ID()].Granted.UnixMilli()
			bound := c.lag.allow(slack, 2).Milliseconds()
			t.Logf("granted %d ms after the deadline, %d ms after the kill (lease %v); bare timers were up to %v late",
				granted-c.deadline, granted-c.killed, crashLease, c.lag.most().Round(time.Millisecond))
			require.GreaterOrEqual(t, granted, c.deadline, "granted while the dead one still had its time")
			require.LessOrEqual(t, granted-c.deadline, bound)
			require.LessOrEqual(t, granted-c.killed, crashLease.Milliseconds()+bound)
			c.unlock(l)
			c.idle(door)
		})
	}
}

// Processes that lock the same names in opposite orders, some of which are killed
// while they do: nobody ever waits for ever, and nothing is left.
func TestLocksOfSeveralNamesNeverDeadlock(t *testing.T) {
	const lease, rounds = 2 * time.Second, 60
	b := sharedLocks(t)
	orders := [][]string{{"a", "b"}, {"b", "a"}, {"c", "a", "b"}, {"b", "c", "a"}}
	var crew, doomed []*child
	var ends []<-chan answer
	for _, names := range orders {
		crew, doomed = append(crew, b.spawn(lease)), append(doomed, b.spawn(lease))
		doomed[len(doomed)-1].send(order{Do: "pairs", Names: names, Count: 1 << 20})
		ends = append(ends, crew[len(crew)-1].send(order{Do: "pairs", Names: names, Count: rounds}))
	}
	for _, c := range doomed {
		b.pass(200 * time.Millisecond)
		c.kill()
	}
	for i, c := range crew {
		require.Empty(t, c.hear(ends[i]).Err, "%q", orders[i])
	}
	for _, name := range []string{"a", "b", "c"} {
		b.await(fmt.Sprint("nobody holds ", name), func() bool {
			v := b.look(name)
			for _, at := range v.holds {
				if at > v.now {
					return false
				}
			}
			return len(v.alive) == 0 || len(v.holds) == 0
		})
	}
}
