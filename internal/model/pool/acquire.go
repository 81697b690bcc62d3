package pool

import (
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/berth-go/berth/internal/line"
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
	d.ask(t, c, only, may)
}

// ask has a claim's own node ask.
func (d *driver) ask(t *rapid.T, c *claim, only string, may bool) {
	asker := c.id[:1]
	r := d.run(t, "pool_acquire", asker, c.id, digit(may), line.Lane(c.priority), c.terms)
	d.same(t, "acquire", &r, d.acquired(c, asker, only, may)...)
}

func (d *driver) acquired(c *claim, asker, only string, may bool) []any {
	if c.stone != "" {
		return []any{"gone"}
	} else if c.known && c.node != asker {
		return []any{"foreign"}
	} else if c.deadline > d.now {
		return []any{"granted", c.ticket, c.fence, d.remaining(c), confirmed(c), len(d.items), c.resource}
	} else if c.alive > d.now {
		return []any{"queued", c.ticket, 0, c.alive - d.now, d.first(asker), len(d.items), "", c.place, slices.Index(d.line(), c)}
	}
	waited := c.alive > 0
	if c.known {
		d.removeClaim(c, "", 0, 0, "")
	}
	c.node, c.limit, c.known = asker, 0, true
	due := len(d.items) > len(d.free) && d.over()
	if _, waiting, _ := d.holds(); due || waiting > 0 || len(d.free) == 0 {
		d.reclaim()
		if may && max(d.ticket+1, d.now)%16 == 0 { // one of sixteen looks
			d.patrol(8)
		}
		d.handOff()
	}
	if !waited {
		c.ticket = max(d.ticket+1, d.now)
	}
	place := fmt.Sprintf("%s %013d", line.Lane(c.priority), c.ticket)
	waiters, key := d.line(), ""
	d.drops = 0
	if len(waiters) == 0 || place < waiters[0].place {
		key = d.pick(c, only, "")
	}
	if key != "" {
		d.begin(c)
		d.take(c, key)
		c.place = place
		d.granted = append(d.granted, c)
		return []any{"granted", c.ticket, c.fence, d.remaining(c), d.more + confirmed(c), len(d.items), key}
	}
	if d.drops > 0 {
		d.more = flagMore // it may not have been all that was in the way
	}
	held, waiting, _ := d.holds()
	if !may {
		c.known = false
		word := "full"
		if len(d.free) > 0 && len(waiters) > 0 {
			word = "ahead"
		}
		return []any{word, held, waiting, d.swept, d.more, len(d.items)}
	}
	c.place, c.alive, c.phase = place, d.now+c.wait, 'w'
	d.ticket, d.came = max(d.ticket, c.ticket), c
	return []any{"queued", c.ticket, 0, c.wait, d.more + d.first(asker), len(d.items), "", c.place, slices.Index(d.line(), c)}
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

// remaining is how long a hold lasts, as the scripts tell it.
func (d *driver) remaining(c *claim) int64 {
	if c.deadline == forever {
		return -1
	}
	return c.deadline - d.now
}
