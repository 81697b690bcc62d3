package pool

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// line are those who wait, as they stand in the line of the server: the general line, then
// lane by lane.
func (m *model) line() []*claim {
	all := m.queue()
	slices.SortStableFunc(all, func(a, b *claim) int { return cmp.Compare(m.lanes[a.lane], m.lanes[b.lane]) })
	return all
}

// queue are those who wait, wherever they do, in the order of their priorities and places.
func (m *model) queue() []*claim {
	var all []*claim
	for _, c := range m.claims {
		if c.alive > 0 {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b *claim) int { return cmp.Compare(a.place+"-"+a.id, b.place+"-"+b.id) })
	return all
}

// general are those in the general line.
func (m *model) general() []*claim { return m.waiters("") }

// waiters are those in the lane of a resource.
func (m *model) waiters(lane string) []*claim {
	return slices.DeleteFunc(m.queue(), func(c *claim) bool { return c.lane != lane })
}

// parked is how many wait in lanes.
func (m *model) parked() int {
	_, waiting, _ := m.holds()
	return waiting - len(m.general())
}

// within is how many stand before a claim in its lane.
func (m *model) within(c *claim) int { return slices.Index(m.waiters(c.lane), c) }

// gone says whether a resource is not in the pool any more for those who ask.
func (m *model) gone(i *item) bool { return i == nil || i.leaving || i.expiry > 0 && i.expiry <= m.now }

// target is the resource that a claim which comes now waits for, "" = any.
func (m *model) target(c *claim) string {
	if c.only != "" {
		return c.only
	}
	if key := m.bound(c.bind); c.patience > 0 && key != "" && !m.gone(m.items[key]) {
		return key
	}
	return ""
}

// patient is until when a claim that comes now waits for the one that it is bound to (ms), 0 = it
// never takes another one.
func (m *model) patient(c *claim) int64 {
	if c.only != "" || c.patience == forever {
		return 0
	}
	return m.now + c.patience
}

// joins has a claim stand in the lane of a resource, or in the general line. A lane is there
// for as long as somebody is in it.
func (m *model) joins(c *claim, lane string, until int64) {
	old := c.lane
	c.lane, c.until = lane, until
	if _, open := m.lanes[lane]; !open && lane != "" {
		m.lanes[lane] = m.number(lane, c.ticket)
	}
	if old != "" && len(m.waiters(old)) == 0 {
		delete(m.lanes, old)
	}
}

// empty has nobody wait for a resource. A claim that wants no other
// one ends; the others keep their places.
func (m *model) empty(key string) {
	for _, c := range m.waiters(key) {
		switch {
		case c.alive <= m.now:
			m.removeClaim(c, "", 0, 0, "")
			m.swept++
		case c.only != "":
			m.absent[fmt.Sprint("absent ", c.node, " ", c.id)] = true
			m.removeClaim(c, "", 0, 0, "")
		default:
			m.joins(c, "", 0)
		}
	}
}

// empties has nobody wait for what nobody can get any more. A pool that is not filled yet may
// still get a resource.
func (m *model) empties() {
	for key := range m.lanes {
		if i := m.items[key]; m.filled && (i == nil || i.leaving) {
			m.empty(key)
		}
	}
}

// fill says that all that was to be in the pool has been added: what is not is absent from now on.
// The moments of the lanes that have passed count.
func (m *model) fill() {
	if m.filled {
		return
	}
	m.filled = true
	m.outOfPatience()
	for key := range m.lanes {
		if i := m.items[key]; i != nil && m.gone(i) && m.paused == 0 {
			m.leave(key)
		}
	}
}

// outOfPatience has those go over to the general line who have waited long enough for one resource; during
// a pause they stay.
func (m *model) outOfPatience() {
	if m.paused > 0 {
		return
	}
	for _, c := range m.queue() {
		if c.lane != "" && c.until > 0 && c.until <= m.now {
			m.joins(c, "", 0)
		}
	}
}

// pending says whether a moment of a lane has passed.
func (m *model) pending() bool {
	for _, c := range m.queue() {
		if c.until > 0 && c.until <= m.now {
			return true
		}
	}
	for key := range m.lanes {
		if at := m.looks(key); at > 0 && at <= m.now {
			return true
		}
	}
	return m.paused > 0 && m.marked()
}

// looks is when somebody has to look at the lane of a resource next (ms), 0 = it is not known: at
// the end of its rest or its expiry. A pool that is not filled yet may still get the resource.
func (m *model) looks(key string) int64 {
	i := m.items[key]
	if i == nil || i.leaving {
		return forever
	}
	next := int64(0)
	for _, at := range []int64{i.ends, i.expiry} {
		if at > 0 && at != forever && (next == 0 || at < next) {
			next = at
		}
	}
	return next
}

// stands is the member of the line that a waiting claim is, its score, and the place in its
// record.
func (m *model) stands(c *claim) (member string, score int64, place string) {
	lane, place, _ := strings.Cut(c.place, " ")
	if score, _ = strconv.ParseInt(lane, 10, 64); c.lane != "" {
		score, place = m.lanes[c.lane], lane+place
	}
	return place + "-" + c.id, score, place
}
