package pool

import (
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"
)

// opinions draws what the processes of a history say of the settings: often nothing.
func (d *driver) opinions(t *rapid.T) {
	d.others = []opinion{{}}
	for n := range pickOf(t, "opinions", 0, 1, 1, 2) {
		d.others = append(d.others, opinion{strict: pickOf(t, "strict", false, false, false, true), words: settings{
			setPolicy: pickOf(t, "policy", d.policies("", "l", "m", "m")...), setCooldown: pickOf(t, "pool's cooldown", "", "", "0", "200"),
			setSharers: pickOf(t, "sharers", "", "", "1", "2"), setBindfor: pickOf(t, "pool's bindfor", "", "0", "900"),
			setLease: pickOf(t, "limit", "", "", "", "0", "2000"), setHold: pickOf(t, "most", "", "", "", "", "0", "1000"),
		}})
		if n == 0 && rapid.Bool().Draw(t, "all of them") {
			d.others = d.others[1:]
		}
	}
}

// policies are some words, and that of the random policy where that may be drawn.
func (d *driver) policies(of ...string) []string {
	if d.random {
		of = append(of, "r")
	}
	return of
}

// says is what a process says of the settings.
func (d *driver) says(t *rapid.T) opinion {
	if len(d.others) == 1 {
		return d.others[0]
	}
	return rapid.SampledFrom(d.others).Draw(t, "says")
}

// sets is an operator's call about the settings of the pool or of a resource, perhaps late or once more.
func (d *driver) sets(t *rapid.T) {
	if rapid.IntRange(0, 2).Draw(t, "set") > 0 {
		t.Skip("no set")
	}
	key := pickOf(t, "whose", "", "", d.key(t))
	cooldown := pickOf(t, "pool's cooldown", ".", ".", "-", "0", "150", "400")
	sharers := pickOf(t, "sharers", ".", ".", "-", "1", "2", "3")
	words := []string{cooldown, sharers, pickOf(t, "pool's bindfor", ".", ".", "-", "0", "700")}
	if key == "" {
		words = append(append([]string{pickOf(t, "policy", d.policies(".", "-", "l", "m")...)}, words...),
			pickOf(t, "limit", ".", ".", "-", "-", "0", "2500"), pickOf(t, "most", ".", ".", "-", "-", "0", "1200"))
	}
	if pickOf(t, "reset", false, false, false, true) {
		words = slices.Repeat([]string{"-"}, len(words))
	}
	stamp, by := d.seen(t, d.changed[key].by)
	what := fmt.Sprintf("set %q", words)
	r := d.run(t, "pool_set", key, strings.Join(words, " "), what, dec(stamp), by)
	want := d.configure(key, words, what, stamp, by)
	d.same(t, "set", &r, want...)
	if key == "" && want[0] == "set" && sharers != "." && rapid.IntRange(0, 3).Draw(t, "dies") > 0 {
		d.walk(t, d.rev)
	}
}

// walks is a walk of a call of which only a part has run, or that comes late.
func (d *driver) walks(t *rapid.T) {
	d.tick(t)
	d.walk(t, max(0, d.rev-pickOf[int64](t, "late", 0, 0, 1, 300)))
}

// walk lets as many hold each resource as the settings say.
func (d *driver) walk(t *rapid.T, revision int64) {
	for cursor := "0"; ; {
		var page []string
		for key := range d.items {
			page = append(page, key)
		}
		slices.Sort(page)
		if !d.alone() {
			cursor, page = d.scan(t, cursor)
		}
		r := d.run(t, "pool_sharers", cursor, dec(revision))
		d.same(t, "sharers", &r, d.shares(page, revision)...)
		if cursor = r.Str(1); d.alone() || cursor == "0" {
			return
		}
	}
}

// scan is a page of all resources, in the order in which a script meets them.
func (d *driver) scan(t *rapid.T, cursor string) (from string, page []string) {
	entry, err := d.do(t, "HSCAN", d.keys[2], cursor, "MATCH", "i*", "COUNT", "100").AsScanEntry()
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; n < len(entry.Elements); n += 2 {
		page = append(page, entry.Elements[n][1:])
	}
	return cursor, page
}

// damages has somebody write into an item, and an operator mend it at once.
func (d *driver) damages(t *rapid.T) {
	d.tick(t)
	d.over(t) // drops what has expired meanwhile
	key, stays := d.key(t), rapid.Bool().Draw(t, "stays")
	i := d.items[key]
	if i == nil || rapid.IntRange(0, 2).Draw(t, "damage") > 0 {
		t.Skip("nothing is damaged")
	}
	d.do(t, "HSET", d.keys[2], "i"+key, "?")
	args := []string{digit(stays)}
	for _, id := range i.claims {
		args = append(args, key, id)
	}
	if len(i.claims) == 0 {
		args = append(args, key, "")
	}
	r := d.run(t, "pool_mend", args...)
	d.same(t, "mend", &r, d.mend(key, stays)...)
}
