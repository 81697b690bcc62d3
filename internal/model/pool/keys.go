package pool

import (
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
	if d.paused > last {
		t.Fatalf("the pause lasts longer than the keys")
	}
	idle := !d.stays() && d.view.values["forever"] == 0
	if idle && (ends == -1 || ends > d.now+60*60*1000) {
		t.Fatalf("an empty pool ends at %d", ends)
	}
}

// stays says whether the pool has resources that stay, or settings of an operator.
func (d *driver) stays() bool {
	if d.set[0] == "o" {
		return true
	}
	for _, i := range d.items {
		if !i.leaving {
			return true
		}
	}
	return false
}

// inspect: pool_inspect finds nothing wrong, in one step where there are no more
// resources than limit, else in many.
func (d *driver) inspect(t *rapid.T, limit string) {
	part, cursor := "items", "0"
	for n := 0; part != ""; n++ {
		r := d.call(t, d.keys, "pool_inspect", part, cursor, "5", limit)
		if r.Status() != "part" || n > 1000 {
			t.Fatalf("inspect says %q after %d", r.Status(), n)
		}
		if r.Len() > 21 {
			t.Fatalf("inspect (%s) finds %q about %q in %+v", limit, r.Str(21), r.Str(22), d.view)
		}
		part, cursor = r.Str(1), r.Str(2)
	}
}
