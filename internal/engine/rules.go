package engine

import (
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/heartbeat"
	"github.com/berth-go/berth/pkg/observe"
)

// on takes an event, and returns what the engine has to do.
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
	case evSaysHeld, evSaysWaiting, evSaysUnknown:
		if !m.answer(ev.start) {
			return effects{}
		}
	case evQueued, evGranted, evRefused:
		if m.phase == asking {
			m.answer(ev.start)
			m.lease.capacity = ev.capacity
		}
	case evSaysTooHeavy, evSaysEnded, evRestored, evRestoredHeld, evRequeued:
		m.answer(ev.start)
	}
	return m.follow(r, ev)
}

// follow does what a rule says. Those of holds are in holding.go, those of ends in ending.go.
func (m *machine) follow(r rule, ev *event) effects {
	switch r {
	case sends:
		return m.send()
	case joins:
		return m.join(ev)
	case takes:
		return m.takeAnswer(ev)
	case denies:
		return m.deny(ev)
	case tellsLine:
		return m.tellLine(ev)
	case proves:
		return m.prove(ev)
	case keeps:
		return m.keep(ev)
	case believes:
		return m.believe(ev)
	case hurries:
		return effects{do: doHurry}
	case settles:
		return m.settle()
	case reports:
		return effects{do: doReturn, result: m.end.err}
	case marks:
		return m.mark(ev)
	case discovers:
		return m.discover(ev)
	case renews:
		return m.renew(ev)
	case stays:
		return m.stay(ev, ev.given.left)
	case restores:
		return effects{do: doRestore}
	case fails:
		return m.fail(ev)
	case loses:
		return m.lose(ev)
	case closes:
		return m.finish(ev.cause, ev.now)
	case goesBack:
		return m.goBack()
	case stands:
		return m.stand(ev)
	case moves:
		return m.move(ev)
	case complains:
		return m.complain(ev)
	case misses:
		return m.miss(ev)
	case doubts:
		return m.doubt(ev)
	case hands:
		return m.hand(ev)
	case expires:
		return m.finish(m.overdue(ev.cause), ev.now)
	case swaps:
		return m.swap()
	case exchanges:
		return m.exchange(ev)
	case unswaps:
		return m.unswap()
	case loosens:
		return m.loosen()
	case drops:
		return m.drop(ev)
	case dropsLate:
		return m.dropLate()
	case detaches:
		return m.detach(ev)
	case leaves:
		return m.leave(ev)
	case releases:
		return m.release(ev)
	case releasesAgain:
		return m.releaseAgain()
	case concludes:
		return m.conclude(ev)
	case suspects:
		return m.suspect(ev)
	}
	return effects{}
}

func (m *machine) send() effects {
	m.news.asked = true
	return effects{do: doSend}
}

func (m *machine) join(ev *event) effects {
	m.phase, m.place = waiting, ev.stands()
	m.notBegun(ev.start)
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
	m.place.ticket = ev.ticket
	if ev.entry != nil {
		m.enter(ev)
	}
	fx := m.take(ev.given)
	fx.do |= doTake
	return fx
}

// enter has the claim be an entry of an owner that held already.
func (m *machine) enter(ev *event) {
	m.lease.entry, m.lease.Terms = ev.entry, ev.entry.Terms
	ev.entry.replied = ev.now
	if !ev.given.confirmed {
		ev.entry.rest = max(0, ev.entry.Extends-m.claim.Record.Wait)
	}
	if m.lease.MaxHold > 0 { // it runs already
		m.lease.limit = heartbeat.Deadline(ev.start, m.lease.MaxHold, m.lease.lease())
	}
}

// take moves the claim to granted.
func (m *machine) take(g given) effects {
	m.phase, m.grant = granted, grant{gift: g.gift, confirmed: g.confirmed}
	m.news.known++
	if g.confirmed {
		m.limits(g.start)
	}
	return effects{do: doKeep, given: g}
}

func (m *machine) deny(ev *event) effects {
	if ev.cause != nil { // else more stood in the way than one script drops
		m.phase, m.end.err = ended, ev.cause
	}
	return effects{do: doTake}
}

func (m *machine) tellLine(ev *event) effects {
	if ev.late { // the claim's removal may be on its way
		return effects{}
	}
	return effects{do: doTake}
}

func (m *machine) prove(ev *event) effects {
	if m.news.secret == "" {
		m.news.secret = ev.text
	}
	return effects{}
}

// keep keeps what a push says. Whoever does not know the secret has not read the claim's
// record.
func (m *machine) keep(ev *event) effects {
	if m.news.secret != "" && ev.text == m.news.secret {
		m.news.pushed, m.news.fresh = ev.given.gift, true
	}
	return effects{}
}

// believe looks at the last push, which is made use of once. The claim's own last answered
// call vouches for it if that is not too old: the hand-off gave the grant what the claim had
// left, so the deadline stays that of the call. Else the waiting caller sends a call.
func (m *machine) believe(ev *event) effects {
	pushed := ev.kind == evPushed
	if pushed {
		m.keep(ev)
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
	if fx.do |= doWake; !pushed {
		fx.do |= doReturn
	}
	return fx
}

// settle is a look at a grant. What has a limit of its own, or is an entry, begins with the
// claimant's own call.
func (m *machine) settle() effects {
	if !m.grant.confirmed && (m.bounded() || m.lease.entry != nil) {
		return effects{do: doConfirm}
	}
	return effects{do: doReturn}
}

// mark notes what is known before an own call is sent. A heartbeat that is still on its way
// counts as unanswered from then on.
func (m *machine) mark(ev *event) effects {
	if m.news.sent != 0 {
		m.began(m.news.sent)
	}
	if ev.beats {
		m.news.sent = ev.start
	}
	ev.seen.known = m.news.known
	return effects{}
}

// stay takes an answer that the claim waits.
func (m *machine) stay(ev *event, left time.Duration) effects {
	m.place.heard, m.place.left = ev.start, left
	m.notBegun(ev.start)
	return effects{do: doTake, left: left}
}

func (m *machine) goBack() effects {
	m.news.doubt = true
	return effects{do: doSend}
}

func (m *machine) stand(ev *event) effects {
	fx := m.stay(ev, m.claim.Record.Wait)
	fx.tell = observe.Restored
	return fx
}

func (m *machine) move(ev *event) effects {
	if ev.place == "" { // it does not wait there any more: a heartbeat says what it does
		return effects{}
	}
	m.place = ev.stands()
	return effects{do: doTake, tell: observe.Requeued}
}

// stands is the place that an answer gives.
func (ev *event) stands() place {
	return place{ticket: ev.ticket, at: ev.place, heard: ev.start, left: ev.given.left}
}

// fail ends a wait.
func (m *machine) fail(ev *event) effects {
	refusal := &berth.AcquireError{Reason: berth.ReasonGone}
	switch ev.kind {
	case evSaysTooHeavy:
		refusal = &berth.AcquireError{Reason: berth.ReasonTooHeavy, Capacity: ev.capacity, Held: ev.held, Waiting: ev.waiting}
	case evRejected:
		refusal = &berth.AcquireError{Reason: berth.ReasonFailed, Cause: ev.cause}
	}
	m.phase, m.end.err = ended, refusal
	return effects{do: doWake | doForget}
}
