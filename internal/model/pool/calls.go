package pool

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-go/berth/internal/line"
)

// What the model answers to the calls of claims. An element that is nil is the server's to say.

// flags are those of a reply; of loose ones the model does not know whether they are set.
type flags struct{ set, loose int }

// The flags of a reply; see scripts/line/reply.lua.
const (
	flagConfirmed = 1
	flagMore      = 2
	flagFirst     = 4
	flagOwn       = 8
)

// acquire has a claim of a node ask; may says that it may wait.
func (m *model) acquire(c *claim, asker string, may bool, says opinion, told string) []any {
	if c.stone != "" {
		return []any{"gone"}
	} else if c.known && c.node != asker {
		return []any{"foreign"}
	} else if c.deadline > m.now {
		return []any{"granted", c.ticket, c.fence, m.remaining(c), confirmed(c), len(m.items), c.resource}
	} else if c.alive > m.now {
		return m.queued(c, asker, c.alive-m.now)
	}
	before := m.set
	word, differs := m.refused(c, says)
	if word != "" {
		held, waiting, _ := m.holds()
		reply := []any{word, held, waiting, 0, 0, len(m.items)}
		if word != "absent" {
			reply = append(reply, m.set.text())
		}
		m.set = before
		return reply
	}
	tell := ""
	if differs && m.set.text() != told {
		tell = m.set.text()
	}
	waited := c.alive > 0
	lane := cmp.Or(c.resource, c.lane)
	if c.known {
		m.removeClaim(c, "", 0, 0, "")
	}
	_, touched := m.lanes[lane] // who waits for what it had, or where it waited
	c.node, c.limit, c.known = asker, 0, true
	c.anew()
	if len(m.items) > len(m.free) && m.over() || m.pending() || len(m.general()) > 0 || len(m.free) == 0 || touched {
		m.reclaim()
		if may && max(m.ticket+1, m.now)%16 == 0 { // one of sixteen looks
			m.patrol(8)
		}
		m.handOff()
	} else if len(m.lanes) > 0 {
		m.handOff()
	}
	if !waited {
		c.ticket = max(m.ticket+1, m.now)
	}
	c.place = fmt.Sprintf("%s %013d", line.Lane(c.priority), c.ticket)
	lane = m.target(c)
	if m.drops = 0; m.paused == 0 && m.arrives(c, lane) {
		return []any{"granted", c.ticket, c.fence, m.remaining(c), m.more + confirmed(c), len(m.items), c.resource, tell}
	}
	if m.drops > 0 {
		m.more = flagMore // it may not have been all that was in the way
	}
	if !may {
		c.known = false
		held, waiting, _ := m.holds()
		m.set = m.saved(before)
		if m.paused > 0 {
			return m.refusesPaused(m.dropped100(), m.more)
		}
		return []any{m.refusal(c, lane), held, waiting, m.dropped100(), m.more, len(m.items)}
	}
	c.alive, c.phase = m.now+c.wait, 'w'
	m.joins(c, lane, 0)
	if c.lane != "" {
		c.until = m.patient(c)
	}
	m.ticket, m.came = max(m.ticket, c.ticket), c
	return append(m.queued(c, asker, c.wait), tell)
}

// refused is the word for a claim that gets nothing whatever is free, "" for none, and whether its
// process says something else than the settings.
func (m *model) refused(c *claim, says opinion) (word string, differs bool) {
	agrees, differs := m.agree(says)
	switch {
	case !agrees:
		return "differs", true
	case m.limited(c):
		return "limited", differs
	case c.only != "" && m.gone(m.items[c.only]) && m.filled:
		return "absent", differs
	}
	return "", differs
}

// arrives grants to a claim that has just come, and would wait in a lane, if nobody who stands ahead
// of it could take what it gets.
func (m *model) arrives(c *claim, lane string) bool {
	for _, w := range m.queue() {
		if w.place < c.place && (w.lane == "" || w.lane == lane) && w.alive > m.now {
			return false
		}
	}
	key := m.pick(c, lane, "")
	if key == "" {
		return false
	}
	m.begin(c)
	m.take(c, key)
	m.granted, m.arrived = append(m.granted, c), c
	return true
}

// refusal is the word for a claim that may not wait in a lane.
func (m *model) refusal(c *claim, lane string) string {
	_, waiting, _ := m.holds()
	switch i := m.items[lane]; {
	case i == nil && len(m.free) > 0 && waiting > 0:
		return "ahead"
	case i == nil:
		return "full"
	case len(i.claims) >= i.max || c.kind == "a" && len(i.claims) > 0:
		return "held"
	case i.ends > 0:
		return "resting"
	}
	return "ahead"
}

// queued is the answer to a claim that waits for so many milliseconds more.
func (m *model) queued(c *claim, asker string, left int64) []any {
	place := any(c.place)
	if c.lane != "" {
		place = nil
	}
	return []any{"queued", c.ticket, 0, left, m.flags(m.more+flagOwn, asker), len(m.items), "", place, m.within(c), m.moment()}
}

// dropped100 is how much this run has dropped.
func (m *model) dropped100() any {
	if m.unsure {
		return nil
	}
	return m.swept
}

// confirmed are the flags of a grant.
func confirmed(c *claim) int {
	if c.phase == 'g' {
		return 0
	}
	return flagConfirmed
}

// flags are those that a node is told of the line. Where there are lanes, whoever is first is
// first in one of them.
func (m *model) flags(set int, node string) any {
	if len(m.lanes) > 0 {
		return flags{set, flagFirst}
	}
	if line := m.line(); len(line) > 0 && strings.HasPrefix(line[0].id, node+".") {
		set += flagFirst
	}
	return set
}

// remaining is how long a hold lasts, as the scripts tell it.
func (m *model) remaining(c *claim) int64 {
	if c.deadline == forever {
		return -1
	}
	return c.deadline - m.now
}

// release has a node give back what a claim has, which it knows by a fence, or leave the line.
func (m *model) release(c *claim, node string, stays, rest, seen int64, reason string, expires int64) []any {
	if !c.known || c.stone != "" {
		reply := []any{"not_held", c.stone}
		if !c.known && stays > 0 {
			c.stone, c.forgotten, c.known = "gone", m.now+stays, true
		}
		return reply
	} else if c.node != node {
		return []any{"taken"}
	}
	word, said, fence := "released", rest, c.fence
	if fence != seen {
		said, expires = 0, 0
	}
	if c.deadline == 0 {
		word, said, fence = "cancelled", 0, 0
	} else if c.deadline <= m.now {
		word, said, expires = "expired", 0, 0
	}
	stone := ""
	if stays > 0 {
		stone = "gone"
	}
	m.expires = expires
	kept := m.removeClaim(c, stone, stays, said, reason)
	m.expires = 0
	if _, _, stones := m.holds(); stones > 0 {
		m.reclaim()
	}
	m.handOff()
	return []any{word, 0, fence, digit(kept)}
}

// force ends a claim, whoever has it.
func (m *model) force(c *claim, stays int64) []any {
	if !c.known || c.stone != "" {
		return []any{"not_held", c.stone}
	}
	word, fence := "released", c.fence
	if c.deadline == 0 {
		word, fence = "cancelled", 0
	} else if c.deadline <= m.now {
		word = "expired"
	}
	m.removeClaim(c, "released", stays, 0, "")
	m.reclaim()
	m.handOff()
	return []any{word, 0, fence, 1}
}

// want asks for a hold back, of whatever node or only of the one given.
func (m *model) want(c *claim, node string) []any {
	switch {
	case !c.known || c.stone != "":
		return []any{"not_held", c.stone}
	case node != "" && node != c.node:
		return []any{"not_held", ""}
	case c.deadline == 0:
		return []any{"waits"}
	case c.deadline <= m.now:
		return []any{"expired"}
	}
	c.wanted = cmp.Or(c.wanted, m.now)
	m.handed = append(m.handed, fmt.Sprint("wanted ", c.node, " ", c.id))
	detached := 0
	if c.phase == 'd' {
		detached = 1
	}
	return []any{"wanted", m.now - c.wanted, c.fence, detached}
}

// renew has a node call for some claims.
func (m *model) renew(node, mode string, of []*claim) []any {
	var words, resources []any
	waits := false
	for _, c := range of {
		switch {
		case c.stone != "":
			words = append(words, c.stone, 0, 0)
		case !c.known:
			words = append(words, "unknown", 0, 0)
		case c.node != node:
			words = append(words, "taken", 0, 0)
		case c.deadline > m.now:
			word, does := "held", mode
			if m.refusesLease(c, mode) {
				word, does = "limited", "beat"
			} else if c.wanted > 0 {
				word = "wanted"
			}
			m.renewHold(c, does)
			words = append(words, word, m.remaining(c), c.fence)
		case c.alive > m.now:
			c.alive, waits = m.now+c.wait, true
			words = append(words, "waiting", c.wait, 0)
		default:
			words = append(words, "unknown", 0, 0)
		}
		resources = append(resources, c.resource)
	}
	if m.there {
		m.reclaim()
		if waits {
			m.patrol(32)
		}
		m.handOff()
	}
	own := 0
	if waits {
		own = flagOwn
	}
	reply := append([]any{"renewed", m.moment(), m.flags(m.more+own, node), len(m.items)}, words...)
	return append(reply, resources...)
}

// resume has another node take up a hold that a node has detached.
func (m *model) resume(c *claim, from, to string) []any {
	switch {
	case c.deadline <= m.now:
		return []any{"not_held", c.stone}
	case c.node != from && (c.node != to || c.phase == 'd'):
		return []any{"taken"}
	case c.node != from || c.phase != 'd':
		return []any{"attached", nil, nil, nil, c.resource}
	}
	c.node, c.phase = to, 'h'
	m.renewHold(c, "beat")
	return []any{"resumed", nil, nil, nil, c.resource}
}

// swap has a hold get another resource, and the one that it had rest. Those who wait for any come
// first.
func (m *model) swap(c *claim, seen, rest int64, reason string, expires int64) []any {
	old := c.resource
	if c.deadline <= m.now {
		return []any{"not_held", c.stone}
	} else if c.fence != seen {
		return []any{"swapped", c.ticket, c.fence, m.remaining(c), 0, len(m.items), old, 1}
	} else if m.paused > 0 {
		return m.refusesPaused(0, 0)
	}
	m.reclaim()
	m.handOff()
	held, waiting, _ := m.holds()
	key, word := "", "ahead"
	if len(m.general()) == 0 {
		key, word = m.pick(c, "", old), "full"
	}
	if key == "" {
		return []any{word, held, waiting, m.dropped100(), nil, len(m.items)}
	}
	c.fences = append(c.fences, c.fence)
	m.take(c, key)
	ends, said := m.rests(c, old, m.now, rest, reason)
	c.resource, m.expires = old, expires
	kept := m.giveBack(c, ends, said)
	c.resource, m.expires = key, 0
	m.handOff() // the old one goes to who waits for it
	return []any{"swapped", c.ticket, c.fence, m.remaining(c), 0, len(m.items), key, digit(kept)}
}

// restore has a claim stand where it was told that it stands, unless the server knows what
// has become of it.
func (m *model) restore(c *claim) string {
	switch {
	case c.stone != "":
		return c.stone
	case c.deadline > m.now:
		return "held"
	case c.alive > m.now:
		return "waiting"
	}
	if c.known {
		m.removeClaim(c, "", 0, 0, "")
	}
	lane, until := c.told.lane, c.told.until
	if until > 0 && until <= m.now {
		lane = ""
	}
	if m.filled && lane != "" && m.gone(m.items[lane]) {
		if c.only != "" {
			return "absent"
		}
		lane = ""
	}
	if lane == "" {
		until = 0
	}
	c.alive, c.known, c.phase, c.limit = m.now+c.wait, true, 'w', 0
	c.place, c.ticket = c.told.place, c.told.ticket
	c.anew()
	m.joins(c, lane, until)
	m.ticket = max(m.ticket, c.ticket)
	return "waiting"
}

// restored is the end of a restore, and what a node is told before the words of its claims.
func (m *model) restored(node string, words ...any) []any {
	own := 0
	if slices.Contains(words, any("waiting")) {
		own = flagOwn
	}
	m.reclaim()
	m.handOff()
	held, waiting, _ := m.holds()
	return append([]any{"restored", m.moment(), m.flags(own, node), len(m.items), held, waiting}, words...)
}
