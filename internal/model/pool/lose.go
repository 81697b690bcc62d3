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
	d.restores(t, line)
	d.add(t, 0)
}

// again restores claims that the server may still know.
func (d *driver) again(t *rapid.T) {
	var of []*claim
	for range 2 {
		if c := d.old(t); c.told.text != "" {
			of = append(of, c)
		}
	}
	d.restores(t, of)
}

func (d *driver) restores(t *rapid.T, of []*claim) {
	for _, node := range []string{nodeA, nodeB, nodeC} {
		args := []string{node, "1"}
		var mine []*claim
		for _, c := range of {
			if c.node == node {
				mine = append(mine, c)
				args = append(args, c.id, c.told.text, fmt.Sprintf("w 0 0 %013d %s %s", c.told.ticket, node, c.terms))
			}
		}
		if len(mine) == 0 {
			continue
		}
		r := d.run(t, "pool_restore", args...)
		var words []any
		for _, c := range mine {
			words = append(words, d.restore(c))
		}
		d.same(t, "restore", &r, d.restored(node, words...)...)
	}
}
