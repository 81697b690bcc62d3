package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/guard"
	"github.com/berth-go/berth/internal/heartbeat"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// restorePause is the shortest pause before a restore that failed is tried again.
const restorePause = 100 * time.Millisecond

// beaten is a batch of the heartbeat that is sent: the own calls of claims of one name.
type beaten struct {
	Batch
	seen []snapshot // what was known of each claim before
}

// beatMany is the heartbeat's: it sends batches, and answers them one by one. A batch waits
// for no other one's restore.
func (e *Engine) beatMany(ctx context.Context, batches []heartbeat.Batch, answer func(i int, outcomes []heartbeat.Outcome, err error)) {
	all, calls := make([]beaten, len(batches)), make([]Batch, len(batches))
	start := e.clock.Now()
	for i, b := range batches {
		all[i] = snapshots(b, start)
		calls[i] = all[i].Batch
	}
	var restores sync.WaitGroup
	defer restores.Wait()
	e.cfg.Scripts.BeatMany(scriptkit.Patient(scriptkit.Internal(ctx)), calls, func(i int, round Round, err error) {
		var outcomes []heartbeat.Outcome
		var unknown []int
		if err == nil {
			err = e.guarded(func() { outcomes, unknown = e.hearAll(&all[i], start, round) })
		}
		if err != nil {
			for _, c := range calls[i].Claims {
				e.on(c, &event{kind: evMissed, start: start, mayRun: scriptkit.MaybeRan(err), cause: err})
			}
			answer(i, nil, err)
			return
		}
		if len(unknown) == 0 {
			answer(i, outcomes, nil)
			return
		}
		restores.Go(func() {
			answer(i, outcomes, e.guarded(func() { e.restoreOf(ctx, calls[i], unknown, outcomes) }))
		})
	})
}

// guarded takes in one answer to heartbeats. Where that panics, the batch counts as one that failed, and the others,
// and the next ones, go on.
func (e *Engine) guarded(take func()) error {
	err := guard.Run("the answer to a heartbeat", e.cfg.Observe, func() error {
		take()
		return nil
	})
	if err == nil {
		return nil
	}
	return &scriptkit.Error{Attempts: 1, MaybeRan: true, Repeatable: true, Err: err}
}

// snapshots is a batch that is about to be sent.
func snapshots(b heartbeat.Batch, start time.Duration) beaten {
	sent := beaten{Batch{b.Leases[0].Claim.(*Claim).Name, make([]*Claim, len(b.Leases))}, make([]snapshot, len(b.Leases))}
	for i, l := range b.Leases {
		c := l.Claim.(*Claim)
		sent.Claims[i], sent.seen[i] = c, c.on(&event{kind: evCall, start: start, beats: true}).seen
	}
	return sent
}

// hearAll takes the answer to a batch that was sent at start. unknown are the claims that
// are to be restored; their calls are held.
func (e *Engine) hearAll(b *beaten, start time.Duration, round Round) (outcomes []heartbeat.Outcome, unknown []int) {
	e.nextDeadline(b.Claims[0].line(), start, round.NextDeadline, round.waiting())
	outcomes = make([]heartbeat.Outcome, len(b.Claims))
	for i, c := range b.Claims {
		fx := e.hear(c, start, 0, b.seen[i], round.Status[i])
		answer := timing{start: start, left: fx.left, confirmed: true, version: b.seen[i].version, renews: true}
		if m := c.see(); fx.has(doTime) {
			e.retime(c, answer)
		} else if fx.has(doUse) && m.holds() && c.part.Load() != nil {
			e.relimit(c, answer)
		}
		outcomes[i] = fx.outcome()
		if fx.has(doRestore) {
			unknown = append(unknown, i)
		}
	}
	// All at the end: none stays locked if the answer of another one panics.
	return outcomes, slices.DeleteFunc(unknown, func(i int) bool { return !b.Claims[i].calls.TryLock() })
}

// outcome is what the heartbeat makes of an answer. An end needs none: a claim that
// has ended has left the heartbeat.
func (fx *effects) outcome() heartbeat.Outcome {
	left := fx.left
	if left < 0 {
		left = berth.Forever
	}
	return heartbeat.Outcome{Left: left, Skip: !fx.has(doUse)}
}

// restoreOf restores those claims of a batch that are unknown, and sets their outcomes.
func (e *Engine) restoreOf(ctx context.Context, b Batch, unknown []int, outcomes []heartbeat.Outcome) {
	claims := b.Claims
	defer func() {
		for _, i := range unknown {
			claims[i].calls.Unlock()
		}
	}()
	// In the order of their old places, so that none passes another.
	slices.SortFunc(unknown, func(a, b int) int { return strings.Compare(claims[a].see().place.at, claims[b].see().place.at) })
	lost := make([]*Claim, len(unknown))
	for i, at := range unknown {
		lost[i] = claims[at]
	}
	restored, err := e.restore(ctx, b.Name, lost)
	if err != nil {
		// The others were renewed all the same. These ask again soon.
		time.AfterFunc(max(restorePause, b.Claims[0].Record.Wait/30), func() { e.beats.Kick(b.Claims[0].key) })
		return
	}
	for i, at := range unknown {
		outcomes[at] = restored[i]
	}
}

// beatFailed is called when a heartbeat of a claim has failed, or counts as
// unanswered. Network errors are waited out; what the server refuses for good ends a
// wait.
func (e *Engine) beatFailed(l *heartbeat.Lease, err error) {
	c := l.Claim.(*Claim)
	if errors.Is(err, heartbeat.ErrNoAnswer) {
		e.on(c, &event{kind: evMissed, start: unasked, mayRun: true, cause: errLate})
	} else if !scriptkit.Repeatable(err) {
		e.on(c, &event{kind: evRejected, cause: err})
	}
}

// beaten tells the observer what became of heartbeats that were sent together.
func (e *Engine) beaten(f heartbeat.Flown) {
	ev := observe.Event{Kind: observe.Heartbeat, Node: e.cfg.Node, Late: f.Late}
	if f.Answered > 0 {
		ev.Count = f.Answered
		e.cfg.Observe(ev)
	}
	if f.Unanswered > 0 {
		ev.Count, ev.Err = f.Unanswered, f.Err
		e.cfg.Observe(ev)
	}
}

// errLate is the error of a heartbeat whose answer has not come in time.
var errLate = &scriptkit.Error{Attempts: 1, MaybeRan: true, Repeatable: true, Unavailable: true, Err: errNoAnswer}

// hear takes what an own call that began at start, and asked for a lease, 0 for none, has learned of
// a claim; seen is what was known of it then.
func (e *Engine) hear(c *Claim, start, lease time.Duration, seen snapshot, s Status) effects {
	// The clock comes first: a server that has dropped the claim does not know that its limit was the cause.
	if cause := c.lease.Err(e.clock.Now()); cause != nil {
		e.leaseEnded(c, cause)
	}
	ev := &event{
		kind: heard(s.Word), start: start, seen: seen, left: s.Left, lease: lease, gift: gift{s.Fence, s.Resource},
		counts: counts{s.Capacity, s.Held, s.Waiting},
	}
	switch ev.kind {
	case evSaysEnded:
		switch ev.cause = e.released(); {
		case e.outdated():
			ev.cause = berth.ErrLost // whoever has ended it there: the node had lost it before
		case s.Word == WordTaken:
			ev.cause = berth.ErrReleased
		}
	case evSaysUnknown:
		e.LostData()
	case evSaysWaiting:
		ev.asked = s.Word == WordAsked
	case evSaysHeld:
		ev.wanted = s.Word == WordWanted
		ev.stale = c.part.Load().seen() != seen.version
	}
	return e.on(c, ev)
}

// heard is the event of a word.
func heard(w Word) eventKind {
	switch w {
	case WordHeld, WordWanted:
		return evSaysHeld
	case WordWaiting, WordAsked:
		return evSaysWaiting
	case WordTooHeavy:
		return evSaysTooHeavy
	case WordAbsent:
		return evSaysAbsent
	case WordTaken, WordGone, WordReleased:
		return evSaysEnded
	}
	return evSaysUnknown
}

// restore puts claims that wait here back where they stood. It is called with
// the calls of all of them held.
func (e *Engine) restore(ctx context.Context, name string, claims []*Claim) ([]heartbeat.Outcome, error) {
	outcomes := make([]heartbeat.Outcome, len(claims))
	var wanted []*Claim
	var at []int
	for i, c := range claims {
		outcomes[i].Skip = true
		// Given up, or granted, since: to put it back would leave a ghost.
		if fx := c.on(&event{kind: evRestore}); fx.has(doSend) {
			wanted, at = append(wanted, c), append(at, i)
		}
	}
	if len(wanted) == 0 {
		return outcomes, nil
	}
	start := e.clock.Now()
	round, err := e.cfg.Scripts.Restore(ctx, name, wanted)
	if err != nil {
		for _, c := range wanted {
			// What is still on its way brings a claim back like a late acquire.
			e.on(c, &event{kind: evFailed, start: start, revives: scriptkit.MaybeRan(err), cause: err})
		}
		return nil, err
	}
	e.nextDeadline(wanted[0].line(), start, round.NextDeadline, round.waiting())
	for i, c := range wanted {
		s := &round.Status[i]
		ev := &event{kind: heard(s.Word), start: start, counts: counts{s.Capacity, s.Held, s.Waiting}}
		switch ev.kind {
		case evSaysWaiting:
			ev.kind = evRestored
		case evSaysHeld:
			ev.kind = evRestoredHeld // the next beat says how much is left
		case evSaysEnded:
			ev.cause = e.released()
		}
		fx := e.on(c, ev)
		outcomes[at[i]] = fx.outcome()
	}
	return outcomes, nil
}
