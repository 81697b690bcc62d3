package engine

import (
	"slices"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/heartbeat"
)

// groupKey says whose entries of what a group is of.
type groupKey struct {
	of    Line
	owner string
}

func (c *Claim) groupKey() groupKey { return groupKey{c.line(), c.owner()} }

// joinGroup has a claim that is about to be asked for belong to its owner's group, if there
// is one. The first claim that may extend makes it.
func (e *Engine) joinGroup(c *Claim) {
	if c.Record.Owner == "" {
		return // nobody else is of an owner that is the claim itself
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.groups[c.groupKey()] == nil && c.Extends > 0 {
		e.makeGroup(c.groupKey())
	}
	e.member(c).asks()
}

// makeGroup makes a group of the claims that are here already. None of these extends, so
// no release from here takes back what they have. It is called with Engine.mu held.
func (e *Engine) makeGroup(key groupKey) {
	if len(e.groups) >= e.many { // what is left of releases that were never answered
		e.dropGroups()
		e.many = max(2*len(e.groups), 16)
	}
	g := newGroup(key)
	e.groups[key] = g
	for _, other := range e.claims {
		if other.groupKey() != key {
			continue
		}
		m := e.member(other)
		e.beats.Update(&other.lease, func(spec *heartbeat.Spec) {
			if known := other.see(); known.holds() {
				now := timing{start: e.clock.Now(), confirmed: known.grant.confirmed}
				deadline, _ := known.tells(now, spec)
				m.heard(m.seen(), past-1, deadline, past) // older than any answer, which may say more or less
			}
		})
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.floor = g.least
}

// member makes a claim a member of its owner's group, nil for none. It is called with
// Engine.mu held.
func (e *Engine) member(c *Claim) *member {
	m := c.part.Load()
	if g := e.groups[c.groupKey()]; m == nil && g != nil {
		m = &member{id: c.ID, group: g, limited: c.Record.MaxHold > 0}
		c.part.Store(m)
		g.claims = append(g.claims, c)
	}
	return m
}

// leaveGroup has a claim that has ended here belong to its group no more; its release may
// follow. It is called with Engine.mu held.
func (e *Engine) leaveGroup(c *Claim) {
	if m := c.part.Load(); m != nil {
		m.ends()
		m.group.claims = slices.DeleteFunc(m.group.claims, func(other *Claim) bool { return other == c })
		e.dropGroup(m.group)
	}
}

// dropGroup drops a group that nobody needs: not even a hold that is being taken up, to which
// a release that was answered meanwhile matters. It is called with Engine.mu held.
func (e *Engine) dropGroup(g *group) {
	if len(g.claims) == 0 && e.adopting == 0 && e.groups[g.key] == g && g.idle(e.clock.Now()) {
		delete(e.groups, g.key)
	}
}

// dropGroups drops all such groups. It is called with Engine.mu held.
func (e *Engine) dropGroups() {
	for _, g := range e.groups {
		e.dropGroup(g)
	}
}

// siblings are the other holds of the claim's owner on its name, on this node, that have an
// end. One that is too far off is none here, though the server's may be finite.
func (e *Engine) siblings(c *Claim, g *group) (found []*Claim, ids []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, other := range g.claims {
		if m := other.see(); other != c && m.holds() && other.lease.Deadline() != 0 {
			found, ids = append(found, other), append(ids, other.ID)
		}
	}
	return found, ids
}

// extendSiblings moves the deadlines of the others to what the entry's grant has made of
// them. Where that is not known, their own next beats tell.
func (e *Engine) extendSiblings(c *Claim, entry *Entry) {
	if entry.Extends == 0 {
		return
	}
	defer e.beats.Kick(c.key)
	m, common := c.part.Load(), entry.Common+entry.rest
	if entry.Common < 0 || m == nil || !m.heard(m.noted, c.start, moment(heartbeat.Deadline(c.start, common, entry.lease())), past) {
		return
	}
	siblings, _ := e.siblings(c, m.group)
	for _, other := range siblings {
		if first := other.see().terms.entry; first != nil && first.Common < 0 {
			continue // the outermost one's first call has set limits that are not known here
		}
		e.beats.Update(&other.lease, func(spec *heartbeat.Spec) {
			if further := heartbeat.Deadline(c.start, common, spec.Lease); spec.Deadline != 0 && further > spec.Deadline {
				spec.Deadline, spec.Bounded, spec.Beyond = further, false, sum(spec.Beyond, entry.Extends)
			}
		})
	}
}

// lowerSiblings brings the deadlines of the others down to what the removal of the claim
// leaves of them at the least, before it is sent, and keeps them there. The function that
// it returns takes the answer: it lifts that again, and has the server asked for what is left.
func (e *Engine) lowerSiblings(c *Claim) (rise func(error)) {
	m := c.part.Load()
	if m == nil {
		return func(error) {}
	}
	now, known := e.clock.Now(), c.see()
	by, since := known.extendedBy(now)
	if siblings, ids := e.siblings(c, m.group); m.leaves(now, by, since, ids) {
		for _, other := range siblings {
			e.rebound(other, false)
		}
	}
	return func(err error) {
		e.mu.Lock()
		defer e.mu.Unlock()
		if err != nil {
			return // it may run yet: believe no more than what it leaves
		}
		for _, id := range m.answered(e.clock.Now()) {
			if other := e.claims[id]; other != nil {
				e.rebound(other, true)
			}
		}
		e.beats.Kick(c.key)
		e.dropGroup(m.group)
	}
}

// rebound has the heartbeat go by a claim's bound as it is now.
func (e *Engine) rebound(c *Claim, lift bool) {
	e.beats.Update(&c.lease, func(spec *heartbeat.Spec) {
		m, part := c.see(), c.part.Load()
		if lift {
			spec.Deadline = part.lifts(spec.Deadline)
		}
		spec.Limit = part.bounds(m.terms.limit)
	})
}

// sum adds two spans, both 0 or more; what is longer than there are is berth.Forever.
func sum(a, b time.Duration) time.Duration { return a + min(b, berth.Forever-a) }

// Heralded are the owner's other entries whose local deadlines were lowered before
// the claim's removal is sent: only where no other stays may it take anything back.
func (c *Claim) Heralded() []string { return c.part.Load().heralded() }

// extendedBy is by how much the claim has extended what its owner holds, as far as is
// known, and from when on that is being used up: an acquire that is on its way runs before its
// tombstone goes. One that has a ticket, and is no entry, has not.
func (m *machine) extendedBy(now time.Duration) (by, since time.Duration) {
	switch {
	case m.terms.entry != nil:
		return m.terms.entry.Extends, m.terms.entry.replied
	case m.news.lost && m.place.ticket == 0:
		return m.claim.Extends, now + Tombstone
	}
	return 0, 0
}

// tells is what a grant or an own answer says of the deadline of the owner's entries, and
// what it gives whatever others extended: of the outermost entry the renewals count. Its
// first call starts its lease, which may be shorter. Those of an entry that has become the
// outermost are not counted so: that only lowers others further than they need be.
func (m *machine) tells(g timing, spec *heartbeat.Spec) (deadline, renewed time.Duration) {
	deadline = moment(spec.Deadline)
	own := min(deadline, moment(heartbeat.Deadline(g.start, spec.Lease, spec.Lease)))
	switch {
	case m.terms.entry == nil && !g.confirmed:
		return own, past
	case m.terms.entry == nil && spec.Renews:
		return deadline, own
	}
	return deadline, past
}
