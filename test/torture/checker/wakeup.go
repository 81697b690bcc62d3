package checker

import (
	"fmt"
	"slices"

	"github.com/berth-go/berth/test/torture/history"
)

const (
	// prompt is how long after a hand-off its claimant hears of it at the latest. By a
	// push it is a few ms; a heartbeat, where the push was lost, brings it after up to
	// a third of a second.
	prompt = 250 * ms
	// before is how long before a claimant heard of its grant its process must have
	// been seen to reach the server, since the grant.
	before = 150 * ms
	// asleep is how long a process that runs may write nothing for its claims to be
	// looked at.
	asleep = 100 * ms
	// resubscribed is how long after a fault a subscription may still be broken, and
	// after a loss of data, when nodes find each other anew.
	resubscribed = second
	rejoined     = 5 * second
)

// wakeUp: who waits is told of its grant at once.
//
// The server has a fence no earlier than the moment of its grant, so the time from there
// to the OK is how long the news took, or more than that where the fence was ahead of
// the clock: such rounds are left out. A push goes to a subscription that its node was
// seen to have before the grant, and that was not made anew soon after, as one that had
// broken would be. No fault was near, also none that no caller may notice: a push may
// be lost by them.
//
// On a busy machine the news may be slow. So the process must have written all the time,
// and some call of it, begun after the grant, must have been answered well before the OK:
// then the way there and back was open, and the process ran. None of its calls meanwhile
// may have been answered late: a push would have been, too. A fixed lease may cost one
// more call, and is left out.
func wakeUp(c *check) {
	if c.skewed || c.stepped {
		return
	}
	for _, n := range c.names {
		for _, a := range n.granted {
			if a.queued == nil || a.restored || a.invoke.Do != history.Acquire || a.invoke.Fixed {
				continue
			}
			at := c.moment(a.fence())
			if a.queued.At > at || !c.listens(a.invoke.Node, at) || !c.calm(a.invoke.Process, at, a.ok.At) {
				continue
			}
			took := a.ok.At - at
			if took >= prompt && (c.answeredLate(a.invoke.Process, busy, at, a.ok.At) || !c.reaches(a.invoke.Process, at, a.ok.At-before)) {
				continue
			}
			c.count.Checked++
			if took >= prompt {
				c.broken(fmt.Sprintf("%s: %s was granted while it stood in line, and heard of that %d ms later",
					n, a.ok.Claim, took/ms), a.invoke, a.queued, a.ok)
			}
		}
	}
}

// moment is CLOCK_MONOTONIC at a time of the machine's clock in us.
func (c *check) moment(wall int64) int64 { return (wall - c.offset) * 1000 }

// listens says that a node was subscribed at that moment, was not refused that since, and has not had to do so
// anew since.
func (c *check) listens(node string, at int64) bool {
	known, last := false, int64(0)
	for _, s := range c.subscribed[node] {
		if s > at && s <= at+rejoined {
			return false
		}
		if s <= at {
			known, last = true, s
		}
	}
	return known && !slices.ContainsFunc(c.refused[node], func(r int64) bool { return r >= last && r <= at })
}

// calm says that no fault was near a process between the two, and that it and all the
// others ran.
func (c *check) calm(process string, from, to int64) bool {
	for _, f := range c.run.Faults {
		lasts := resubscribed
		if f.Amnesia || f.Behind {
			lasts = rejoined
		}
		if (f.Process == "" || f.Process == process) && f.From-edge <= to && f.To+lasts >= from {
			return false
		}
	}
	return !c.pausedBetween(process, asleep, from, to) && !c.pausedBetween("", slow, from, to)
}

// reaches says that the process had an answer of the server between the two, to
// something that it asked after the first.
func (c *check) reaches(process string, from, to int64) bool {
	return slices.ContainsFunc(c.answers[process], func(s stretch) bool { return s.from >= from && s.to <= to })
}
