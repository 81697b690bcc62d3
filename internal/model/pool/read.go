package pool

import (
	"context"
	"slices"

	"pgregory.net/rapid"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/internal/state"
)

// read asks the scripts for what they alone read.
func (d *driver) read(t *rapid.T) {
	if d.alone() {
		t.Skip("there is nothing to read")
	}
	d.inspect(t, "-1")
}

// readsResources compares what the reader says of each resource.
func (d *driver) readsResources(t *rapid.T, r *reader.Reader) {
	ctx, seen := context.Background(), map[string]string{}
	for cursor := "0"; ; {
		page, next, err := r.ResourcesPage(ctx, d.Name, cursor)
		if err != nil {
			t.Fatal(err)
		}
		for _, res := range page {
			i := d.items[res.Key]
			if seen[res.Key] = res.Word; i == nil || res.Sharers != i.max || !ownIs(res.Own, i.own) {
				t.Fatalf("of %q the reader finds %+v, in the model: %+v", res.Key, res, i)
			}
		}
		if cursor = next; cursor == "0" {
			break
		}
	}
	for key, i := range d.items {
		if want := d.wordOf(i); seen[key] != want {
			t.Fatalf("%q reads %q, and is %s: %+v", key, seen[key], want, *i)
		}
	}
	one, err := r.Resources(ctx, d.Name, "nobody's")
	if err != nil || one[0].Word != reader.Absent {
		t.Fatalf("what is not in the pool is %+v, %v", one, err)
	}
}

func ownIs(own *state.Settings, text string) bool {
	if own == nil || text == "" {
		return own == nil && text == ""
	}
	want, err := state.ParseOwn(text)
	return err == nil && *own == want
}

func (d *driver) wordOf(i *item) string {
	live := false
	for _, id := range i.claims {
		live = live || d.claims[id].deadline > d.now
	}
	switch {
	case live:
		return reader.Leased
	case d.gone(i):
		return reader.Absent
	case i.ends > d.now:
		return reader.Resting
	}
	return reader.Free
}

// readsFree compares the free ones in their order, and back from the last one.
func (d *driver) readsFree(t *rapid.T, r *reader.Reader) {
	want := slices.Clone(d.free)
	for _, back := range []bool{false, true} {
		page, next, count, err := r.FreePage(context.Background(), d.Name, back, 0)
		if err != nil {
			t.Fatal(err)
		}
		var read []string
		for _, res := range page {
			read = append(read, res.Key)
		}
		if !slices.Equal(read, want) || next != 0 || count != len(want) {
			t.Fatalf("of %d the free ones are %q, in the model %q", count, read, want)
		}
		slices.Reverse(want)
	}
}

// readsBindings compares the bindings that last.
func (d *driver) readsBindings(t *rapid.T, r *reader.Reader) {
	read := 0
	for cursor := "0"; ; {
		page, next, err := r.BindingsPage(context.Background(), d.Name, cursor)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range page {
			b := d.binds[found.Name]
			left := berth.Forever
			if b.ends != forever {
				left = state.Millis(b.ends - d.now)
			}
			if i := d.items[b.key]; b.key != found.Resource || b.ends <= d.now || d.gone(i) || found.Left != left {
				t.Fatalf("the reader finds %+v, in the model: %+v", found, b)
			}
			one, err := r.Binding(context.Background(), d.Name, found.Name)
			if err != nil || one != found {
				t.Fatalf("the reader finds %+v, and alone %+v, %v", found, one, err)
			}
			read++
		}
		if cursor = next; cursor == "0" {
			break
		}
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

// readsHolders compares who is on record as a holder of each resource.
func (d *driver) readsHolders(t *rapid.T, r *reader.Reader) {
	var keys []string
	for key := range d.items {
		keys = append(keys, key)
	}
	found, err := r.HoldersOf(context.Background(), d.Name, keys)
	if err != nil {
		t.Fatal(err)
	}
	held := map[string][]string{}
	for _, c := range d.claims {
		if c.resource != "" {
			held[c.resource] = append(held[c.resource], c.id)
		}
	}
	for _, key := range keys {
		slices.Sort(found[key])
		slices.Sort(held[key])
		if !slices.Equal(found[key], held[key]) {
			t.Fatalf("%q is held by %q on record, in the model by %q", key, found[key], held[key])
		}
	}
}
