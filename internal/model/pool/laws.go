package pool

import (
	"slices"

	"pgregory.net/rapid"
)

// checkKeys: all keys end at one instant, not before what is in them.
func (d *driver) checkKeys(t *rapid.T) {
	if len(d.view.state) == 0 {
		for _, key := range d.keys {
			if d.number(t, "EXISTS", key) != 0 {
				t.Fatalf("%s is left over", key)
			}
		}
		return
	}
	ends := d.number(t, "PEXPIRETIME", d.keys[0])
	for _, key := range d.keys {
		if at := d.number(t, "PEXPIRETIME", key); at != ends {
			t.Fatalf("%s ends at %d, the state at %d", key, at, ends)
		}
	}
	last := d.view.values["exp"] // where something keeps them, they would end then
	if ends != -1 && ends != last {
		t.Fatalf("the keys end at %d, and say at %d", ends, last)
	}
	if d.stays() && ends != -1 {
		t.Fatalf("a pool with resources ends at %d", ends)
	}
	for _, c := range d.claims {
		if c.deadline == forever && ends != -1 || c.deadline < forever && max(c.deadline, c.alive, c.forgotten) > last {
			t.Fatalf("%s lasts longer than the keys", c.id)
		}
	}
	idle := !d.stays() && d.view.values["forever"] == 0
	if idle && (ends == -1 || ends > d.now+60*60*1000) {
		t.Fatalf("an empty pool ends at %d", ends)
	}
}

// stays says whether the pool has resources that stay.
func (d *driver) stays() bool {
	for _, i := range d.items {
		if !i.leaving {
			return true
		}
	}
	return false
}

// checkGrants: in the order of the line, nothing free while somebody waits, fences rise.
func (d *driver) checkGrants(t *rapid.T) {
	line := d.line()
	for n, c := range d.granted {
		for _, w := range line {
			if w != d.came && w.alive > d.now && w.place < c.place {
				t.Fatalf("%s was granted before %s", c.id, w.id)
			}
		}
		if n > 0 && c.fence <= d.granted[n-1].fence {
			t.Fatalf("the fence of %s does not rise", c.id)
		}
	}
	for _, key := range d.free {
		i := d.items[key]
		for _, w := range line {
			if w.alive > d.now && (i.expiry == 0 || i.expiry > d.now) {
				t.Fatalf("%q is free, and %s waits", key, w.id)
			}
		}
	}
	for _, c := range d.claims {
		if i := d.items[c.resource]; c.deadline > 0 && c.kind == "o" && (i == nil || !slices.Contains(i.claims, c.id)) {
			t.Fatalf("%s holds %q, and is not its holder", c.id, c.resource)
		}
	}
	for key, i := range d.items {
		for _, id := range i.claims {
			if c := d.claims[id]; c.deadline == 0 || c.resource != key {
				t.Fatalf("%s is a holder of %q, and does not hold it", id, key)
			}
		}
	}
}

// inspect: pool_inspect finds nothing wrong, in one step where there are no more
// resources than limit, else in many.
func (d *driver) inspect(t *rapid.T, limit string) {
	part, cursor, walked := "items", "0", int64(0)
	for n := 0; part != ""; n++ {
		r := d.call(t, d.keys, "pool_inspect", part, cursor, "5", limit)
		if r.Status() != "part" || n > 1000 {
			t.Fatalf("inspect says %q after %d", r.Status(), n)
		}
		if r.Len() > 20 {
			t.Fatalf("inspect (%s) finds %q about %q in %+v", limit, r.Str(20), r.Str(21), d.view)
		}
		walked += r.Int(16)
		part, cursor = r.Str(1), r.Str(2)
	}
	if walked != int64(len(d.free)) {
		t.Fatalf("inspect has walked past %d of %d", walked, len(d.free))
	}
}
