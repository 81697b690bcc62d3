package reader

import (
	"slices"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/keyspace"
)

// dues is the reading of what a pool has that has ended and is not dropped yet: the counts are told as a sweep
// would leave them.
type dues struct {
	*fat
	rests, expiries []member
	resting         int64
	endless         int // of those: all where nothing is free or leased, else of those that were read
	unending        int // the answer that says how many, -1 for none
	met             map[string]*known
	ended           []ending // holds that have expired, of which the resource is still to be read
	places          [3]int   // of the answers
	looked          []string // the resources that a trip asks for
}

// known is an item that something has ended of.
type known struct{ was, now state.Item }

// ending is a hold that has expired.
type ending struct {
	claim, resource string
	at              int64 // its end (ms)
	wants           *state.Wants
}

// hear takes what the line says of it.
func (d *dues) hear() {
	b := &d.bands
	d.rests, d.expiries, d.resting = b.rests, b.expiries, int64(b.restingAll)
	for _, n := range []int{d.n.Expired, b.expiriesAll, len(d.rests) + 1} { // of rests as many as are read may be all
		d.n.Partial = d.n.Partial || n > d.k
	}
	d.n.Expired += b.expiriesAll
	for _, m := range b.resting {
		if m.score == state.Rests+state.Forever {
			d.endless++
		}
	}
}

// look asks for the items, and for what the expired holds held.
func (d *dues) look(p *trip) {
	d.looked = slices.Concat(namesOf(d.rests, resourceResting), namesOf(d.expiries, resourceLeaving))
	claims := claimsOf(d.over)
	d.places = [3]int{
		p.fields(d.key(keyspace.ItemsPart), "i", d.looked...), p.fields(d.state, "r:", claims...), p.fields(d.state, "c:", claims...),
	}
	d.unending = -1
	if c := &d.before.counts; c.Free == 0 && c.Leased == 0 && int(d.resting) > len(d.bands.resting) {
		d.unending = p.count(d.line, state.Rests+state.Forever, state.Rests+state.Forever)
	}
}

// heed takes the answers to look.
func (d *dues) heed(p *trip) {
	if d.unending >= 0 {
		d.endless = int(p.int(d.unending))
	}
	d.met = map[string]*known{}
	claims := claimsOf(d.over)
	d.meet(p.texts(d.places[0]))
	resources, records := p.texts(d.places[1]), p.texts(d.places[2])
	for i, h := range d.over {
		key := resource(resources[i])
		if key == "" {
			continue
		}
		e := ending{claim: claims[i], resource: key, at: deadline(h.score)}
		if r, err := state.ParseRecord(records[i]); err == nil {
			if w, err := state.ParseWants(r.Extra); err == nil {
				e.wants = &w
			}
		}
		d.ended = append(d.ended, e)
	}
}

// meet notes the items of the resources that were looked at.
func (d *dues) meet(texts []string) {
	for i, text := range texts {
		if item, err := state.ParseItem(text); err == nil && d.met[d.looked[i]] == nil {
			d.met[d.looked[i]] = &known{was: item, now: item}
		}
	}
}

// more says that there are resources to look at.
func (d *dues) more() bool { return len(d.ended) > 0 }

// lookOn asks for the resources of expired holds, and for settings of their own.
func (d *dues) lookOn(p *trip) {
	d.looked = nil
	for _, e := range d.ended {
		d.looked = append(d.looked, e.resource)
	}
	d.places = [3]int{p.fields(d.key(keyspace.ItemsPart), "i", d.looked...), p.fields(d.state, "s:", d.looked...)}
}

// heedOn takes the answers, and gives back what the expired holds held.
func (d *dues) heedOn(p *trip) {
	d.meet(p.texts(d.places[0]))
	settings, _ := state.ParseSettings(d.before.counts.Settings)
	owns := p.texts(d.places[1])
	for i, e := range d.ended {
		item := d.met[e.resource]
		if item == nil {
			continue // damaged, or gone
		}
		own, err := state.ParseOwn(owns[i])
		if err != nil || !item.was.Own {
			own.Cooldown = state.Unset
		}
		item.now.Return(e.claim, e.wants, settings, own, e.at, d.now)
	}
	d.ended = nil
}

// count tells the counts. What has ended of rests and expiries comes last, as in a sweep.
func (d *dues) count() {
	for _, key := range namesOf(d.rests, resourceResting) {
		if k := d.met[key]; k != nil && k.now.Ends <= d.now {
			k.now.Ends = 0
		}
	}
	for _, key := range namesOf(d.expiries, resourceLeaving) {
		if k := d.met[key]; k != nil {
			k.now.Leaving = true
		}
	}
	c := d.before.counts
	digit := func(yes bool) int64 {
		if yes {
			return 1
		}
		return 0
	}
	for _, k := range d.met {
		was, now := &k.was, &k.now
		leased, wasLeased := len(now.Claims) > 0, len(was.Claims) > 0
		gone := now.Leaving && !leased
		c.Resources -= digit(gone)
		c.Free += digit(now.Listed()) - digit(was.Listed())
		c.Leased += digit(leased) - digit(wasLeased)
		c.Leaving += digit(now.Leaving && leased) - digit(was.Leaving)
		d.resting += digit(now.Ends > d.now && !gone) - digit(was.Ends > d.now)
	}
	d.n.Capacity, d.n.Held = int(c.Resources), int(c.Leased)
	d.n.Pool = &berth.PoolInfo{Free: int(c.Free), Resting: int(d.resting), Leaving: int(c.Leaving), Apart: int(c.Parked)}
	if c.Free == 0 && c.Leased == 0 {
		d.n.Pool.Endless = d.endless
	}
}
