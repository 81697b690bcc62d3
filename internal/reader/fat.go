package reader

import (
	"slices"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/keyspace"
)

// lanes is of how many priorities the first in line is read.
const lanes = 8

// row reads the name, up to k of its holds. still is false where it moved meanwhile.
func (t *turn) row(k int) (n Row, still bool, err error) {
	if t.kind == keyspace.Once {
		n.Runs, err = t.runs()
		return n, true, err
	}
	text, thin, err := t.text()
	if err != nil {
		return n, false, err
	} else if thin {
		n, err = t.slight(text)
		return n, true, err
	}
	still, err = t.fat(&n, k, nil)
	return n, still, err
}

// fat reads a fat name, and with it what snap adds if that is not nil.
func (t *turn) fat(n *Row, k int, snap *snap) (still bool, err error) {
	f := fat{turn: t, n: n, k: k, state: t.key(keyspace.StatePart), line: t.key(keyspace.LinePart), snap: snap}
	if t.kind == keyspace.Pool {
		f.pool = &dues{fat: &f}
	}
	if snap != nil {
		snap.fat = &f
	}
	there, err := f.begin()
	if err == nil && there {
		err = f.look()
	}
	for err == nil && there && (len(f.firsts) > 0 || f.pool != nil && f.pool.more() || snap != nil && snap.more()) {
		err = f.lookOn()
	}
	if err != nil || !there {
		return true, err
	}
	if f.pool != nil {
		f.pool.count()
	}
	if f.form != nil {
		f.form.lane = f.last
	}
	return f.before.still(f.after), nil
}

// fat is the reading of a fat name.
type fat struct {
	*turn
	n             *Row
	k             int
	state, line   string // keys
	before, after marks

	asking asking
	bands  bands
	live   int64
	holds  []member // that live, up to k; of a lock the first
	over   []member // of a semaphore or a pool those that have expired, up to k
	firsts []member // the first of each of the next lanes of the line
	more   bool     // there may be lanes behind these
	last   int64    // the last lane, 0 for unknown
	pool   *dues    // of a pool
	told   []int64  // the lanes whose first was told
	snap   *snap    // what else is read, nil for nothing
}

// begin reads the values and what the line says without records. there is false for a name that is not
// there.
func (f *fat) begin() (there bool, err error) {
	var p trip
	values, pause := p.marks(f.turn), p.fields(f.state, "", "pause")
	if f.snap != nil {
		f.snap.ask(&p)
	}
	f.askLine(&p)
	if err := f.ask(&p); err != nil {
		return false, err
	}
	if f.before, there, err = f.read(&p, values); err != nil || !there {
		if f.form != nil {
			f.form.fat = false
		}
		return there, err
	}
	v, c := &f.before.values, &f.before.counts
	if f.bands, err = f.hearLine(&p, v, c); err != nil {
		return false, err
	}
	if b := &f.bands; b.gone { // what it had is gone
		v.Used, v.Waiting, c.Parked = 0, 0, 0
	} else if f.snap == nil {
		f.firsts = slices.CompactFunc(slices.Clone(b.line), func(a, b member) bool { return a.score == b.score })
		if len(f.firsts) > 0 && f.firsts[0].score < f.asking.lane {
			f.firsts, f.more = f.firsts[:1], true
		}
	}
	f.live, f.holds, f.over = int64(f.bands.liveAll), f.bands.live, f.bands.over
	if f.kind == keyspace.Lock {
		f.holds, f.over = f.holds[:min(len(f.holds), 1)], nil // the group says who else holds
	}
	n := f.n
	n.Capacity, n.Waiting, n.Expired = int(v.Capacity), int(max(v.Waiting, 0)), f.bands.overAll
	n.Fence, n.Revision, n.Holders = v.Fence, v.Revision, int(f.live)
	n.Partial = f.kind != keyspace.Lock && f.live > int64(f.k)
	n.Own = f.pauseOf(v, p.texts(pause)[0])
	if f.pool != nil {
		f.pool.hear()
	}
	if f.snap != nil {
		f.snap.hear(&p)
	}
	return true, p.err
}

// look reads the records.
func (f *fat) look() error {
	var p trip
	entries, claims := f.entries()
	records, scores := p.fields(f.state, "c:", claims...), p.scores(f.line, "h:", claims...)
	weights := -1
	if f.kind == keyspace.Sem && f.weighs() {
		weights = p.fields(f.state, "c:", claimsOf(f.over)...)
	}
	if f.pool != nil {
		f.pool.look(&p)
	}
	if f.snap != nil {
		f.snap.look(&p)
	}
	wait := f.askLanes(&p)
	values := p.marksLast(f.turn)
	if err := f.ask(&p); err != nil {
		return err
	}
	found := f.holders(claims, p.texts(records), p.at(scores))
	f.n.Entries = found
	f.n.longest(found)
	switch f.kind {
	case keyspace.Sem:
		f.weigh(p.texts(weights))
	case keyspace.Lock:
		f.lock(entries, found)
	case keyspace.Pool:
		f.pool.heed(&p)
	}
	if f.snap != nil {
		f.snap.heed(&p)
	}
	f.hearLanes(&p, wait)
	return f.end(&p, values)
}

// lookOn reads the next lane, and what is known of the resources of ended holds.
func (f *fat) lookOn() error {
	var p trip
	if f.pool != nil {
		f.pool.lookOn(&p)
	}
	if f.snap != nil {
		f.snap.lookOn(&p)
	}
	wait := f.askLanes(&p)
	values := p.marksLast(f.turn)
	if err := f.ask(&p); err != nil {
		return err
	}
	if f.pool != nil {
		f.pool.heedOn(&p)
	}
	if f.snap != nil {
		f.snap.heedOn(&p)
	}
	f.hearLanes(&p, wait)
	return f.end(&p, values)
}

// end takes note of what is there now.
func (f *fat) end(p *trip, values int) error {
	var err error
	if f.after, _, err = f.read(p, values); err != nil {
		return err
	}
	return p.err
}

// claimsOf are the claims of holds that are all sound.
func claimsOf(holds []member) []string { return namesOf(holds, claimHeld) }

// weighs says whether what is held cannot be told without the weights of what has expired; see weigh.
func (f *fat) weighs() bool {
	return f.n.Expired > 0 && f.live > 0 && f.before.values.Used > f.live+int64(f.n.Expired)
}

// weigh tells how much is held: what is counted, less what has expired. Of that what was not read counts as 1 each.
func (f *fat) weigh(expired []string) {
	used := f.before.values.Used
	switch {
	case f.live == 0:
		used = 0
	case f.n.Expired == 0:
	case !f.weighs(): // all weigh 1
		used = f.live
	default:
		used -= int64(f.n.Expired - len(expired))
		f.n.Partial = f.n.Partial || f.n.Expired > len(expired)
		for _, text := range expired {
			if r, err := state.ParseRecord(text); err == nil {
				used -= int64(r.Weight)
			}
		}
	}
	f.n.Held = int(max(used, 0))
}

// holders are the holds that live, as the records and the scores of one trip have them. One without a record
// has ended.
func (f *fat) holders(claims, records []string, scores []int64) []Found[berth.Holder] {
	var found []Found[berth.Holder]
	for i, claim := range claims {
		if ends := deadline(scores[i]); ends > f.now && isHold(records[i]) {
			h, err := Holder(f.name, claim, f.at(), ends, records[i])
			found = append(found, Found[berth.Holder]{Entry: h, Err: err, at: member{state.Hold(claim), scores[i]}})
		}
	}
	return found
}

// isHold says that a text may be the record of a hold: it is neither that of a claim that waits nor a tombstone.
func isHold(text string) bool { return text != "" && !state.Waits(text) && text[0] != '!' }

// lanePlaces are the answers to askLanes.
type lanePlaces struct{ records, next int }

// askLanes asks for the records of the firsts of lanes, and for the next lane.
func (f *fat) askLanes(p *trip) lanePlaces {
	at := lanePlaces{p.fields(f.state, "c:", namesOf(f.firsts, claimPlaced)...), -1}
	if at.records >= 0 && f.more {
		at.next = p.ranged(f.line, f.firsts[len(f.firsts)-1].score+1, state.LastLane, 1)
	}
	return at
}

// tellFirst notes the first of a lane. Two lanes are one priority: of the second one its first is told where the first
// has nobody.
func (f *fat) tellFirst(lane int64, claim, text string) {
	again := len(f.told) > 0 && f.told[len(f.told)-1]/2 == lane/2
	if w, _, err := Waiter(f.name, claim, f.at(), text); err == nil && !again {
		f.n.First = append(f.n.First, w)
		f.n.deadIf(&w)
		f.told = append(f.told, lane)
	}
}

// tellFirsts notes the first of each lane, of a line that was read with its records.
func (f *fat) tellFirsts(line []member, records []string, left bool) {
	f.n.Partial = f.n.Partial || left
	for i, m := range line {
		if i > 0 && line[i-1].score == m.score {
			continue
		}
		if len(f.n.First) >= lanes {
			f.n.Partial = true
			return
		}
		if _, claim, ok := state.PlaceOf(m.name); ok {
			f.tellFirst(m.score, claim, records[i])
		}
	}
}

// hearLanes notes the firsts of lanes, and goes on to the next lane. It ends with one that is damaged.
func (f *fat) hearLanes(p *trip, at lanePlaces) {
	firsts, next, records := f.firsts, p.members(at.next), p.texts(at.records)
	f.firsts = nil
	for i, m := range slices.Concat(firsts, next) {
		if len(f.n.First) >= lanes {
			f.n.Partial, f.last = true, 0
			return
		} else if i == len(firsts) {
			f.firsts = next
			return
		}
		_, claim, ok := state.PlaceOf(m.name)
		if !ok {
			f.last = 0
			return
		}
		f.last = m.score
		f.tellFirst(m.score, claim, records[i])
	}
}

// Holder makes a holder of a claim's record and its deadline (ms by the server's clock, which says now). The
// error is state.ErrDamaged.
func Holder(name, id string, now time.Time, ends int64, text string) (berth.Holder, error) {
	r, err := state.ReadRecord(name, id, text)
	if err != nil {
		return berth.Holder{ID: id}, err
	}
	left := berth.Forever
	if ends < state.Forever {
		left = state.Millis(max(ends-now.UnixMilli(), 0))
	}
	wait := r.Wait
	if r.Lease <= wait {
		wait = 0
	}
	return berth.Holder{
		ID: id, Node: r.Node, Label: r.Label, Owner: r.Owner, Weight: r.Weight, Fence: r.Fence, Lease: r.Lease, Left: left, WaitLease: wait,
		NoRenew: r.NoRenew, MaxHold: r.MaxHold, Granted: r.Granted, Held: max(now.Sub(r.Granted), 0),
		Wanted: r.WantedFor(now), Detached: r.Phase == 'd', ZombieAfter: r.ZombieAfter, Meta: r.Meta,
	}, nil
}

// Waiter makes a waiter of a claim's record, which it returns, too. The error is state.ErrDamaged; of a
// claim that does not wait any more, too.
func Waiter(name, id string, now time.Time, text string) (w berth.Waiter, r state.Record, err error) {
	r, err = state.ReadRecord(name, id, text)
	if err == nil && r.Phase != 'w' {
		err = state.ErrDamaged
	}
	if err != nil {
		return berth.Waiter{ID: id}, r, err
	}
	since := time.UnixMilli(r.Ticket)
	return berth.Waiter{
		ID: id, Node: r.Node, Label: r.Label, Owner: r.Owner, Weight: r.Weight, Priority: r.Priority,
		Since: since, Waited: max(now.Sub(since), 0), Alive: max(r.Alive().Sub(now), 0), Meta: r.Meta,
	}, r, nil
}
