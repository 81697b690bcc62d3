package integration

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/semaphore"
)

const (
	// crashLease is the lease of whoever is killed.
	crashLease = 800 * time.Millisecond
	// slack is what a place may take after the deadline of a dead claim.
	slack = 50 * time.Millisecond
)

// crash is one trial on a semaphore of one place: children are killed, and
// somebody waits in this process who calls nothing.
type crash struct {
	*bed
	lag    *lag
	client *semaphore.Client
	sem    *semaphore.Semaphore
	beats  int // how many heartbeats of the children come before the kill

	killed   int64 // by the server's clock, ms, just before the kill
	deadline int64 // when the last claim of the killed ends
}

func newCrash(t *testing.T, beats int) *crash {
	t.Helper()
	b := shared(t)
	c := &crash{bed: b, lag: b.measure(), client: b.client(semaphore.Config{Lease: crashLease}), beats: beats}
	c.sem = b.sem(c.client, "gpu", 1)
	return c
}

// kill ends children, and reads when the last of their claims ends.
func (c *crash) kill(children ...*child) {
	c.Helper()
	c.lag.reset()
	c.killed = c.now()
	for _, child := range children {
		child.kill()
	}
	c.deadline = c.last()
	require.NotZero(c, c.deadline, "the killed had no claim")
}

// last is when the last claim of the children ends, 0 for none.
func (c *crash) last() (deadline int64) {
	c.Helper()
	v := c.look(c.sem.Name())
	for _, r := range v.records {
		if r.Node != c.client.Node() {
			deadline = max(deadline, slices.Max(v.deadlines(r.Node)))
		}
	}
	return deadline
}

// beat waits for heartbeats of the children, so that trials differ in when the
// kill comes.
func (c *crash) beat() {
	c.Helper()
	for range c.beats {
		before := c.last()
		c.await("a heartbeat", func() bool { return c.last() > before })
	}
}

// crashes are the scenarios. Each returns the permit that was waited for.
var crashes = map[string]func(c *crash) *semaphore.Permit{
	"a holder": func(c *crash) *semaphore.Permit {
		holder := c.spawn(crashLease)
		holder.acquire("gpu", 1)
		w := c.queue(c.sem, nil, 1)
		c.beat()
		c.kill(holder)
		return w.got(c.bed)
	},
	"a waiter, the first in line": func(c *crash) *semaphore.Permit {
		p, waiter := c.take(c.sem, nil), c.spawn(crashLease)
		waiter.queue("gpu", 1, 1)
		w := c.queue(c.sem, nil, 2)
		c.beat()
		c.kill(waiter)
		require.NoError(c, p.Release(c.within(patience)))
		return w.got(c.bed)
	},
	"a waiter in the middle": func(c *crash) *semaphore.Permit {
		p, waiter := c.take(c.sem, nil), c.spawn(crashLease)
		first := c.queue(c.sem, nil, 1)
		waiter.queue("gpu", 1, 2)
		w := c.queue(c.sem, nil, 3)
		c.beat()
		c.kill(waiter)
		require.NoError(c, p.Release(c.within(patience)))
		require.NoError(c, first.got(c.bed).Release(c.within(patience)))
		return w.got(c.bed)
	},
	"a waiter in the moment of its grant": func(c *crash) *semaphore.Permit {
		p, waiter := c.take(c.sem, nil), c.spawn(crashLease)
		waiter.queue("gpu", 1, 1)
		w := c.queue(c.sem, nil, 2)
		c.beat()
		waiter.stop() // so that it never hears of the grant
		require.NoError(c, p.Release(c.within(patience)))
		c.kill(waiter)
		return w.got(c.bed)
	},
	"a holder and the first in line": func(c *crash) *semaphore.Permit {
		holder, waiter := c.spawn(crashLease), c.spawn(crashLease)
		holder.acquire("gpu", 1)
		waiter.queue("gpu", 1, 1)
		w := c.queue(c.sem, nil, 2)
		c.beat()
		c.kill(holder, waiter)
		return w.got(c.bed)
	},
}

// deadlines are those of a node's claims, held or waiting.
func (v view) deadlines(node string) []int64 {
	var all []int64
	for _, ends := range []map[string]int64{v.holds, v.alive} {
		for claim, at := range ends {
			if v.records[claim].Node == node {
				all = append(all, at)
			}
		}
	}
	return all
}

func TestCapacityIsWholeALeaseAfterAKill(t *testing.T) {
	const times = 3
	for what, run := range crashes {
		for beats := range times {
			t.Run(fmt.Sprintf("of %s, heartbeat %d", what, beats), func(t *testing.T) {
				c := newCrash(t, beats)
				p := run(c)
				v := c.whole("gpu")
				granted := v.records[p.ID()].Granted.UnixMilli()
				bound := c.lag.allow(slack, 2).Milliseconds()
				t.Logf("granted %d ms after the deadline, %d ms after the kill (lease %v); bare timers were up to %v late",
					granted-c.deadline, granted-c.killed, crashLease, c.lag.most().Round(time.Millisecond))
				require.GreaterOrEqual(t, granted, c.deadline, "granted while the dead one still had its time")
				require.LessOrEqual(t, granted-c.deadline, bound)
				require.LessOrEqual(t, granted-c.killed, crashLease.Milliseconds()+bound)
				require.NoError(t, p.Release(c.within(patience)))
				c.idle("gpu")
			})
		}
	}
}

// A waiter that died before its turn costs those behind it nothing.
func TestADeadWaiterIsPassedByOnceItHasExpired(t *testing.T) {
	c := newCrash(t, 0)
	p, waiter := c.take(c.sem, nil), c.spawn(crashLease)
	waiter.queue("gpu", 1, 1)
	w := c.queue(c.sem, nil, 2)
	c.kill(waiter)
	c.await("the dead one has expired", func() bool { return c.now() > c.deadline })
	before := c.now()
	require.NoError(t, p.Release(c.within(patience)))
	granted := c.look("gpu").records[w.got(c.bed).ID()].Granted.UnixMilli()
	require.LessOrEqual(t, granted-before, c.lag.allow(10*time.Millisecond, 2).Milliseconds(), "not in the release itself")
}

// The line's key goes with its last member, and a new one knows no expiry. Here
// the last member is a waiter who becomes a holder and is never heard of again.
func TestTheKeysOfAGrantToADeadWaiterEnd(t *testing.T) {
	b := shared(t)
	s := b.sem(b.client(semaphore.Config{Lease: time.Minute}), "gpu", 1)
	p, waiter := b.take(s, nil), b.spawn(crashLease)
	waiter.queue("gpu", 1, 1)
	waiter.stop()
	require.NoError(t, p.Release(b.within(patience)))
	waiter.kill()
	v := b.whole("gpu")
	require.Len(t, v.holds, 1)
	require.Len(t, v.expires, 2)
}
