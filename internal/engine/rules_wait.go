package engine

import (
	"cmp"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/heartbeat"
	"github.com/berth-go/berth/pkg/observe"
)

// The rules of a claim that asks or waits.

// sends has the attempt sent.
func sends(m *machine, _ event) effects {
	m.news.asked = true
	return effects{do: doSend}
}

// joins has the claim join those that wait here.
func joins(m *machine, ev event) effects {
	m.phase, m.place = waiting, ev.standing()
	m.notBegun(ev.start)
	// An earlier attempt that went unanswered may have waited, been granted and
	// expired since: then a push is not about this place.
	m.news.doubt = m.news.doubt || m.news.lost
	fx := effects{do: doUse | doJoin, tell: observe.Queued}
	if m.news.fresh {
		fx.do |= doWake
	}
	return fx
}

// takes takes the grant, and has its lease kept.
func takes(m *machine, ev event) effects {
	m.place.ticket = ev.ticket
	if ev.entry != nil {
		m.enter(ev)
	}
	fx := m.take(ev.gift, ev.start, ev.left, ev.confirmed)
	fx.do |= doUse
	return fx
}

// enter has the claim be an entry of an owner that held already.
func (m *machine) enter(ev event) {
	m.terms.entry, m.terms.Terms = ev.entry, ev.entry.Terms
	ev.entry.replied = ev.now
	if !ev.confirmed {
		ev.entry.rest = max(0, ev.entry.Extends-m.claim.Record.Wait)
	}
	if m.terms.MaxHold > 0 { // it runs already
		m.terms.limit = heartbeat.Deadline(ev.start, m.terms.MaxHold, m.terms.lease())
	}
}

// take moves the claim to granted.
func (m *machine) take(what gift, start, left time.Duration, confirmed bool) effects {
	m.phase, m.grant = granted, grant{gift: what, confirmed: confirmed}
	m.news.known++
	if confirmed {
		m.limits(start)
	}
	return effects{do: doKeep, start: start, left: left}
}

// denies ends the claim, unless its asker sweeps and asks again.
func denies(m *machine, ev event) effects {
	if ev.cause != nil { // else more stood in the way than one script drops
		m.phase, m.end.err = ended, ev.cause
	}
	return effects{do: doUse}
}

// tellsLine makes use of nothing but what the answer says of the line.
func tellsLine(_ *machine, ev event) effects {
	if ev.late { // the claim's removal may be on its way
		return effects{}
	}
	return effects{do: doUse}
}

// proves keeps the secret by which a push of the grant proves itself.
func proves(m *machine, ev event) effects {
	if m.news.secret == "" {
		m.news.secret = ev.text
	}
	return effects{}
}

// keeps keeps what the push says until the claim waits. Whoever does not know the secret has
// not read the claim's record.
func keeps(m *machine, ev event) effects {
	if m.news.secret != "" && ev.text == m.news.secret {
		m.news.pushed, m.news.fresh = ev.gift, true
		m.news.pushes++
	}
	return effects{}
}

// believes takes the grant that the push tells of, or has it confirmed first. It makes use of
// a push once. The claim's own last answered call vouches for the push if that call is not too
// old: the hand-off gave the grant what the claim had left, so the deadline stays that of the
// call. Else the waiting caller sends a call.
func believes(m *machine, ev event) effects {
	fresh := ev.kind == evPushed
	if fresh {
		keeps(m, ev)
	}
	switch doubtful := m.bounded() || m.news.doubt || ev.now-m.place.heard > m.claim.Record.Wait/2; {
	case !m.news.fresh:
		return effects{}
	case doubtful && fresh:
		return effects{do: doWake}
	case doubtful:
		m.news.fresh = false
		return effects{do: doConfirm}
	}
	m.news.fresh = false
	fx := m.take(m.news.pushed, m.place.heard, m.place.left, false)
	fx.do |= doWake
	return fx
}

// hurries has the next heartbeat sent at once.
func hurries(*machine, event) effects { return effects{do: doHurry} }

// asksBack has the heartbeats ask for what others hold, from now on until one has: a claim that does
// not stand first asks for nothing.
func asksBack(m *machine, _ event) effects {
	if m.wants {
		return effects{}
	}
	m.wants = true
	return effects{do: doHurry}
}

// restores has the place asked for again.
func restores(*machine, event) effects { return effects{do: doRestore} }

// reports tells the caller why the claim has ended.
func reports(m *machine, _ event) effects { return effects{do: doReturn, result: m.end.err} }

// hands gives the caller the handle, or has the grant confirmed first: what has a limit of its
// own, or is an entry, begins with the claimant's own call. In a process that drains, a claim that came as one more
// entry and is none gets nothing: its owner's hold had ended.
func hands(m *machine, ev event) effects {
	if m.terms.entry == nil && m.claim.inside.Load() {
		fx := fails(m, event{kind: evDrained})
		return effects{do: fx.do | doReturn, result: m.end.err}
	}
	if !m.grant.confirmed && (m.bounded() || m.terms.entry != nil) {
		return effects{do: doConfirm}
	}
	m.phase, m.grant.handed, m.grant.since, m.grant.wanted = held, true, ev.now, m.wanted
	return effects{do: doReturn}
}

// marks notes that the answer will be as old as what is known now. A heartbeat that is still
// on its way counts as unanswered from then on.
func marks(m *machine, ev event) effects {
	if m.news.sent != 0 {
		m.began(m.news.sent)
	}
	if ev.beats {
		m.news.sent = ev.start
	}
	m.terms.named = m.terms.named || ev.lease != 0
	return effects{seen: snapshot{pushes: m.news.pushes, known: m.news.known}}
}

// stays makes the place good for another wait lease. It denies the pushes from before the call.
func stays(m *machine, ev event) effects {
	m.news.fresh = m.news.fresh && ev.seen.pushes < m.news.pushes
	m.place.heard, m.place.left = ev.start, ev.left
	m.wants = m.wants && !ev.asked
	m.notBegun(ev.start)
	return effects{do: doUse, left: ev.left}
}

// goesBack has the restore sent; from here on a push may be about an earlier grant.
func goesBack(m *machine, _ event) effects {
	m.news.doubt = true
	return effects{do: doSend}
}

// stands has the claim stand where it stood.
func stands(m *machine, ev event) effects {
	ev.left = m.claim.Record.Wait
	fx := stays(m, ev)
	fx.tell = observe.Restored
	return fx
}

// moves gives the claim a new place.
func moves(m *machine, ev event) effects {
	if ev.text == "" { // it does not wait there any more: a heartbeat says what it does
		return effects{}
	}
	m.place = ev.standing()
	return effects{do: doUse, tell: observe.Requeued}
}

// standing is the place that an answer gives.
func (ev event) standing() place {
	return place{stood: true, ticket: ev.ticket, at: ev.text, apart: ev.apart, heard: ev.start, left: ev.left}
}

// fails ends the wait, for the reason that the event names.
func fails(m *machine, ev event) effects {
	refusal := &berth.AcquireError{Reason: berth.ReasonGone}
	switch ev.kind {
	case evSaysTooHeavy:
		n := ev.counts
		refusal = &berth.AcquireError{Reason: berth.ReasonTooHeavy, Capacity: n.capacity, Held: n.held, Waiting: n.waiting}
	case evSaysAbsent:
		refusal = &berth.AcquireError{Reason: berth.ReasonAbsent, Cause: berth.ErrAbsent}
	case evRejected:
		refusal = &berth.AcquireError{Reason: berth.ReasonFailed, Cause: ev.cause}
	case evDrained:
		refusal = refusalBy(cmp.Or(ev.cause, berth.ErrDraining))
	}
	m.phase, m.end.err = ended, refusal
	return effects{do: doWake | doForget}
}
