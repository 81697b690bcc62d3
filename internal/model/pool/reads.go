package pool

import (
	"context"
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// reader reads the pool; nil on a real server, which has another time than the model.
func (d *driver) reader(t *rapid.T) *reader.Reader {
	if now, err := d.do(t, "TIME").AsIntSlice(); err != nil || now[0]*1000+now[1]/1000 != d.now {
		return nil
	}
	return reader.New(scriptkit.NewRunner(d.Redis, scriptkit.Options{Retry: berth.Retry{Attempts: 1}}), d.Space, true)
}

// counts is what the reader counts, as model.stats has it; nil where there is no reader.
func (d *driver) counts(t *rapid.T) []int {
	r := d.reader(t)
	if r == nil {
		return nil
	}
	n, err := r.Name(context.Background(), keyspace.Pool, d.Name)
	if err != nil {
		t.Fatal(err)
	}
	p := n.Pool
	if p == nil {
		p = &berth.PoolInfo{}
	}
	return []int{n.Capacity, p.Free, n.Held, p.Resting, p.Leaving, n.Holders, n.Waiting, n.Expired}
}

// reads compares what the reader says of the pool with the model.
func (d *driver) reads(t *rapid.T) {
	if r := d.reader(t); r != nil {
		d.readsClaims(t, r)
		d.readsResources(t, r)
		d.readsFree(t, r)
		d.readsBindings(t, r)
		d.readsHolders(t, r)
		d.readsSettings(t, r)
	}
}

// readsClaims compares who holds which resource, and who waits, in which order.
func (d *driver) readsClaims(t *rapid.T, r *reader.Reader) {
	var got, want []string
	for h, err := range r.Holders(context.Background(), keyspace.Pool, d.Name) {
		got = append(got, fmt.Sprintf("%s %q %d %v", h.ID, h.Resource, min(h.Left.Milliseconds(), forever), err))
	}
	for _, c := range d.claims {
		if c.deadline > d.now {
			left := c.deadline - d.now
			if c.deadline == forever {
				left = min(berth.Forever.Milliseconds(), forever)
			}
			want = append(want, fmt.Sprintf("%s %q %d %v", c.id, c.resource, left, error(nil)))
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Fatalf("the reader finds the holders\n%v, the model has\n%v", got, want)
	}
	got, want = nil, nil
	for w, err := range r.Waiters(context.Background(), keyspace.Pool, d.Name) {
		if w.Resource == "" {
			got = append(got, fmt.Sprint(w.ID, err))
		}
	}
	for _, c := range d.general() {
		if c.alive > d.now {
			want = append(want, fmt.Sprint(c.id, error(nil)))
		}
	}
	if !slices.Equal(got, want) {
		t.Fatalf("the reader finds the line\n%v, the model has\n%v", got, want)
	}
}

// readsSettings compares what is stored of the settings.
func (d *driver) readsSettings(t *rapid.T, r *reader.Reader) {
	got, err := r.Settings(context.Background(), d.Name)
	want, bad := state.ParseSettings(d.set.text())
	if err != nil || bad != nil || got != want {
		t.Fatalf("the reader finds the settings %+v, %v, the model has %s", got, err, d.set.text())
	}
}
