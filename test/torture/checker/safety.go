package checker

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-go/berth/test/torture/history"
)

// capacity: never more held than the capacity. Two proofs, each enough.
//
// By fence: where B was granted, all that were granted before it and were believed in
// after it were held with it. A fence is no smaller than the machine's time of its
// grant (a last fence + 1 is only larger, which makes the rule weaker), except from a
// clock that was behind: such grants are left out. A believer's Real is read before
// its handle is asked, so a process that is stopped in between only makes it smaller;
// and a hold ends in its process before its release is sent, or by its own deadline
// before the server's. Holds of which nobody knows, of killed processes and of waits
// that were cancelled, are only missing in the sum.
//
// By time: from its OK to its last Alive a hold was believed in throughout, for a
// handle that has ended stays so. No fence and no wall clock is in it.
//
// Lost data: whoever may have been granted before it is left out until its lease, counted
// from when the last was lost, has ended. It has no more by then: the last heartbeat that
// a server of before has answered was sent before, and one that is answered since tells
// what the server has now. If that is another grant, the handle ends.
// Re-entries share a fence and count once.
func capacity(c *check) {
	for _, n := range c.names {
		if n.capacity == 0 {
			continue
		}
		for _, holds := range n.byResource() {
			told := map[*hold]bool{}
			c.capacityByFence(n, holds, told)
			c.capacityByTime(n, holds, told)
		}
	}
}

// byResource are the holds that share a capacity, by fence.
func (n *name) byResource() map[string][]*hold {
	by := map[string][]*hold{}
	for _, h := range n.holds {
		if n.primitive != "pool" {
			by[""] = append(by[""], h)
		} else if h.resource != "" {
			by[h.resource] = append(by[h.resource], h)
		}
	}
	return by
}

func (c *check) capacityByFence(n *name, holds []*hold, told map[*hold]bool) {
	last := make([]*history.Event, len(holds)) // the last that proves something
	for i, h := range holds {
		last[i] = c.proof(h)
	}
	for i, b := range holds {
		c.count.Checked++
		if c.behind(b.first()) || c.stepped {
			continue
		}
		sum, with := b.weight, []*history.Event{b.first().invoke, b.first().ok}
		for j, a := range holds[:i] {
			if last[j] == nil || last[j].Real <= b.fence || a.fence == b.fence {
				continue
			}
			if !c.before(a.first(), b.first()) {
				continue
			}
			sum += a.weight
			with = append(with, a.first().ok, last[j])
		}
		if sum > n.capacity {
			told[b] = true
			c.broken(fmt.Sprintf("%s: %d held where the capacity is %d: %s was granted (fence %d) while %s was believed in",
				n, sum, n.capacity, b.first().ok.Claim, b.fence, claimsOf(with[2:])), with...)
		}
	}
}

// before says that a was granted before b, of which a has the smaller fence.
func (c *check) before(a, b *claim) bool {
	return a.ok.At < b.invoke.At || c.told(a, b)
}

// proof is the Alive of a hold, of those that no loss excuses, with the largest Real.
func (c *check) proof(h *hold) *history.Event {
	var found *history.Event
	for _, a := range h.entries {
		if c.condemned(a) {
			continue
		}
		for _, e := range a.alive {
			if (found == nil || e.Real > found.Real) && !c.excused(h, a, e.At) {
				found = e
			}
		}
	}
	return found
}

// excused says whether an entry may be believed in at that time though the server has
// forgotten it.
func (c *check) excused(h *hold, a *claim, at int64) bool {
	for _, f := range c.losses {
		if a.invoke.At <= f.LostBy()+edge && f.From-edge <= at && at <= excuse(h, f) {
			return true
		}
	}
	return false
}

// condemns is how long after a loss the swarm may still find a node dead that lives: its ZombieAfter, and until the next flush.
const condemns = 3 * second

// condemned says that the swarm may have ended the entry although its node lived: the server's clock was set shortly before, or it
// had lost when the node was heard of. The process believes in the entry until it hears of that, and has another node then.
func (c *check) condemned(a *claim) bool {
	node, _, _ := strings.Cut(a.ok.Claim, ".")
	at, replaced := c.replaced[node]
	return replaced && at >= a.ok.At && slices.ContainsFunc(c.losses, func(f history.Fault) bool { return f.From <= at && at <= f.To+condemns })
}

// excuse is until when the loss excuses the belief in a hold: until its last deadline
// has passed, as far as that is known.
func excuse(h *hold, f history.Fault) int64 {
	lease := h.lease()
	if lease == never {
		return never
	}
	return f.LostBy() + edge + lease
}

// span is a time in which a hold was believed in.
type span struct {
	from, to int64
	hold     *hold
	ok, last *history.Event
}

// spans are the times in which a hold was believed in, and nothing excuses it.
func (c *check) spans(h *hold) []span {
	var all []span
	for _, a := range h.entries {
		last := a.believed()
		if last == nil || last.At < a.ok.At || c.condemned(a) {
			continue
		}
		from := a.ok.At
		for _, f := range c.losses { // by From
			if a.invoke.At > f.LostBy()+edge || f.From-edge > last.At {
				continue
			}
			if from < f.From-edge {
				all = append(all, span{from, f.From - edge, h, a.ok, last})
			}
			if until := excuse(h, f); until == never {
				from = never
			} else {
				from = max(from, until+1)
			}
		}
		if from <= last.At {
			all = append(all, span{from, last.At, h, a.ok, last})
		}
	}
	return all
}

func (c *check) capacityByTime(n *name, holds []*hold, told map[*hold]bool) {
	var all []span
	for _, h := range holds {
		all = append(all, c.spans(h)...)
	}
	slices.SortFunc(all, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	var open []span
	for _, s := range all {
		open = slices.DeleteFunc(open, func(o span) bool { return o.to < s.from })
		open = append(open, s)
		sum, seen := 0, map[*hold]bool{}
		var with []*history.Event
		for _, o := range open {
			if !seen[o.hold] {
				seen[o.hold] = true
				sum += o.hold.weight
				with = append(with, o.ok, o.last)
			}
		}
		if sum > n.capacity && !told[s.hold] {
			told[s.hold] = true
			c.broken(fmt.Sprintf("%s: %d held at one time where the capacity is %d: %s",
				n, sum, n.capacity, claimsOf(with)), with...)
		}
	}
}

// fences: fences rise.
//
// What was granted later has the larger fence, where it certainly was later: the OK of
// the one came before the Invoke of the other. The server keeps the last fence; where
// it may have lost that, a fence is still no smaller than the machine's time of its
// grant, so the rule goes on for fences that lie before the other's Invoke, and for
// servers whose clock was not behind. Only re-entries share the fence of their hold, and
// the same claim may be seen twice with its fence: a hold that was resumed.
func fences(c *check) {
	for _, n := range c.names {
		for i, b := range n.holds {
			c.count.Checked++
			if i > 0 && n.holds[i-1].fence == b.fence {
				c.twice(n, n.holds[i-1], b)
			}
			e := b.first()
			for _, a := range n.holds[i+1:] {
				if x := a.first(); x.ok.At < e.invoke.At && c.rises(x, e) {
					c.broken(fmt.Sprintf("%s: fence %d was given after fence %d", n, b.fence, a.fence),
						x.invoke, x.ok, e.invoke, e.ok)
					break
				}
			}
		}
	}
}

// rises says whether the fence of the later claim must be the larger one.
func (c *check) rises(earlier, later *claim) bool {
	if !c.lossBetween(earlier.invoke.At, later.ok.At) {
		return true
	}
	return earlier.fence() < later.invoke.Real && !c.behind(later) && !c.stepped
}

func (c *check) twice(n *name, a, b *hold) {
	x, y := a.first(), b.first()
	if x.ok.Claim != "" && x.ok.Claim == y.ok.Claim {
		return
	}
	if x.ok.At < y.invoke.At && c.rises(x, y) || y.ok.At < x.invoke.At && c.rises(y, x) ||
		!c.lossBetween(min(x.invoke.At, y.invoke.At), max(x.ok.At, y.ok.At)) {
		c.broken(fmt.Sprintf("%s: fence %d was given twice", n, a.fence), x.invoke, x.ok, y.invoke, y.ok)
	}
}

// claimsOf names the claims that the events are about.
func claimsOf(events []*history.Event) string {
	text, seen := "", map[string]bool{}
	for _, e := range events {
		if id := e.Claim; !seen[id] {
			if len(seen) > 0 {
				text += ", "
			}
			seen[id] = true
			text += id
		}
	}
	return text
}
