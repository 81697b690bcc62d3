package engine

import (
	"time"

	"github.com/berth-go/berth"
)

// The rules of a claim that is granted, held or loose, and of one that learns that it is.

// discovers takes the grant; where no push told of it, the subscription is tested.
func discovers(m *machine, ev event) effects {
	fx := m.take(ev.gift, ev.start, ev.left, true)
	fx.do |= doWake
	if m.news.pushed != ev.gift {
		fx.do |= doEcho
	}
	return fx
}

// renews has the hold go on, if the answer is about its grant.
func renews(m *machine, ev event) effects {
	switch m.judge(ev) {
	case otherGrant:
		return loses(m, ev)
	case unclear:
		m.news.askAgain = m.news.swapping // when that call is over
		if m.news.swapping {
			return effects{}
		}
		return effects{do: doHurry}
	case newGrant:
		exchanges(m, ev)
	}
	if ev.stale { // what the entries of its owner have left of it is asked for since
		return effects{}
	}
	if ev.lease != 0 {
		m.lasts(ev.lease, ev.left)
	}
	fx := effects{do: doUse, left: ev.left}
	if !m.grant.confirmed {
		m.grant.confirmed = true
		fx.do |= doTime
		m.limits(ev.start)
	}
	return fx
}

// verdict is what an answer that a claim holds says of the grant that is believed in.
type verdict uint8

const (
	sameGrant  verdict = iota // it is of that grant
	newGrant                  // it is of another one, and nobody has that one's handle
	otherGrant                // it is of another one: the grant believed in was lost
	unclear                   // it may be older than the grant believed in
)

// judge compares the grant that an answer names with the one that is believed in. A failover
// may have lost that grant, though a push or an answer told of it, and the claim may have got
// another one since.
func (m *machine) judge(ev event) verdict {
	switch {
	case ev.gift == m.grant.gift:
		return sameGrant
	case m.news.swapping || ev.seen.known < m.news.known:
		return unclear // an exchange changes what is held, and a push overtakes what is under way
	case m.phase == held:
		return otherGrant
	}
	return newGrant
}

// loses ends the hold, unless the answer is older than the grant. The place or the other grant
// that the server has is no use to anybody, and is given back; where there is no handle, the
// claim is removed when its caller leaves.
func loses(m *machine, ev event) effects {
	if ev.seen.known < m.news.known {
		return effects{} // older than the grant
	}
	has := m.phase == held && (ev.kind == evSaysWaiting || ev.kind == evSaysHeld)
	fx := m.finish(berth.ErrLost, ev.now)
	if has {
		fx.do |= doReleaseEnded
	}
	return fx
}

// swaps has no answer prove what the claim holds from here on.
func swaps(m *machine, _ event) effects {
	m.news.swapping = true
	return effects{}
}

// exchanges has the claim hold something else.
func exchanges(m *machine, ev event) effects {
	m.grant.gift = ev.gift
	m.news.known++
	return effects{}
}

// unswaps has answers prove again what the claim holds.
func unswaps(m *machine, _ event) effects {
	again := m.news.askAgain
	m.news.swapping, m.news.askAgain = false, false
	if again {
		return effects{do: doHurry}
	}
	return effects{}
}

// loosens takes the handle's lease, and has the claim removed.
func loosens(m *machine, _ event) effects {
	m.phase, m.grant.loose = loose, true
	return effects{do: doLoosen | doRemove}
}

// began takes note of a call, sent at start, that may have run without its answer being
// read: a maximum hold may run from then on.
func (m *machine) began(start time.Duration) {
	if !m.terms.mayRun {
		m.terms.mayRun, m.terms.since = true, start
	}
}

// notBegun takes note of the answer to a call that says that the hold has not begun: not by
// that call, nor by one before it.
func (m *machine) notBegun(start time.Duration) {
	if start >= m.terms.since {
		m.terms.mayRun = false
	}
}
