package pool

import (
	"fmt"

	"pgregory.net/rapid"
)

// flush loses everything; those who waited then ask where they stood.
func (d *driver) flush(t *rapid.T) {
	if rapid.IntRange(0, 2).Draw(t, "flush") > 0 {
		t.Skip("no flush")
	}
	line := d.line()
	d.do(t, append([]string{"DEL"}, d.keys...)...)
	d.forget()
	d.restore(t, line)
	d.add(t, 0)
}

// again restores claims that the server may still know.
func (d *driver) again(t *rapid.T) {
	var of []*claim
	for range 2 {
		if c := d.old(t); c.place != "" {
			of = append(of, c)
		}
	}
	d.restore(t, of)
}

func (d *driver) restore(t *rapid.T, of []*claim) {
	for _, node := range []string{"a", "b", "c"} {
		args, want := []string{node, "1"}, []any{"restored", nil, nil, nil, nil, nil}
		var mine []*claim
		for _, c := range of {
			if c.node == node {
				mine = append(mine, c)
				args = append(args, c.id, c.place, fmt.Sprintf("w %s %d 0 0 0 %s", node, c.ticket, c.terms))
			}
		}
		if len(mine) == 0 {
			continue
		}
		r := d.run(t, "pool_restore", args...)
		for _, c := range mine {
			switch {
			case c.stone != "":
				want = append(want, c.stone)
			case c.deadline > d.now:
				want = append(want, "held")
			case c.alive > d.now:
				want = append(want, "waiting")
			default:
				if c.known {
					d.removeClaim(c, "", 0, 0, "")
				}
				c.alive, c.known, c.phase, c.limit = d.now+c.wait, true, 'w', 0
				d.ticket = max(d.ticket, c.ticket)
				want = append(want, "waiting")
			}
		}
		d.reclaim()
		d.handOff()
		held, waiting, _ := d.holds()
		want[2], want[3], want[4], want[5] = d.first(node), len(d.items), held, waiting
		d.same(t, "restore", &r, want...)
	}
}
