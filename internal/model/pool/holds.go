package pool

import (
	"cmp"

	"pgregory.net/rapid"
)

// release gives back, also what is long gone.
func (d *driver) release(t *rapid.T) {
	c, node := d.old(t), pickOf(t, "by", "", "", "", "b")
	node = cmp.Or(node, c.node)
	stays, rest := pickOf[int64](t, "stays", 0, 0, 900), pickOf[int64](t, "rest", 0, 0, 300)
	expires := pickOf[int64](t, "expires", 0, 0, 0, 600)
	seen := c.fence
	if len(c.fences) > 0 && rapid.IntRange(0, 3).Draw(t, "late") == 0 {
		seen = rapid.SampledFrom(c.fences).Draw(t, "seen")
	}
	d.returns(t, c, node, stays, rest, seen, expires)
}

// returns has a node release a claim, of which it knows a fence.
func (d *driver) returns(t *rapid.T, c *claim, node string, stays, rest, seen, expires int64) {
	r := d.run(t, "pool_release", node, c.id, dec(stays), dec(rest), "429 \n", dec(seen), dec(expires))
	if !c.known || c.stone != "" {
		d.same(t, "release", &r, "not_held", c.stone)
		if !c.known && stays > 0 {
			c.stone, c.forgotten, c.known = "gone", d.now+stays, true
		}
		return
	} else if c.node != node {
		d.same(t, "release", &r, "taken")
		return
	}
	word, said, fence := "released", rest, c.fence
	if fence != seen {
		said, expires = 0, 0
	}
	if c.deadline == 0 {
		word, said, fence = "cancelled", 0, 0
	} else if c.deadline <= d.now {
		word, said, expires = "expired", 0, 0
	}
	stone := ""
	if stays > 0 {
		stone = "gone"
	}
	d.expires = expires
	kept := d.removeClaim(c, stone, stays, said, "429 \n")
	d.expires = 0
	if _, _, stones := d.holds(); stones > 0 {
		d.reclaim()
	}
	d.handOff()
	d.same(t, "release", &r, word, 0, fence, digit(kept))
}

// force ends somebody's claim.
func (d *driver) force(t *rapid.T) {
	c := d.old(t)
	r := d.run(t, "pool_force_release", "", c.id, "900")
	if !c.known || c.stone != "" {
		d.same(t, "force", &r, "not_held", c.stone)
		return
	}
	word, fence := "released", c.fence
	if c.deadline == 0 {
		word, fence = "cancelled", 0
	} else if c.deadline <= d.now {
		word = "expired"
	}
	d.removeClaim(c, "released", 900, 0, "")
	d.reclaim()
	d.handOff()
	d.same(t, "force", &r, word, 0, fence, 1)
}

// renew is a round of a node's own calls.
func (d *driver) renew(t *rapid.T) {
	node, mode := pickOf(t, "node", "a", "b", "c"), pickOf(t, "mode", "beat", "beat", "renew", "detach", "renew 400", "keep 800", "renew 4000", "renew 0")
	var of []*claim
	for _, id := range d.ids[max(0, len(d.ids)-12):] {
		if c := d.claims[id]; c.node == node || rapid.IntRange(0, 9).Draw(t, "stray") == 0 {
			of = append(of, c)
		}
	}
	if len(of) == 0 {
		t.Skip("no claims")
	}
	d.calls(t, node, mode, of...)
}

// calls has a node call for some claims.
func (d *driver) calls(t *rapid.T, node, mode string, of ...*claim) {
	args, want, resources := []string{node}, []any{}, []any{}
	waits := false
	for _, c := range of {
		args = append(args, c.id, mode)
	}
	r := d.run(t, "pool_renew", args...)
	for _, c := range of {
		switch {
		case c.stone != "":
			want = append(want, c.stone, 0, 0)
		case !c.known:
			want = append(want, "unknown", 0, 0)
		case c.node != node:
			want = append(want, "taken", 0, 0)
		case c.deadline > d.now:
			d.renewHold(c, mode)
			want = append(want, "held", d.remaining(c), c.fence)
		case c.alive > d.now:
			c.alive, waits = d.now+c.wait, true
			want = append(want, "waiting", c.wait, 0)
		default:
			want = append(want, "unknown", 0, 0)
		}
		resources = append(resources, c.resource)
	}
	if len(d.view.state) > 0 {
		d.reclaim()
		if waits {
			d.patrol(32)
		}
		d.handOff()
	}
	want = append([]any{"renewed", nil, d.more + d.first(node), len(d.items)}, want...)
	d.same(t, "renew", &r, append(want, resources...)...)
}

// resume has another node take up a detached hold.
func (d *driver) resume(t *rapid.T) {
	c, to := d.old(t), pickOf(t, "to", "c", "a")
	from := pickOf(t, "from", c.id[:1], c.node)
	r := d.run(t, "pool_resume", to, c.id, from, "beat")
	switch {
	case c.deadline <= d.now:
		d.same(t, "resume", &r, "not_held", c.stone)
	case c.node != from && (c.node != to || c.phase == 'd'):
		d.same(t, "resume", &r, "taken")
	case c.node != from || c.phase != 'd':
		d.same(t, "resume", &r, "attached", nil, nil, nil, c.resource)
	default:
		c.node, c.phase = to, 'h'
		d.renewHold(c, "beat")
		d.same(t, "resume", &r, "resumed", nil, nil, nil, c.resource)
	}
}

// swap changes a hold's resource.
func (d *driver) swap(t *rapid.T) {
	c := d.old(t)
	seen, rest, expires := c.fence, pickOf[int64](t, "rest", 0, 300), pickOf[int64](t, "expires", 0, 0, 600)
	if len(c.fences) > 0 && rapid.IntRange(0, 3).Draw(t, "late") == 0 {
		seen = rapid.SampledFrom(c.fences).Draw(t, "seen")
	}
	old := c.resource
	r := d.run(t, "pool_swap", c.node, c.id, dec(seen), dec(rest), "slow", dec(expires))
	if c.deadline <= d.now {
		d.same(t, "swap", &r, "not_held", c.stone)
		return
	} else if c.fence != seen {
		d.same(t, "swap", &r, "swapped", c.ticket, c.fence, d.remaining(c), 0, len(d.items), c.resource, 1)
		return
	}
	d.reclaim()
	d.handOff()
	held, waiting, _ := d.holds()
	key := ""
	if waiting == 0 {
		key = d.pick(c, "", old)
	}
	if key == "" {
		word := "full"
		if waiting > 0 {
			word = "ahead"
		}
		d.same(t, "swap", &r, word, held, waiting, d.swept, nil, len(d.items))
		return
	}
	c.fences = append(c.fences, c.fence)
	d.take(c, key)
	ends, reason := int64(0), ""
	if most := max(c.cooldown, rest); most > 0 {
		ends = d.now + most
	}
	if rest >= c.cooldown {
		reason = "slow"
	}
	c.resource, d.expires = old, expires
	kept := d.giveBack(c, ends, reason)
	d.expires = 0
	c.resource = key
	d.same(t, "swap", &r, "swapped", c.ticket, c.fence, d.remaining(c), 0, len(d.items), key, digit(kept))
}
