package heartbeat

import (
	"sync"
	"time"
)

// Lease is one lease as the holder's process knows it. Embed it by value; the
// zero value is ready for Engine.Add. It belongs to one engine for good.
type Lease struct {
	// Claim is the caller's, so that Beat knows whom a lease belongs to. Set
	// it before Add; the engine never looks at it.
	Claim any

	// mu guards cause. It is taken after Engine.mu where both are needed.
	mu sync.Mutex
	// spec is written under both locks and read under either. After the
	// lease was removed, or is over, it stays readable.
	spec Spec
	// cause says why the lease is over. Once set it stays, until the lease is
	// added again.
	cause error

	// What follows is guarded by Engine.mu.

	pending bool
	// hurried says that Hurry came while the lease was in flight.
	hurried bool
	fails   uint8 // how many beats failed since the last that did not
	// epoch counts how often the lease was added, removed or over. A batch or
	// a callback of an earlier epoch no longer counts.
	epoch uint32
	// changes counts how often Update moved the deadline, or a beat had to lower
	// it. An answer to a batch that began before such a change moves it no more.
	changes uint32
	key     string // of the last Add
	lane    *lane  // nil while pending or not registered
	// before and after are its neighbours while it is pending.
	before, after *Lease

	heard     time.Duration // start of the newest batch whose answer was taken
	due       time.Duration // when the next beat is due
	event     time.Duration // when the next callback is due; while pending, when to look at it again
	dueSlot   int32         // in lane.due; 0 in flight
	eventSlot int32         // in Engine.events; 0 when it has no event
}

// Deadline is the moment on the clock from which the holder must not believe in
// the lease, its deadline or its limit, whichever comes first; 0 is none. It
// waits for no engine work.
func (l *Lease) Deadline() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := l.over(); at != never {
		return at
	}
	return 0
}

// Err says why the lease is over at the given moment of the clock, and is nil
// while it is not. It trusts no timer: a hold whose deadline has passed is over
// from the first call that sees it, and no answer in flight revives it. The
// Ended callback follows. A claim that waits is never over.
func (l *Lease) Err(now time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause == nil && l.spec.Ends && l.over() <= now {
		l.cause = l.reason()
	}
	return l.cause
}

// over is the moment of the deadline or the limit, or never. Either lock is
// held.
func (l *Lease) over() time.Duration {
	return min(moment(l.spec.Deadline), moment(l.spec.Limit))
}

// reason is why the lease is over when its moment has come, however late that
// is noticed. mu is held.
func (l *Lease) reason() error {
	if l.spec.Bounded || moment(l.spec.Limit) <= moment(l.spec.Deadline) {
		return ErrLimit
	}
	return ErrDeadline
}

// The methods below are called with Engine.mu held.

// registered reports whether the lease was added and is neither removed nor over.
func (l *Lease) registered() bool { return l.pending || l.lane != nil }

// begin starts the lease anew.
func (l *Lease) begin(spec Spec) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spec, l.cause = spec, nil
	l.fails = 0
}

// put replaces the spec and returns true, unless the lease is over: the holder may see
// that a moment before the engine does.
func (l *Lease) put(spec Spec) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause != nil {
		return false
	}
	l.spec = spec
	return true
}

// lower brings the deadline down to what a renewal that starts now can set: the
// server takes back an extension that its clock no longer explains, and that
// must not be news to the holder.
func (l *Lease) lower(now time.Duration) {
	if !l.spec.Renews {
		return
	}
	spec := l.spec
	spec.Deadline = Deadline(now, spec.Lease+min(spec.Beyond, never-spec.Lease), spec.Lease)
	if spec.Deadline != 0 && spec.Deadline < moment(l.spec.Deadline) {
		l.changes++ // no answer from before may raise it again
		spec.Bounded = false
		l.put(spec)
	}
}

// answer sets the deadline that follows from what the server left of a request
// that began at start.
func (l *Lease) answer(start, left time.Duration) {
	spec := l.spec
	spec.Deadline = Deadline(start, left, spec.Lease)
	spec.Bounded = spec.Bounds(left)
	l.put(spec)
}

// warned takes note that OnWarn is being called.
func (l *Lease) warned() {
	spec := l.spec
	spec.Warn = 0
	l.put(spec)
}

// next is the moment of the next callback, or never.
func (l *Lease) next() time.Duration {
	at := moment(l.spec.Warn)
	if l.spec.Ends {
		at = min(at, l.over())
	}
	return at
}

// firstDue is when the lease is due after a request of the caller's own: a
// third of the lease after it started, which the deadline tells. If it was a
// shorter lease that the deadline comes from, it is a third of what is left,
// where a beat can extend that.
func (l *Lease) firstDue(now time.Duration) time.Duration {
	pace := l.spec.pace()
	if l.spec.Deadline == 0 {
		return now + pace/3
	}
	started := min(now, l.spec.Deadline+Margin(l.spec.Lease)-l.spec.Lease)
	if due := started + pace/3; due > now {
		return due
	}
	if left := l.spec.Deadline - now; l.spec.Renews && left < pace {
		return now + max(0, left)/3
	}
	return now + pace/3
}

// nextDue is when the lease is due after a beat that started at start. early,
// from 0 to a tenth, is the share of the interval that jitter takes away.
func (l *Lease) nextDue(start, interval time.Duration, early float64) time.Duration {
	return start + interval - time.Duration(early*float64(interval))
}

// soonAgain bounds the lease by which the pause after a failed beat is reckoned: a push may have
// been lost, so that the caller of a longer lease waits for the beat's answer.
const soonAgain = 30 * time.Second

// failed counts a failed beat and returns the pause before the next.
func (l *Lease) failed() time.Duration {
	pace := min(l.spec.pace(), soonAgain)
	pause := min(pace/30<<l.fails, pace/6)
	if l.fails < 3 { // 8/30 is above a sixth already
		l.fails++
	}
	return pause
}

// urgent is when a third of a lease is left, so that its beat waits for no other;
// never where a beat does not extend it.
func (l *Lease) urgent() time.Duration {
	if !l.spec.Ends || !l.spec.Renews || l.spec.Deadline == 0 {
		return never
	}
	return l.spec.Deadline - l.spec.pace()/3
}

// window is how long before it is due a beat may be taken along by one of its lane, in
// the same batch.
func (l *Lease) window() time.Duration { return l.spec.pace() / 9 }

// along is how long before it is due a beat may be taken along by one of another lane, in
// the same flush. That costs the server a call all the same, so it is just long enough to
// fill a flush where many leases are kept.
func (l *Lease) along() time.Duration { return l.spec.pace() / 90 }
