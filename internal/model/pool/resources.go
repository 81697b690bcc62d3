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

// superseded is the answer to a call of a Replace that is not the last one any more.
func (d *driver) superseded() []any {
	word := "removed"
	switch d.gen {
	case 0:
		word = "forgotten"
	case d.replace.rev:
		word = "replaced"
	}
	return []any{"stale", d.gen, "", word}
}

// seen is the revision that a call has seen, perhaps long ago, and the id of the call, perhaps that
// of the last one.
func (d *driver) seen(t *rapid.T, last string) (stamp int64, by string) {
	d.tick(t)
	stamp = max(0, d.rev-pickOf[int64](t, "late", 0, 0, 0, 0, 1, 300, 70_000))
	if last == "" || rapid.IntRange(0, 3).Draw(t, "again") > 0 {
		d.begun++
		last = fmt.Sprint("a.op", d.begun)
	}
	return stamp, last
}

// stale is the answer to a call that has seen a lower revision than what has changed a
// resource since, nil where there is nothing.
func (d *driver) stale(key string, stamp int64) []any {
	if o := d.changed[key]; o.rev > stamp && o.until > d.now {
		return []any{"stale", o.rev, key, o.what}
	} else if i := d.items[key]; i != nil && i.rev > stamp {
		return []any{"stale", i.rev, key, "added"}
	}
	return nil
}

// puts adds resources for so many milliseconds, 0 = for good, each for so many holders.
func (d *driver) puts(t *rapid.T, gen, lasts int64, most int, keys []string) {
	r := d.run(t, "pool_add", append([]string{dec(lasts), dec(int64(most)), dec(gen), "1"}, keys...)...)
	if gen > 0 && d.gen != gen {
		d.same(t, "add", &r, d.superseded()...)
		return
	}
	d.raise()
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
		i.expiry, i.leaving, i.rev = 0, false, d.rev
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
	stamp, by := d.seen(t, d.removed.by)
	r := d.run(t, "pool_remove", append([]string{dec(stamp), by}, keys...)...)
	if len(d.view.state) == 0 {
		d.same(t, "remove", &r, "removed", 0)
		return
	} else if by == d.removed.by {
		d.same(t, "remove", &r, "removed", d.removed.what)
		return
	} else if d.replace.rev > stamp {
		d.same(t, "remove", &r, "stale", d.replace.rev, "", "replaced")
		return
	}
	for _, key := range keys {
		if stale := d.stale(key, stamp); stale != nil {
			d.same(t, "remove", &r, stale...)
			return
		}
	}
	removed := 0
	for _, key := range keys {
		if i := d.items[key]; i != nil && !i.leaving {
			i.leaving = true
			removed++
			d.settle(key)
		}
	}
	if removed > 0 {
		d.raise()
		d.gen, d.removed = d.rev, operated{rev: d.rev, by: by, what: fmt.Sprint(removed)}
	}
	d.same(t, "remove", &r, "removed", removed)
}

// start begins a Replace, perhaps late or once more.
func (d *driver) start(t *rapid.T) {
	stamp, by := d.seen(t, d.replace.by)
	r := d.run(t, "pool_replace", "begin", dec(stamp), by)
	if d.replace.by != by {
		if d.gen > stamp {
			d.same(t, "begin", &r, d.superseded()...)
			return
		}
		d.raise()
		d.gen, d.replace = d.rev, operated{rev: d.rev, by: by}
	}
	d.same(t, "begin", &r, "begun", d.replace.rev)
}

func (d *driver) prune(t *rapid.T) {
	gen, cursor, removed := max(1, d.gen-rapid.Int64Range(0, 1).Draw(t, "older")), "0", int64(0)
	for {
		r := d.run(t, "pool_replace", "prune", dec(gen), cursor)
		if d.gen != gen {
			d.same(t, "prune", &r, d.superseded()...)
			return
		}
		cursor, removed = r.Str(1), removed+r.Int(2)
		if cursor == "0" {
			break
		}
	}
	for key, i := range d.items {
		if i.rev < gen && !i.leaving {
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
	stamp, by := d.seen(t, d.changed[key].by)
	r := d.run(t, "pool_rest", key, dec(lasts), "why not", dec(stamp), by)
	if d.changed[key].by == by {
		_, waiting, _ := d.holds()
		d.same(t, "rest", &r, "rested", flagMore*min(waiting, 1))
		return
	} else if stale := d.stale(key, stamp); stale != nil {
		d.same(t, "rest", &r, stale...)
		return
	}
	d.reclaim()
	i := d.items[key]
	if i == nil || i.leaving {
		if d.swept > 0 || d.dropped {
			d.handOff()
		}
		d.same(t, "rest", &r, "absent")
		return
	}
	what := map[int64]string{
		0: "rest ended", 200: "rest 0.2s: why not", 900: "rest 0.9s: why not", forever: "rest without end: why not",
	}[lasts]
	switch i.pend = 0; {
	case lasts == 0:
		i.ends, i.reason = 0, ""
	case len(i.claims) > 0:
		i.pend, i.reason = lasts, "why not"
	default:
		i.ends, i.reason = min(d.now+lasts, forever), "why not"
	}
	d.raise()
	d.changed[key] = operated{rev: d.rev, by: by, what: what, until: d.now + 60_000}
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
