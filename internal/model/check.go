package model

import (
	"errors"
	"strings"

	"pgregory.net/rapid"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/keyspace"
)

// check compares what the server has with the laws and with the model.
func (m *machine) check(t *rapid.T) {
	m.Settle(func() bool { return true })
	for _, c := range m.claims {
		c.back = c.returned() // a grant may come right after the look
		if !m.Exact && c.back && c.got != nil && c.id != "" && c.got.ID() != c.id {
			m.again(c, c.got.ID())
		}
	}
	v := m.look(t)
	v.whole(t, linger.Milliseconds())
	m.stored(t, &v)
	m.stays(t, &v)
	for id := range v.records {
		if m.known[id] == nil && !m.anew(&v, id) {
			t.Fatalf("nobody made the claim %s", id)
		}
	}
	m.grants(t, &v)
	for _, c := range m.claims {
		switch c.phase {
		case asking:
			m.joined(t, &v, c)
		case waiting:
			m.waits(t, &v, c)
		case held:
			m.holds(t, &v, c)
		case gone:
			if m.Exact && max(v.holds[c.id], v.alive[c.id]) > v.now {
				t.Fatalf("%s is a ghost", c.id)
			}
		}
	}
	for _, o := range m.orphans {
		if m.Exact && v.now > o.by && !o.on.dead && o.permit.Err() == nil {
			t.Fatalf("a handle does not know that %s was taken away", o.permit.ID())
		}
	}
	m.served(t, &v)
	if m.Exact {
		Reads(t, m.Redis, m.space(), keyspace.Sem, m.Name)
	}
	m.last, m.flushed, m.before = v, false, 0
}

// anew says whether a claim is that of a call whose grant ended before the call had it, as on a slow machine: the call
// asks again, with a new id.
func (m *machine) anew(v *view, id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	node, _, _ := strings.Cut(id, ".")
	for _, c := range m.claims {
		of, _, _ := strings.Cut(c.id, ".")
		r := v.records[id]
		if m.Exact || !m.failed[c.id] || of != node || r.Weight != c.opts.Weight || r.Priority != c.opts.Priority ||
			c.returned() && (c.got == nil || c.got.ID() != id) {
			continue
		}
		m.again(c, id)
		return true
	}
	return false
}

// again gives a claim that asked anew its new id. If another one that looks the same was taken for it, the two change.
func (m *machine) again(c *claim, id string) {
	if other := m.known[id]; other != nil && other != c {
		other.id, other.phase, other.permit = c.id, asking, nil
		m.known[c.id] = other
	}
	c.id, c.phase, c.permit, c.lost, c.forgot, c.anew = id, asking, nil, false, false, true
	m.known[id] = c
}

// stored checks the capacity: only a resize moves it, and only at its expiry, or
// by a flush, is it forgotten.
func (m *machine) stored(t *rapid.T, v *view) {
	if v.state["fmt"] == 0 {
		if m.last.state["fmt"] > 0 && !m.flushed && (m.last.expires[0] < 0 || m.last.expires[0] > v.now) {
			t.Fatalf("the state is gone before its expiry")
		}
		m.capacity, m.keep, m.ticket, m.pause = 0, 0, 0, pause{}
		m.fits(m.named) // who asks, or is put back, is measured by that
		return
	}
	if m.capacity == 0 && v.state["cap"] > 0 { // a pause stores none
		m.capacity = m.named
	}
	same(t, "the stored capacity and the model's", v.state["cap"], int64(m.capacity))
	same(t, "whether an idle name stays, and the model's", v.state["keep"], m.keep)
	m.fits(m.capacity)
}

// fits notes the capacity that claims have to fit in now.
func (m *machine) fits(capacity int) {
	for _, c := range m.claims {
		if c.least = min(c.least, capacity); c.least == 0 {
			c.least = capacity
		}
	}
}

// joined takes a claim into the line that stands there for the first time.
func (m *machine) joined(t *rapid.T, v *view, c *claim) {
	r, ok := v.records[c.id]
	if !ok {
		if m.Exact {
			t.Fatalf("%s neither holds nor waits", c.id)
		}
		return
	}
	same(t, "the place and that of the ticket", v.places[c.id], place(c.opts.Priority, r.Ticket))
	if r.Ticket <= m.ticket && !c.anew {
		t.Fatalf("ticket %d after %d", r.Ticket, m.ticket)
	}
	if !c.anew { // it may have come after others that are looked at after it
		m.ticket = r.Ticket
	}
	c.place, c.phase, c.forgot = v.places[c.id], waiting, false
}

// waits checks a claim that waits.
func (m *machine) waits(t *rapid.T, v *view, c *claim) {
	alive, ok := v.alive[c.id]
	switch {
	case c.returned() && m.late(c):
		c.phase = gone
	case c.returned() && c.err != nil:
		if _, why := refused(c.err); why != berth.ReasonTooHeavy || c.opts.Weight <= c.least {
			t.Fatalf("a wait ended: %v", c.err)
		}
		c.phase = gone
	case c.on.dead && !ok:
		if c.ends > v.now && c.opts.Weight <= c.least {
			t.Fatalf("%s is gone before its deadline", c.id)
		}
		c.phase = gone
	case !ok:
		if m.Exact && !c.lost {
			t.Fatalf("%s lives and has lost its place", c.id)
		}
		c.lost = true
	case m.Exact && c.on.dead:
		same(t, "the liveness of a dead waiter and what it had", alive, c.ends)
	case m.Exact && (alive <= v.now || alive > v.now+c.on.lease.Milliseconds()):
		t.Fatalf("a living waiter has %d ms", alive-v.now)
	default:
		same(t, "the place of "+c.id+" and the one that it had", v.places[c.id], c.place)
		c.lost, c.forgot = false, false
	}
}

// late says whether the news of a grant came when the hold had ended, which a slow
// machine is enough for: it was to be renewed, or was not.
func (m *machine) late(c *claim) bool {
	return !m.Exact && (errors.Is(c.err, berth.ErrExpired) || errors.Is(c.err, berth.ErrLost))
}

// holds checks a claim that holds.
func (m *machine) holds(t *rapid.T, v *view, c *claim) {
	deadline, ok := v.holds[c.id]
	if c.permit == nil && !c.on.dead {
		ended := false
		m.Settle(func() bool {
			back := c.returned()
			if !back && !m.Exact {
				_, holds := m.look(t).holds[c.id]
				ended = !holds
			}
			return back || ended
		})
		if ended { // nobody confirmed the grant in time, as on a slow machine: the claim is to stand where it stood
			c.phase = waiting
			return
		}
		if c.permit = c.got; m.late(c) {
			c.phase = gone
			return
		} else if c.permit != nil && c.permit.ID() != c.id && !m.Exact { // it asked anew: the next check takes the new grant in
			m.again(c, c.permit.ID())
			return
		} else if c.permit == nil {
			t.Fatalf("%s holds, and its acquire ended: %v", c.id, c.err)
		}
		if !m.Exact { // meanwhile its hold may have ended, and it may have been granted another one
			now := m.look(t)
			v = &now
			deadline, ok = v.holds[c.id]
		}
	}
	if c.permit != nil && deadline <= v.now && c.permit.Err() == nil {
		t.Fatalf("%s still believes in its hold, %d ms after its end", c.id, v.now-deadline)
	}
	if m.Exact && ok && c.parked != (v.records[c.id].Phase == 'd') {
		t.Fatalf("%s is detached: %t, and stored as %c", c.id, c.parked, v.records[c.id].Phase)
	}
	if ok && deadline > v.now {
		m.wants(t, v, c)
	}
	until := c.ends
	if !c.fixed {
		until = forever
		if c.limit > 0 {
			until = c.limit
		}
	}
	switch lives := until > v.now; {
	case !m.Exact:
		if !ok {
			c.phase = gone
		}
	case !lives:
		if deadline > v.now {
			t.Fatalf("%s holds %d ms longer than it may", c.id, deadline-until)
		}
		c.phase = gone
	case !ok:
		t.Fatalf("%s has lost its hold %d ms too soon", c.id, until-v.now)
	case c.fixed:
		same(t, "a hold's deadline and the model's", deadline, until)
	default:
		r := v.records[c.id]
		if longest := v.now + max(r.Lease, r.Wait).Milliseconds(); deadline <= v.now || deadline > min(longest, until) {
			t.Fatalf("a renewed hold has %d ms", deadline-v.now)
		}
		if c.permit == nil || c.limit == 0 && c.permit.Err() != nil {
			t.Fatalf("%s lives, and its holder does not know", c.id)
		}
	}
}

// served checks that the first in line does not wait for what is free. What
// expires is found by those who wait: their timers have grace, as they have at the end of a pause.
func (m *machine) served(t *rapid.T, v *view) {
	idle, since := m.unserved(v)
	if since = max(since, m.pause.ended(v.now)); !idle || m.pause.lasts(v.now) {
		return
	}
	grace := int64(50)
	if m.died {
		grace += m.Lease.Milliseconds() / 2 // news for the first in line may have gone to a dead node
	}
	if since == 0 || m.Exact && v.now-since > grace {
		t.Fatalf("the first in line waits for what is free; the last end was at %d, now it is %d", since, v.now)
	}
	m.Settle(func() bool {
		v := m.look(t)
		idle, _ := m.unserved(&v)
		return !idle
	})
}

// unserved says whether the first in line fits, and since when at the latest: 0
// where no deadline had to pass for it.
func (m *machine) unserved(v *view) (idle bool, since int64) {
	line := v.line(v.now)
	if len(line) == 0 || v.records[line[0]].Weight > m.capacity-v.used(v.now) {
		return false, 0
	}
	for _, deadlines := range []map[string]int64{v.holds, v.alive} {
		for _, deadline := range deadlines {
			if deadline <= v.now {
				since = max(since, deadline)
			}
		}
	}
	for id := range v.alive {
		if c := m.known[id]; c != nil && !c.on.dead {
			return true, since
		}
	}
	return since == 0, since
}
