package pool

import (
	"fmt"
	"slices"

	"pgregory.net/rapid"
)

// resources are some resources, one perhaps twice.
func (d *driver) resources(t *rapid.T) []string {
	return rapid.SliceOfN(rapid.SampledFrom(d.some), 1, 5).Draw(t, "resources")
}

func (d *driver) add(t *rapid.T, gen int64) {
	lasts, most, keys := pickOf[int64](t, "lasts", 0, 0, 600, 3000), pickOf(t, "max", 0, 1, 1, 2, 3), d.resources(t)
	d.puts(t, gen, lasts, most, rapid.Bool().Draw(t, "whole"), keys)
}

// puts adds resources for so many milliseconds, 0 = for good, each for so many holders. The last
// part of a call says that the pool is whole.
func (d *driver) puts(t *rapid.T, gen, lasts int64, most int, whole bool, keys []string) {
	says := d.says(t)
	args := []string{dec(lasts), dec(int64(most)), dec(gen), digit(whole), says.pattern()}
	r := d.run(t, "pool_add", append(args, keys...)...)
	d.same(t, "add", &r, d.model.add(gen, lasts, most, whole, says, keys)...)
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

func (d *driver) removes(t *rapid.T) {
	keys := d.resources(t)
	stamp, by := d.seen(t, d.removed.by)
	r := d.run(t, "pool_remove", append([]string{dec(stamp), by}, keys...)...)
	d.same(t, "remove", &r, d.remove(stamp, by, keys)...)
}

// starts begins a Replace, perhaps late or once more.
func (d *driver) starts(t *rapid.T) {
	stamp, by := d.seen(t, d.replace.by)
	r := d.run(t, "pool_replace", "begin", dec(stamp), by)
	d.same(t, "begin", &r, d.start(stamp, by)...)
}

func (d *driver) prunes(t *rapid.T) {
	gen, cursor, removed := max(1, d.gen-rapid.Int64Range(0, 1).Draw(t, "older")), "0", int64(0)
	for {
		r := d.run(t, "pool_replace", "prune", dec(gen), cursor)
		if d.gen != gen {
			d.same(t, "prune", &r, d.superseded()...)
			return
		} else if d.alone() {
			d.prune(gen)
			return
		}
		if cursor, removed = r.Str(1), removed+r.Int(2); cursor == "0" {
			break
		}
	}
	if removed -= d.prune(gen); removed != 0 {
		t.Fatalf("prune removed %d more than the model", removed)
	}
}

func (d *driver) rests(t *rapid.T) {
	key, lasts := d.key(t), pickOf(t, "lasts", 0, 0, 200, 900, forever)
	stamp, by := d.seen(t, d.changed[key].by)
	exactly, reason := pickOf(t, "exactly", "0", "1"), pickOf(t, "reason", "why not", "this")
	r := d.run(t, "pool_rest", key, dec(lasts), reason, dec(stamp), by, exactly)
	d.same(t, "rest", &r, d.rest(key, lasts, reason, stamp, by, exactly == "1")...)
}

func (d *driver) ties(t *rapid.T) {
	name, key, lasts := pickOf(t, "name", boundNames...), pickOf(t, "key", d.key(t), ""), pickOf[int64](t, "lasts", 0, 800)
	r := d.run(t, "pool_bind", name, key, dec(lasts))
	d.same(t, "bind", &r, d.tie(name, key, lasts)...)
}

func (d *driver) sweeps(t *rapid.T) {
	d.tick(t)
	node, past, whole := pickOf(t, "node", nodeA, nodeB), d.past(), pickOf(t, "whole", "0", "1", "2")
	_, waiting, _ := d.holds()
	counts := d.counts(t)
	r := d.run(t, "pool_sweep", node, whole)
	d.reclaim()
	if want := d.stats(waiting, past); counts != nil && !slices.Equal(counts, want) { // the counts are those after that
		t.Fatalf("the reader counts %v, the model %v", counts, want)
	}
	d.same(t, "sweep", &r, d.sweep(node, whole)...)
}
