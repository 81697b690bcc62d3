package engine

import (
	"strings"

	"github.com/berth-go/berth"
)

// drains says whether the process drains.
func (e *Engine) drains() bool { return e.drained() != nil }

// drained is why the process drains, nil if it does not.
func (e *Engine) drained() error {
	if e.cfg.Drains == nil {
		return nil
	}
	return e.cfg.Drains()
}

// released is how a hold has ended that somebody else has ended. In a process that drains the error names the drain, which
// need not be why: the server does not say who has ended a hold.
func (e *Engine) released() error {
	if why := e.drained(); why != nil {
		return endedBy{why}
	}
	return berth.ErrReleased
}

// endedBy is the end of a hold during a drain.
type endedBy struct{ drain error }

// Error is berth.ErrReleased beside the drain.
func (e endedBy) Error() string {
	return berth.ErrReleased.Error() + " (while " + strings.TrimPrefix(e.drain.Error(), "berth: ") + ")"
}

// Unwrap returns both errors.
func (e endedBy) Unwrap() []error { return []error{berth.ErrReleased, e.drain} }

// Drain has the claims leave that ask or wait, and asks for all holds back, once Config.Drains says that the
// process drains. A claim that comes meanwhile is refused by enter: that asks under the mutex under which the
// claims are found here. An owner who holds may take the name again, else what it does could not end. A handle
// whose Wanted is asked for later finds by Config.Drains that it is wanted.
func (e *Engine) Drain() {
	var leave []*Claim
	for _, c := range e.those(func(m *machine) bool { return m.phase == asking || m.phase == waiting }) {
		e.mu.Lock()
		c.inside.Store(e.reenters(c))
		e.mu.Unlock()
		// Its answer may have come before the mark was seen.
		if m := c.see(); !c.inside.Load() || m.phase == waiting {
			leave = append(leave, c)
		}
	}
	for _, c := range leave {
		e.on(c, &event{kind: evDrained, cause: e.drained()})
	}
	for _, c := range e.those((*machine).alive) {
		c.handle.want()
	}
}

// reenters says whether a claim is one more entry of an owner that holds its name here, as far as is
// known. It is called with mu held.
func (e *Engine) reenters(c *Claim) bool {
	if e.cfg.Reenters == nil || !e.cfg.Reenters(c.Kind) || c.Record.Owner == "" {
		return false
	}
	for _, other := range e.claims {
		if m := other.see(); other != c && other.groupKey() == c.groupKey() && m.holds() {
			return true
		}
	}
	return false
}
