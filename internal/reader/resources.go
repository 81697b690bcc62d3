package reader

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/keyspace"
)

// The words of a resource.
const (
	Free    = "free"
	Leased  = "leased"
	Resting = "resting"
	Absent  = "absent"
	Damaged = "damaged"
)

// Resource is a resource of a pool. What has passed has passed, swept or not.
type Resource struct {
	Key, Word string
	Left      time.Duration // that it is leased or rests at the most; berth.Forever for no end
	Reason    string        // why it rests, or will
	Expiry    time.Duration // until it leaves the pool, 0 for never
	Leaving   bool          // it is leased, and leaves when it comes back
	Sharers   int           // how many may hold it at once
	Own       *state.Settings
	Holders   []berth.Holder
}

// pool makes the one turn of a pool's reading, whose errors are those of Name.
func (r *Reader) pool(ctx context.Context, what, name string, read func(t *turn) error) error {
	_, _, err := r.alone(ctx, what, keyspace.Pool, name, 1, func(t *turn) (bool, error) { return true, read(t) })
	return err
}

// first makes the first trip of a pool's reading, which says whether what is stored is to be interpreted.
func (t *turn) first(p *trip) error {
	at := p.fields(t.key(keyspace.StatePart), "", "v", "fmt")
	if err := t.ask(p); err != nil {
		return err
	}
	fields := p.texts(at)
	if p.err != nil {
		return p.err
	}
	if number, newer := state.Newer(cmp.Or(fields[0], fields[1])); newer {
		return state.Incompatible(t.name, number)
	}
	return nil
}

// ResourcesPage reads some resources of a pool, in no order. A cursor of 0 is where the first page begins, and what
// the last one returns. The pages promise what SCAN promises. Its errors are those of Name, and
// state.ErrDamaged for a holder or settings that cannot be read.
func (r *Reader) ResourcesPage(ctx context.Context, name, cursor string) (found []Resource, next string, err error) {
	err = r.pool(ctx, "resources", name, func(t *turn) (err error) {
		var p trip
		scan := p.scan(t.key(keyspace.ItemsPart), cursor, "i*", scannedFields)
		if err := t.first(&p); err != nil {
			return err
		}
		var fields []pair
		if fields, next = p.scanned(scan, "i"); p.err != nil {
			return p.err
		}
		var keys []string
		items := map[string]stored{}
		for _, f := range fields {
			keys, items[f.name] = append(keys, f.name), stored{f.value, true}
		}
		found, err = t.described(keys, items)
		return err
	})
	return found, next, err
}

// Resources reads resources, up to 200, in their order. Its errors are those of ResourcesPage.
func (r *Reader) Resources(ctx context.Context, name string, keys ...string) (found []Resource, err error) {
	err = r.pool(ctx, "resources", name, func(t *turn) (err error) {
		var p trip
		items := p.fields(t.key(keyspace.ItemsPart), "i", keys...)
		if err := t.first(&p); err != nil {
			return err
		}
		known := map[string]stored{}
		for i, item := range p.stored(items) {
			known[keys[i]] = item
		}
		if p.err != nil {
			return p.err
		}
		found, err = t.described(keys, known)
		return err
	})
	return found, err
}

// freePage is how many free resources are read at once, and freeLast the last place that one can have.
const (
	freePage = 100
	freeLast = 1<<53 - 2
)

// FreePage reads free resources of a pool in the order in which they came back, or back from the last one. The first page
// begins at 0, and next is where the following one begins; it is 0 where there is none. count is how many are free. What
// comes back gets a place behind all others. Its errors are those of ResourcesPage.
func (r *Reader) FreePage(ctx context.Context, name string, back bool, from int64) (found []Resource, next int64, count int, err error) {
	err = r.pool(ctx, "resources", name, func(t *turn) (err error) {
		var p, q trip
		found, next = nil, 0
		free, first, last, on := t.key(keyspace.FreePart), max(from, 1), int64(freeLast), int64(1)
		if back {
			first, last, on = cmp.Or(from, freeLast), 1, -1
		}
		page, all := p.places(free, first, last, freePage), p.count(free, 1, freeLast)
		if err := t.first(&p); err != nil {
			return err
		}
		var keys []string
		for _, m := range p.members(page) {
			keys, next = append(keys, m.name), m.score+on
		}
		count = int(p.int(all))
		if p.err != nil || len(keys) == 0 {
			return p.err
		}
		if len(keys) < freePage {
			next = 0
		}
		items := q.fields(t.key(keyspace.ItemsPart), "i", keys...)
		if err := t.ask(&q); err != nil {
			return err
		}
		known := map[string]stored{}
		for i, item := range q.stored(items) {
			known[keys[i]] = item
		}
		if q.err != nil {
			return q.err
		}
		found, err = t.described(keys, known)
		return err
	})
	return found, next, count, err
}

// stored is the text of a field, if it is there.
type stored struct {
	text  string
	there bool
}

// stored are the fields of an HMGET.
func (p *trip) stored(i int) []stored {
	texts := p.texts(i)
	fields := make([]stored, len(texts))
	for n, text := range texts {
		fields[n] = stored{text, !p.isNil(i, n)}
	}
	return fields
}

// described reads who holds resources, of which the items are known. What others do to one meanwhile changes
// its item: then it is read again, up to tries.
func (t *turn) described(keys []string, items map[string]stored) ([]Resource, error) {
	known := map[string]Resource{}
	for n, left := 1, keys; len(left) > 0; n++ {
		var moved []string
		for len(left) > 0 {
			size, some := 0, 0
			for some < len(left) && size < Most-2*sharers {
				item, _ := state.ParseItem(items[left[some]].text)
				size, some = size+2+2*len(item.Claims), some+1
			}
			found, now, err := t.describe(left[:some], items)
			if err != nil {
				return nil, err
			}
			for i, key := range left[:some] {
				if now[i] != items[key] && n < tries {
					moved = append(moved, key)
				}
				known[key], items[key] = found[i], now[i]
			}
			left = left[some:]
		}
		left = moved
	}
	all := make([]Resource, len(keys))
	for i, key := range keys {
		all[i] = known[key]
	}
	return all, nil
}

// sharers is how many may hold one resource.
const sharers = 100

// describe reads resources as their items have them, and then their items as they are now.
func (t *turn) describe(keys []string, items map[string]stored) (found []Resource, now []stored, err error) {
	var p trip
	var owning, claims []string
	parsed := make([]state.Item, len(keys))
	found = make([]Resource, len(keys))
	for i, key := range keys {
		item, err := state.ParseItem(items[key].text)
		if parsed[i] = item; err != nil && items[key].there {
			found[i].Word = Damaged
		}
		claims = append(claims, item.Claims...)
		if item.Own {
			owning = append(owning, key)
		}
	}
	own := p.fields(t.key(keyspace.StatePart), "s:", owning...)
	scores, records := p.scores(t.key(keyspace.LinePart), "h:", claims...), p.fields(t.key(keyspace.StatePart), "c:", claims...)
	last := p.fields(t.key(keyspace.ItemsPart), "i", keys...)
	if err := t.ask(&p); err != nil {
		return nil, nil, err
	}
	now = p.stored(last)
	owns, deadlines, texts := p.texts(own), p.at(scores), p.texts(records)
	for i, key := range keys {
		res := &found[i]
		res.Key = key
		n := len(parsed[i].Claims)
		if err := res.is(t, parsed[i], deadlines[:n], texts[:n]); err != nil {
			return nil, nil, err
		}
		if n > 0 && len(res.Holders) == 0 && now[i] != items[key] {
			res.Word = Leased // by another one by now
		}
		deadlines, texts = deadlines[n:], texts[n:]
		if at := slices.Index(owning, key); at >= 0 && owns[at] != "" {
			settings, err := state.ParseOwn(owns[at])
			if err != nil {
				return nil, nil, err
			}
			res.Own = &settings
		}
	}
	return found, now, p.err
}

// is tells of a resource by its item, and by the scores and the records of its claims.
func (r *Resource) is(t *turn, item state.Item, scores []int64, records []string) error {
	there := item.Max > 0
	leaving := item.Leaving || item.Expiry > 0 && item.Expiry <= t.now
	furthest := int64(0)
	for i, claim := range item.Claims {
		ends := deadline(scores[i])
		if ends <= t.now || records[i] == "" {
			continue
		}
		h, err := Holder(t.name, claim, t.at(), ends, records[i])
		if err != nil {
			return err
		}
		h.Resource = r.Key
		r.Holders, furthest = append(r.Holders, h), max(furthest, ends)
	}
	resting := item.Ends > t.now
	switch {
	case len(r.Holders) > 0:
		r.Word, r.Left, r.Leaving = Leased, t.left(furthest), leaving
	case r.Word == Damaged:
	case !there || leaving:
		r.Word = Absent
	case resting:
		r.Word, r.Left = Resting, t.left(item.Ends)
	default:
		r.Word = Free
	}
	if r.Sharers = int(item.Max); resting || item.Pending > 0 {
		r.Reason = item.Reason
	}
	if !leaving && item.Expiry > 0 {
		r.Expiry = state.Millis(item.Expiry - t.now)
	}
	return nil
}

// left is how long it is to a moment (ms), berth.Forever for never.
func (t *turn) left(ends int64) time.Duration {
	if ends == state.Forever {
		return berth.Forever
	}
	return state.Millis(ends - t.now)
}

// BindingsPage reads some bindings of a pool that last and whose resource is in the pool, in no order, with cursors as
// ResourcesPage has them. Its errors are those of Name.
func (r *Reader) BindingsPage(ctx context.Context, name, cursor string) (found []berth.Binding, next string, err error) {
	err = r.pool(ctx, "bindings", name, func(t *turn) (err error) {
		var p trip
		scan := p.scan(t.key(keyspace.BindingsPart), cursor, "b*", scannedFields)
		if err := t.first(&p); err != nil {
			return err
		}
		var fields []pair
		if fields, next = p.scanned(scan, "b"); p.err != nil {
			return p.err
		}
		found, err = t.bindings(fields)
		return err
	})
	return found, next, err
}

// Binding reads one binding, which has no Resource if BindingsPage would not have it. Its errors are those of Name.
func (r *Reader) Binding(ctx context.Context, name, binding string) (berth.Binding, error) {
	found := []berth.Binding{{Name: binding}}
	err := r.pool(ctx, "bindings", name, func(t *turn) error {
		var p trip
		text := p.fields(t.key(keyspace.BindingsPart), "b", binding)
		if err := t.first(&p); err != nil {
			return err
		}
		all, err := t.bindings([]pair{{binding, p.texts(text)[0]}})
		if found = append(all, found...); err == nil {
			err = p.err
		}
		return err
	})
	return found[0], err
}

// bindings reads the resources of bindings.
func (t *turn) bindings(fields []pair) (found []berth.Binding, err error) {
	var keys []string
	for _, f := range fields {
		if b, err := state.ParseBinding(f.value); err == nil && b.Ends > t.now {
			found = append(found, berth.Binding{Name: f.name, Resource: b.Resource, Left: t.left(b.Ends)})
			keys = append(keys, b.Resource)
		}
	}
	if len(keys) == 0 {
		return nil, nil
	}
	var p trip
	items := p.fields(t.key(keyspace.ItemsPart), "i", keys...)
	if err := t.ask(&p); err != nil {
		return nil, err
	}
	texts, stay := p.texts(items), found[:0]
	for i, b := range found {
		if item, err := state.ParseItem(texts[i]); err == nil && !item.Leaving && (item.Expiry == 0 || item.Expiry > t.now) {
			stay = append(stay, b)
		}
	}
	return stay, p.err
}

// HoldersOf goes through all claims of a pool, and returns those that are on record as holders of each of the
// resources, each once. It promises what SCAN promises. Its errors are those of Name.
func (r *Reader) HoldersOf(ctx context.Context, name string, resources []string) (map[string][]string, error) {
	wanted, holders := map[string]bool{}, map[string][]string{}
	for _, key := range resources {
		wanted[key] = true
	}
	for cursor := "0"; ; {
		err := r.pool(ctx, "holders", name, func(t *turn) error {
			var p trip
			scan := p.scan(t.key(keyspace.StatePart), cursor, "r:*", Most)
			if err := t.first(&p); err != nil {
				return err
			}
			var fields []pair
			fields, cursor = p.scanned(scan, "r:")
			for _, f := range fields {
				if wanted[f.value] && !slices.Contains(holders[f.value], f.name) {
					holders[f.value] = append(holders[f.value], f.name)
				}
			}
			return p.err
		})
		if err != nil || cursor == "0" {
			return holders, err
		}
	}
}

// Settings reads what is stored of the settings of a pool. Its errors are those of Name.
func (r *Reader) Settings(ctx context.Context, name string) (settings state.Settings, err error) {
	err = r.pool(ctx, "settings", name, func(t *turn) error {
		var p trip
		pool := p.fields(t.key(keyspace.StatePart), "", "v", "pool")
		if err := t.first(&p); err != nil {
			return err
		}
		texts := p.texts(pool)
		v, _, _ := state.ParseValues(texts[0])
		counts, err := state.ParseCounts(texts[1], v.Used)
		if err == nil {
			settings, err = state.ParseSettings(counts.Settings)
		}
		if err != nil {
			return t.odd("hash", 0)
		}
		return p.err
	})
	return settings, err
}
