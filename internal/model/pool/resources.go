package pool

import (
	"fmt"

	"pgregory.net/rapid"
)

// resources are some resources, one perhaps twice.
func (d *driver) resources(t *rapid.T) []string {
	return rapid.SliceOfN(rapid.SampledFrom(d.some), 1, 5).Draw(t, "resources")
}

func (d *driver) add(t *rapid.T, gen int64) {
	lasts, most, keys := pickOf[int64](t, "lasts", 0, 0, 600, 3000), pickOf(t, "max", 0, 1, 1, 2, 3), d.resources(t)
	d.puts(t, gen, lasts, most, keys)
}

// puts adds resources for so many milliseconds, 0 = for good, each for so many holders.
func (d *driver) puts(t *rapid.T, gen, lasts int64, most int, keys []string) {
	r := d.run(t, "pool_add", append([]string{dec(lasts), dec(int64(most)), dec(gen)}, keys...)...)
	if gen > 0 && d.gen != gen {
		d.same(t, "add", &r, "superseded", d.gen)
		return
	}
	d.reclaim()
	added, kept := 0, 0
	for _, key := range keys {
		i := d.items[key]
		if i != nil && !i.leaving {
			kept++
		} else {
			added++
		}
		if i == nil {
			i = &item{}
			d.items[key] = i
		}
		i.expiry, i.leaving, i.gen = 0, false, max(gen, d.gen)
		if most > 0 || i.max == 0 {
			i.max = max(most, 1)
		}
		if lasts > 0 {
			i.expiry = d.now + lasts
		}
		d.settle(key)
	}
	d.handOff()
	d.same(t, "add", &r, "added", added, kept, 0)
}

func (d *driver) remove(t *rapid.T) {
	keys := d.resources(t)
	r := d.run(t, "pool_remove", keys...)
	removed := 0
	for _, key := range keys {
		if i := d.items[key]; i != nil && !i.leaving {
			i.leaving = true
			removed++
			d.settle(key)
		}
	}
	d.same(t, "remove", &r, "removed", removed)
}

// start looks for the last Replace and begins one, perhaps late or once more.
func (d *driver) start(t *rapid.T) {
	seen := d.run(t, "pool_replace", "look", "0", "")
	d.same(t, "look", &seen, "seen", d.gen)
	if len(d.begun) == 0 || rapid.IntRange(0, 2).Draw(t, "again") > 0 {
		d.begun = append(d.begun, fmt.Sprint("a.", len(d.begun)))
	}
	turn, gen := d.begun[len(d.begun)-1], max(0, d.gen-pickOf[int64](t, "late", 0, 0, 1))
	r := d.run(t, "pool_replace", "begin", dec(gen), turn)
	if d.replace != turn {
		if d.gen != gen {
			d.same(t, "begin", &r, "superseded", d.gen)
			return
		}
		d.gen, d.replace = max(d.gen+1, d.now), turn
	}
	d.same(t, "begin", &r, "begun", d.gen)
}

func (d *driver) prune(t *rapid.T) {
	gen, cursor, removed := max(1, d.gen-rapid.Int64Range(0, 1).Draw(t, "older")), "0", int64(0)
	for {
		r := d.run(t, "pool_replace", "prune", dec(gen), cursor)
		if d.gen != gen {
			d.same(t, "prune", &r, "superseded", d.gen)
			return
		}
		cursor, removed = r.Str(1), removed+r.Int(2)
		if cursor == "0" {
			break
		}
	}
	for key, i := range d.items {
		if i.gen < gen && !i.leaving {
			i.leaving = true
			removed--
			d.settle(key)
		}
	}
	if removed != 0 {
		t.Fatalf("prune removed %d more than the model", removed)
	}
}

func (d *driver) rest(t *rapid.T) {
	key, lasts := d.key(t), pickOf(t, "lasts", 0, 0, 200, 900, forever)
	r := d.run(t, "pool_rest", key, dec(lasts), "why not")
	d.reclaim()
	i := d.items[key]
	if i == nil || i.leaving {
		if d.swept > 0 {
			d.handOff()
		}
		d.same(t, "rest", &r, "absent")
		return
	}
	switch i.pend = 0; {
	case lasts == 0:
		i.ends, i.reason = 0, ""
	case len(i.claims) > 0:
		i.pend, i.reason = lasts, "why not"
	default:
		i.ends, i.reason = min(d.now+lasts, forever), "why not"
	}
	d.settle(key)
	d.handOff()
	d.same(t, "rest", &r, "rested", 0)
}

func (d *driver) tie(t *rapid.T) {
	name, key, lasts := pickOf(t, "name", boundNames...), pickOf(t, "key", d.key(t), ""), pickOf[int64](t, "lasts", 0, 800)
	r := d.run(t, "pool_bind", name, key, dec(lasts))
	if key == "" {
		ended := 0
		if _, ok := d.binds[name]; ok {
			ended = 1
		}
		delete(d.binds, name)
		d.same(t, "unbind", &r, "unbound", ended)
		return
	}
	if i := d.items[key]; i == nil || i.leaving || i.expiry > 0 && i.expiry <= d.now {
		d.same(t, "bind", &r, "absent")
		return
	}
	d.bind(name, key, lasts)
	d.same(t, "bind", &r, "bound")
}

func (d *driver) sweep(t *rapid.T) {
	d.tick(t)
	stats := d.call(t, d.keys[:3], "pool_stats", "1000")
	past, whole := d.past(), pickOf(t, "whole", "0", "1", "2")
	r := d.run(t, "pool_sweep", "a", whole)
	d.reclaim()
	leased, resting, leaving := 0, 0, 0
	for _, i := range d.items {
		leased += min(len(i.claims), 1)
		resting += int(min(i.ends, 1))
		if i.leaving {
			leaving++
		}
	}
	held, waiting, _ := d.holds()
	d.same(t, "stats", &stats, "stats", len(d.items), len(d.free), leased, resting, leaving, held, waiting, past)
	if whole == "1" {
		d.looked = 0
	}
	d.patrol(100)
	if whole != "0" && d.looked > 0 {
		d.more = flagMore
	}
	d.handOff()
	d.same(t, "sweep", &r, "swept", nil, d.more+d.first("a"), len(d.items), d.swept)
}

// past is how many holds and resources have expired.
func (m *model) past() (count int) {
	for _, c := range m.claims {
		if c.deadline > 0 && c.deadline <= m.now {
			count++
		}
	}
	for _, i := range m.items {
		if !i.leaving && i.expiry > 0 && i.expiry <= m.now {
			count++
		}
	}
	return count
}
