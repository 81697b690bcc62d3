package heartbeat

import (
	"context"
	"fmt"
	"math/bits"
	"time"
)

// track names a lane: a key, and how many bits the milliseconds of a pace have.
// Leases of quite another pace go by themselves: a batch has the time limit of the
// shortest pace in it, and one that is too tight for the network must cost no
// other its beats.
type track struct {
	key  string
	bits int
}

// tracks is above the bits of every pace: the longest has 44.
const tracks = 45

func trackOf(key string, pace time.Duration) track {
	return track{key, bits.Len64(uint64(pace / time.Millisecond))}
}

// lane is the leases of one track. Engine.mu guards it.
type lane struct {
	track  track
	leases int           // registered, in flight or not
	due    order[*Lease] // those that are not in flight
	flying bool          // a batch is in flight
	kicked bool          // Kick came while it was
	full   bool          // the last batch was a full one
	start  time.Duration // of the last batch
	at     time.Duration // when the next batch is to start
	slot   int           // in Engine.ready; 0 when it has nothing to send
}

// batch is one call of Beat. It belongs to the goroutine that flies it.
type batch struct {
	lane   *lane
	start  time.Duration
	limit  time.Duration
	leases []*Lease
	epochs []uint32 // of the leases, when they were taken
}

func newLane(t track) *lane {
	return &lane{track: t, due: order[*Lease]{
		at:   func(l *Lease) time.Duration { return l.due },
		slot: func(l *Lease) *int { return &l.dueSlot },
	}}
}

// next is when the next batch is to start: when the first lease is due. A lane
// that fills its batches may start one before, once its leases can be taken
// along, but not more often than it has to on average. So leases that became
// due together spread over time, instead of coming in one burst ever after.
func (ln *lane) next(size int) time.Duration {
	l, ok := ln.due.first()
	if !ok {
		return never
	}
	if !ln.full {
		return l.due
	}
	stride := l.spec.pace() / 3 * time.Duration(size) / time.Duration(ln.leases)
	return min(l.due, max(ln.start+stride, l.due-l.window()))
}

// The methods below are called with mu held, but for fly and land.

// enter puts a lease into the lane of a track.
func (e *Engine) enter(l *Lease, t track) {
	ln := e.lanes[t]
	if ln == nil {
		ln = e.lane(t)
		e.lanes[t] = ln
	}
	ln.leases++
	l.lane = ln
	ln.due.set(l)
	e.place(ln)
}

// leave takes a lease out of its lane.
func (e *Engine) leave(l *Lease) {
	ln := l.lane
	l.lane = nil
	ln.leases--
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

// queue puts a lease where when it is due, and its pace, say that it belongs.
func (e *Engine) queue(l *Lease) {
	if t := trackOf(l.lane.track.key, l.spec.pace()); t != l.lane.track {
		e.leave(l)
		e.enter(l, t)
		return
	}
	l.lane.due.set(l)
	e.place(l.lane)
}

// kick makes the leases of a lane due now.
func (e *Engine) kick(ln *lane, now time.Duration) {
	ln.kicked = ln.flying
	for _, l := range ln.due.items {
		l.due = min(l.due, now) // none passes another, so the order stays one
	}
	e.place(ln)
}

// place puts a lane where it belongs after its leases, or when they are due, or
// whether it is flying, have changed.
func (e *Engine) place(ln *lane) {
	ln.at = ln.next(e.size)
	if ln.flying || ln.at == never {
		e.ready.drop(ln)
	} else {
		e.ready.set(ln)
	}
	if ln.leases == 0 && !ln.flying {
		delete(e.lanes, ln.track)
		e.spare = ln
	}
}

// lane returns an empty one for a track: the one that was left last, if nobody has
// taken it yet. With an uncontended lock every lease has a lane of its own.
func (e *Engine) lane(t track) *lane {
	ln := e.spare
	if ln == nil {
		return newLane(t)
	}
	e.spare = nil
	*ln = lane{track: t, due: ln.due}
	return ln
}

// gather takes the batch that a lane sends now: what is due, the oldest first,
// and what is due soon. It stops at the first lease that is not: one far behind
// it may be, but finding it would cost a walk through all of them.
func (e *Engine) gather(ln *lane, now time.Duration) *batch {
	b := &batch{lane: ln, start: now, limit: never}
	for len(b.leases) < e.size {
		l, ok := ln.due.first()
		if !ok || l.due-l.window() > now {
			break
		}
		ln.due.drop(l)
		l.moved, l.hurried = false, false
		l.lower(now)
		e.schedule(l)
		b.leases = append(b.leases, l)
		b.epochs = append(b.epochs, l.epoch)
		b.limit = min(b.limit, l.spec.pace()/6)
	}
	ln.start, ln.full = now, len(b.leases) == e.size
	ln.flying, ln.kicked = true, false
	e.place(ln)
	return b
}

// fly sends a batch on its own goroutine.
func (e *Engine) fly(b *batch) {
	ctx, cancel := context.WithTimeout(e.ctx, b.limit)
	defer cancel()
	outcomes, err := e.beat(ctx, b.lane.track.key, b.leases)
	e.do(e.land(b, outcomes, err))
}

// land takes in the answer to a batch. If its lane has more that is due, the
// timing goroutine is woken and sends it.
func (e *Engine) land(b *batch, outcomes []Outcome, err error) (calls []call) {
	if err == nil && len(outcomes) != len(b.epochs) {
		err = fmt.Errorf("heartbeat: %d outcomes for %d leases", len(outcomes), len(b.epochs))
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.clock.Now()
	// First of all: no answer that comes too late may revive a hold.
	calls = e.sweep(now)
	early := e.rand() / 10
	for i, l := range b.leases {
		switch {
		case l.epoch != b.epochs[i]: // removed, over, or added anew
		case err != nil:
			calls = e.failed(calls, l, err, now)
		default:
			calls = e.answered(calls, l, outcomes[i], b.start, early, now)
		}
	}
	b.lane.flying = false
	e.place(b.lane)
	e.rouse(now)
	return calls
}

// failed puts a lease back after a beat that was not answered.
func (e *Engine) failed(calls []call, l *Lease, err error, now time.Duration) []call {
	l.due = now + l.failed()
	e.putBack(l, now)
	if failed := l.spec.Failed; failed != nil {
		calls = append(calls, call{l, l.epoch, func() { failed(l, err) }})
	}
	return calls
}

// answered puts a lease back after a beat, or ends it.
func (e *Engine) answered(calls []call, l *Lease, out Outcome, start time.Duration, early float64, now time.Duration) []call {
	l.fails = 0
	cause := out.Gone
	if cause == nil && !out.Skip && !l.moved {
		// The holder may have seen the deadline pass a moment before us.
		cause = l.answer(start, out.Left)
	}
	if cause != nil {
		return e.end(calls, l, cause)
	}
	if !l.moved {
		l.due = l.nextDue(start, early)
	}
	e.putBack(l, now)
	return calls
}

// putBack returns a lease from its flight.
func (e *Engine) putBack(l *Lease, now time.Duration) {
	if l.lane.kicked || l.hurried {
		l.due = min(l.due, now)
	}
	e.queue(l)
	e.schedule(l)
}
