package engine

import (
	"math"
	"time"

	"github.com/berth-go/berth/internal/heartbeat"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// An owner may hold one name by several entries, with one deadline in common. An
// entry that extends it moves the deadline of the others further off, and back
// again by what is unused when it ends. What follows keeps the others honest:
// their local deadlines are lengthened once the extension is confirmed, and
// lowered before the release that takes it back is sent.

// siblings are the other holds of the claim's owner on its name, on this node.
func (e *Engine) siblings(c *Claim) []*Claim {
	e.mu.Lock()
	defer e.mu.Unlock()
	var found []*Claim
	for _, other := range e.claims {
		if other != c && other.Name == c.Name && other.owner() == c.owner() {
			if p, _ := other.current(); p == granted {
				found = append(found, other)
			}
		}
	}
	return found
}

// reentry is what the server said of an entry of an owner that held already, nil
// for any other claim.
func (c *Claim) reentry() *Entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.entry
}

// noteSiblings keeps the deadlines of the others as they are without the claim:
// should nothing be heard of what became of it, its removal leaves at least those.
func (e *Engine) noteSiblings(c *Claim) {
	if c.Extends == 0 {
		return
	}
	c.before, c.noted = make(map[*Claim]time.Duration), e.clock.Now()
	for _, other := range e.siblings(c) {
		c.before[other] = other.lease.Deadline()
	}
}

// lengthenSiblings moves the deadlines of the others to what the entry's grant
// has made of them, unless something has been taken back since it was sent.
func (e *Engine) lengthenSiblings(c *Claim, entry *Entry) {
	if entry.Extends == 0 {
		return
	}
	defer e.beats.Kick(c.Name)
	if entry.Common < 0 {
		return
	}
	start, common := c.start, entry.Common+entry.rest
	for _, other := range e.siblings(c) {
		if other.takenBack(start) || !other.settled() {
			continue // its own next beat tells
		}
		e.beats.Update(&other.lease, func(spec *heartbeat.Spec) {
			if further := heartbeat.Deadline(start, common, spec.Lease); spec.Deadline != 0 && further > spec.Deadline {
				spec.Deadline = further
				other.mu.Lock()
				other.told = further
				other.beyond += entry.Extends
				spec.Beyond = other.beyond
				other.mu.Unlock()
			}
		})
	}
}

// lowerSiblings brings the deadlines of the others down to what the removal of
// the claim leaves of them at the least, before it is sent, and keeps them there.
// The function that it returns takes the answer: it lifts that again, and has the
// server asked for what is left.
func (e *Engine) lowerSiblings(c *Claim) (rise func(error)) {
	if !c.mayExtend() {
		return func(error) {}
	}
	var lowered []*Claim
	c.heralded = c.heralded[:0]
	for _, other := range e.siblings(c) {
		if e.lowerSibling(c, other) {
			lowered = append(lowered, other)
			c.heralded = append(c.heralded, other.ID)
		}
	}
	return func(err error) {
		if err != nil && scriptkit.MaybeRan(err) {
			return // it may run yet: believe no more than what it leaves
		}
		for _, other := range lowered {
			e.liftSibling(c, other)
		}
		e.beats.Kick(c.Name)
	}
}

// lowerSibling lowers one, and reports false where nothing bounds it. A call under
// way may have lowered it already, but not by what the claim extended.
func (e *Engine) lowerSibling(c, other *Claim) bool {
	now := e.clock.Now()
	return e.beats.Update(&other.lease, func(spec *heartbeat.Spec) {
		if spec.Deadline == 0 {
			return
		}
		other.mu.Lock()
		defer other.mu.Unlock()
		least := max(spec.Deadline, other.told) - c.unused(now)
		if before, known := c.before[other]; known && c.reentry() == nil && other.lowered <= c.noted && len(other.ceilings) == 0 {
			least = max(least, before)
		}
		least = max(least, other.renewedUntil(spec))
		if ceiling, again := other.ceilings[c]; again {
			least = max(least, ceiling) // lowered for an earlier attempt already
		}
		spec.Deadline = min(spec.Deadline, least)
		if other.ceilings == nil {
			other.ceilings = make(map[*Claim]time.Duration)
		}
		other.ceilings[c] = least
		spec.Limit = other.bound(spec)
	})
}

// liftSibling takes the ceiling away again. What was answered while it was there
// may be from before the removal.
func (e *Engine) liftSibling(c, other *Claim) {
	e.beats.Update(&other.lease, func(spec *heartbeat.Spec) {
		other.mu.Lock()
		defer other.mu.Unlock()
		ceiling, low := other.ceilings[c]
		delete(other.ceilings, c)
		other.lowered = e.clock.Now()
		spec.Limit = other.bound(spec)
		if spec.Deadline == 0 {
			return
		}
		spec.Deadline-- // changed, so that a beat that is under way no longer moves it
		if low {
			spec.Deadline = min(spec.Deadline, max(ceiling, other.renewedUntil(spec)))
		}
		other.told = spec.Deadline
	})
}

// settled says whether the limits of the claim are known: an entry that was granted
// before the outermost one had spoken got some with that one's first call.
func (c *Claim) settled() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.entry == nil || c.entry.Common >= 0
}

// takenBack says whether something of the claim's deadline has been taken back
// since a moment, or is being taken back: what a call that began then says of it
// may be from before.
func (c *Claim) takenBack(since time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.ceilings) > 0 || c.lowered > since
}

// unused is the most that the removal of the claim can take back.
func (c *Claim) unused(now time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entry == nil {
		return c.Extends
	}
	return max(0, c.entry.Extends-max(0, now-c.replied))
}

// mayExtend says whether the claim has lengthened what its owner holds, as far as
// is known: one that has a ticket, and is no entry, has not.
func (c *Claim) mayExtend() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.Extends > 0 && (c.entry != nil || c.lost && c.ticket == 0)
}

// renewedUntil is what the claim's own last renewal gives it, whatever others
// extended: only for the outermost entry, whose renewals count. It is called with
// c.mu held.
func (c *Claim) renewedUntil(spec *heartbeat.Spec) time.Duration {
	if c.entry != nil || !spec.Renews || !c.confirmed {
		return math.MinInt64
	}
	return heartbeat.Deadline(c.renewed, spec.Lease, spec.Lease)
}

// limited is the local end of a hold's maximum, which runs from its first
// confirmed call, and of what others are taking back.
func (c *Claim) limited(g grant, spec *heartbeat.Spec) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if g.confirmed && c.terms.MaxHold > 0 && c.limit == 0 {
		c.limit = heartbeat.Deadline(g.start, c.terms.MaxHold, spec.Lease)
	}
	return c.bound(spec)
}

// bound is the earliest of the claim's limit and its ceilings, 0 for none. What it
// has renewed since stays whatever is taken back. It is called with c.mu held.
func (c *Claim) bound(spec *heartbeat.Spec) time.Duration {
	at := c.limit
	for _, ceiling := range c.ceilings {
		ceiling = max(ceiling, c.renewedUntil(spec))
		if at == 0 || ceiling < at {
			at = ceiling
		}
	}
	return at
}
