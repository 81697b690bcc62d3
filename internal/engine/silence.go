package engine

import (
	"errors"
	"fmt"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/observe"
)

// errNoAnswer is why a wait failed that the server was asked for in vain.
var errNoAnswer = fmt.Errorf("%w: it has not answered yet", berth.ErrUnavailable)

const (
	// silencePatience is after how much silence the observer is told. A hold with a
	// short lease has less of it, so that it is told of before it is lost.
	silencePatience = 3 * time.Second
	// silenceAgain is how often the observer is told again.
	silenceAgain = time.Minute
	// unasked stands for the start of an answered call where there was none.
	unasked time.Duration = -1
)

// silence is what a claim knows of the calls that were not answered, or not run,
// since the last one that was.
type silence struct {
	calls int           // how many have failed
	since time.Duration // when the first of them was sent
	tell  time.Duration // from when on the observer is to be told
	err   error         // what the last of them met
	newer error         // not nil where a newer form has refused one
}

// complains notes the silence, and has the observer told when it lasts. A call that may bring
// the claim back makes its removal leave a tombstone.
func complains(m *machine, ev event) effects {
	remembers(m, ev)
	if ev.mayRun {
		m.began(ev.start)
	}
	s := &m.silence
	if ev.start < m.news.answered {
		return effects{} // a later call was answered
	}
	if s.calls == 0 {
		s.since, s.tell = ev.start, ev.start+m.patience()
	}
	s.calls, s.err = s.calls+1, ev.cause
	if ev.now < s.tell {
		return effects{}
	}
	s.tell = ev.now + silenceAgain
	told := *s
	return effects{tell: observe.Unavailable, silence: &told}
}

// remembers has the claim's removal leave a tombstone, after a call that may bring the claim
// back.
func remembers(m *machine, ev event) effects {
	m.news.lost = m.news.lost || ev.revives
	return effects{}
}

// misses notes the silence once for each heartbeat: one that was answered or missed before is
// no news.
func misses(m *machine, ev event) effects {
	if ev.start == unasked { // whichever it is
		ev.start = m.news.sent
	}
	if ev.start == 0 || m.news.sent != ev.start {
		return effects{}
	}
	m.news.sent = 0
	return complains(m, ev)
}

// refuses has the observer told once that a newer form refuses what renews the hold. Other
// refusals are told as a silence is.
func refuses(m *machine, ev event) effects {
	if m.silence.newer != nil || !errors.Is(ev.cause, berth.ErrIncompatible) {
		return effects{}
	}
	m.silence.newer = ev.cause
	return effects{tell: observe.RenewRefused, told: ev.cause}
}

// patience is for how long nothing is told.
func (m *machine) patience() time.Duration {
	if m.phase != held {
		return silencePatience
	}
	return min(silencePatience, m.terms.lease()/6, m.claim.Record.Wait/6)
}

// does is what a claim is at, in the words of the event.
func (m *machine) does() string {
	switch m.phase {
	case held:
		return "holds"
	case asking:
		return "asks"
	}
	return "waits"
}
