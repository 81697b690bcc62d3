package checker

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-go/berth/test/torture/history"
)

const (
	// afterwards is how long after a fault a new call may still meet what it has left: a
	// connection that is dead.
	afterwards = 500 * ms
	// leaseOfHolds is longer than the usual leases.
	leaseOfHolds = 3 * second
	// slow is how long a process that runs may write nothing for the rule to look at it:
	// a heartbeat is due after a third of a lease, which is a second, and may be late by
	// as much. A shorter lease bears less.
	slow = 250 * ms
	// forgotten is the Detail of a Restored that puts a claim back which the server no
	// longer had.
	forgotten = "restored"
)

// unharmed: where nothing is wrong nothing goes wrong. No operation stays without an
// answer, no close fails, and no hold that renews and no place in line is lost, but for a
// fault that explains it.
//
// A process that gets no processor, or a server that answers nobody, loses leases
// rightly. The first shows where any process wrote nothing for a third of the lease;
// the second, in which processes write on, where a call that waits for nobody took a
// third of it: one heartbeat is sent in that time. There the rule does not look.
// What belongs to a node that was closed meanwhile says so. A caller who bounds the
// wait may leave before the server has said anything.
//
// A claim for a resource that is taken out of its pool ends. Where that is put back before the
// claim's process has heard of it, the claim stands in line again.
//
// The entries of an owner share a hold: one with a fixed lease, or whose limit has
// passed, may end the others, those that are under way included.
func unharmed(c *check) {
	for _, k := range c.calls {
		if k.outcome == nil || k.invoke.Bounded || c.outlasted(k) ||
			!c.quiet(k.invoke.Process, k.bears(), k.invoke.At, k.outcome.At) ||
			k.invoke.Lease > 0 && c.answeredLate("", k.bears(), k.invoke.At, k.outcome.At) {
			continue
		}
		c.count.Checked++
		ended := slices.Contains(k.outcome.Is, "closed") || k.outcome.Reason == reasonGone && c.drainedBy(k.invoke, k.outcome.At)
		if k.is(history.Unknown) && !ended {
			c.broken(fmt.Sprintf("%s: %s of %s %s has no answer, and no fault explains it: %s", k.invoke.Process,
				k.invoke.Do, k.invoke.Primitive, k.invoke.Name, k.outcome.Err), k.invoke, k.outcome)
		}
	}
	for _, e := range c.alone {
		if e.Kind != history.Closed || !c.quiet(e.Process, slow, e.At-c.felt, e.At) {
			continue
		}
		c.count.Checked++
		if strings.HasPrefix(e.Err, "close:") {
			c.broken(fmt.Sprintf("%s: %s was not closed with all done, and no fault explains it: %s", e.Process, e.Node, e.Err), e)
		}
	}
	for i := range c.run.Events {
		e := &c.run.Events[i]
		if e.Kind != history.Restored || e.Detail != forgotten || !c.quiet(e.Process, slow, e.At-c.felt, e.At) ||
			c.answeredLate("", slow, e.At-c.felt, e.At) || c.tookAway(e) {
			continue
		}
		c.count.Checked++
		c.broken(fmt.Sprintf("%s: the server had forgotten %s, which waits for %s %s, and no fault explains it", e.Process,
			e.Claim, e.Primitive, e.Name), e)
	}
	for _, n := range c.names {
		for _, h := range n.holds {
			lease, renews := h.renews()
			for _, a := range h.entries {
				if renews {
					c.unharmedHold(n, a, lease)
				}
			}
		}
	}
}

// tookAway says that what a claim waits for alone may have been taken out of its pool, and put
// back before its process heard of that: the server has ended the claim then.
func (c *check) tookAway(restored *history.Event) bool {
	a := c.claims[restored.Claim]
	return a != nil && a.invoke.Named != "" && slices.ContainsFunc(c.names, func(n *name) bool {
		return slices.Contains(n.claims, a) && !c.present(n, a.invoke.Named, a.invoke.At, restored.At)
	})
}

// outlasted says that the hold that a re-entry enters expired while that was under way:
// its handle says so later, and was not believed in after the call.
func (c *check) outlasted(k *call) bool {
	if k.invoke.Do != history.Reenter {
		return false
	}
	return slices.ContainsFunc(c.names, func(n *name) bool {
		return n.primitive == k.invoke.Primitive && n.name == k.invoke.Name &&
			slices.ContainsFunc(n.granted, func(a *claim) bool {
				return a.invoke.Process == k.invoke.Process && a.ok.At <= k.invoke.At &&
					a.ended != nil && slices.Contains(a.ended.Is, "expired") && a.ended.At >= k.invoke.At &&
					(a.believed() == nil || a.believed().At <= k.outcome.At)
			})
	})
}

// bears is how long a process may write nothing for the call to be looked at: a claim
// that waits, or is granted and not told yet, has a lease as a hold has.
func (k *call) bears() int64 {
	if k.invoke.Lease == 0 {
		return slow
	}
	return min(slow, k.invoke.Lease*ms/3)
}

// renews returns the shortest lease of the entries of a hold, and false where one of
// them ends by itself.
func (h *hold) renews() (lease int64, renews bool) {
	lease = never
	for _, a := range h.entries {
		if a.invoke.Fixed || a.invoke.Lease == 0 || a.ended != nil && slices.Contains(a.ended.Is, "expired") {
			return 0, false
		}
		lease = min(lease, a.invoke.Lease*ms)
	}
	return lease, true
}

func (c *check) unharmedHold(n *name, a *claim, lease int64) {
	end := a.ended
	if end == nil && len(a.releases) > 0 {
		end = a.releases[0].invoke
	}
	if end == nil || !c.quiet(a.invoke.Process, min(slow, lease/3), end.At-c.felt, end.At) ||
		c.answeredLate("", lease/3, end.At-c.felt, end.At) {
		return
	}
	c.count.Checked++
	if a.ended != nil && slices.Contains(a.ended.Is, "lost") && !slices.Contains(a.ended.Is, "closed") {
		c.broken(fmt.Sprintf("%s: the hold of %s was lost, and no fault explains it: %s", n, a.ok.Claim, a.ended.Err),
			a.invoke, a.ok, a.believed(), a.ended)
	}
}

// quiet says that nothing was wrong for the process between the two moments, nor so
// shortly before that it could still be felt, and that no process wrote nothing for
// so long.
func (c *check) quiet(process string, least, from, to int64) bool {
	for _, f := range c.run.Faults {
		if !f.Unseen && (f.Process == "" || f.Process == process) && f.From-edge <= to && f.To+afterwards >= from {
			return false
		}
	}
	return !c.pausedBetween("", least, from, to)
}

// answeredLate says that a call of the process, any if it is "", that waits for nobody
// took so long, at some time between the two, or was never answered.
func (c *check) answeredLate(process string, least, from, to int64) bool {
	return slices.ContainsFunc(c.delays, func(p pause) bool {
		return (process == "" || p.process == process) && p.to-p.from >= least && p.from <= to && p.to >= from
	})
}
