package pool

import (
	"slices"

	"pgregory.net/rapid"
)

// read asks for what is only read.
func (d *driver) read(t *rapid.T) {
	if d.alone() {
		t.Skip("there is nothing to read")
	}
	d.inspect(t, "-1")
	d.readResources(t)
	d.readList(t, "n")
	d.readList(t, "p")
	d.readBindings(t)
}

func (d *driver) readResources(t *rapid.T) {
	seen, cursor := map[string]string{}, "0"
	for {
		r := d.call(t, d.keys[:4], "pool_resources", cursor, "3")
		for n := 3; n < r.Len(); n += 9 {
			seen[r.Str(n)] = r.Str(n + 1)
			if i := d.items[r.Str(n)]; i == nil || r.Int(n+6) != int64(i.max) || r.Str(n+7) != i.own {
				t.Fatalf("%q may be held by %d at once, has %q of its own, in the model: %+v", r.Str(n), r.Int(n+6), r.Str(n+7), i)
			}
			n += 3 * int(r.Int(n+8))
		}
		if cursor = r.Str(1); cursor == "0" {
			break
		}
	}
	for key, i := range d.items {
		live := false
		for _, id := range i.claims {
			live = live || d.claims[id].deadline > d.now
		}
		want := "free"
		switch {
		case live:
			want = "leased"
		case d.gone(i):
			want = "absent"
		case i.ends > d.now:
			want = "resting"
		}
		if seen[key] != want {
			t.Fatalf("%q reads %q, and is %s: %+v", key, seen[key], want, *i)
		}
	}
}

// readList walks through the free ones, by pages of two.
func (d *driver) readList(t *rapid.T, way string) {
	var read []string
	for from, before := "", ""; ; {
		r := d.call(t, d.keys[:4], "pool_resources", way, "2", from, before)
		for n := 5; n < r.Len(); n += 9 {
			before = r.Str(n)
			read = append(read, before)
			n += 3 * int(r.Int(n+8))
		}
		if len(read) > 0 && read[0] != r.Str(3) || r.Int(4) != int64(len(d.free)) {
			t.Fatalf("%q begins with %q and has %d", read, r.Str(3), r.Int(4))
		}
		if from = r.Str(1); from == "" || len(read) > len(d.free) {
			break
		}
	}
	want := slices.Clone(d.free)
	if way == "p" {
		slices.Reverse(want)
	}
	if !slices.Equal(read, want) {
		t.Fatalf("the list by %s is %q, in the model %q", way, read, want)
	}
}

func (d *driver) readBindings(t *rapid.T) {
	r, read := d.call(t, []string{d.keys[0], d.keys[2], d.keys[4]}, "pool_bindings", "", "0", "10"), 0
	for n := 2; n < r.Len(); n += 3 {
		b := d.binds[r.Str(n)]
		if i := d.items[b.key]; b.key != r.Str(n+1) || b.ends <= d.now || d.gone(i) {
			t.Fatalf("%q is bound to %q, in the model to %+v", r.Str(n), r.Str(n+1), b)
		}
		read++
	}
	for _, b := range d.binds {
		if i := d.items[b.key]; b.ends > d.now && !d.gone(i) {
			read--
		}
	}
	if read != 0 {
		t.Fatalf("%d more bindings are read than there are", read)
	}
}
