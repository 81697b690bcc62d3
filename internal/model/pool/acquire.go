package pool

import (
	"strings"

	"pgregory.net/rapid"
)

// acquire asks with a new claim, or again with an old one.
func (d *driver) acquire(t *rapid.T) {
	var c *claim
	if len(d.ids) > 0 && rapid.IntRange(0, 3).Draw(t, "again") == 0 {
		c = d.old(t)
	} else {
		c = d.claim(t)
	}
	only, may := "", rapid.IntRange(0, 3).Draw(t, "try") > 0 || d.busy && rapid.Bool().Draw(t, "wait")
	if !may && rapid.Bool().Draw(t, "one") {
		only = d.key(t)
	}
	asker := c.id[:1]
	r := d.run(t, "pool_acquire", asker, c.id, digit(may), dec(c.priority), dec(c.wait), dec(c.lease), dec(c.most),
		c.tail, only)
	d.same(t, "acquire", &r, d.acquired(c, asker, only, may)...)
}

func (d *driver) acquired(c *claim, asker, only string, may bool) []any {
	if c.stone != "" {
		return []any{"gone"}
	} else if c.known && c.node != asker {
		return []any{"foreign"}
	} else if c.deadline > d.now {
		return []any{"granted", c.ticket, c.fence, d.span(c), confirmed(c), len(d.items), c.resource}
	} else if c.alive > d.now {
		return []any{"queued", c.ticket, 0, c.alive - d.now, d.first(asker), len(d.items), "", c.place, d.ahead(c)}
	}
	waited, swept := c.alive > 0, 0
	if c.known {
		d.quit(c, "", 0, 0, "")
	}
	c.node, c.limit, c.known = asker, 0, true
	due := len(d.items) > len(d.free) && d.over()
	if _, waiting, _ := d.holds(); due || waiting > 0 || len(d.free) == 0 {
		swept = d.reclaim()
		d.handOff()
	}
	if !waited {
		c.ticket = max(d.ticket+1, d.now)
	}
	place := (127-c.priority)<<44 + c.ticket
	line, key := d.line(), ""
	d.drops = 0
	if len(line) == 0 || place < line[0].place {
		key = d.pick(c, only, "")
	}
	if key != "" {
		d.begin(c)
		d.take(c, key)
		c.place = place
		d.granted = append(d.granted, c)
		return []any{"granted", c.ticket, c.fence, d.span(c), confirmed(c), len(d.items), key}
	}
	more := 0
	if d.drops > 0 {
		more = flagMore // it may not have been all that was in the way
	}
	held, waiting, _ := d.holds()
	if !may {
		c.known = false
		word := "full"
		if len(d.free) > 0 && len(line) > 0 {
			word = "ahead"
		}
		return []any{word, held, waiting, swept, more, len(d.items)}
	}
	c.place, c.alive, c.phase = place, d.now+c.wait, 'w'
	d.ticket, d.came = max(d.ticket, c.ticket), c
	return []any{"queued", c.ticket, 0, c.wait, more + d.first(asker), len(d.items), "", c.place, d.ahead(c)}
}

// The flags of a reply; see scripts/line/reply.lua.
const (
	flagConfirmed = 1
	flagMore      = 2
	flagFirst     = 4
)

// confirmed are the flags of a grant.
func confirmed(c *claim) int {
	if c.phase == 'g' {
		return 0
	}
	return flagConfirmed
}

// first are the flags that a node is told of the line.
func (d *driver) first(node string) int {
	if line := d.line(); len(line) > 0 && strings.HasPrefix(line[0].id, node+".") {
		return flagFirst
	}
	return 0
}

// span is how long a hold lasts, as the scripts tell it.
func (d *driver) span(c *claim) int64 {
	if c.deadline == forever {
		return -1
	}
	return c.deadline - d.now
}

// ahead is how many wait before a claim. Places can be equal: a claim that is granted
// at once does not move the last ticket on.
func (d *driver) ahead(c *claim) (n int) {
	for _, w := range d.line() {
		if w.place < c.place {
			n++
		}
	}
	return n
}
