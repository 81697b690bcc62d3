package engine

import (
	"errors"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/heartbeat"
	"github.com/berth-go/berth/pkg/observe"
)

// on takes an event, and returns what the engine has to do. Of an own call that is older than
// one that was answered already, only what is final counts.
func (m *machine) on(ev *event) effects {
	t := m.course
	if t == nil {
		t = &course
	}
	r := t[ev.kind][m.phase]
	if r == ignores {
		return effects{}
	}
	switch ev.kind {
	case evHeld, evWaits, evUnknown:
		if !m.answer(ev.start) {
			return effects{do: doSkip}
		}
	case evTooHeavy, evOver, evRestored, evRestoredHeld, evRequeued:
		m.answer(ev.start)
	}
	return m.follow(r, ev)
}

// follow does what a rule says.
func (m *machine) follow(r rule, ev *event) effects {
	switch r {
	case sends:
		m.news.asked = true
		return effects{do: doSend}
	case joins:
		return m.join(ev)
	case takes:
		return m.takeAnswer(ev)
	case hears:
		m.answer(ev.start)
		m.lease.capacity = ev.capacity
		if ev.cause != nil { // else the asker sweeps, and asks again
			m.phase, m.end.err = ended, ev.cause
		}
		return effects{do: doTake}
	case passes:
		if ev.late { // the claim's removal may be on its way
			return effects{}
		}
		return effects{do: doTake}
	case complains:
		return m.complain(ev)
	case doubts:
		m.news.lost = m.news.lost || ev.revives
		return effects{}
	case proves:
		if m.news.secret == "" {
			m.news.secret = ev.text
		}
		return effects{}
	case notes:
		m.push(ev)
		return effects{}
	case hurries:
		return effects{do: doHurry | doSkip}
	case believes:
		return m.believe(ev)
	case settles:
		if !m.grant.confirmed && (m.bounded() || m.lease.entry != nil) {
			return effects{do: doConfirm}
		}
		return effects{do: doTake}
	case refuses:
		return effects{do: doTake, err: m.end.err}
	case looks:
		return m.look(ev)
	case misses:
		return m.miss(ev)
	}
	return m.followAnswer(r, ev)
}

// followAnswer is follow of what the answer to an own call, a restore or a requeue says.
func (m *machine) followAnswer(r rule, ev *event) effects {
	switch r {
	case discovers:
		return m.discover(ev)
	case renews:
		return m.renew(ev)
	case stays:
		return m.keepPlace(ev, ev.given.left)
	case stands:
		fx := m.keepPlace(ev, m.claim.Record.Wait)
		fx.tell = observe.Restored
		return fx
	case moves:
		if ev.place == "" { // it does not wait there any more: a heartbeat says what it does
			return effects{}
		}
		m.place = ev.stands()
		return effects{do: doTake, tell: observe.Requeued}
	case restores:
		return effects{do: doRestore | doSkip}
	case returns:
		m.news.doubt = true // from here on a push may be about the grant that it had before
		return effects{do: doSend}
	case declines:
		return m.refuse(&berth.AcquireError{
			Reason: berth.ReasonTooHeavy, Capacity: ev.capacity, Held: ev.held, Waiting: ev.waiting,
		})
	case stops:
		return m.refuse(&berth.AcquireError{Reason: berth.ReasonGone})
	case breaks:
		return m.refuse(&berth.AcquireError{Reason: berth.ReasonFailed, Cause: ev.cause})
	case vanishes, loses:
		return m.lose(ev, r == loses)
	case ends:
		return m.finish(berth.ErrReleased, ev.now)
	case swaps:
		m.news.swapping = true
	case swapped:
		m.grant.gift = ev.given.gift
		m.news.known++
	case unswaps:
		again := m.news.askAgain
		m.news.swapping, m.news.askAgain = false, false
		if again {
			return effects{do: doHurry}
		}
	default:
		return m.followEnd(r, ev)
	}
	return effects{}
}

// followEnd is follow of what the caller does, and of what ends a hold.
func (m *machine) followEnd(r rule, ev *event) effects {
	switch r {
	case hands:
		m.phase, m.grant.handed, m.grant.since = held, true, ev.now
	case expires:
		return m.finish(m.overdue(ev.cause), ev.now)
	case closes:
		return m.finish(ev.cause, ev.now)
	case frees:
		m.end.parted = true
		fx := m.finish(ev.cause, ev.now)
		if !errors.Is(ev.cause, berth.ErrLost) {
			fx.tell, fx.err = observe.Released, nil
		}
		return fx
	case loosens:
		m.phase, m.grant.loose = loose, true
		return effects{do: doLoosen | doRemove}
	case forgoes:
		m.end.parted, m.grant.loose = true, true
		return effects{do: doRemove}
	case detaches:
		m.end.parted = true
		fx := m.finish(berth.ErrReleased, ev.now)
		m.phase, fx.tell, fx.err = detached, observe.Detached, nil
		return fx
	case leaves:
		return m.leave(ev)
	case retires:
		m.end.own = true
		fx := m.finish(berth.ErrReleased, ev.now)
		fx.do, fx.tell, fx.err = fx.do|doSend, "", nil
		return fx
	case repeats:
		return m.repeat()
	case parts:
		return m.part(ev)
	case wonders:
		m.end.mayRun = m.end.mayRun || ev.mayRun
	}
	return effects{}
}

// join has the claim wait in line.
func (m *machine) join(ev *event) effects {
	m.answer(ev.start)
	m.phase, m.place, m.lease.capacity = waiting, ev.stands(), ev.capacity
	m.settled(ev.start)
	// An earlier attempt that went unanswered may have waited, been granted and
	// expired since: then a push is not about this place.
	m.news.doubt = m.news.doubt || m.news.lost
	fx := effects{do: doTake | doJoin, tell: observe.Queued}
	if m.news.fresh {
		fx.do |= doWake
	}
	return fx
}

// takeAnswer takes the grant that an attempt's answer brings.
func (m *machine) takeAnswer(ev *event) effects {
	m.answer(ev.start)
	m.place.ticket, m.lease.capacity = ev.ticket, ev.capacity
	if ev.entry != nil {
		m.lease.entry, m.lease.Terms = ev.entry, ev.entry.Terms
		ev.entry.replied = ev.now
		if !ev.given.confirmed {
			ev.entry.rest = max(0, ev.entry.Extends-m.claim.Record.Wait)
		}
		if m.lease.MaxHold > 0 { // it runs already
			m.lease.limit = heartbeat.Deadline(ev.start, m.lease.MaxHold, m.lease.lease())
		}
	}
	fx := m.take(ev.given)
	fx.do |= doTake
	return fx
}

// take moves the claim to granted.
func (m *machine) take(g given) effects {
	m.phase, m.grant = granted, grant{gift: g.gift, confirmed: g.confirmed}
	m.news.known++
	return effects{do: doKeep, given: g}
}

// push keeps what a push says. Whoever does not know the secret has not read the claim's
// record.
func (m *machine) push(ev *event) {
	if m.news.secret != "" && ev.text == m.news.secret {
		m.news.pushed, m.news.fresh = ev.given.gift, true
	}
}

// believe looks at the last push, which is made use of once. The claim's own last answered
// call vouches for it if that is not too old: the hand-off gave the grant what the claim had
// left, so the deadline stays that of the call. Else the waiting caller sends a call.
func (m *machine) believe(ev *event) effects {
	pushed := ev.kind == evPushed
	if pushed {
		m.push(ev)
	}
	switch doubtful := m.bounded() || m.news.doubt || ev.now-m.place.heard > m.claim.Record.Wait/2; {
	case !m.news.fresh:
		return effects{}
	case doubtful && pushed:
		return effects{do: doWake}
	case doubtful:
		m.news.fresh = false
		return effects{do: doConfirm}
	}
	m.news.fresh = false
	fx := m.take(given{gift: m.news.pushed, start: m.place.heard, left: m.place.left})
	fx.do |= doTake | doWake
	return fx
}

// discover takes a grant that an own call's answer tells of.
func (m *machine) discover(ev *event) effects {
	fx := m.take(ev.given)
	fx.do |= doWake | doSkip
	if m.news.pushed != ev.given.gift {
		fx.do |= doEcho
	}
	return fx
}

// look returns what is known before an own call is sent. A heartbeat that is still on its
// way counts as unanswered from then on.
func (m *machine) look(ev *event) effects {
	if m.news.sent != 0 {
		m.began(m.news.sent)
	}
	if ev.beats {
		m.news.sent = ev.start
	}
	ev.seen.known = m.news.known
	return effects{}
}

// began takes note of a call, sent at start, that may have run without its answer being
// read: a maximum hold may run from then on.
func (m *machine) began(start time.Duration) {
	if !m.lease.mayRun {
		m.lease.mayRun, m.lease.since = true, start
	}
}

// keepPlace takes an answer that the claim waits.
func (m *machine) keepPlace(ev *event, left time.Duration) effects {
	m.place.heard, m.place.left = ev.start, left
	m.settled(ev.start)
	return effects{do: doTake, left: left}
}

// stands is the place that an answer gives.
func (ev *event) stands() place {
	return place{ticket: ev.ticket, at: ev.place, heard: ev.start, left: ev.given.left}
}

// refuse ends a claim that has no handle.
func (m *machine) refuse(refusal *berth.AcquireError) effects {
	m.phase, m.end.err = ended, refusal
	return effects{do: doWake | doForget | doSkip}
}

// renew takes an answer that a claim holds which is known to hold.
func (m *machine) renew(ev *event) effects {
	switch m.judge(ev) {
	case otherGrant:
		return m.lose(ev, true)
	case unclear:
		m.news.askAgain = m.news.swapping // when that call is over
		if m.news.swapping {
			return effects{do: doSkip}
		}
		return effects{do: doSkip | doHurry}
	}
	if ev.stale {
		return effects{do: doSkip}
	}
	fx := effects{do: doTake, left: ev.given.left}
	if !m.grant.confirmed {
		fx.do |= doTime // a maximum hold runs from here on
	}
	m.grant.confirmed = true
	return fx
}

// verdict is what an answer that a claim holds says of the grant that is believed in.
type verdict uint8

const (
	sameGrant  verdict = iota // it is of that grant
	otherGrant                // it is of another one: that one was lost
	unclear                   // it may be older than that one
)

// judge compares the grant that an answer names with the one that is believed in. A failover
// may have lost that one, of which a push or an answer told, and the claim may have got
// another. A claim whose caller has no handle yet takes what the answer names.
func (m *machine) judge(ev *event) verdict {
	switch {
	case ev.given.gift == m.grant.gift:
		return sameGrant
	case m.news.swapping || ev.seen.known < m.news.known:
		return unclear // an exchange changes what is held, and a push overtakes what is under way
	case m.phase == held:
		return otherGrant
	}
	m.grant.gift = ev.given.gift
	return sameGrant
}

// lose ends a hold of which the server says something else than is believed here.
func (m *machine) lose(ev *event, part bool) effects {
	if ev.seen.known < m.news.known {
		return effects{do: doSkip} // older than the grant
	}
	fx := m.finish(berth.ErrLost, ev.now)
	if part {
		fx.do |= doPart // the claim's place, or its other grant, is no use to anybody
	}
	return fx
}

// finish ends a hold.
func (m *machine) finish(cause error, now time.Duration) effects {
	fx := effects{do: doForget | doWake | doSkip, err: cause}
	if m.grant.handed {
		cause = m.ending(cause, now)
		fx.do |= doFinish
		fx.tell = endOf(cause)
	}
	m.phase, m.end.err, fx.end = ended, cause, cause
	return fx
}

// leave ends a claim whose caller gets an error. It is removed from the server in whatever
// state it is there, unless the server has just said that it has nothing of it.
func (m *machine) leave(ev *event) effects {
	refusal := ev.cause.(*berth.AcquireError)
	if m.phase != ended {
		m.phase, m.end.err = ended, refusal
	}
	fx := effects{do: doForget}
	if m.news.asked && (m.news.lost || !m.nothingOf(refusal.Reason)) {
		fx.do |= doRemove
	}
	return fx
}

// nothingOf says whether a server that refuses a claim for that reason has nothing of it.
func (m *machine) nothingOf(reason berth.Reason) bool {
	switch reason {
	case berth.ReasonTooHeavy, berth.ReasonGone, berth.ReasonCapacity, berth.ReasonFull, berth.ReasonResting, berth.ReasonEmpty,
		berth.ReasonHeld, berth.ReasonQueuedAhead, berth.ReasonDeadlock, berth.ReasonTooManyEntries:
		return true
	case berth.ReasonAttempts:
		return !m.claim.MayWait
	}
	return false
}

// repeat is a release of a hold that has ended. One that was released or detached here, or
// that somebody else has released or taken up, is not this handle's to release.
func (m *machine) repeat() effects {
	switch {
	case m.end.parted:
		return effects{err: m.end.result}
	case m.end.own: // a release that follows one that got no answer
		return effects{do: doSend}
	case errors.Is(m.end.err, berth.ErrReleased):
		return effects{err: m.end.err}
	}
	return effects{do: doSend, err: m.end.err}
}

// part takes the answer to a release.
func (m *machine) part(ev *event) effects {
	if m.end.parted {
		return effects{err: m.end.result}
	}
	m.end.parted, m.end.result = true, m.outcome(ev)
	fx := effects{err: m.end.result}
	switch {
	case !m.end.own: // its end has been told
	case fx.err != nil:
		fx.tell = endOf(fx.err)
	case ev.entries > 0:
		fx.tell = observe.ReentryEnded
	default:
		fx.tell = observe.Released
	}
	return fx
}

// outcome is what a release returns, by what the server says and by what was known before
// it was sent.
func (m *machine) outcome(ev *event) error {
	mine := ev.given.fence == m.grant.fence // else the claim had lost its grant, and got another
	cause := m.end.err
	switch {
	case ev.word == GivenBack && mine:
		return nil
	case ev.word == ForceReleased || ev.word == TakenOver:
		cause = berth.ErrReleased
	case !m.end.own:
	case ev.word == NotHeld && (ev.again || m.end.mayRun):
		return nil // an earlier attempt to release it has done so
	case ev.word == HadExpired && mine:
		cause = m.overdue(nil)
	default:
		cause = berth.ErrLost // forgotten before its time, or in line again
	}
	return m.ending(cause, ev.now)
}

// endOf is the event of a hold that ended, by its cause.
func endOf(cause error) observe.Kind {
	switch {
	case errors.Is(cause, berth.ErrExpired):
		return observe.Expired
	case errors.Is(cause, berth.ErrReleased):
		return observe.ReleasedByOther
	}
	return observe.Lost
}
