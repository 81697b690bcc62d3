package engine

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/gate"
	"github.com/berth-go/berth/internal/pace"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// ask is the asking of one claim, in attempts. One goroutine at a time is in charge of
// it. An attempt that is not answered within CallTimeout counts as unanswered: another
// goroutine goes on, and the attempt's own only waits for its late answer.
type ask struct {
	e       *Engine
	c       *Claim
	ctx     context.Context // its end ends the repeating, never an attempt
	door    *gate.Door      // each attempt passes it
	call    askContext
	pace    pace.Pace
	attempt int                 // for whoever is in charge
	tries   tries               // likewise
	failure error               // likewise: of the last attempt that failed
	sent    time.Duration       // likewise: when this attempt was sent, unasked where it was not
	refusal *berth.AcquireError // written before call ends: its outcome, nil where the claim holds or waits
	mu      sync.Mutex          // held while an answer is taken, or the outcome is
}

// askContext is the context of the attempts of an asking. It ends when the asking has: then
// nobody wants an answer any more.
type askContext struct {
	context.Context // patient
	over            chan struct{}
}

// patient has the values of a context that alone bounds its attempts, and whose end is no
// caller's.
var patient = scriptkit.Patient(scriptkit.Internal(context.Background()))

func (c *askContext) Done() <-chan struct{} { return c.over }

func (c *askContext) Err() error {
	if isClosed(c.over) {
		return context.Canceled
	}
	return nil
}

// ask sends the acquire until the server has answered. The end of ctx ends the
// repeating, never an attempt: the cancel must not overtake it.
func (e *Engine) ask(ctx context.Context, c *Claim) *berth.AcquireError {
	door := e.doors.to(c)
	if refusal := e.pass(ctx, c, door); refusal != nil {
		c.kept = true
		return refusal
	}
	a := &ask{
		e: e, c: c, ctx: ctx, door: door, call: askContext{patient, make(chan struct{})}, pace: *pace.New(e.cfg.Retry),
	}
	if ctx.Done() == nil {
		a.run()
		<-a.call.over
		return a.refusal
	}
	e.spawn(a.run)
	select {
	case <-a.call.over:
		return a.refusal
	case <-ctx.Done():
	case <-c.Closing:
	case <-e.closing:
	}
	return cutShort
}

// ends ends the asking, unless it has ended before. Nobody need wait for a late answer
// any more.
func (a *ask) ends(refusal *berth.AcquireError) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !isClosed(a.call.over) {
		a.refusal = refusal
		close(a.call.over)
	}
}

// run sends attempts, the first one from inside the gate. A claim that may wait is
// asked for until the wait ends, another one as often as Retry allows.
func (a *ask) run() {
	for {
		if a.attempt++; a.attempt > 1 {
			if refusal := a.e.pass(a.ctx, a.c, a.door); refusal != nil {
				if refusal.Cause != nil { // it was not sent again
					refusal.Cause = cmp.Or(a.failure, refusal.Cause)
				}
				a.ends(refusal)
				return
			}
		}
		a.sent = unasked
		answer, late, err := a.once()
		if late {
			if err == nil && !answer.unfinished() {
				a.ends(answer.Refused)
			}
			return
		}
		a.door.Leave(a.sent)
		switch {
		case err == nil && answer.unfinished():
			// What is in the way has expired, more of it than one script drops.
			a.tries.swept(a.e.sweep(a.c.line()))
			if a.ctx.Err() != nil {
				a.ends(cutShort)
				return
			}
		case err == nil:
			a.ends(answer.Refused)
			return
		case !a.again(err):
			return
		}
	}
}

// unfinished says whether a refusal is not the last word: its script stopped at its
// bound.
func (a *Answer) unfinished() bool { return a.Refused != nil && a.NextDeadline.More }

// again pauses before the attempt that follows one that failed. It reports false, and
// has ended the asking, where none follows.
func (a *ask) again(err error) bool {
	if !scriptkit.Repeatable(err) || !a.pace.Next(a.c.MayWait) {
		a.ends(&berth.AcquireError{Reason: berth.ReasonFailed, Cause: err})
		return false
	}
	a.failure = err
	a.e.repeats(a.c.caller, a.c, a.attempt, err)
	if isClosed(a.c.Closing) || !a.pace.Pause(a.ctx, a.e.closing) {
		a.ends(cutShort)
		return false
	}
	return true
}

// once sends one attempt and takes its answer. It reports late where the attempt has
// counted as unanswered meanwhile, and another goroutine is in charge.
func (a *ask) once() (answer Answer, late bool, err error) {
	e, c := a.e, a.c
	if e.cfg.Before != nil { // outside of the attempt: what that is answered too late for must not be sent later still
		start := e.clock.Now()
		if answer.Refused, err = e.cfg.Before(&a.call, c); err != nil {
			a.failed(start, err, false)()
			return answer, false, err
		} else if answer.Refused != nil {
			return answer, false, nil
		}
	}
	c.calls.Lock()
	if fx := c.on(&event{kind: evAsk}); !fx.has(doSend) {
		c.calls.Unlock()
		return Answer{}, false, nil // given up before this attempt, or answered late: await looks at the claim
	}
	if e.outdated() {
		c.calls.Unlock()
		return Answer{Refused: &berth.AcquireError{Reason: berth.ReasonClosed, Cause: ErrReplaced}}, false, nil
	}
	epoch := e.hub.Epoch()
	t := e.flights.begin(a)
	last := a.tries.last() // nobody else is in charge yet
	answer, err = e.cfg.Scripts.Acquire(&a.call, c)
	answer.NextDeadline.More = answer.NextDeadline.More && (answer.Refused == nil || !last)
	if late := e.flights.end(t); late != nil {
		<-late // until then, this goroutine is what counts as work
		if err == nil && !answer.unfinished() {
			a.takes(answer, t.start, epoch, true)
		}
		return answer, true, err
	}
	defer c.calls.Unlock()
	if err != nil {
		a.failed(t.start, err, scriptkit.MaybeRan(err))()
		return answer, false, err
	}
	a.takes(answer, t.start, epoch, false)
	return answer, false, nil
}

// handOver has another goroutine go on after an attempt that counts as unanswered, and tell the
// observer: others are to be handed over too.
func (a *ask) handOver(start time.Duration) {
	tell := a.failed(start, errLate, scriptkit.MaybeRan(errLate))
	a.c.calls.Unlock()
	a.door.Leave(start)
	a.e.spawn(func() {
		tell()
		if a.again(errLate) {
			a.run()
		}
	})
}

// failed takes note of an attempt that was not answered, or not run, and returns what tells
// the observer. ran says that the acquire may have run.
func (a *ask) failed(start time.Duration, err error, ran bool) (tell func()) {
	ev := &event{kind: evFailed, now: a.e.clock.Now(), start: start, mayRun: ran, revives: ran, cause: err}
	fx := a.c.on(ev)
	return func() { a.e.tell(a.c.caller, a.c, ev, &fx) }
}

// takes takes the answer to an attempt, unless that to another one was taken.
func (a *ask) takes(answer Answer, start time.Duration, epoch int64, late bool) {
	e, c := a.e, a.c
	ev := &event{
		kind: evQueued, start: start, late: late, epoch: epoch, counts: counts{capacity: answer.Capacity},
		ticket: answer.Ticket, text: answer.Place, apart: answer.Resource != "", ahead: answer.Ahead, left: answer.Left,
		gift: gift{resource: answer.Resource},
	}
	switch {
	case answer.unfinished():
		ev.kind = evRefused
	case answer.Refused != nil:
		ev.kind, ev.cause = evRefused, answer.Refused
	case answer.Granted:
		ev.kind, ev.entry, ev.confirmed = evGranted, answer.Entry, answer.Confirmed
		ev.gift = gift{answer.Fence, answer.Resource}
	}
	if answer.Entry == nil {
		ev.now = start // for nobody: the clock need not be looked at
	}
	a.mu.Lock()
	fx := e.act(c, ev)
	if fx.has(doUse) {
		e.prime()
		e.nextDeadline(c.line(), start, answer.NextDeadline, 1)
	}
	a.mu.Unlock()
	e.tell(c.caller, c, ev, &fx)
	if c.inside.Load() && (ev.kind == evQueued || ev.kind == evGranted && ev.entry == nil) {
		e.on(c, &event{kind: evDrained, cause: e.drained()}) // its owner's hold had ended
	}
}
