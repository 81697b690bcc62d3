package checker

import (
	"fmt"
	"slices"

	"github.com/berth-go/berth/test/torture/history"
)

const (
	// reasonDraining and reasonGone are the berth.Reason of a claim whose process drains, and of one that somebody has removed.
	reasonDraining, reasonGone = "draining", "gone"
	// leaves is how long after a drain a wait that it has ended may still be under way.
	leaves = second
)

// crew is whose node it is: it stays so where the node is replaced, and its id with it.
type crew struct {
	process string
	number  int64
}

func crewOf(invoke *history.Event) crew { return crew{invoke.Process, invoke.Crew} }

// drained: when a drain is over, its node has nothing of any kind, and gets nothing more until that is taken back; and nobody
// else drains.
//
// A drain that was answered OK has looked at all names, of all kinds, and found nothing of the node. So what the node
// believed in had ended on the server by then, and a handle that has not heard of that ends a lease later at the most, as
// for agreement. A node that reaches the server has heard of the drain by then; one that was cut off hears of it before it is given
// anything new. A caller who asks after the OK is refused, one who waited since long before has left. What the
// server has lost since the drain began may be the drain, or the end of what was held. In a Cluster the notice may be
// out of reach while names are not: there the rule looks at what no fault of a server was near.
func drained(c *check) {
	asked := map[crew][]*call{}
	for _, k := range c.calls {
		if k.invoke.Crew != 0 && k.invoke.Do != history.Drain && k.invoke.Do != history.StopDrain {
			asked[crewOf(k.invoke)] = append(asked[crewOf(k.invoke)], k)
		}
	}
	for _, n := range c.names {
		for _, h := range n.holds {
			lease := h.lease()
			for _, a := range h.entries {
				for _, d := range c.drains[crewOf(a.invoke)] {
					if d.invoke.Do == history.Drain && d.is(history.OK) {
						c.endsWith(n, a, d, lease)
					}
				}
			}
		}
	}
	for who, calls := range asked {
		for _, d := range c.drains[who] {
			if d.invoke.Do == history.Drain && d.is(history.OK) {
				for _, k := range calls {
					c.refuses(d, k, c.drainedUntil(who, d))
				}
			}
		}
		for _, k := range calls {
			c.drainsFor(k)
		}
	}
}

// drainedUntil is when a drain may have been taken back.
func (c *check) drainedUntil(who crew, d *call) int64 {
	for _, k := range c.drains[who] {
		if k.invoke.Do == history.StopDrain && k.invoke.At > d.outcome.At {
			return k.invoke.At
		}
	}
	return never
}

// endsWith looks at a hold of a node that was drained.
func (c *check) endsWith(n *name, a *claim, d *call, lease int64) {
	last := a.believed()
	if last == nil || a.ok.At > d.outcome.At || lease == never || c.lossBetween(a.invoke.At, max(last.At, d.outcome.At)) {
		return
	}
	c.count.Checked++
	if last.At > d.outcome.At+edge+lease {
		c.broken(fmt.Sprintf("%s: its node was drained, and the hold of %s was believed in more than a lease later", n, a.ok.Claim),
			a.invoke, a.ok, d.invoke, d.outcome, last)
	}
}

// refuses looks at an acquire of a node that was drained, until that may have been taken back.
func (c *check) refuses(d, k *call, until int64) {
	over := d.outcome.At
	if k.outcome == nil || k.outcome.At <= over || k.outcome.At >= until || k.invoke.Do == history.Reenter ||
		c.lossBetween(d.invoke.At, k.outcome.At) || c.run.Topology == "cluster" && c.troubled(d.invoke.At, k.outcome.At) {
		return
	}
	switch {
	case k.invoke.At > over:
		c.count.Checked++
		if k.is(history.OK) {
			c.broken(fmt.Sprintf("%s: its node was drained, and operation %d was granted %s %s", k.invoke.Process, k.invoke.Op,
				k.invoke.Primitive, k.invoke.Name), d.invoke, d.outcome, k.invoke, k.outcome)
		}
	case k.invoke.At < over-leaves && c.quiet(k.invoke.Process, slow, over-leaves, over+leaves):
		c.count.Checked++
		if k.outcome.At > over+leaves {
			c.broken(fmt.Sprintf("%s: its node was drained, and operation %d waited on for %s %s", k.invoke.Process, k.invoke.Op,
				k.invoke.Primitive, k.invoke.Name), k.invoke, d.invoke, d.outcome, k.outcome)
		}
	}
}

// drainsFor looks at an acquire that was refused because its process drains. A process takes a drain of its label for one that
// is older than itself by the server's clock.
func (c *check) drainsFor(k *call) {
	if k.outcome == nil || k.outcome.Reason != reasonDraining || c.skewed || c.stepped {
		return
	}
	c.count.Checked++
	if !c.drainedBy(k.invoke, k.outcome.At) {
		c.broken(fmt.Sprintf("%s: operation %d for %s %s was refused as the node drains, and nobody has asked for that",
			k.invoke.Process, k.invoke.Op, k.invoke.Primitive, k.invoke.Name), k.invoke, k.outcome)
	}
}

// drainedBy says that the node of an acquire may have been drained by then.
func (c *check) drainedBy(invoke *history.Event, at int64) bool {
	return invoke.Crew != 0 && slices.ContainsFunc(c.drains[crewOf(invoke)], func(d *call) bool {
		return d.invoke.Do == history.Drain && d.invoke.At <= at
	})
}

// troubled says that some fault met a server at some time between the two, or just before.
func (c *check) troubled(from, to int64) bool {
	return slices.ContainsFunc(c.run.Faults, func(f history.Fault) bool {
		return f.Process == "" && !f.Unseen && f.From-edge <= to && f.To+soon >= from
	})
}
