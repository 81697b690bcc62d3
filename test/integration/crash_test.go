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
	// slack is what a place may take after the deadline of a dead claim: less than it is to a heartbeat.
	slack = time.Second
)

// crash is one trial: children are killed, and somebody waits in this process who calls nothing.
type crash struct {
	*world
	user *user // in this process

	rest     time.Duration // of the resource of a pool, after each hold of a child
	killed   int64         // by the server's clock, ms, just after the kill
	deadline int64         // when the last claim of the killed ends
}

// kill ends children, and reads when the last of their claims ends.
func (c *crash) kill(children ...*child) {
	c.Helper()
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
	v := c.look(c.name())
	for _, ends := range []map[string]int64{v.holds, v.alive} {
		for claim, at := range ends {
			if v.records[claim].Node != c.user.ID() {
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
	granted := c.whole(c.name()).records[claim].Granted.UnixMilli()
	c.Logf("granted %d ms after it was due, %d ms after the kill (lease %v)", granted-due, granted-c.killed, crashLease)
	require.GreaterOrEqual(c, granted, due, "granted while the dead one still had its time")
	require.LessOrEqual(c, granted-due, slack.Milliseconds())
	require.LessOrEqual(c, c.deadline-c.killed, (crashLease + slack).Milliseconds())
}

// behind has a child wait for what this process holds, and this process behind the child.
func (c *crash) behind() (h berth.Hold, waiter *child, q *holding) {
	c.Helper()
	h, waiter = c.hold(c.user, terms{}), c.spawn(crashLease)
	waiter.queue(c.name(), 1, 1)
	return h, waiter, c.holdQueue(c.user, terms{}, 2)
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
		h, waiter, q := c.behind()
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
		h, waiter, q := c.behind()
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
				w.Relies(3 * slack)
				c := &crash{world: w, user: w.use(node.Config{Lease: crashLease})}
				h := run(c)
				c.inTime(h.ID(), c.rest)
				c.release(h)
				w.idle(w.name())
				if p := c.user.pool; p != nil {
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
