package engine

import (
	"context"
	"math/rand/v2"
	"time"
)

// line is a name on which claims of this node wait. It has the node's one timer
// for it: the time at which a place may become free without anybody's call.
type line struct {
	waiters  int           // guarded by Engine.mu
	apart    int           // guarded by Engine.mu: how many of them wait for one resource alone
	timer    *time.Timer   // guarded by Engine.mu, nil until first set
	sweeping bool          // guarded by Engine.mu: one sweep is in flight
	again    bool          // guarded by Engine.mu: sweep once more after it
	due      time.Duration // guarded by Engine.mu: when the timer fires
	pushed   time.Duration // guarded by Engine.mu: when a push last came
}

// Those who are not first in line leave the first some time to sweep.
const (
	othersAfter  = 10 * time.Millisecond
	othersSpread = 30 * time.Millisecond
	sweepPause   = 100 * time.Millisecond
)

// joinLine counts a waiting claim on its name.
func (e *Engine) joinLine(c *Claim) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.claims[c.ID] != c || c.inLine {
		return
	}
	c.inLine = true
	l := e.lines[c.line()]
	if l == nil {
		l = &line{}
		e.lines[c.line()] = l
	}
	l.waiters++
	if c.apart = c.see().place.apart; c.apart {
		l.apart++
	}
}

// leaveLine takes it off again. It is called with e.mu held.
func (e *Engine) leaveLine(c *Claim) {
	if !c.inLine {
		return
	}
	c.inLine = false
	l := e.lines[c.line()]
	if c.apart {
		l.apart--
	}
	if l.waiters--; l.waiters > 0 {
		return
	}
	if l.timer != nil {
		l.timer.Stop()
	}
	delete(e.lines, c.line())
}

// stopTimers is called with e.mu held.
func (e *Engine) stopTimers() {
	for _, l := range e.lines {
		if l.timer != nil {
			l.timer.Stop()
		}
	}
}

// nextDeadline takes what the reply to a request that began at start told about the line:
// it sets the name's timer anew, or sweeps at once where the script stopped at
// its bound. The request was about so many of the claims that wait here.
func (e *Engine) nextDeadline(at Line, start time.Duration, t NextDeadline, about int) {
	if t.More {
		e.sweepSoon(at)
		return
	}
	if t.In < 0 || !t.Own && e.allApart(at) {
		return
	}
	wait := max(t.In, time.Millisecond)
	if !t.First {
		wait += othersAfter + rand.N(othersSpread)
	}
	if t.Own && e.isPart(at, about) {
		start = ofSome // others of this node wait for other moments
	}
	e.setTimer(at, wait, start)
}

// isPart says whether so many of the claims that wait here for a name are not all of them, while some
// wait for one resource alone: each of those has a moment of its own.
func (e *Engine) isPart(at Line, about int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.lines[at]
	return l != nil && l.apart > 0 && about < l.waiters
}

// allApart says whether every claim that waits here for a name waits for one resource alone. What
// becomes free elsewhere is nothing to them: a sweep at each such moment would be a herd's.
func (e *Engine) allApart(at Line) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.lines[at]
	return l != nil && l.apart == l.waiters
}

// earlierDeadline takes a push about an earlier deadline, in so many milliseconds: it never
// sets the timer later.
func (e *Engine) earlierDeadline(at Line, in int64) {
	if in >= 0 && in <= farthestPush {
		e.setTimer(at, max(time.Duration(in)*time.Millisecond, time.Millisecond), byPush)
	}
}

// farthestPush is further off than any deadline that a script pushes (ms), and nearer than
// what a time.Duration cannot hold.
const farthestPush = 1 << 43

// What stands for the start of a request where the timer is only to be set sooner: by a push, or by
// a reply that is about some of the claims.
const (
	byPush time.Duration = -1 - iota
	ofSome
)

// setTimer sets the one timer of a name, for what was learned from a request that
// began at start. A push, and a reply that a push may have overtaken, only set it
// sooner.
func (e *Engine) setTimer(at Line, in, start time.Duration) {
	now := e.clock.Now()
	due := now + in
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.lines[at]
	if l == nil || e.closed {
		return
	}
	if start == byPush {
		l.pushed = now
	}
	if l.timer == nil {
		l.timer = time.AfterFunc(in, func() { e.momentCame(at) })
	} else if start > l.pushed || due < l.due || l.due <= now {
		l.timer.Reset(in)
	} else {
		return
	}
	l.due = due
}

// momentCame has the server look at a name whose timer has fired. Claims that wait for one resource
// each ask themselves: only the answer to that says which moment is the next one of theirs. Nothing is asked where nobody
// waits any more: the timer may have fired just before it was stopped.
func (e *Engine) momentCame(at Line) {
	e.mu.Lock()
	l := e.lines[at]
	all := l != nil && l.apart == l.waiters
	e.mu.Unlock()
	switch {
	case l == nil:
	case all:
		e.beats.Kick(e.cfg.Scripts.Key(at))
	default:
		e.sweepSoon(at)
	}
}

// sweepSoon sweeps a name on a goroutine of its own. There is at most one sweep
// of a name in flight.
func (e *Engine) sweepSoon(at Line) {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return
	}
	l := e.lines[at]
	if l != nil && l.sweeping {
		l.again = true
		e.mu.Unlock()
		return
	}
	if l != nil {
		l.sweeping, l.again = true, false
	}
	e.work.Add(1)
	e.mu.Unlock()
	go func() {
		defer e.work.Done()
		e.sweep(at)
	}()
}

// sweep drops what has expired until the script says that no more is left. It returns how much that was; less than 0 says
// that the script goes on for ever.
func (e *Engine) sweep(at Line) (dropped int) {
	var t NextDeadline
	var err error
	var start time.Duration
	var rounds Rounds
	for more := true; more; more = rounds.Next(&t) && !e.isClosing() {
		start = e.clock.Now()
		if t, err = e.cfg.Scripts.Sweep(context.Background(), at); err != nil {
			break
		}
		dropped += t.Dropped
	}
	if rounds.over() {
		dropped = -1
	}
	e.mu.Lock()
	l := e.lines[at]
	again := false
	if l != nil {
		l.sweeping, again = false, l.again
	}
	e.mu.Unlock()
	switch {
	case err != nil:
		e.setTimer(at, sweepPause, start) // while anybody waits
	case again:
		e.sweepSoon(at)
	case e.allApart(at):
		e.beats.Kick(e.cfg.Scripts.Key(at)) // a sweep says nothing of their moments
	default:
		e.nextDeadline(at, start, t, 0)
	}
	return dropped
}

func (e *Engine) isClosing() bool {
	return isClosed(e.closing)
}
