package heartbeat

import (
	"context"
	"time"

	"github.com/berth-go/berth/internal/gate"
)

// flush is batches of several lanes that are sent by one call of Beat.
type flush struct {
	batches []*batch
	leases  int // in all of them
	from    *door
	weight  int // at the door's gate
	open    int // guarded by Engine.mu: how many have neither landed nor count as unanswered
	start   time.Duration
	until   time.Duration // how long an answer to any of them may be of use
}

// departed is what is known of the last flush, and of those that were sent with it.
type departed struct {
	start  time.Duration
	leases int
}

const (
	// mostInAFlush is how many batches a flush has at the most.
	mostInAFlush = 50
	// shareOfABatch is how long the server may take for a batch, so that the answers
	// to all of a flush, which may come with the last one, do not come too late. Those
	// who have very short leases therefore share little.
	shareOfABatch = 3 * time.Millisecond
	// crowd is how many batches may be in flight before others wait for answers.
	crowd = 4 * mostInAFlush
)

// full reports whether the flush takes no more batches of its track, where a batch may
// have size leases.
func (f *flush) full(t track, size int) bool {
	shares := int(t.shortest() / 6 / shareOfABatch)
	return len(f.batches) >= min(shares, mostInAFlush) || f.leases >= size
}

// door has the lanes that send their batches through one gate, or through none. Engine.mu guards it.
type door struct {
	gate *gate.Gate // nil for holds, and where nothing bounds what waits
	shut bool       // the gate has no room: it tells when it has
	away int        // batches in flight that have come from here, and do not count as unanswered yet
	last departed
	// ready has the lanes with leases that are not in flight, by when they send
	// their next batch.
	ready order[*lane]
}

func newDoor(g *gate.Gate) *door {
	return &door{gate: g, ready: order[*lane]{
		at:   func(ln *lane) time.Duration { return ln.at },
		slot: func(ln *lane) *int32 { return &ln.slot },
	}}
}

// doorOf is the door of a track, made where there is none yet.
func (e *Engine) doorOf(t track) *door {
	if !t.waits || e.gate == nil {
		return e.doors[0]
	}
	g := e.gate(t.key)
	for _, d := range e.doors {
		if d.gate == g {
			return d
		}
	}
	d := newDoor(g)
	g.Heartbeats(e.stir)
	e.doors = append(e.doors, d)
	return d
}

// admits reports whether a flush may start: holds' may always.
func (d *door) admits() bool {
	d.shut = d.gate != nil && !d.gate.Admit()
	return !d.shut
}

// interval is how long after a beat the next one of a lease of that pace is due. A claim that
// waits has it later while answers are late, so that the server has less to do.
func (d *door) interval(pace time.Duration) time.Duration {
	if d.gate != nil && d.gate.Strained() {
		return pace / 2
	}
	return pace / 3
}

// departure is when the next flush is to start: when the first lane may send its next batch,
// if its gate has room.
func (e *Engine) departure() time.Duration {
	at := never
	for _, d := range e.doors {
		if !d.shut {
			at = min(at, e.departs(d))
		}
	}
	return at
}

// departs is when the next flush from a door is to start, but for its gate.
//
// While a crowd is in flight it waits for answers, but no longer than it may: until the
// engine is behind the pace that renews all leases in a third of their length. If all that
// is due after a pause of the machine were sent at once, the server could answer the last
// of it so late that it would be sent again, and would have even more to do. A batch
// that is never answered holds up no others.
func (e *Engine) departs(d *door) time.Duration {
	ln, ok := d.ready.first()
	if !ok {
		return never
	}
	at := ln.at
	if l, _ := ln.due.first(); d.gate == nil && d.away >= crowd {
		at = max(at, d.last.start+l.spec.pace()/3/time.Duration(e.kept)*time.Duration(d.last.leases))
	}
	return at
}

// depart sends what is due now, holds first. It is called with mu held.
func (e *Engine) depart(now time.Duration) {
	for _, d := range e.doors {
		for _, f := range e.flushes(d, now) {
			e.tasks.Go(func() { e.fly(f) })
		}
		if d.gate != nil && !d.shut {
			d.gate.Waive()
		}
	}
}

// flushes takes what is due now, and the lanes behind it in the order that may go along. It stops
// at the first lane that may not go yet, or at whose pace nothing goes: there may be others behind
// that one, but to find them would cost a walk through all lanes.
func (e *Engine) flushes(d *door, now time.Duration) (all []*flush) {
	d.shut = false
	var open [tracks]*flush // those with room, by the bits of their paces
	for {
		ln, ok := d.ready.first()
		if !ok {
			return all
		}
		bits := ln.track.bits
		f := open[bits]
		if f == nil && (e.departs(d) > now || !d.admits()) || f != nil && ln.at > now && !ln.goesAlong(now) {
			return all
		}
		if f == nil {
			f = &flush{from: d, start: now}
			d.last = departed{start: now}
			all, open[bits] = append(all, f), f
		}
		b := e.gather(ln, now)
		f.add(b)
		d.last.leases += len(b.Leases)
		if f.full(ln.track, e.size) {
			open[bits] = nil
		}
	}
}

func (f *flush) add(b *batch) {
	b.flush = f
	f.from.away++
	f.batches, f.open = append(f.batches, b), f.open+1
	if f.from.gate != nil {
		weight := gate.Beat(len(b.Leases))
		f.weight += weight
		f.from.gate.Take(weight)
	}
	f.leases += len(b.Leases)
	f.until = max(f.until, b.until)
}

// goesAlong reports whether a lane may send its next batch now, since others send theirs.
func (ln *lane) goesAlong(now time.Duration) bool {
	l, ok := ln.due.first()
	return ok && !ln.waits() && l.due-l.along() <= now
}

// fly sends a flush on its own goroutine.
func (e *Engine) fly(f *flush) {
	ctx, cancel := context.WithTimeout(e.ctx, f.until)
	defer cancel()
	batches := make([]Batch, len(f.batches))
	for i, b := range f.batches {
		batches[i] = b.Batch
	}
	e.beat(ctx, batches, func(i int, outcomes []Outcome, err error) {
		e.do(e.land(f.batches[i], outcomes, err))
	})
	for _, b := range f.batches {
		e.do(e.land(b, nil, ErrNoAnswer)) // unless it was answered
	}
	if e.over != nil && e.ctx.Err() == nil {
		e.over(f.flown())
	}
}

// back counts a batch that has landed, or counts as unanswered.
func (f *flush) back() {
	f.from.away--
	if f.open--; f.open == 0 && f.from.gate != nil {
		f.from.gate.Leave(f.weight, f.start)
	}
}

// flown is what became of a flush whose batches have all landed.
func (f *flush) flown() (all Flown) {
	for _, b := range f.batches {
		all.Late = max(all.Late, b.behind)
		if b.err == nil {
			all.Answered += len(b.Leases)
		} else {
			all.Unanswered += len(b.Leases)
			all.Err = b.err
		}
	}
	return all
}
