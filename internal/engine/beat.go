package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/heartbeat"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// grant is what is known of a hold: what an own call that began at start said
// is left. Below 0 is without end.
type grant struct {
	fence     int64
	resource  string
	start     time.Duration
	left      time.Duration
	most      time.Duration // the deadline is no later than this, 0 for no bound
	confirmed bool
	sent      sight // what was known when the call was sent, of a claim that is held
}

// takes moves a claim to granted, unless it was granted or has ended already, and
// has its lease kept from now on.
func (e *Engine) takes(c *Claim, g grant) {
	c.mu.Lock()
	if c.phase >= granted {
		c.mu.Unlock()
		return
	}
	waited := c.phase == waiting
	c.phase, c.fence, c.resource, c.confirmed = granted, g.fence, g.resource, g.confirmed
	if g.confirmed {
		c.renewed = g.start
	}
	c.mu.Unlock()
	if waited {
		e.mu.Lock()
		e.leaveLine(c)
		e.mu.Unlock()
	}
	e.keep(c, g)
}

// keep gives the lease of a hold to the heartbeat.
func (e *Engine) keep(c *Claim, g grant) {
	spec := e.held
	if e.cfg.WarnAfter > 0 {
		spec.Warn = g.start + e.cfg.WarnAfter
	}
	e.time(c, &spec, g)
	e.beats.Add(&c.lease, c.Name, spec)
	if p, _ := c.current(); p == ended {
		e.forget(c) // given up in between
	}
}

// time sets what a grant says of a hold's deadlines. What is not confirmed has
// the wait lease, and its margin.
func (e *Engine) time(c *Claim, spec *heartbeat.Spec, g grant) {
	r := c.goesBy()
	spec.Renews = !r.NoRenew && r.Lease != berth.Forever
	// However long the lease, what became of the hold is heard as soon as a
	// waiter would hear it.
	spec.Lease, spec.Pace = r.lease(), c.Record.Wait
	left := g.left
	if left < 0 {
		left = berth.Forever
	}
	margin := spec.Lease
	if !g.confirmed {
		margin = min(c.Record.Wait, left) // an entry may end long before its wait lease would: clocks drift for no longer
	}
	spec.Limit = c.limited(g, spec)
	before := spec.Deadline
	spec.Deadline = heartbeat.Deadline(g.start, left, margin)
	if g.most != 0 && (spec.Deadline == 0 || spec.Deadline > g.most) {
		spec.Deadline = g.most
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.loose {
		spec.Renews, spec.Deadline, spec.Limit = false, 0, 0 // only its handle is left
		return
	}
	if before != 0 && c.liftedAt > g.sent.step {
		// Something was taken back since that call was sent: its answer may be from
		// before, and the server has been asked again.
		spec.Deadline = min(spec.Deadline, before)
	}
	c.hears(spec.Deadline)
	spec.Beyond = c.beyond
}

// restorePause is the shortest pause before a restore that failed is tried again.
const restorePause = 100 * time.Millisecond

// beaten is a batch of the heartbeat that is sent: the own calls of claims of one name.
type beaten struct {
	Batch
	sent []sight // what was known of each claim before
}

// beatMany is the heartbeat's: it sends batches, and answers them one by one. A batch waits
// for no other one's restore.
func (e *Engine) beatMany(ctx context.Context, batches []heartbeat.Batch, answer func(i int, outcomes []heartbeat.Outcome, err error)) {
	all, calls := make([]beaten, len(batches)), make([]Batch, len(batches))
	for i, b := range batches {
		all[i] = sighted(b)
		calls[i] = all[i].Batch
	}
	start := e.clock.Now() // sighted before, so that nothing since is taken for older
	for _, b := range calls {
		for _, c := range b.Claims {
			c.mu.Lock()
			c.sent = start
			c.mu.Unlock()
		}
	}
	var restores sync.WaitGroup
	defer restores.Wait()
	e.cfg.Scripts.BeatMany(scriptkit.Patient(scriptkit.Internal(ctx)), calls, func(i int, round Round, err error) {
		if err != nil {
			// Of those that were missed already, this is no news.
			e.unheard(slices.DeleteFunc(calls[i].Claims, func(c *Claim) bool { return !c.misses(start) }), start, err)
			answer(i, nil, err)
			return
		}
		outcomes, unknown := e.hearAll(&all[i], start, round)
		if len(unknown) == 0 {
			answer(i, outcomes, nil)
			return
		}
		restores.Go(func() {
			e.restoreOf(ctx, calls[i], unknown, outcomes)
			answer(i, outcomes, nil)
		})
	})
}

func sighted(b heartbeat.Batch) beaten {
	sent := beaten{Batch{b.Key, make([]*Claim, len(b.Leases))}, make([]sight, len(b.Leases))}
	for i, l := range b.Leases {
		sent.Claims[i] = l.Claim.(*Claim)
		sent.sent[i] = sent.Claims[i].sight()
	}
	return sent
}

// hearAll takes the answer to a batch that was sent at start. unknown are the claims that
// are to be restored; their calls are held.
func (e *Engine) hearAll(b *beaten, start time.Duration, round Round) (outcomes []heartbeat.Outcome, unknown []int) {
	e.tide(b.Name, start, round.Tide)
	outcomes = make([]heartbeat.Outcome, len(b.Claims))
	for i, c := range b.Claims {
		var forgotten bool
		outcomes[i], forgotten = e.hear(c, start, b.sent[i], round.Status[i])
		if forgotten && c.calls.TryLock() {
			unknown = append(unknown, i)
		}
	}
	return outcomes, unknown
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
	slices.SortFunc(unknown, func(a, b int) int { return claims[a].compare(claims[b]) })
	lost := make([]*Claim, len(unknown))
	for i, at := range unknown {
		lost[i] = claims[at]
	}
	restored, err := e.restore(ctx, b.Name, lost)
	if err != nil {
		// The others were renewed all the same. These ask again soon.
		time.AfterFunc(max(restorePause, e.cfg.Wait/30), func() { e.beats.Kick(b.Name) })
		return
	}
	for i, at := range unknown {
		outcomes[at] = restored[i]
	}
}

// unheard notes that a call of claims, sent at start, has failed with an error.
func (e *Engine) unheard(claims []*Claim, start time.Duration, err error) {
	for _, c := range claims {
		if scriptkit.MaybeRan(err) {
			c.unanswered(start)
		}
		e.failed(c, start, err)
	}
}

// beatFailed is called when a heartbeat of a claim has failed, or counts as
// unanswered. Network errors are waited out; what the server refuses for good ends a
// wait.
func (e *Engine) beatFailed(l *heartbeat.Lease, err error) {
	c := l.Claim.(*Claim)
	if errors.Is(err, heartbeat.ErrNoAnswer) {
		c.mu.Lock()
		start := c.sent
		c.mu.Unlock()
		if c.misses(start) {
			e.unheard([]*Claim{c}, start, errLate)
		}
		return
	}
	if !scriptkit.Repeatable(err) {
		c.endWaiting(&berth.AcquireError{Reason: berth.ReasonFailed, Cause: err})
	}
}

// errLate is what a heartbeat meets whose answer has not come in time.
var errLate = &scriptkit.Error{Attempts: 1, MaybeRan: true, Repeatable: true, Unavailable: true, Err: errNoAnswer}

// sight is what was known of a claim when a call was sent. The answer is as old
// as that: a push may have overtaken it.
type sight struct {
	pushes int  // how many had come
	held   bool // it was granted
	begun  bool // an own call has followed the grant
	step   int  // what had become of its deadline
	fence  int64
}

// sight is what is known of a claim now, before a call of it is sent. A heartbeat
// that is still on its way counts as unanswered from then on.
func (c *Claim) sight() sight {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sent != 0 && !c.mayRun {
		c.mayRun, c.since = true, c.sent
	}
	return sight{pushes: c.pushes, held: c.phase == granted, begun: c.confirmed, step: c.steps, fence: c.fence}
}

// compare orders claims by where they stand.
func (c *Claim) compare(other *Claim) int {
	return strings.Compare(c.standing(), other.standing())
}

func (c *Claim) standing() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.place
}

// hear takes what an own call that began at start has learned of a claim; sent
// is what was known of it then. It reports true for a claim that
// waits here and that the server does not know any more.
func (e *Engine) hear(c *Claim, start time.Duration, sent sight, s Status) (out heartbeat.Outcome, forgotten bool) {
	c.mu.Lock()
	p, newer := c.phase, c.answered(start)
	c.mu.Unlock()
	if !newer && !s.Word.final() {
		return heartbeat.Outcome{Skip: true}, false
	}
	switch p {
	case waiting:
		return e.hearWaiting(c, start, sent, s)
	case granted:
		return e.hearHeld(c, start, sent, s), false
	default:
		return heartbeat.Outcome{Skip: true}, false
	}
}

func (e *Engine) hearWaiting(c *Claim, start time.Duration, sent sight, s Status) (out heartbeat.Outcome, forgotten bool) {
	switch s.Word {
	case WordHeld:
		c.mu.Lock()
		pushed := c.pushes > c.denied
		c.mu.Unlock()
		if !pushed {
			e.hub.Doubt(e.cfg.Scripts.Key(c.Name))
		}
		e.takes(c, grant{fence: s.Fence, resource: s.Resource, start: start, left: s.Left, confirmed: true})
		c.wake()
		return heartbeat.Outcome{Skip: true}, false
	case WordWaiting:
		c.mu.Lock()
		c.heard, c.left, c.mayRun = start, s.Left, false
		c.denied = max(c.denied, sent.pushes)
		c.mu.Unlock()
		return heartbeat.Outcome{Left: s.Left}, false
	case WordUnknown:
		return heartbeat.Outcome{Skip: true}, true
	}
	refusal := &berth.AcquireError{Reason: berth.ReasonGone}
	if s.Word == WordTooHeavy {
		refusal.Reason, refusal.Capacity, refusal.Held, refusal.Waiting = berth.ReasonTooHeavy, s.Capacity, s.Held, s.Waiting
	}
	c.endWaiting(refusal)
	return heartbeat.Outcome{Gone: refusal}, false
}

func (e *Engine) hearHeld(c *Claim, start time.Duration, sent sight, s Status) heartbeat.Outcome {
	switch s.Word {
	case WordHeld:
		c.mu.Lock()
		switch v := c.judge(sent, s); {
		case v == otherGrant:
			c.mu.Unlock()
			e.lose(c)
			return heartbeat.Outcome{Gone: berth.ErrLost}
		case v == unclear:
			hurry := !c.exchanging
			c.askAgain = c.exchanging // when that call is over
			c.mu.Unlock()
			if hurry {
				e.beats.Hurry(&c.lease)
			}
			return heartbeat.Outcome{Skip: true}
		case c.liftedAt > sent.step:
			c.mu.Unlock()
			// It may be from before an extension was taken back, which the
			// server is asked about since.
			return heartbeat.Outcome{Skip: true}
		}
		first := !c.confirmed
		c.confirmed, c.renewed = true, start
		left := s.Left
		if left < 0 {
			left = berth.Forever
		}
		c.hears(heartbeat.Deadline(start, left, c.terms.lease()))
		low := len(c.ceilings) > 0 // which the answer has lifted
		c.mu.Unlock()
		if first || low {
			e.retime(c, grant{start: start, left: s.Left, confirmed: true, sent: sent})
		}
		return heartbeat.Outcome{Left: left}
	case WordTaken, WordReleased, WordGone:
		return heartbeat.Outcome{Gone: berth.ErrReleased}
	case WordWaiting, WordUnknown, WordTooHeavy:
		if !sent.held {
			return heartbeat.Outcome{Skip: true} // older than the grant
		}
		if s.Word == WordWaiting {
			// The server knows nothing of a hold, and its place in line is no use
			// to anybody any more.
			e.lose(c)
		}
	}
	// Its own limit has not passed here, which it would have by now.
	return heartbeat.Outcome{Gone: berth.ErrLost}
}

// verdict is what an answer that a claim holds says of the grant that is believed in.
type verdict int

const (
	sameGrant  verdict = iota // it is of that grant
	otherGrant                // it is of another one: that one was lost
	unclear                   // it may be older than that one
)

// judge compares the grant that an answer names with the one that is believed in. A
// failover may have lost that one, of which a push or an answer told, and the claim
// may have got another. It is called with c.mu held, so that a handle either is there
// and loses, or is made of what the answer names.
func (c *Claim) judge(sent sight, s Status) verdict {
	switch {
	case s.Fence == c.fence && s.Resource == c.resource:
		return sameGrant
	case c.exchanging || sent.fence != c.fence:
		return unclear // what is exchanged changes both, and a push overtakes what is under way
	case c.hold != nil:
		return otherGrant
	}
	c.fence, c.resource = s.Fence, s.Resource
	return sameGrant
}

// retime gives the heartbeat a hold's new deadlines.
func (e *Engine) retime(c *Claim, g grant) {
	e.beats.Update(&c.lease, func(spec *heartbeat.Spec) { e.time(c, spec, g) })
}

// restore puts claims that wait here back where they stood. It is called with
// the calls of all of them held.
func (e *Engine) restore(ctx context.Context, name string, claims []*Claim) ([]heartbeat.Outcome, error) {
	outcomes := make([]heartbeat.Outcome, len(claims))
	var wanted []*Claim
	var at []int
	for i, c := range claims {
		outcomes[i].Skip = true
		c.mu.Lock()
		// Given up, or granted, since: to put it back would leave a ghost.
		if c.phase == waiting {
			c.doubt = true // from here on a push may be about the grant that it had before
			wanted, at = append(wanted, c), append(at, i)
		}
		c.mu.Unlock()
	}
	if len(wanted) == 0 {
		return outcomes, nil
	}
	start := e.clock.Now()
	round, err := e.cfg.Scripts.Restore(ctx, name, wanted)
	if err != nil {
		e.unanswered(wanted, err)
		for _, c := range wanted {
			e.failed(c, start, err)
		}
		return nil, err
	}
	e.tide(name, start, round.Tide)
	for i, c := range wanted {
		c.mu.Lock()
		c.answered(start)
		c.mu.Unlock()
		outcomes[at[i]] = e.hearRestored(c, start, round.Status[i])
	}
	return outcomes, nil
}

// unanswered takes note of a restore that may still be on its way: it brings a
// claim back like a late acquire, so a cancel has to leave a tombstone.
func (e *Engine) unanswered(claims []*Claim, err error) {
	if !scriptkit.MaybeRan(err) {
		return
	}
	for _, c := range claims {
		c.mu.Lock()
		c.lost = true
		c.mu.Unlock()
	}
}

func (e *Engine) hearRestored(c *Claim, start time.Duration, s Status) heartbeat.Outcome {
	switch s.Word {
	case WordWaiting:
		c.mu.Lock()
		c.heard, c.left, c.mayRun = start, c.Record.Wait, false
		c.mu.Unlock()
		e.event(observe.Restored, c, func(ev *observe.Event) { ev.Waited = c.waited(e.clock.Now()) })
		return heartbeat.Outcome{Left: c.Record.Wait}
	case WordHeld:
		e.beats.Hurry(&c.lease) // the next beat says how much is left
		return heartbeat.Outcome{Skip: true}
	}
	out, _ := e.hearWaiting(c, start, sight{}, s)
	return out
}

// lower brings a hold's local deadline down to what a call that begins at start
// will leave of it on the server, at the least: the answer may be lost.
func (e *Engine) lower(c *Claim, start time.Duration) {
	e.beats.Update(&c.lease, func(spec *heartbeat.Spec) {
		least := heartbeat.Deadline(start, spec.Lease, spec.Lease)
		if least != 0 && (spec.Deadline == 0 || least < spec.Deadline) {
			spec.Deadline = least
		}
	})
}

// call sends one own call of a claim and takes its answer; see Hold.ask for held. An
// answer that a newer one has overtaken says nothing of the deadline, and what the
// newer one said may not count either: the call asks again.
func (e *Engine) call(c *Claim, mode Mode, held func()) error {
	c.calls.Lock()
	defer c.calls.Unlock()
	for {
		if p, err := c.current(); p == ended {
			return err
		}
		overtaken, err := e.callOnce(c, mode)
		if err != nil {
			return err
		}
		if p, _ := c.current(); p != granted {
			return nil
		}
		if overtaken {
			continue
		}
		if held != nil {
			held()
		}
		return nil
	}
}

// callOnce is one round of call.
func (e *Engine) callOnce(c *Claim, mode Mode) (overtaken bool, err error) {
	ctx := context.Background() // every attempt has its own limit
	sent, start := c.sight(), e.clock.Now()
	if sent.held && (mode == ModeRenew || mode == ModeDetach || !sent.begun) {
		e.lower(c, start)
	}
	round, err := e.cfg.Scripts.Beat(ctx, c.Name, mode, []*Claim{c})
	if err != nil {
		e.unheard([]*Claim{c}, start, err)
		return false, err
	}
	e.tide(c.Name, start, round.Tide)
	out, forgotten := e.hear(c, start, sent, round.Status[0])
	if forgotten {
		outcomes, err := e.restore(ctx, c.Name, []*Claim{c})
		if err != nil {
			return false, err
		}
		out = outcomes[0]
	}
	switch p, _ := c.current(); {
	case p != granted:
	case out.Gone != nil:
		e.endHold(c, out.Gone)
	case !out.Skip:
		e.retime(c, grant{start: start, left: out.Left, confirmed: true, sent: sent})
	default:
		overtaken = sent.held
	}
	return overtaken, nil
}
