package checker

import (
	"fmt"
	"slices"

	"github.com/berth-go/berth/test/torture/history"
)

// heeds is how long after an answer its process has told the handle what that says.
const heeds = 250 * ms

// wanted: who holds what is wanted back is told so, by the first answer that it hears; and nobody else is.
//
// The own deadline of a hold is a lease after the beginning of the last request that was answered, at the
// most. So one that is believed in for longer than a lease after a Want was answered has heard an answer to
// something that it asked after that, and each such answer says that the hold is wanted. The handle tells that
// a moment later; Wanted is looked for after each Alive. Where data was lost the want may have been, and
// where a clock was set a lease may be longer. How long a hold is that others enter, or that was extended, is not
// in the history.
//
// A Want without a claim means all that its listing shows, so what was held before and since.
func wanted(c *check) {
	for _, n := range c.names {
		enters := slices.ContainsFunc(n.claims, func(a *claim) bool { return a.invoke.Do == history.Reenter })
		for _, h := range n.holds {
			for _, a := range h.entries {
				c.askedFor(n, a)
				if !enters && len(n.wants) > 0 {
					c.tells(n, h, a)
				}
			}
		}
	}
}

// askedFor looks at a hold whose handle says that it is wanted.
func (c *check) askedFor(n *name, a *claim) {
	if a.told == nil {
		return
	}
	c.count.Checked++
	if c.drainedBy(a.invoke, a.told.At) {
		return // which asks for all that a node has
	}
	if !slices.ContainsFunc(n.wants, func(k *call) bool { return c.wants(k, a) && k.invoke.At <= a.told.At }) {
		c.broken(fmt.Sprintf("%s: the hold of %s is said to be wanted back, and nobody has asked for it", n, a.ok.Claim), a.invoke, a.ok, a.told)
	}
}

// wants says whether a call may have asked for a hold.
func (c *check) wants(k *call, a *claim) bool {
	if k.invoke.Claim == "" {
		return c.done(k) >= a.invoke.At
	}
	return k.invoke.Claim == a.ok.Claim
}

// tells looks at a hold that was wanted.
func (c *check) tells(n *name, h *hold, a *claim) {
	for _, k := range n.wants {
		if !k.is(history.OK) || !c.wants(k, a) || k.invoke.At < a.ok.At {
			continue
		}
		lease := h.lease()
		if lease == never {
			return
		}
		since := slices.IndexFunc(a.alive, func(e *history.Event) bool { return e.At > k.outcome.At+lease })
		if since < 0 {
			return // the later ones were asked later
		}
		first := a.alive[since]
		last := a.alive[len(a.alive)-1]
		if told := a.told; last.At < first.At+heeds && told == nil || c.lossBetween(k.invoke.At, first.At+heeds) ||
			c.pausedBetween(a.invoke.Process, asleep, first.At, first.At+heeds) {
			continue
		} else if c.count.Checked++; told == nil || told.At > first.At+heeds {
			c.broken(fmt.Sprintf("%s: the hold of %s was wanted back, and did not know it more than a lease later", n, a.ok.Claim),
				a.invoke, a.ok, k.invoke, k.outcome, first, last, a.told)
			return
		}
	}
}
