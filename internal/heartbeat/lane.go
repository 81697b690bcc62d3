package heartbeat

import (
	"fmt"
	"math/bits"
	"time"
)

// track names a lane: a key, how many bits the milliseconds of a pace have, and whether
// the claims wait. Those who hold go before those who wait, so no batch has both.
// Leases of quite another pace go by themselves: a batch counts as unanswered by
// the shortest pace in it, and one that is too tight for the network must cost no
// other its beats.
type track struct {
	key   string
	bits  int
	waits bool
}

// tracks is above the bits of every pace: the longest has 44.
const tracks = 45

func (s *Spec) track(key string) track {
	return track{key, bits.Len64(uint64(s.pace() / time.Millisecond)), !s.Ends}
}

// shortest is the shortest pace of a track.
func (t track) shortest() time.Duration { return 1 << (t.bits - 1) * time.Millisecond }

// lane is the leases of one track. Engine.mu guards it.
type lane struct {
	track  track
	leases int           // registered, in flight or not
	due    order[*Lease] // those that are not in flight
	flying int           // batches in flight that do not count as unanswered yet
	kicks  uint32        // how often Kick came
	full   bool          // the last batch was a full one
	start  time.Duration // of the last batch
	at     time.Duration // when the next batch is to start
	door   *door
	slot   int32 // in door.ready; 0 when it has nothing to send
}

// batch is leases of a lane that are renewed together. Engine.mu guards landed, late, err and
// slot; the rest does not change while it flies.
type batch struct {
	Batch
	lane   *lane
	flush  *flush
	start  time.Duration
	limit  time.Duration // when it counts as unanswered
	until  time.Duration // how long its answer may take to be of any use
	taken  []taken       // of the leases, when they were taken
	behind time.Duration // how long after it was due the first of them is sent
	kicks  uint32        // of the lane, then
	late   bool          // it counts as unanswered: its leases are not in flight with it any more
	landed bool          // it was answered
	err    error         // that it was not, or not in time
	slot   int32         // in Engine.flights; 0 when it is late, or back
}

// taken is what a lease was when a batch took it.
type taken struct{ epoch, changes uint32 }

func newLane(t track, d *door) *lane {
	return &lane{track: t, door: d, due: order[*Lease]{
		at:   func(l *Lease) time.Duration { return l.due },
		slot: func(l *Lease) *int32 { return &l.dueSlot },
	}}
}

// next is when the next batch is to start: when the first lease is due. A lane
// that fills its batches may start one before, once its leases can be taken
// along, but not more often than it has to on average. So leases that became
// due together spread over time, instead of coming in one burst ever after.
//
// While a batch is in flight the next one waits for its answer, but no longer than
// it may: until the lane is behind the pace that renews all its leases in a third
// of their length, or until one of them is urgent. So a lane has as many batches
// in flight as the round trip needs, and one where that is short.
func (ln *lane) next(size int) time.Duration {
	l, ok := ln.due.first()
	if !ok {
		return never
	}
	at, follows := l.due, ln.follows(l, size)
	if ln.full {
		at = min(at, max(follows, l.due-l.window()))
	}
	if ln.flying > 0 {
		at = max(at, min(follows, l.urgent()))
	}
	return at
}

// follows is when the lane starts the batch after its last one, if it renews all its
// leases, like l, once in a third of their length. One batch for all is followed by
// none.
func (ln *lane) follows(l *Lease, size int) time.Duration {
	if ln.leases <= size {
		return never
	}
	return ln.start + l.spec.pace()/3/time.Duration(ln.leases)*time.Duration(size)
}

// waits reports whether the lane may send its next batch at no other moment than that of
// next: another one is in flight, or it spreads its batches over time.
func (ln *lane) waits() bool { return ln.flying > 0 || ln.full }

// The methods below are called with mu held, but for land.

// enter puts a registered lease into its lane, and where its next event belongs.
func (e *Engine) enter(l *Lease) {
	e.join(l)
	e.schedule(l)
}

// join puts a lease into the lane of its key and pace.
func (e *Engine) join(l *Lease) {
	t := l.spec.track(l.key)
	ln := e.lanes[t]
	if ln == nil {
		ln = e.lane(t)
		e.lanes[t] = ln
	}
	ln.leases++
	e.kept++
	l.lane = ln
	ln.due.set(l)
	e.place(ln)
}

// leave takes a lease out of its lane.
func (e *Engine) leave(l *Lease) {
	ln := l.lane
	l.lane = nil
	ln.leases--
	e.kept--
	ln.due.drop(l)
	e.place(ln)
}

// reorder follows a change of when a lease is due, or of its pace. One that is in
// flight is put back when its batch is.
func (e *Engine) reorder(l *Lease) {
	if l.dueSlot != 0 {
		e.queue(l)
	}
}

// queue puts a lease where it belongs by its pace, and by when it is due.
func (e *Engine) queue(l *Lease) {
	if l.spec.track(l.key) != l.lane.track {
		e.leave(l)
		e.join(l)
		return
	}
	l.lane.due.set(l)
	e.place(l.lane)
}

// kick makes the leases of a lane due now.
func (e *Engine) kick(ln *lane, now time.Duration) {
	ln.kicks++
	for _, l := range ln.due.items {
		l.due = min(l.due, now) // none passes another, so the order stays one
	}
	e.place(ln)
}

// place puts a lane where it belongs after a change of its leases, of when they are due, or of
// what is in flight.
func (e *Engine) place(ln *lane) {
	ln.at = ln.next(e.size)
	if ln.at == never {
		ln.door.ready.drop(ln)
	} else {
		ln.door.ready.set(ln)
	}
	if ln.leases == 0 && ln.flying == 0 {
		delete(e.lanes, ln.track)
		e.spare = ln
	}
}

// lane returns an empty one for a track: the one that was left last, if nobody has
// taken it yet. With an uncontended lock every lease has a lane of its own.
func (e *Engine) lane(t track) *lane {
	ln := e.spare
	if ln == nil {
		return newLane(t, e.doorOf(t))
	}
	e.spare = nil
	*ln = lane{track: t, door: e.doorOf(t), due: ln.due}
	return ln
}

// gather takes the batch that a lane sends now: what is due, the oldest first,
// and what is due soon. It stops at the first lease that is not: one far behind
// it may be, but finding it would cost a walk through all of them.
func (e *Engine) gather(ln *lane, now time.Duration) *batch {
	b := &batch{Batch: Batch{Key: ln.track.key}, lane: ln, start: now, limit: e.patience, kicks: ln.kicks}
	for len(b.Leases) < e.size {
		l, ok := ln.due.first()
		if !ok || l.due-l.window() > now {
			break
		}
		ln.due.drop(l)
		b.behind = max(b.behind, now-l.due)
		l.hurried = false
		l.lower(now)
		e.schedule(l)
		b.Leases = append(b.Leases, l)
		b.taken = append(b.taken, taken{l.epoch, l.changes})
		b.limit = min(b.limit, l.spec.pace()/6)
		b.until = max(b.until, l.spec.pace())
	}
	ln.start, ln.full = now, len(b.Leases) == e.size
	ln.flying++
	e.place(ln)
	e.flights.set(b)
	return b
}

// land takes in the answer to a batch. If its lane has more that is due, the
// timing goroutine is woken and sends it.
func (e *Engine) land(b *batch, outcomes []Outcome, err error) (calls []call) {
	if err == nil && len(outcomes) != len(b.Leases) {
		err = fmt.Errorf("heartbeat: %d outcomes for %d leases", len(outcomes), len(b.Leases))
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if b.landed {
		return nil
	}
	b.landed = true
	if b.err = err; err == nil && b.late {
		b.err = ErrNoAnswer
	}
	now := e.clock.Now()
	// First of all: no answer that comes too late may revive a hold.
	calls = e.sweep(now)
	early := e.rand() / 10
	for i, l := range b.Leases {
		switch {
		case l.epoch != b.taken[i].epoch: // removed, over, or added anew
		case err == nil:
			e.answered(l, b, i, outcomes[i], early, now)
		case !b.late:
			calls = e.failed(calls, l, b, err, now)
		}
	}
	if !b.late {
		e.back(b)
	}
	e.rouse(now)
	return calls
}

// miss counts a batch as unanswered: its leases are sent again. Its answer, if it
// comes, still counts.
func (e *Engine) miss(calls []call, b *batch, now time.Duration) []call {
	b.late = true
	for i, l := range b.Leases {
		if l.epoch == b.taken[i].epoch {
			calls = e.failed(calls, l, b, ErrNoAnswer, now)
		}
	}
	e.back(b)
	return calls
}

// back makes room for another batch of the lane.
func (e *Engine) back(b *batch) {
	e.flights.drop(b)
	b.flush.back()
	b.lane.flying--
	e.place(b.lane)
}

// failed puts a lease back after a beat that was not answered.
func (e *Engine) failed(calls []call, l *Lease, b *batch, err error, now time.Duration) []call {
	l.due = now + l.failed()
	if b.late && l.lane.track.waits { // its answer may come yet, and is late since the server has too much to do
		l.due = max(l.due, b.start+min(l.spec.pace(), soonAgain)/2)
	}
	e.putBack(l, b, now)
	if failed := l.spec.Failed; failed != nil {
		calls = append(calls, call{l, l.epoch, func() { failed(l, err) }})
	}
	return calls
}

// answered takes what a batch has learned of its i-th lease, and puts that back if it
// is still in flight with it.
func (e *Engine) answered(l *Lease, b *batch, i int, out Outcome, early float64, now time.Duration) {
	l.fails = 0
	moved := l.changes != b.taken[i].changes
	counts := !moved && !out.Skip && b.start >= l.heard // else something newer is known
	if counts {
		l.heard = b.start
		l.answer(b.start, out.Left)
	}
	due := l.nextDue(b.start, l.lane.door.interval(l.spec.pace()), early)
	switch {
	case !b.late && !moved:
		l.due = due
	case b.late && counts && l.dueSlot != 0 && l.due > now:
		l.due = max(l.due, due) // it was to be sent again
	}
	if b.late {
		e.reorder(l)
		e.schedule(l)
	} else {
		e.putBack(l, b, now)
	}
}

// putBack returns a lease from its flight.
func (e *Engine) putBack(l *Lease, b *batch, now time.Duration) {
	if l.lane.kicks != b.kicks || l.hurried {
		l.due = min(l.due, now)
	}
	e.queue(l)
	e.schedule(l)
}
