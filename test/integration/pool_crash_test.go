package integration

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/allocator"
)

// poolCrash is one trial on a pool of one resource: children are killed, and
// somebody waits in this process who calls nothing.
type poolCrash struct {
	*bed
	lag    *lag
	client *allocator.Client
	pool   *pool

	killed   int64 // by the server's clock, ms, just before the kill
	deadline int64 // when the last claim of the killed ends
	rests    int64 // how long the resource rests then, ms
}

// kill ends children, and reads when the last of their claims ends.
func (c *poolCrash) kill(children ...*child) {
	c.Helper()
	c.lag.reset()
	c.killed = c.now()
	for _, child := range children {
		child.kill()
	}
	v := c.look(proxies)
	for _, r := range v.records {
		if r.Node != c.client.Node() {
			c.deadline = max(c.deadline, slices.Max(v.deadlines(r.Node)))
		}
	}
	require.NotZero(c, c.deadline, "the killed had no claim")
}

// poolCrashes are the scenarios. Each returns the allocation that was waited for.
var poolCrashes = map[string]func(c *poolCrash) *allocation{
	"a holder": func(c *poolCrash) *allocation {
		holder := c.spawn(crashLease)
		holder.acquire(proxies, 1)
		w := c.allocateQueue(c.pool, nil, 1)
		c.kill(holder)
		return w.take(c.bed)
	},
	"a holder whose resource rests": func(c *poolCrash) *allocation {
		c.rests = 300
		holder := c.spawn(crashLease)
		holder.does(order{Do: "acquire", Rest: 300 * time.Millisecond})
		w := c.allocateQueue(c.pool, nil, 1)
		c.kill(holder)
		return w.take(c.bed)
	},
	"the first in line": func(c *poolCrash) *allocation {
		a, waiter := c.allocate(c.pool, nil), c.spawn(crashLease)
		waiter.queue(proxies, 1, 1)
		w := c.allocateQueue(c.pool, nil, 2)
		c.kill(waiter)
		c.giveBack(a)
		return w.take(c.bed)
	},
	"a waiter in the middle": func(c *poolCrash) *allocation {
		a, waiter := c.allocate(c.pool, nil), c.spawn(crashLease)
		first := c.allocateQueue(c.pool, nil, 1)
		waiter.queue(proxies, 1, 2)
		w := c.allocateQueue(c.pool, nil, 3)
		c.kill(waiter)
		c.giveBack(a)
		c.giveBack(first.take(c.bed))
		return w.take(c.bed)
	},
	"the first in line, in the moment of its grant": func(c *poolCrash) *allocation {
		a, waiter := c.allocate(c.pool, nil), c.spawn(crashLease)
		waiter.queue(proxies, 1, 1)
		w := c.allocateQueue(c.pool, nil, 2)
		waiter.stop() // so that it never hears of the grant
		c.giveBack(a)
		c.kill(waiter)
		return w.take(c.bed)
	},
	"a holder and the first in line": func(c *poolCrash) *allocation {
		holder, waiter := c.spawn(crashLease), c.spawn(crashLease)
		holder.acquire(proxies, 1)
		waiter.queue(proxies, 1, 1)
		w := c.allocateQueue(c.pool, nil, 2)
		c.kill(holder, waiter)
		return w.take(c.bed)
	},
	// Each of ten dead would cost its lease if they ended one after the other.
	"the first ten in line": func(c *poolCrash) *allocation {
		a, crowd := c.allocate(c.pool, nil), c.spawn(crashLease)
		crowd.does(order{Do: "crowd", Count: 10})
		c.await("all wait", func() bool { return c.waiting(proxies) == 10 })
		w := c.allocateQueue(c.pool, nil, 11)
		c.kill(crowd)
		c.giveBack(a)
		return w.take(c.bed)
	},
}

func TestACrashCostsAResourceAtMostALease(t *testing.T) {
	for what, run := range poolCrashes {
		t.Run("of "+what, func(t *testing.T) {
			b := sharedPools(t)
			c := &poolCrash{bed: b, lag: b.measure(), client: b.pooler(allocator.Config{Lease: crashLease})}
			c.pool = b.proxies(c.client, poolConfig{})
			b.add(c.pool, "r0")
			a := run(c)
			v := c.whole(proxies)
			granted := v.records[a.ID()].Granted.UnixMilli()
			bound := c.lag.allow(slack, 2).Milliseconds()
			t.Logf("granted %d ms after the deadline, %d ms after the kill (lease %v, rest %d ms); bare timers were up to %v late",
				granted-c.deadline, granted-c.killed, crashLease, c.rests, c.lag.most().Round(time.Millisecond))
			require.GreaterOrEqual(t, granted, c.deadline+c.rests, "granted while the dead one still had its time")
			require.LessOrEqual(t, granted-c.deadline-c.rests, bound)
			require.LessOrEqual(t, granted-c.killed, crashLease.Milliseconds()+c.rests+bound)
			c.giveBack(a)
			c.allFree(c.pool, 1)
		})
	}
}
