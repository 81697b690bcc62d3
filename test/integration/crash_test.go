package integration

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/semaphore"
)

const (
	// crashLease is the lease of whoever is killed: no pause of the machine ends it before.
	crashLease = safe
	// slack is what a place may take after the deadline of a dead claim.
	slack = 50 * time.Millisecond
)

// crash is one trial on a name that one can hold: children are killed, and somebody waits
// in this process who calls nothing.
type crash struct {
	*world
	lag  *lag
	name string
	node string // of this process

	killed   int64 // by the server's clock, ms, just after the kill
	deadline int64 // when the last claim of the killed ends
}

func (w *world) crash(name, node string) *crash {
	return &crash{world: w, lag: w.measure(), name: name, node: node}
}

// kill ends children, and reads when the last of their claims ends.
func (c *crash) kill(children ...*child) {
	c.Helper()
	c.lag.reset()
	for _, child := range children {
		child.kill() // the others may still renew
	}
	c.killed = c.now()
	c.deadline = c.last()
	require.NotZero(c, c.deadline, "the killed had no claim")
}

// last is when the last claim of the children ends, 0 for none.
func (c *crash) last() (deadline int64) {
	c.Helper()
	v := c.look(c.name)
	for _, ends := range []map[string]int64{v.holds, v.alive} {
		for claim, at := range ends {
			if v.records[claim].Node != c.node {
				deadline = max(deadline, at)
			}
		}
	}
	return deadline
}

// beat waits for a heartbeat of the children.
func (c *crash) beat() {
	c.Helper()
	before := c.last()
	c.Await("a heartbeat", func() bool { return c.last() > before })
}

// inTime checks that a claim was granted when the killed, and what came after, had ended.
func (c *crash) inTime(claim string, after time.Duration) {
	c.Helper()
	due := c.deadline + after.Milliseconds()
	granted := c.whole(c.name).records[claim].Granted.UnixMilli()
	c.Logf("granted %d ms after it was due, %d ms after the kill (lease %v); bare timers were up to %v late",
		granted-due, granted-c.killed, crashLease, c.lag.most().Round(time.Millisecond))
	require.GreaterOrEqual(c, granted, due, "granted while the dead one still had its time")
	require.LessOrEqual(c, granted-due, c.lag.allow(slack, 2).Milliseconds())
	require.LessOrEqual(c, c.deadline-c.killed, c.lag.allow(crashLease, 2).Milliseconds())
}

// semCrash is a crash on a semaphore of one place.
type semCrash struct {
	*crash
	sem *semaphore.Semaphore
}

// semCrashes are the scenarios. Each returns the permit that was waited for.
var semCrashes = map[string]func(c *semCrash) *semaphore.Permit{
	"a holder": func(c *semCrash) *semaphore.Permit {
		holder := c.spawn(crashLease)
		holder.acquire("gpu", 1)
		q := c.queue(c.sem, nil, 1)
		c.beat()
		c.kill(holder)
		return q.Wait(c.world)
	},
	"a waiter, the first in line": func(c *semCrash) *semaphore.Permit {
		p, waiter := c.take(c.sem, nil), c.spawn(crashLease)
		waiter.queue("gpu", 1, 1)
		q := c.queue(c.sem, nil, 2)
		c.kill(waiter)
		require.NoError(c, p.Release(c.Within(patience)))
		return q.Wait(c.world)
	},
	"a waiter in the middle": func(c *semCrash) *semaphore.Permit {
		p, waiter := c.take(c.sem, nil), c.spawn(crashLease)
		first := c.queue(c.sem, nil, 1)
		waiter.queue("gpu", 1, 2)
		q := c.queue(c.sem, nil, 3)
		c.kill(waiter)
		require.NoError(c, p.Release(c.Within(patience)))
		require.NoError(c, first.Wait(c.world).Release(c.Within(patience)))
		return q.Wait(c.world)
	},
	"a waiter in the moment of its grant": func(c *semCrash) *semaphore.Permit {
		p, waiter := c.take(c.sem, nil), c.spawn(crashLease)
		waiter.queue("gpu", 1, 1)
		q := c.queue(c.sem, nil, 2)
		waiter.stop() // so that it never hears of the grant
		require.NoError(c, p.Release(c.Within(patience)))
		c.kill(waiter)
		return q.Wait(c.world)
	},
	"a holder and the first in line": func(c *semCrash) *semaphore.Permit {
		holder, waiter := c.spawn(crashLease), c.spawn(crashLease)
		holder.acquire("gpu", 1)
		waiter.queue("gpu", 1, 1)
		q := c.queue(c.sem, nil, 2)
		c.kill(holder, waiter)
		return q.Wait(c.world)
	},
}

func TestCapacityIsWholeALeaseAfterAKill(t *testing.T) {
	t.Parallel()
	for what, run := range semCrashes {
		t.Run("of "+what, func(t *testing.T) {
			w := shared(t)
			client := w.node(node.Config{Lease: crashLease})
			c := &semCrash{crash: w.crash("gpu", client.ID()), sem: w.sem(client, "gpu", 1)}
			p := run(c)
			c.inTime(p.ID(), 0)
			require.NoError(t, p.Release(c.Within(patience)))
			c.idle("gpu")
		})
	}
}
