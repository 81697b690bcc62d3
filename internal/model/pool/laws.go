package pool

import (
	"fmt"
	"slices"
)

// broken is the law that the last step has broken, "" for none.
func (m *model) broken() string {
	for _, law := range []func() string{m.brokenTurn, m.brokenFree, m.brokenLanes, m.brokenHolds} {
		if broken := law(); broken != "" {
			return broken
		}
	}
	return ""
}

// brokenTurn: nobody gets what somebody ahead of him waits for; those who waited are granted in their
// order, and the fences rise.
func (m *model) brokenTurn() string {
	for n, c := range m.granted {
		if m.paused > 0 {
			return fmt.Sprintf("%s was granted, and the pool is paused", c.id)
		}
		got := c.resource
		for _, w := range m.queue() {
			if w != m.came && w.alive > m.now && w.place < c.place && (w.lane == "" || w.lane == got) {
				return fmt.Sprintf("%s got %q before %s", c.id, got, w.id)
			}
		}
		if c.only != "" && c.only != got {
			return fmt.Sprintf("%s wanted %q, and got %q", c.id, c.only, got)
		}
		if n == 0 {
			continue
		}
		before := m.granted[n-1]
		if c.fence <= before.fence {
			return fmt.Sprintf("the fence of %s does not rise", c.id)
		}
		if c != m.arrived && c.place < before.place {
			return fmt.Sprintf("%s was granted before %s", before.id, c.id)
		}
	}
	return ""
}

// brokenFree: nobody waits for what is free, but during a pause.
func (m *model) brokenFree() string {
	if m.paused > 0 {
		return ""
	}
	for _, key := range m.free {
		if m.gone(m.items[key]) {
			continue
		}
		for _, w := range m.queue() {
			if w.alive > m.now && (w.lane == "" || w.lane == key) {
				return fmt.Sprintf("%q is free, and %s waits", key, w.id)
			}
		}
		if _, open := m.lanes[key]; open {
			return fmt.Sprintf("%q is free, and has a lane", key)
		}
	}
	return ""
}

// brokenLanes: a lane is there for as long as somebody is in it, and only for a resource that is in
// the pool or may still come; a claim that wants one resource waits there; whoever is out of patience
// waits in the general line. During a pause nobody leaves a lane.
func (m *model) brokenLanes() string {
	numbers := map[int64]string{}
	for key, number := range m.lanes {
		if len(m.waiters(key)) == 0 {
			return fmt.Sprintf("nobody is in the lane of %q", key)
		}
		if i := m.items[key]; m.filled && (i == nil || i.leaving) && m.paused == 0 {
			return fmt.Sprintf("nobody can get %q, and it has a lane", key)
		}
		if other, ok := numbers[number]; ok {
			return fmt.Sprintf("%q and %q have one lane", key, other)
		}
		numbers[number] = key
	}
	for _, w := range m.queue() {
		if _, open := m.lanes[w.lane]; w.lane != "" && !open {
			return fmt.Sprintf("%s is in a lane of %q that is not there", w.id, w.lane)
		}
		if w.only != w.lane && w.only != "" {
			return fmt.Sprintf("%s wants %q, and waits for %q", w.id, w.only, w.lane)
		}
		if w.until > 0 && (w.lane == "" || m.reclaimed && w.until <= m.now && w.alive > m.now && m.paused == 0) {
			return fmt.Sprintf("%s waits for %q, and is out of patience", w.id, w.lane)
		}
	}
	return ""
}

// brokenHolds: a claim that holds is a holder of its resource, and the other way round.
func (m *model) brokenHolds() string {
	for _, c := range m.claims {
		if i := m.items[c.resource]; c.deadline > 0 && c.kind != "s" && (i == nil || !slices.Contains(i.claims, c.id)) {
			return fmt.Sprintf("%s holds %q, and is not its holder", c.id, c.resource)
		}
		if c.deadline > 0 && c.lane != "" {
			return fmt.Sprintf("%s holds, and waits for %q", c.id, c.lane)
		}
	}
	for key, i := range m.items {
		for _, id := range i.claims {
			if c := m.claims[id]; c.deadline == 0 || c.resource != key {
				return fmt.Sprintf("%s is a holder of %q, and does not hold it", id, key)
			}
		}
	}
	return ""
}
