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
	answered time.Duration // when the last answered call was sent, or unasked
	calls    int           // how many have failed since
	since    time.Duration // when the first of them was sent
	tell     time.Duration // from when on the observer is to be told
	err      error         // what the last of them met
}

// answered takes note of the answer to a call that was sent at start. It reports
// false for a call that is older than one that was answered before: a heartbeat's
// answer may come late, and says nothing of what the claim has become since. It is
// called with c.mu held.
func (c *Claim) answered(start time.Duration) (newer bool) {
	newer = start >= c.silence.answered
	c.silence = silence{answered: max(start, c.silence.answered)}
	if newer {
		c.sent = 0
	}
	return newer
}

// failed takes note of a call of a claim, sent at start, that the server did not
// answer or did not run, and tells the observer once that has lasted.
func (e *Engine) failed(c *Claim, start time.Duration, err error) {
	e.note(c, start, err)()
}

// note takes note of such a call, and returns what tells the observer.
func (e *Engine) note(c *Claim, start time.Duration, err error) (tell func()) {
	now := e.clock.Now()
	c.mu.Lock()
	s := &c.silence
	if c.phase == ended || start < s.answered {
		c.mu.Unlock()
		return func() {} // nobody waits for it any more, or a later call was answered
	}
	if s.calls == 0 {
		s.since, s.tell = start, start+c.patience()
	}
	s.calls, s.err = s.calls+1, err
	due := now >= s.tell
	if due {
		s.tell = now + silenceAgain
	}
	told, does, hold := *s, c.does(), c.hold
	c.mu.Unlock()
	if !due {
		return func() {}
	}
	return func() {
		e.event(observe.Unavailable, c, func(ev *observe.Event) {
			ev.Silent, ev.Count, ev.Detail, ev.Err = now-told.since, told.calls, does, told.err
			if hold == nil {
				ev.Waited = c.waited(now)
				return
			}
			ev.Fence, ev.Waited, ev.Held, ev.Lease, ev.Left = hold.Fence(), hold.waited, now-hold.since, c.goesBy().Lease, hold.left()
		})
	}
}

// patience is for how long nothing is told. It is called with c.mu held.
func (c *Claim) patience() time.Duration {
	if c.hold == nil {
		return silencePatience
	}
	return min(silencePatience, c.terms.lease()/6, c.Record.Wait/6)
}

// does is what a claim is at, in the words of the event. It is called with c.mu
// held.
func (c *Claim) does() string {
	switch {
	case c.hold != nil:
		return "holds"
	case c.phase == asking:
		return "asks"
	}
	return "waits"
}

// blame makes a wait that ran out of time at a moment a failure where the server
// was silent: it never answered, or its last answer is older than the wait lease,
// so that the claim's place may be gone. Then nobody knows of others in the way.
func (c *Claim) blame(r *berth.AcquireError, now time.Duration) {
	c.mu.Lock()
	silent := c.silence.answered == unasked || now-c.silence.answered > c.Record.Wait
	err := c.silence.err
	c.mu.Unlock()
	if !silent {
		return
	}
	if r.Reason == berth.ReasonTimedOut || r.Reason == berth.ReasonAttempts {
		r.Reason = berth.ReasonFailed
		if err == nil {
			err = errNoAnswer
		}
	}
	if err != nil {
		r.Cause = errors.Join(r.Cause, err)
	}
}
