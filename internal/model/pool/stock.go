package pool

import (
	"cmp"
	"fmt"
)

// What the model answers to the calls about resources.

// add puts resources into the pool, for so many milliseconds, 0 = for good, for so many
// holders each, 0 = by the settings, or as before. whole says that these are the last ones of a call.
func (m *model) add(gen, lasts int64, most int, whole bool, says opinion, keys []string) []any {
	if gen > 0 && m.gen != gen {
		return m.superseded()
	}
	if agrees, _ := m.agree(says); !agrees {
		return []any{"differs", m.set.text()}
	}
	m.raise()
	m.reclaim()
	added, kept := 0, 0
	for _, key := range keys {
		i := m.items[key]
		was := i != nil && !i.leaving
		if was {
			kept++
		} else {
			added++
		}
		if i == nil {
			i = &item{}
			m.items[key] = i
		}
		i.expiry, i.leaving = 0, false
		before := i.max
		switch _, own, _ := i.ownNumbers(); {
		case own > 0:
			i.max = int(own)
		case most > 0:
			i.max = most
		default:
			i.max = max(cmp.Or(m.sharers(i), i.max), 1)
		}
		if was && i.max == before { // to keep it as it was overtakes no operator
			i.rev = max(i.rev, m.gen)
		} else {
			i.rev = m.rev
		}
		if lasts > 0 {
			i.expiry = m.now + lasts
		}
		m.settle(key)
	}
	if whole {
		m.fill()
	}
	m.handOff()
	return []any{"added", added, kept, 0}
}

// superseded is the answer to a call of a Replace that is not the last one any more.
func (m *model) superseded() []any {
	word := "removed"
	switch m.gen {
	case 0:
		word = "forgotten"
	case m.replace.rev:
		word = "replaced"
	}
	return []any{"stale", m.gen, "", word}
}

// stale is the answer to a call that has seen a lower revision than what has changed a
// resource since, nil where there is nothing.
func (m *model) stale(key string, stamp int64) []any {
	if o := m.changed[key]; o.rev > stamp && o.until > m.now {
		return []any{"stale", o.rev, key, o.what}
	} else if i := m.items[key]; i != nil && i.rev > stamp {
		return []any{"stale", i.rev, key, "added"}
	}
	return nil
}

// remove takes resources out of the pool. The call has an id, and has seen a revision.
func (m *model) remove(stamp int64, by string, keys []string) []any {
	if !m.there {
		return []any{"removed", 0}
	} else if by == m.removed.by {
		return []any{"removed", m.removed.what}
	} else if m.replace.rev > stamp {
		return []any{"stale", m.replace.rev, "", "replaced"}
	}
	for _, key := range keys {
		if stale := m.stale(key, stamp); stale != nil {
			return stale
		}
	}
	removed := 0
	for _, key := range keys {
		if i := m.items[key]; i != nil && !i.leaving {
			m.leave(key)
			removed++
		}
	}
	if removed > 0 {
		m.raise()
		m.gen, m.removed = m.rev, operated{rev: m.rev, by: by, what: fmt.Sprint(removed)}
		m.handOff()
	}
	return []any{"removed", removed}
}

// start begins a Replace that has seen a revision; by is the id of the call.
func (m *model) start(stamp int64, by string) []any {
	if m.replace.by != by {
		if m.gen > stamp {
			return m.superseded()
		}
		m.raise()
		m.gen, m.replace = m.rev, operated{rev: m.rev, by: by}
	}
	return []any{"begun", m.replace.rev}
}

// prune removes what a Replace has not named, and returns how many.
func (m *model) prune(gen int64) (removed int64) {
	for key, i := range m.items {
		if i.rev < gen && !i.leaving {
			m.leave(key)
			removed++
		}
	}
	m.fill()
	m.handOff()
	return removed
}

// rest has a resource rest for so many milliseconds, 0 = not any more; for less than it does only exactly. The call has
// an id, and has seen a revision.
func (m *model) rest(key string, lasts int64, reason string, stamp int64, by string, exactly bool) []any {
	if m.changed[key].by == by {
		_, waiting, _ := m.holds()
		return []any{"rested", flagMore * min(waiting, 1)}
	} else if stale := m.stale(key, stamp); stale != nil {
		return stale
	}
	m.reclaim()
	i := m.items[key]
	if i == nil || i.leaving {
		if m.swept > 0 || m.unsure || m.met {
			m.handOff()
		}
		return []any{"absent"}
	}
	what := map[int64]string{
		0: "rest ended", 200: "rest 0.2s: " + reason, 900: "rest 0.9s: " + reason, forever: "rest without end: " + reason,
	}[lasts]
	ends, leased := min(m.now+lasts, forever), len(i.claims) > 0
	flags := 0
	switch {
	case lasts == 0:
		i.pend, i.ends, i.reason = 0, 0, ""
	case leased && exactly:
		i.pend, i.ends, i.reason = lasts, min(i.ends, ends), reason
	case leased && lasts >= i.pend:
		i.pend, i.reason = lasts, reason
	case !leased && (exactly || ends >= i.ends):
		i.ends, i.reason = ends, reason
	default:
		flags = 1
	}
	m.raise()
	m.changed[key] = operated{rev: m.rev, by: by, what: what, until: m.now + 60_000}
	m.settle(key)
	m.handOff()
	return []any{"rested", flags}
}

// tie binds a name to a resource, "" = ends its binding.
func (m *model) tie(name, key string, lasts int64) []any {
	if key == "" {
		ended := 0
		if _, ok := m.binds[name]; ok {
			ended = 1
		}
		delete(m.binds, name)
		return []any{"unbound", ended}
	}
	if m.gone(m.items[key]) {
		return []any{"absent"}
	}
	m.bind(name, key, lasts)
	return []any{"bound"}
}

// sweep drops what has expired, and looks at all of the line, or at a part.
func (m *model) sweep(node, whole string) []any {
	m.reclaim()
	if whole == "1" {
		m.looked = 0
	}
	m.patrol(100)
	if whole != "0" && m.looked > 0 {
		m.more = flagMore
	}
	m.handOff()
	return []any{"swept", m.moment(), m.flags(m.more, node), len(m.items), m.dropped100()}
}

// stats are the counts of a pool where so many wait, and so many leases and resources have passed.
func (m *model) stats(waiting, past int) []int {
	leased, resting, leaving := 0, 0, 0
	for _, i := range m.items {
		leased += min(len(i.claims), 1)
		resting += int(min(i.ends, 1))
		if i.leaving {
			leaving++
		}
	}
	held, _, _ := m.holds()
	return []int{len(m.items), len(m.free), leased, resting, leaving, held, waiting, past}
}

// past is how many holds and resources have expired.
func (m *model) past() (count int) {
	for _, c := range m.claims {
		if c.deadline > 0 && c.deadline <= m.now {
			count++
		}
	}
	for _, i := range m.items {
		if !i.leaving && i.expiry > 0 && i.expiry <= m.now {
			count++
		}
	}
	return count
}

// next is when something next becomes free by itself for a claim that waits first, and what that
// is; a lane is about one resource.
func (m *model) next(lane string) (next int64, what string) {
	next = forever
	if m.paused > 0 {
		return m.paused, "the pause"
	}
	for _, c := range m.claims {
		if c.deadline > m.now && c.deadline < next && c.kind != "s" && cmp.Or(lane, c.resource) == c.resource {
			next, what = c.deadline, "the lease of "+c.id
		}
	}
	for key, i := range m.items {
		over := i.expiry > 0 && i.expiry <= i.ends // it leaves before its rest ends: nothing becomes free then
		if i.ends > m.now && i.ends < next && !over && cmp.Or(lane, key) == key {
			next, what = i.ends, "the rest of "+key
		}
	}
	return next, what
}
