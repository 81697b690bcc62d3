package engine

import (
	"cmp"
	"errors"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/observe"
)

// The rules by which claims end, and of the release of a hold.

// finish ends a hold.
func (m *machine) finish(cause error, now time.Duration) effects {
	fx := effects{do: doForget | doWake, told: cause}
	if m.grant.handed {
		cause = m.ending(cause, now)
		fx.do |= doFinish
		fx.tell = endOf(cause)
	}
	m.phase, m.end.err, fx.end = ended, cause, cause
	return fx
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

// closes ends the hold.
func closes(m *machine, ev event) effects { return m.finish(ev.cause, ev.now) }

// expires ends the hold by its own time.
func expires(m *machine, ev event) effects { return m.finish(m.overdue(ev.cause), ev.now) }

// drops ends the handle; its release has nothing to give back, and returns nil.
func drops(m *machine, ev event) effects {
	m.end.final = true
	fx := m.finish(ev.cause, ev.now)
	if !errors.Is(ev.cause, berth.ErrLost) {
		fx.tell, fx.told = observe.Released, nil
	}
	return fx
}

// dropsLate has the claim of a handle removed that has ended before; its release returns nil.
func dropsLate(m *machine, _ event) effects {
	if m.end.own {
		return effects{}
	}
	m.end.final, m.grant.loose = true, true
	return effects{do: doRemove}
}

// detaches ends the handle; the hold stays.
func detaches(m *machine, ev event) effects {
	m.end.final = true
	fx := m.finish(berth.ErrReleased, ev.now)
	m.phase, fx.tell, fx.told = detached, observe.Detached, nil
	return fx
}

// leaves ends the claim, and has it removed in whatever state it is on the server, unless that
// has just said that it has nothing of it.
func leaves(m *machine, ev event) effects {
	if m.phase != ended {
		m.phase, m.end.err = ended, ev.cause
	}
	fx := effects{do: doForget}
	if m.news.asked && (m.news.lost || !m.nothingAfter(ev.cause)) {
		fx.do |= doRemove
	}
	return fx
}

// nothingAfter says whether a server that refuses a claim has nothing of it.
func (m *machine) nothingAfter(cause error) bool {
	refusal, ok := errors.AsType[*berth.AcquireError](cause)
	if !ok {
		return false
	}
	switch refusal.Reason {
	case berth.ReasonTooHeavy, berth.ReasonGone, berth.ReasonCapacity, berth.ReasonFull, berth.ReasonResting, berth.ReasonEmpty,
		berth.ReasonHeld, berth.ReasonAbsent, berth.ReasonQueuedAhead, berth.ReasonPaused, berth.ReasonDeadlock, berth.ReasonTooManyEntries,
		berth.ReasonDiffers, berth.ReasonLimited:
		return true
	case berth.ReasonAttempts:
		return !m.claim.MayWait
	}
	return false
}

// releases ends the handle before its release is sent.
func releases(m *machine, ev event) effects {
	m.end.own = true
	fx := m.finish(berth.ErrReleased, ev.now)
	fx.tell, fx.told = "", nil // the server's answer says what is told
	fx.do |= doSend
	return fx
}

// releasesAgain has the release sent, if it is still this handle's to send: of a hold that was
// released or detached here, or that somebody else has released or taken up, it is not.
func releasesAgain(m *machine, _ event) effects {
	switch {
	case m.end.final:
		return effects{result: m.end.result}
	case m.end.own: // a release that follows one that got no answer
		return effects{do: doSend}
	case errors.Is(m.end.err, berth.ErrReleased):
		return effects{result: m.end.err}
	}
	return effects{do: doSend, result: m.end.err}
}

// concludes keeps what every later release returns.
func concludes(m *machine, ev event) effects {
	if m.end.final {
		return effects{result: m.end.result}
	}
	m.end.final, m.end.result = true, m.outcome(ev)
	fx := effects{result: m.end.result, told: m.end.result}
	switch {
	case !m.end.own: // its end has been told
	case fx.result != nil:
		fx.tell = endOf(fx.result)
	case ev.stays:
		fx.tell = observe.ReentryEnded
	default:
		fx.tell = observe.Released
	}
	return fx
}

// outcome is what a release returns, by what the server says and by what was known before
// it was sent. What had ended and the engine itself has given back others may have had before its holder asks.
func (m *machine) outcome(ev event) error {
	word, mine := Released(ev.text), ev.fence == m.grant.fence // else the claim had lost its grant, and got another
	cause := m.end.err
	switch {
	case word == GivenBack && mine && (m.end.own || !ev.unasked):
		return nil
	case word == ForceReleased:
		cause = cmp.Or(ev.cause, berth.ErrReleased)
	case word == TakenOver:
		cause = berth.ErrReleased
	case !m.end.own:
	case word == NotHeld && (ev.again || m.end.mayRun):
		return nil // an earlier attempt to release it has done so
	case word == HadExpired && mine, word == NotHeld && ev.cause != nil:
		cause = m.overdue(ev.cause) // its time has passed before the release ran, and a sweep may have come
	default:
		cause = berth.ErrLost // forgotten before its time, or in line again
	}
	return m.ending(cause, ev.now)
}

// suspects notes that the release may have run all the same.
func suspects(m *machine, ev event) effects {
	m.end.mayRun = m.end.mayRun || ev.mayRun
	return effects{tell: observe.ReleaseFailed, told: ev.cause, result: ev.cause}
}

// over reports whether the news is the first one that the hold is over. A release that was not
// answered may be such news, and one that is answered later is not any more.
func (m *machine) over(news observe.Kind) bool {
	switch news {
	case observe.Released, observe.ReleasedByOther, observe.Lost, observe.Expired, observe.ReentryEnded, observe.Detached,
		observe.ReleaseFailed:
		first := !m.end.told
		m.end.told = true
		return first
	}
	return false
}
