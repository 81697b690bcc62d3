package pool

import (
	"cmp"
	"fmt"

	"pgregory.net/rapid"
)

// pausing is the last call that has paused the pool, or ended its pause; see scripts/state/pause.lua.
type pausing struct {
	rev, notice   int64
	by            string
	own, all      int64 // when the pool's own pause ends, and that of all names; 0 for none
	why, whyOfAll string
}

// text is what the state says of it.
func (p *pausing) text() string {
	return fmt.Sprintf("%d %s %d %d %d %d %s%s", p.rev, p.by, p.notice, p.own, p.all, len(p.why), p.why, p.whyOfAll)
}

// says is what a call is told that comes too late.
func (p *pausing) says() string {
	ends, why := p.own, p.why
	if p.by == "all" {
		ends, why = p.all, p.whyOfAll
	}
	if why != "" {
		why = ": " + why
	}
	if ends == 0 {
		return "unpaused" + why
	}
	return "paused" + why
}

// moment is how long the pause lasts yet, as those who wait are told; without one it is the server's to say.
func (m *model) moment() any {
	_, waiting, _ := m.holds()
	switch {
	case m.paused == 0:
		return nil
	case waiting == 0:
		return -1
	}
	return m.paused - m.now
}

// refusesPaused is the answer to a claim that gets nothing because of the pause.
func (m *model) refusesPaused(swept any, more int) []any {
	held, waiting, _ := m.holds()
	why := m.pausing.why
	if m.pausing.all > m.pausing.own {
		why = m.pausing.whyOfAll
	}
	return []any{"paused", held, waiting, swept, more, len(m.items), "", m.paused - m.now, m.pausing.rev, why}
}

// pause has nothing granted for so long (ms), or ends that. The call has an id, and has seen a revision; or
// it is part of a pause of all names, which has a notice.
func (m *model) pause(lasts int64, reason string, stamp int64, by string, notice int64) []any {
	held, waiting, _ := m.holds()
	left, p := max(m.paused-m.now, 0), m.pausing
	if by == "walk" || by == "first" {
		if p.notice >= notice || lasts == 0 && (left == 0 || p.all <= m.now) {
			return []any{"kept", left, held, waiting, 0}
		} else if lasts > 0 && by == "walk" && held == 0 && waiting == 0 {
			return []any{"idle"}
		}
		by = "all"
	} else if p.by == by {
		if left > 0 {
			return []any{"paused", left, held, waiting, 0}
		}
		return []any{"unpaused", 0, held, waiting, flagMore * min(waiting, 1)}
	} else if p.rev > stamp {
		return []any{"stale", p.rev, "", p.says()}
	}
	ends := int64(0)
	if lasts > 0 {
		ends = m.now + lasts
	}
	if m.paused == 0 {
		p.own, p.all = 0, 0
	}
	switch {
	case by == "all":
		p.all, p.whyOfAll, p.notice = ends, reason, notice
	case lasts == 0:
		p.own, p.why, p.all, p.whyOfAll, p.notice = 0, reason, 0, "", notice
	default:
		p.own, p.why = ends, reason
	}
	m.raise()
	p.rev, p.by = m.rev, by
	m.pausing = p
	word := "unpaused"
	if m.paused = max(p.own, p.all); m.paused > m.now {
		word, left = "paused", m.paused-m.now
	} else {
		m.paused, left = 0, 0
	}
	m.reclaim()
	m.handOff()
	held, waiting, _ = m.holds()
	return []any{word, left, held, waiting, m.more}
}

// pauses pauses the pool, or ends its pause, perhaps late or once more.
func (d *driver) pauses(t *rapid.T) {
	lasts := pickOf[int64](t, "lasts", 0, 0, 40, 300, 900, 5000)
	reason, notice := "", int64(0)
	if lasts > 0 {
		reason = pickOf(t, "why", "", "a: b \n\x00")
	}
	stamp, by := d.seen(t, d.pausing.by)
	if of := pickOf(t, "of all", "", "", "walk", "first"); of != "" || by == "all" {
		by = cmp.Or(of, "first")
		stamp, notice = 0, rapid.Int64Range(1, 5).Draw(t, "notice")
	} else if lasts == 0 {
		notice = rapid.Int64Range(0, 5).Draw(t, "notice")
	}
	r := d.run(t, "pool_pause", dec(lasts), reason, dec(stamp), by, dec(notice))
	d.same(t, "pause", &r, d.pause(lasts, reason, stamp, by, notice)...)
}

// ends has those who wait come when the pause is over, as their timers have them.
func (d *driver) ends(t *rapid.T) {
	for more := true; more; {
		r := d.run(t, "pool_sweep", nodeA, "0")
		d.same(t, "end of the pause", &r, d.sweep(nodeA, "0")...)
		more = r.Len() > 2 && r.Int(2)&flagMore != 0
	}
	d.unheard()
	d.check(t)
}

// unheard has the nodes ask whose claims all wait for one resource: nobody tells those of a nearer moment.
func (d *driver) unheard() {
	for node, told := range d.told {
		if d.apart(node) {
			d.told[node] = min(told, d.now)
		}
	}
}
