package model

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// Reads compares what the reader says of a semaphore or a lock with what its keys say, in one instant.
func Reads(t TB, redis rueidis.Client, space keyspace.Space, kind keyspace.Kind, name string) {
	t.Helper()
	run := scriptkit.NewRunner(redis, scriptkit.Options{Retry: berth.Retry{Attempts: 1}})
	r := reads{TB: t, Reader: reader.New(run, space, true), kind: kind, name: name}
	r.seen = look(t, redis, []string{space.State(kind, name), space.Line(kind, name)})
	r.row()
	r.holders()
	r.waiters()
}

type reads struct {
	TB
	*reader.Reader
	seen view
	kind keyspace.Kind
	name string
}

// live are the holds that have not ended, those that end first first; ended is how many have.
func (r *reads) live() (ids []string, ended int) {
	for id, ends := range r.seen.holds {
		if ends > r.seen.now {
			ids = append(ids, id)
		} else {
			ended++
		}
	}
	slices.SortFunc(ids, func(a, b string) int {
		return cmp.Or(cmp.Compare(r.seen.holds[a], r.seen.holds[b]), strings.Compare(a, b))
	})
	return ids, ended
}

// row compares the counts.
func (r *reads) row() {
	r.Helper()
	n, err := r.Name(context.Background(), r.kind, r.name)
	must(r, err)
	live, ended := r.live()
	held := r.seen.used(r.seen.now)
	if r.kind == keyspace.Lock {
		held = min(held, 1)
		same(r, "whether somebody has the lock", n.Lock != nil, held == 1)
	}
	same(r, "capacity, held, holders, waiting, expired", fmt.Sprint(n.Capacity, n.Held, n.Holders, n.Waiting, n.Expired),
		fmt.Sprint(r.seen.state["cap"], held, len(live), len(r.seen.places), ended))
	same(r, "fence and revision", fmt.Sprint(n.Fence, n.Revision), fmt.Sprint(r.seen.state["fence"], r.seen.state["rev"]))
	revision, err := r.Revision(context.Background(), r.kind, r.name)
	must(r, err)
	same(r, "the revision alone", revision, n.Revision)
	var oldest time.Duration
	for _, id := range live {
		oldest = max(oldest, time.UnixMilli(r.seen.now).Sub(r.seen.records[id].Granted))
	}
	if own := func(id string) bool { return strings.Contains(id, ":") }; !slices.ContainsFunc(live, own) {
		same(r, "how long the oldest is held", n.Oldest, oldest)
	}
	r.first(n)
}

// first compares who stands first of each priority.
func (r *reads) first(n reader.Row) {
	r.Helper()
	var places []string
	for id, place := range r.seen.places {
		places = append(places, place+" "+id)
	}
	slices.Sort(places)
	var want, got []string
	last := -1
	for _, place := range places {
		var lane int
		_, err := fmt.Sscanf(place, "%d", &lane)
		must(r, err)
		id := strings.Fields(place)[2]
		if lane/2 != last {
			want = append(want, fmt.Sprint(id, r.seen.alive[id] <= r.seen.now))
		}
		last = lane / 2
	}
	for _, f := range n.First {
		got = append(got, fmt.Sprint(f.ID, f.Alive == 0))
	}
	if foreign := strings.Contains(fmt.Sprint(want), ":"); !foreign {
		same(r, "the first of each priority", fmt.Sprint(got), fmt.Sprint(want))
	}
}

// holders compares the holds: in the order of their ends, but of a lock the entries.
func (r *reads) holders() {
	r.Helper()
	var got []string
	for cursor := ""; ; {
		page, err := r.HoldersPage(context.Background(), r.kind, r.name, cursor, 2)
		must(r, err)
		for _, f := range page.Found {
			got = append(got, f.Entry.ID)
			if f.Err != nil {
				continue
			}
			want, err := reader.Holder(r.name, f.Entry.ID, time.UnixMilli(r.seen.now), r.seen.holds[f.Entry.ID], r.text(f.Entry.ID))
			must(r, err)
			same(r, "the holder "+f.Entry.ID, fmt.Sprintf("%+v", f.Entry), fmt.Sprintf("%+v", want))
			c, err := r.Claim(context.Background(), r.kind, r.name, f.Entry.ID)
			if err != nil || c.Holder == nil {
				r.Fatalf("the claim %+v, %v", c, err)
			}
			same(r, "the claim "+f.Entry.ID, fmt.Sprintf("%+v", *c.Holder), fmt.Sprintf("%+v", want))
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	want, _ := r.live()
	if r.kind == keyspace.Lock {
		slices.Sort(got)
		slices.Sort(want)
	}
	same(r, "who holds", fmt.Sprint(got), fmt.Sprint(want))
}

// text is a record as it is stored.
func (r *reads) text(id string) string {
	record := r.seen.records[id]
	return state.Text(&record)
}

// waiters compares the line.
func (r *reads) waiters() {
	r.Helper()
	var got []string
	for cursor := ""; ; {
		page, err := r.WaitersPage(context.Background(), r.kind, r.name, cursor, 2)
		must(r, err)
		for _, f := range page.Found {
			w := f.Entry
			got = append(got, w.ID)
			if f.Err != nil {
				continue
			}
			same(r, "how long it lives", w.Alive, time.Duration(r.seen.alive[w.ID]-r.seen.now)*time.Millisecond)
			c, err := r.Claim(context.Background(), r.kind, r.name, w.ID)
			if err != nil || c.Waiter == nil || c.Waiter.Alive != w.Alive {
				r.Fatalf("the claim %+v, %v; the waiter %+v", c.Waiter, err, w)
			}
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	want := r.seen.line(r.seen.now)
	same(r, "who waits", fmt.Sprint(got), fmt.Sprint(want))
	n := 0
	for w, err := range r.Waiters(context.Background(), r.kind, r.name) {
		if err != nil && w.ID == "" {
			r.Fatal(err)
		}
		same(r, "how many are ahead of "+w.ID, w.Ahead, n)
		n++
	}
}
