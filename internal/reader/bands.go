package reader

import (
	"slices"

	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/keyspace"
)

// bands are what a line says of a name without records: the parts of it, by their scores. Each has as many members as are
// looked at, beside how many there are.
type bands struct {
	gone                              bool     // the line is: somebody has deleted it
	waits, apart                      []member // who waits in the line, and for one resource
	line, lanes                       []member // all of those that were read
	over, live                        []member // holds that have expired, and those that live
	rests, resting, expiries, leaving []member // of a pool: rests that have ended and those that go on; resources that have expired, and those that will
	waitsAll, apartAll                int
	overAll, liveAll                  int
	restingAll, expiriesAll           int
	damaged                           []member // of all
}

// asking is where the answers are to what a line is asked.
type asking struct {
	whole                                 int
	top, waits, waitsAll, apart, apartAll int
	holds, holdsAll, over, overAll        int
	rests, resting, expiries, leaving     int
	restingAll, expiriesAll               int
	lane                                  int64 // up to which the first in line is read alone
}

// nothing is asked.
func nothing() asking {
	return asking{-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0}
}

// askLine asks for the bands.
func (f *fat) askLine(p *trip) {
	f.asking = nothing()
	switch a := &f.asking; {
	case f.form == nil || f.form.plain || f.snap == nil && !f.knows():
		a.plain(f, p)
	case f.form.apart == 0:
		to := int64(state.Holds + state.Forever)
		if f.pool != nil {
			to = state.Expiries + state.Forever - 1
		}
		a.whole = p.ranged(f.line, 0, to, f.whole()+1)
	default:
		a.parts(f, p)
	}
}

// plain asks band by band: of what time it is, is known.
func (a *asking) plain(f *fat, p *trip) {
	now, forever := state.Holds+f.now, int64(state.Holds+state.Forever)
	over, live := f.most()
	a.top, a.lane = p.ranks(f.line, 0, 1), state.LastLane
	a.overAll, a.holdsAll = p.count(f.line, state.Holds, now), p.count(f.line, now+1, forever)
	if over > 0 {
		a.over = p.ranged(f.line, state.Holds, now, over)
	}
	a.holds = p.ranged(f.line, now+1, forever, live)
	if f.pool != nil {
		a.rests = p.ranged(f.line, state.Rests, state.Rests+f.now, f.k)
		a.expiries = p.ranged(f.line, state.Expiries, state.Expiries+f.now, f.k)
		a.restingAll = p.count(f.line, state.Rests+f.now+1, state.Rests+state.Forever)
		a.expiriesAll = p.count(f.line, state.Expiries, state.Expiries+f.now)
	}
	if f.snap == nil {
		return
	}
	a.waits, a.waitsAll = p.ranged(f.line, 0, state.LastLane, f.snap.most), p.count(f.line, 0, state.LastLane)
	if f.pool != nil {
		a.apart, a.apartAll = p.ranged(f.line, state.LastLane+1, state.Holds-1, f.snap.most), p.count(f.line, state.LastLane+1, state.Holds-1)
		a.resting = p.ranged(f.line, state.Rests+f.now+1, state.Rests+state.Forever, snapRests)
		a.leaving = p.ranged(f.line, state.Expiries+f.now+1, state.Expiries+state.Forever-1, snapLeave)
	}
}

// parts asks for bands together as far as each of them has room: the time is not known yet.
func (a *asking) parts(f *fat, p *trip) {
	from := int64(state.Holds)
	if a.lane = state.LastLane; f.snap == nil && f.pool == nil && f.form.lane > 0 {
		a.lane, from = f.form.lane, f.form.lane+1
	}
	a.waits = p.ranged(f.line, 0, a.lane, f.need(f.k+1))
	a.holds = p.ranged(f.line, from, state.Holds+state.Forever, 2*f.k+1)
	if f.form.many {
		a.holdsAll = p.count(f.line, state.Holds, state.Holds+state.Forever)
	}
	if f.pool != nil {
		a.apart = p.ranged(f.line, state.LastLane+1, state.Holds-1, f.need(f.k+1))
		a.rests, a.restingAll = p.ranged(f.line, state.Rests, state.Rests+state.Forever, 2*f.k+1), p.count(f.line, state.Rests, state.Rests+state.Forever)
		a.expiries = p.ranged(f.line, state.Expiries, state.Expiries+state.Forever-1, 2*f.k+1)
	}
}

// whole is up to how many members a line is read as a whole.
func (f *fat) whole() int {
	if f.snap == nil {
		return wholeRow
	}
	return wholeLine
}

// need is how many of a band a reading needs: a row is content with the first one.
func (f *fat) need(n int) int {
	if f.snap == nil {
		return 1
	}
	return n
}

// most is how many holds are looked at, of those that have expired and of those that live. Of a lock the group says who holds
// beside the first.
func (f *fat) most() (over, live int) {
	if f.kind == keyspace.Lock && f.snap == nil {
		return 0, 1
	}
	return f.k, f.k
}

// hearLine takes the answers. The error is errMore where a band has no room.
func (f *fat) hearLine(p *trip, v *state.Values, c *state.Counts) (b bands, err error) {
	a := &f.asking
	switch {
	case a.top >= 0:
		b = f.hearPlain(p)
	case a.whole >= 0:
		all := p.members(a.whole)
		if len(all) > f.whole() {
			f.form.apart = apartFor
			return b, errMore
		}
		b = f.split(all)
	default:
		if b, err = f.hearParts(p, v, c); err != nil {
			return b, err
		}
	}
	if m := f.form; m != nil && p.err == nil {
		if f.snap == nil && a.top < 0 && b.gone && (v.Used != 0 || v.Waiting != 0 || c.Parked != 0) {
			return b, errMore // the line is lost, or has something else
		}
		all := max(int(v.Waiting), b.waitsAll+b.apartAll) + b.overAll + b.liveAll + len(b.rests) + b.restingAll + b.expiriesAll + len(b.leaving)
		if m.fat, m.plain, m.many, m.apart = true, false, b.overAll+b.liveAll > 2*f.k, max(m.apart-1, 0); all > f.whole() {
			m.apart = apartFor
		}
	}
	b.waits, b.apart = b.waits[:min(len(b.waits), f.k)], b.apart[:min(len(b.apart), f.k)]
	over, live := f.most()
	b.over, b.live = b.over[:min(len(b.over), over)], b.live[:min(len(b.live), live)]
	b.rests, b.expiries = b.rests[:min(len(b.rests), f.k)], b.expiries[:min(len(b.expiries), f.k)]
	b.resting, b.leaving = b.resting[:min(len(b.resting), snapRests)], b.leaving[:min(len(b.leaving), snapLeave)]
	if f.snap == nil {
		b.resting, b.leaving = nil, nil
	}
	b.sound()
	return b, nil
}

// sound takes the members out of the bands that are damaged: of holds and waits they are told. Where a rest or an expiry is
// damaged, its resource tells of it.
func (b *bands) sound() {
	take := func(band *[]member, all *int, behind func(string) (string, error)) []member {
		own, _, damaged := sound(*band, behind)
		*band, *all = own, *all-len(damaged)
		return damaged
	}
	var none int
	b.damaged = slices.Concat(take(&b.live, &b.liveAll, claimHeld), take(&b.waits, &b.waitsAll, claimPlaced), take(&b.apart, &b.apartAll, claimPlaced))
	take(&b.over, &b.overAll, claimHeld)
	take(&b.rests, &none, resourceResting)
	take(&b.resting, &b.restingAll, resourceResting)
	take(&b.expiries, &b.expiriesAll, resourceLeaving)
	take(&b.leaving, &none, resourceLeaving)
}

func (f *fat) hearPlain(p *trip) (b bands) {
	count := func(i int) int {
		if i < 0 {
			return 0
		}
		return int(p.int(i))
	}
	a := &f.asking
	b.waits, b.apart, b.over, b.live = p.members(a.waits), p.members(a.apart), p.members(a.over), p.members(a.holds)
	b.rests, b.resting, b.expiries, b.leaving = p.members(a.rests), p.members(a.resting), p.members(a.expiries), p.members(a.leaving)
	b.waitsAll, b.apartAll, b.overAll, b.liveAll = count(a.waitsAll), count(a.apartAll), count(a.overAll), count(a.holdsAll)
	b.restingAll, b.expiriesAll = count(a.restingAll), count(a.expiriesAll)
	top := p.members(a.top)
	if b.gone = len(top) == 0; !b.gone && top[0].score <= state.LastLane {
		b.line = top
	}
	return b
}

// split divides a line that was read as a whole. It has no members but those of the bands, so one of a name that nobody
// holds or waits for seems to be gone: that comes to the same.
func (f *fat) split(all []member) (b bands) {
	within := func(from, to int64) []member {
		low, _ := slices.BinarySearchFunc(all, from, byScore)
		high, _ := slices.BinarySearchFunc(all, to+1, byScore)
		return all[low:max(low, high)]
	}
	b.waits, b.apart = within(0, state.LastLane), within(state.LastLane+1, state.Holds-1)
	b.line, b.lanes = b.waits, b.apart
	b.over, b.live = within(state.Holds, state.Holds+f.now), within(state.Holds+f.now+1, state.Holds+state.Forever)
	b.rests, b.resting = within(state.Rests, state.Rests+f.now), within(state.Rests+f.now+1, state.Rests+state.Forever)
	b.expiries, b.leaving = within(state.Expiries, state.Expiries+f.now), within(state.Expiries+f.now+1, state.Expiries+state.Forever-1)
	b.waitsAll, b.apartAll, b.overAll, b.liveAll = len(b.waits), len(b.apart), len(b.over), len(b.live)
	b.restingAll, b.expiriesAll = len(b.resting), len(b.expiries)
	b.gone = b.waitsAll+b.apartAll+b.overAll+b.liveAll == 0
	return b
}

func byScore(m member, score int64) int {
	switch {
	case m.score < score:
		return -1
	case m.score > score:
		return 1
	}
	return 0
}

// hearParts takes bands that were asked for together. How many wait, the state says.
func (f *fat) hearParts(p *trip, v *state.Values, c *state.Counts) (b bands, err error) {
	a, room := &f.asking, 2*f.k+1
	waits, apart, holds, rests, expiries := p.members(a.waits), p.members(a.apart), p.members(a.holds), p.members(a.rests), p.members(a.expiries)
	b = f.split(slices.Concat(waits, apart, holds, rests, expiries))
	if len(waits) == f.need(f.k+1) {
		b.waitsAll = max(int(v.Waiting-c.Parked), len(waits))
	}
	if len(apart) == f.need(f.k+1) {
		b.apartAll = max(int(c.Parked), len(apart))
	}
	if len(holds) == room {
		if a.holdsAll < 0 || len(b.live) < f.k {
			f.form.many = true
			return b, errMore
		}
		b.liveAll = int(p.int(a.holdsAll)) - b.overAll
	}
	if len(rests) == room {
		if len(b.resting) < f.need(snapRests) {
			return b, errMore
		}
		b.restingAll = int(p.int(a.restingAll)) - len(b.rests)
	}
	if len(expiries) == room && len(b.leaving) < f.need(snapLeave) {
		return b, errMore
	}
	return b, nil
}
