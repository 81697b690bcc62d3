package pool

import (
	"cmp"
	"slices"
	"strings"

	"github.com/berth-go/berth/pkg/scriptkit"

	"pgregory.net/rapid"
)

// release gives back, also what is long gone.
func (d *driver) release(t *rapid.T) {
	c, node := d.old(t), pickOf(t, "by", "", "", "", nodeB)
	node = cmp.Or(node, c.node)
	stays, rest := pickOf[int64](t, "stays", 0, 0, 900), pickOf[int64](t, "rest", 0, 0, 300)
	seen := c.fence
	if len(c.fences) > 0 && rapid.IntRange(0, 3).Draw(t, "late") == 0 {
		seen = rapid.SampledFrom(c.fences).Draw(t, "seen")
	}
	d.returns(t, c, node, stays, rest, seen, pickOf[int64](t, "expires", 0, 0, 0, 600))
}

// returns has a node release a claim, of which it knows a fence.
func (d *driver) returns(t *rapid.T, c *claim, node string, stays, rest, seen, expires int64) {
	var asks []string
	if rest > 0 || expires > 0 || stays > 0 { // who asks for nothing may also say so
		asks = []string{dec(rest), "429 \n", dec(seen), dec(expires)}
	}
	r := d.runs(t, "pool_release", node, d.asking(t, node).Release(c.id, d.record(c), stays, asks...))
	want := d.model.release(c, node, stays, rest, seen, "429 \n", expires)
	if r.Status() == scriptkit.Plain {
		want = []any{scriptkit.Plain, want[2]}
	}
	d.same(t, "release", &r, want...)
}

// force ends somebody's claim.
func (d *driver) force(t *rapid.T) {
	c := d.old(t)
	r := d.run(t, "pool_force_release", "", c.id, "900", "0")
	d.same(t, "force", &r, d.model.force(c, 900)...)
}

// want asks for somebody's hold back.
func (d *driver) want(t *rapid.T) {
	c, node := d.old(t), pickOf(t, "of", "", "", "", nodeB)
	r := d.run(t, "pool_want", node, c.id)
	d.same(t, "want", &r, d.model.want(c, node)...)
}

// renew is a round of a node's own calls.
func (d *driver) renew(t *rapid.T) {
	node, mode := pickOf(t, "node", nodeA, nodeB, nodeC), pickOf(t, "mode", "beat", "beat", "renew", "detach", "renew 400", "keep 800", "renew 4000", "renew 0")
	var of []*claim
	all := rapid.Bool().Draw(t, "all that wait")
	of = append(of, slices.DeleteFunc(d.queue(), func(c *claim) bool { return c.node != node || !all })...)
	for _, id := range d.ids[max(0, len(d.ids)-12):] {
		if slices.Contains(of, d.claims[id]) {
			continue
		} else if c := d.claims[id]; c.node == node || rapid.IntRange(0, 9).Draw(t, "stray") == 0 {
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
	args := []string{node}
	for _, c := range of {
		args = append(args, c.id, mode)
	}
	r := d.run(t, "pool_renew", args...)
	d.same(t, "renew", &r, d.model.renew(node, mode, of)...)
}

// resume has another node take up a detached hold.
func (d *driver) resume(t *rapid.T) {
	c, to := d.old(t), pickOf(t, "to", nodeC, nodeA)
	from := pickOf(t, "from", strings.Split(c.id, ".")[0], c.node)
	r := d.run(t, "pool_resume", to, c.id, from, "beat")
	d.same(t, "resume", &r, d.model.resume(c, from, to)...)
}

// swap changes a hold's resource.
func (d *driver) swap(t *rapid.T) {
	c := d.old(t)
	if c.only != "" {
		t.Skip("it wants no other one")
	}
	seen, rest, expires := c.fence, pickOf[int64](t, "rest", 0, 300), pickOf[int64](t, "expires", 0, 0, 600)
	if len(c.fences) > 0 && rapid.IntRange(0, 3).Draw(t, "late") == 0 {
		seen = rapid.SampledFrom(c.fences).Draw(t, "seen")
	}
	r := d.run(t, "pool_swap", c.node, c.id, dec(seen), dec(rest), "slow", dec(expires))
	d.same(t, "swap", &r, d.model.swap(c, seen, rest, "slow", expires)...)
}
