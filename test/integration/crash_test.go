package integration

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/node"
)

const (
	// crashLease is the lease of whoever is killed: no pause of the machine ends it before.
	crashLease = safe
	// slack is what a place may take after the deadline of a dead claim.
	slack = 50 * time.Millisecond
)

// crash is one trial: children are killed, and somebody waits in this process who calls nothing.
type crash struct {
	*world
	lag  *lag
	what string // the name
	node string // of this process
	user *user  // in it, where it uses the contended name

	rest     time.Duration // of the resource of a pool, after each hold of a child
	killed   int64         // by the server's clock, ms, just after the kill
	deadline int64         // when the last claim of the killed ends
}

func (w *world) crash(name, node string) *crash {
	return &crash{world: w, lag: w.measure(), what: name, node: node}
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
	v := c.look(c.what)
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
	granted := c.whole(c.what).records[claim].Granted.UnixMilli()
	c.Logf("granted %d ms after it was due, %d ms after the kill (lease %v); bare timers were up to %v late",
		granted-due, granted-c.killed, crashLease, c.lag.most().Round(time.Millisecond))
	require.GreaterOrEqual(c, granted, due, "granted while the dead one still had its time")
	require.LessOrEqual(c, granted-due, c.lag.allow(slack, 2).Milliseconds())
	require.LessOrEqual(c, c.deadline-c.killed, c.lag.allow(crashLease, 2).Milliseconds())
}

// crashes are the scenarios. Each returns the hold that was waited for.
var crashes = map[string]func(c *crash) berth.Hold{
	"a holder": func(c *crash) berth.Hold {
		holder := c.spawn(crashLease)
		if c.user.pool != nil {
			c.rest = 300 * time.Millisecond
		}
		require.Empty(c, holder.ask(order{Do: "acquire", Name: c.name(), Capacity: 1, Rest: c.rest}).Err)
		q := c.holdQueue(c.user, terms{}, 1)
		c.beat()
		c.kill(holder)
		return q.Wait(c.world)
	},
	"a waiter, the first in line": func(c *crash) berth.Hold {
		h, waiter := c.hold(c.user, terms{}), c.spawn(crashLease)
		waiter.queue(c.name(), 1, 1)
		q := c.holdQueue(c.user, terms{}, 2)
		c.kill(waiter)
		c.release(h)
		return q.Wait(c.world)
	},
	"a waiter in the middle": func(c *crash) berth.Hold {
		h, waiter := c.hold(c.user, terms{}), c.spawn(crashLease)
		first := c.holdQueue(c.user, terms{}, 1)
		waiter.queue(c.name(), 1, 2)
		q := c.holdQueue(c.user, terms{}, 3)
		c.kill(waiter)
		c.release(h)
		c.release(first.Wait(c.world))
		return q.Wait(c.world)
	},
	"a waiter in the moment of its grant": func(c *crash) berth.Hold {
		h, waiter := c.hold(c.user, terms{}), c.spawn(crashLease)
		waiter.queue(c.name(), 1, 1)
		q := c.holdQueue(c.user, terms{}, 2)
		waiter.stop() // so that it never hears of the grant
		c.release(h)
		c.kill(waiter)
		return q.Wait(c.world)
	},
	"a holder and the first in line": func(c *crash) berth.Hold {
		holder, waiter := c.spawn(crashLease), c.spawn(crashLease)
		holder.acquire(c.name(), 1)
		waiter.queue(c.name(), 1, 1)
		q := c.holdQueue(c.user, terms{}, 2)
		c.kill(holder, waiter)
		return q.Wait(c.world)
	},
}

func TestCapacityIsWholeALeaseAfterAKill(t *testing.T) {
	t.Parallel()
	for what, run := range crashes {
		t.Run("of "+what, func(t *testing.T) {
			t.Parallel()
			overKinds(t, shared, func(w *world) {
				u := w.use(node.Config{Lease: crashLease})
				c := w.crash(w.name(), u.ID())
				c.user = u
				h := run(c)
				c.inTime(h.ID(), c.rest)
				c.release(h)
				w.idle(w.name())
				if p := u.pool; p != nil {
					w.Await("it has rested, as after every hold of the pool", func() bool {
						w.swept(w.name())
						return w.reader().Look(w.kind, w.name()).Pool.Free == 1
					})
					w.allFree(p, 1)
				}
			})
		})
	}
}
