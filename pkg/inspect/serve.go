package inspect

import (
	"slices"

	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/pkg/keyspace"
)

// most is how many ways are tried in which a pool may give its resources.
const most = 64

// serve is who is granted something now, in order. open says that there may be more, by which of
// several resources the first in line gets.
func (f *future) serve() (grants []string, open bool) {
	switch {
	case f.paused():
		return nil, false
	case f.s.Kind != keyspace.Pool:
		return f.serveLine(), false
	}
	choices := []int{}
	for n := 0; ; n++ {
		deal := f.deal(choices)
		open = open || deal.open
		if n == 0 {
			grants = deal.grants
		} else {
			both := common(grants, deal.grants)
			open = open || len(both) < len(grants) || len(both) < len(deal.grants)
			grants = both
		}
		choices = deal.following()
		if choices == nil {
			return grants, open
		}
		if n == most {
			return nil, true
		}
	}
}

// common is what two lists have in common, in the order of the first.
func common(a, b []string) []string {
	var both []string
	for _, e := range a {
		if slices.Contains(b, e) {
			both = append(both, e)
		}
	}
	return both
}

// serveLine is who gets something of a semaphore or a lock: the first in line, as long as that one's
// weight is free. A claim that has become too heavy leaves as soon as it is the first.
func (f *future) serveLine() (grants []string) {
	room := f.s.Capacity - f.used
	for _, w := range f.line {
		switch weight := max(w.Weight, 1); {
		case weight > f.s.Capacity:
			continue
		case weight > room:
			return grants
		default:
			room -= weight
			grants = append(grants, w.ID)
		}
	}
	return grants
}

// deal gives out the resources of a pool in one of the ways in which that may go: choices are which of
// the free ones each grant takes, the first where there are too few.
type deal struct {
	f       *future
	choices []int
	options []int // how many there were to choose from, for each choice
	grants  []string
	free    []string
	room    map[string]int // of each free one
	unnamed int
	open    bool // one that was not read has been given, and some claims are left: it may have room for more
}

func (f *future) deal(choices []int) *deal {
	d := &deal{f: f, choices: choices, free: slices.Clone(f.order), room: map[string]int{}, unnamed: max(f.unnamed, 0)}
	for _, key := range d.free {
		d.room[key] = int(f.items[key].Max) - len(f.items[key].Claims)
	}
	line, lanes := f.line, slices.Clone(f.lanes)
	for {
		apart := d.first(lanes)
		switch {
		case apart != nil && (len(line) == 0 || compare(apart, line[0]) < 0):
			d.grant(apart, apart.Resource)
			lanes = without(lanes, apart)
		case len(line) > 0 && len(d.free)+d.unnamed > 0:
			d.grant(line[0], d.pick(line[0], lanes))
			line = line[1:]
		default:
			left := slices.ContainsFunc(lanes, func(w *reader.Place) bool { return slices.Contains(f.order, w.Resource) })
			d.open = (len(line) > 0 || left) && d.unnamed < max(f.unnamed, 0)
			return d
		}
	}
}

// first is the first of those who wait for one resource alone, and can get it.
func (d *deal) first(lanes []*reader.Place) (best *reader.Place) {
	for _, w := range lanes {
		if slices.Contains(d.free, w.Resource) && (best == nil || compare(w, best) < 0) {
			best = w
		}
	}
	return best
}

// pick is what the first in line gets, "" for one that was not read.
func (d *deal) pick(w *reader.Place, lanes []*reader.Place) string {
	b, bound := d.f.s.Bindings[w.Wants.Bind]
	if bound && b.Ends > d.f.now.UnixMilli() && slices.Contains(d.free, b.Resource) {
		return b.Resource
	}
	options := slices.Clone(d.free)
	if d.unnamed > 0 {
		options = append([]string{""}, options...)
	}
	if len(options) > 1 && slices.ContainsFunc(lanes, func(w *reader.Place) bool { return slices.Contains(d.free, w.Resource) }) {
		n := len(d.options)
		d.options = append(d.options, len(options))
		if n < len(d.choices) {
			return options[d.choices[n]]
		}
		d.choices = append(d.choices, 0)
	}
	return options[0]
}

// following are the choices to try next, nil if all were.
func (d *deal) following() []int {
	next := slices.Clone(d.choices)
	for n := len(next) - 1; n >= 0; n-- {
		if next[n]++; next[n] < d.options[n] {
			return next[:n+1]
		}
	}
	return nil
}

func (d *deal) grant(w *reader.Place, key string) {
	d.grants = append(d.grants, w.ID)
	switch {
	case w.Wants.Shared:
	case key == "":
		d.unnamed--
	default:
		if d.room[key]--; d.room[key] == 0 {
			d.free = slices.DeleteFunc(d.free, func(other string) bool { return other == key })
		}
	}
}
