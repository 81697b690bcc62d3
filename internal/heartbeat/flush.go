package heartbeat

import (
	"context"
	"time"
)

// flush is batches of several lanes that are sent by one call of Beat.
type flush struct {
	batches []*batch
	leases  int           // in all of them
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

// departure is when the next flush is to start: when the first lane may send its next batch.
//
// While a crowd is in flight it waits for answers, but no longer than it may: until the
// engine is behind the pace that renews all leases in a third of their length. If all that
// is due after a pause of the machine were sent at once, the server could answer the last
// of it so late that it would be sent again, and would have even more to do. A batch
// that is never answered holds up no others.
func (e *Engine) departure() time.Duration {
	ln, ok := e.ready.first()
	if !ok {
		return never
	}
	at := ln.at
	if l, _ := ln.due.first(); e.flights.Len() >= crowd {
		at = max(at, e.last.start+l.spec.pace()/3/time.Duration(e.kept)*time.Duration(e.last.leases))
	}
	return at
}

// depart sends what is due now, and the lanes behind it in the order that may go along. It stops
// at the first lane that may not go yet, or at whose pace nothing goes: there may be others behind
// that one, but to find them would cost a walk through all lanes.
//
// It is called with mu held.
func (e *Engine) depart(now time.Duration) {
	var all []*flush
	var open [tracks]*flush // those with room, by the bits of their paces
	for {
		ln, ok := e.ready.first()
		if !ok {
			break
		}
		bits := ln.track.bits
		f := open[bits]
		if f == nil && e.departure() > now || f != nil && ln.at > now && !ln.goesAlong(now) {
			break
		}
		if f == nil {
			f = &flush{}
			e.last = departed{start: now}
			all, open[bits] = append(all, f), f
		}
		b := e.gather(ln, now)
		f.add(b)
		e.last.leases += len(b.Leases)
		if f.full(ln.track, e.size) {
			open[bits] = nil
		}
	}
	for _, f := range all {
		e.tasks.Go(func() { e.fly(f) })
	}
}

func (f *flush) add(b *batch) {
	f.batches = append(f.batches, b)
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
