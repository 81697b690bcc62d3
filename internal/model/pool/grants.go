package pool

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

func expired[K cmp.Ordered, V any](all map[K]V, now int64, ends func(V) int64, name func(V, K) string) []K {
	var keys []K
	for k, v := range all {
		if e := ends(v); e > 0 && e <= now && e != forever {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b K) int {
		return cmp.Or(cmp.Compare(ends(all[a]), ends(all[b])), cmp.Compare(name(all[a], a), name(all[b], b)))
	})
	return keys
}

// bind binds a name to a resource, and forgets two bindings that have ended.
func (m *model) bind(name, key string, lasts int64) {
	m.binds[name] = binding{forever, key}
	if lasts > 0 {
		m.binds[name] = binding{m.now + lasts, key}
	}
	ended := m.ended()
	for _, name := range ended[:min(2, len(ended))] {
		delete(m.binds, name)
	}
}

// ended are the bindings that have ended, the one that ended first before the others.
func (m *model) ended() []string {
	return expired(m.binds, m.now, func(b binding) int64 { return b.ends }, own)
}

// over says whether the end of a hold or a rest has passed.
func (m *model) over() bool {
	for _, c := range m.claims {
		if c.deadline > 0 && c.deadline <= m.now {
			return true
		}
	}
	for _, i := range m.items {
		if i.ends > 0 && i.ends <= m.now {
			return true
		}
	}
	return false
}

func own[V any](_ V, k string) string { return k }

// reclaim drops what has expired.
func (m *model) reclaim() {
	m.met = m.met || m.pending() && m.paused == 0
	held := expired(m.claims, m.now, func(c *claim) int64 { return c.deadline }, own)
	for _, id := range held {
		m.removeClaim(m.claims[id], "", 0, 0, "")
	}
	stones := expired(m.claims, m.now, func(c *claim) int64 { return c.forgotten }, own)
	for _, id := range stones {
		m.claims[id].stone, m.claims[id].forgotten, m.claims[id].known = "", 0, false
	}
	rests := expired(m.items, m.now, func(i *item) int64 { return i.ends }, own)
	for _, key := range rests {
		i := m.items[key]
		if i.ends = 0; i.pend == 0 {
			i.reason = ""
		}
		m.settle(key)
	}
	left := expired(m.items, m.now, func(i *item) int64 {
		if i.leaving {
			return 0
		}
		return i.expiry
	}, own)
	for _, key := range left {
		m.leave(key)
	}
	m.outOfPatience()
	m.reclaimed = true
	binds := m.ended()
	for _, name := range binds {
		delete(m.binds, name)
	}
	changed := expired(m.changed, m.now, func(o operated) int64 { return o.until }, own)
	for _, target := range changed[:min(2, len(changed))] { // the others in later runs
		delete(m.changed, target)
	}
	m.swept += len(held) + len(stones) + len(rests) + len(left) + len(binds)
}

// patrol looks at so many places of the line and drops those who died waiting.
func (m *model) patrol(places int) {
	line := m.line()
	if len(line) == 0 {
		return
	} else if m.looked > 0 {
		line = line[:min(m.looked, len(line))]
	}
	m.looked = max(len(line)-places, 0)
	for _, c := range line[m.looked:] {
		if c.alive <= m.now {
			m.removeClaim(c, "", 0, 0, "")
			m.swept, m.more = m.swept+1, flagMore
		}
	}
}

// fits says whether a resource may be granted; an expired one leaves. Nobody may hold
// one that a claim wants alone.
func (m *model) fits(c *claim, key, other string) bool {
	i := m.items[key]
	if key == "" || key == other || i == nil || !slices.Contains(m.free, key) {
		return false
	}
	if m.gone(i) {
		m.drops++
		m.leave(key)
		return false
	}
	return c.kind != "a" || len(i.claims) == 0
}

func (m *model) bound(name string) string {
	if b, ok := m.binds[name]; ok && name != "" && b.ends > m.now {
		return b.key
	}
	return ""
}

// pick chooses the resource that a claim gets, "" for none. One that waits in a lane, or would,
// gets that resource or none.
func (m *model) pick(c *claim, lane, other string) string {
	wanted := cmp.Or(lane, m.bound(c.bind))
	if m.fits(c, wanted, other) {
		return wanted
	} else if lane != "" {
		return ""
	}
	if m.set[setPolicy] == "r" {
		return m.draw(c, other)
	}
	for {
		of := slices.DeleteFunc(slices.Clone(m.free), func(key string) bool { return key == other })
		if len(of) == 0 {
			return ""
		}
		key := of[0]
		if m.set[setPolicy] == "m" {
			key = of[len(of)-1]
		}
		if m.fits(c, key, other) {
			return key
		}
	}
}

// draw takes what the server drew, if it was there to be drawn.
func (m *model) draw(c *claim, other string) string {
	key := m.drawn(c.id, other)
	for _, k := range slices.Clone(m.free) {
		if k != key && k != other && !m.left(k) {
			m.fits(c, k, other) // it was drawn before, and had expired
		}
	}
	if m.fits(c, key, other) {
		return key
	}
	for _, k := range m.free {
		if k != other && !m.gone(m.items[k]) {
			m.fault = "the server drew " + key + ", the model has " + k
		}
	}
	return ""
}

func (m *model) take(c *claim, key string) {
	m.fence = max(m.fence+1, m.us)
	c.fence = m.fence
	i := m.items[key]
	if c.kind != "s" {
		if len(i.claims) >= i.max {
			m.fault = "more than max hold " + key
		}
		i.claims = append(i.claims, c.id)
		m.settle(key)
	}
	m.rotate(key)
	if c.bind != "" {
		was := m.binds[c.bind]
		m.bind(c.bind, key, m.lastsBound(c, key))
		if was.key == key && was.ends > m.binds[c.bind].ends {
			m.binds[c.bind] = was // a grant shortens no binding
		}
	}
	c.resource = key
}

// handOff grants what is free to those who wait, in the order of their priorities and places,
// wherever they wait: in the general line to the first ones, for as long as something fits; in a
// lane while its resource is free; during a pause nothing. Those who have died are dropped where they are met.
func (m *model) handOff() {
	if m.paused > 0 {
		return
	}
	m.outOfPatience()
	m.empties()
	stopped := false
	for _, c := range m.queue() {
		key := ""
		if c.lane == "" && stopped {
			continue
		} else if c.alive <= m.now {
			if c.lane == "" || m.dropped(c.id) || slices.Contains(m.free, c.lane) {
				m.removeClaim(c, "", 0, 0, "")
				m.swept++
			}
			continue
		}
		if key = m.pick(c, c.lane, ""); key == "" {
			stopped = stopped || c.lane == ""
			continue
		}
		c.deadline, c.alive, c.phase = c.alive, 0, 'g'
		m.joins(c, "", 0)
		m.take(c, key)
		m.granted = append(m.granted, c)
		m.handed = append(m.handed, fmt.Sprintf("granted %s %s %d %013d %s %s", c.node, c.id, c.fence, c.deadline-m.now, key, secret))
	}
}

// renewHold is an own call of a holder. It may name a lease.
func (m *model) renewHold(c *claim, mode string) {
	mode, millis, named := strings.Cut(mode, " ")
	starts, reach := c.phase == 'g', max(c.reach, c.lease)
	if starts {
		reach = max(reach, c.wait)
	}
	if named && c.lease > 0 {
		c.lease, _ = strconv.ParseInt(millis, 10, 64)
		c.renews = c.renews && c.lease > 0
	}
	if starts {
		c.phase = 'h'
		if c.most > 0 {
			c.limit = m.now + c.most
		}
	}
	anew := starts || mode == "renew" || c.renews && c.phase != 'd'
	if mode == "detach" {
		c.phase = 'd'
	}
	if !anew {
		return
	}
	own := forever
	if c.lease > 0 {
		own = m.now + c.lease
	}
	if named || c.reach > 0 {
		c.deadline = max(own, min(c.deadline, m.now+reach)) // a longer lease has set it
	} else {
		c.deadline = own
	}
	if c.limit > 0 {
		c.deadline = min(c.deadline, c.limit)
	}
	if c.reach = 0; c.deadline > own {
		c.reach = reach
	}
}

// begin starts a hold with the call of its own claimant.
func (m *model) begin(c *claim) {
	if c.lease == 0 || c.lease > c.wait {
		c.phase, c.deadline = 'g', m.now+c.wait
		return
	}
	c.phase, c.deadline = 'h', m.now+c.lease
	if c.most > 0 {
		c.limit = m.now + c.most
		c.deadline = min(c.deadline, c.limit)
	}
}
