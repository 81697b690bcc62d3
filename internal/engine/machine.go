package engine

import "github.com/berth-go/berth/pkg/observe"

// phase is how far a claim has come on this side. It only moves down this list.
type phase uint8

const (
	asking   phase = iota // no answer to its acquire is known
	waiting               // it stands in line
	granted               // it has what it asked for; its caller has not got the handle
	held                  // its caller has the handle
	loose                 // the handle lives on without the server: see Hold.Loosen
	detached              // the server's hold lives on without the handle: see Hold.Detach
	ended
	phases
)

// eventKind is what happens to a claim. What an own call's answer says counts only where no call
// that was sent later was answered before; evSaysTooHeavy, evSaysAbsent and evSaysEnded are final, and count
// all the same.
type eventKind uint8

const (
	evAsk           eventKind = iota // an attempt of its acquire is about to be sent
	evQueued                         // an attempt's answer: it stands in line
	evGranted                        // an attempt's answer, or that of a resume: it holds
	evRefused                        // an attempt's answer: it got nothing
	evSecret                         // a secret was drawn for its record
	evPushed                         // a push says that it was granted
	evPrompted                       // a push says that it has ended, or that somebody wants it back
	evWaited                         // it has waited for WantAfter once more
	evLook                           // its caller looks whether it can have the handle
	evCall                           // an own call, a heartbeat among them, is about to be sent
	evSaysHeld                       // an own call's answer: it holds
	evSaysWaiting                    // an own call's answer: it waits
	evSaysUnknown                    // an own call's answer: the server does not know it
	evSaysTooHeavy                   // an own call's answer: it will never fit any more
	evSaysAbsent                     // an own call's answer: what it waited for has left the pool
	evSaysEnded                      // an own call's answer: somebody else has ended it
	evRestore                        // a restore of it is about to be sent
	evRestored                       // a restore's answer: it waits where it did
	evRestoredHeld                   // a restore's answer: it holds
	evRequeued                       // a requeue's answer: it waits at the end of the line
	evFailed                         // a call of it failed, or counts as unanswered
	evMissed                         // its heartbeat failed, or counts as unanswered
	evRejected                       // its heartbeat failed, and would fail again
	evDrained                        // the process drains
	evTimeUp                         // its local deadline, or its limit, has passed
	evEnd                            // this process has learned that the hold is over
	evSwapping                       // a call begins that exchanges what it holds
	evSwapped                        // an exchange's answer: it holds something else
	evSwapOver                       // the call that exchanges is over
	evLoosen                         // its handle is to go on without the server
	evDetached                       // an own call's answer: nobody renews the hold any more
	evLeave                          // its caller gets an error
	evRelease                        // its handle is released
	evReleased                       // a release's answer
	evReleaseFailed                  // a release failed, or counts as unanswered
	eventKinds
)

// rule is what an event does in a phase: it changes what is known, and says what the engine
// has to do. The rules are in rules_wait.go, rules_hold.go, rules_end.go and silence.go.
type rule func(m *machine, ev event) effects

// table says what each event does in each phase. An event that a phase does not name does
// nothing there.
type table [eventKinds][phases]rule

// course is the table of every claim. `make docs` shows it in docs/generated.
var course = table{
	evAsk:           {asking: sends},
	evQueued:        {asking: joins, ended: tellsLine},
	evGranted:       {asking: takes, ended: tellsLine},
	evRefused:       {asking: denies, ended: tellsLine},
	evSecret:        {asking: proves, waiting: proves},
	evPushed:        {asking: keeps, waiting: believes},
	evPrompted:      {waiting: hurries, granted: hurries, held: hurries},
	evWaited:        {waiting: asksBack},
	evLook:          {waiting: believes, granted: hands, ended: reports},
	evCall:          {waiting: marks, granted: marks, held: marks},
	evSaysHeld:      {waiting: discovers, granted: renews, held: renews},
	evSaysWaiting:   {waiting: stays, granted: loses, held: loses},
	evSaysUnknown:   {waiting: restores, granted: loses, held: loses},
	evSaysTooHeavy:  {waiting: fails, granted: loses, held: loses},
	evSaysAbsent:    {waiting: fails, granted: loses, held: loses},
	evSaysEnded:     {waiting: fails, granted: closes, held: closes},
	evRestore:       {waiting: goesBack},
	evRestored:      {waiting: stands},
	evRestoredHeld:  {waiting: hurries},
	evRequeued:      {waiting: moves},
	evFailed:        {asking: complains, waiting: complains, granted: complains, held: complains, loose: remembers, ended: remembers},
	evMissed:        {waiting: misses, granted: misses, held: misses},
	evRejected:      {waiting: fails, held: refuses},
	evDrained:       {asking: fails, waiting: fails, granted: fails},
	evTimeUp:        {granted: expires, held: expires},
	evEnd:           {granted: closes, held: closes, loose: drops},
	evSwapping:      {held: swaps},
	evSwapped:       {held: exchanges, ended: exchanges},
	evSwapOver:      {held: unswaps},
	evLoosen:        {held: loosens, ended: dropsLate},
	evDetached:      {held: detaches},
	evLeave:         {asking: leaves, waiting: leaves, granted: leaves, ended: leaves},
	evRelease:       {held: releases, loose: drops, ended: releasesAgain},
	evReleased:      {ended: concludes},
	evReleaseFailed: {ended: suspects},
}

// on takes an event, and returns what the engine has to do.
func (m *machine) on(ev event) effects {
	t := m.course
	if t == nil {
		t = &course
	}
	follow := t[ev.kind][m.phase]
	if follow == nil {
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
			m.terms.capacity = ev.counts.capacity
		}
	case evSaysTooHeavy, evSaysAbsent, evSaysEnded, evRestored, evRestoredHeld, evRequeued:
		m.answer(ev.start)
	}
	fx := follow(m, ev)
	fx.over = m.over(fx.tell)
	if ev.wanted && m.holds() && !m.wanted { // of the claim, whichever grant the answer is about
		m.wanted = true
		fx.do |= doWanted
		if m.phase == held {
			fx.tell = observe.Wanted
		}
	}
	return fx
}
