package main

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/test/torture/history"
)

// log writes the history, and knows what has no outcome yet.
type log struct {
	out *history.Writer

	mu   sync.Mutex
	last int64                   // guarded by mu: the Op of the operation that began last
	open map[int64]history.Event // guarded by mu, by Op
}

func newLog(out *history.Writer) *log {
	return &log{out: out, open: map[int64]history.Event{}}
}

func (l *log) write(e history.Event) { l.out.Write(e) }

// begin gives the operation its number, and writes that it begins now.
func (l *log) begin(e history.Event) history.Event {
	l.mu.Lock()
	l.last++
	e.Op = l.last
	l.open[e.Op] = e
	l.mu.Unlock()
	e.Kind = history.Invoke
	l.write(e)
	return e
}

// expect has stuck name something that is no operation of the history, until done
// is called.
func (l *log) expect(e history.Event) (done func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	e.Op = l.last
	l.open[e.Op] = e
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.open, e.Op)
	}
}

// end writes the outcome of an operation, unless it was called stuck before.
func (l *log) end(e history.Event, kind history.Kind, err error) {
	e.Kind = kind
	if err != nil {
		e.Err, e.Is = err.Error(), is(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, open := l.open[e.Op]; !open {
		return
	}
	delete(l.open, e.Op)
	l.write(e)
}

// stuck writes down what still has no outcome after so long.
func (l *log) stuck(after time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for op, e := range l.open {
		delete(l.open, op)
		e.Kind, e.Detail = history.Stuck, after.String()
		l.write(e)
	}
}

// is names the sentinels that an error matches.
func is(err error) (words []string) {
	for _, sentinel := range []struct {
		word string
		err  error
	}{
		{"lost", berth.ErrLost},
		{"expired", berth.ErrExpired},
		{"released", berth.ErrReleased},
		{"not held", berth.ErrNotHeld},
		{"not acquired", berth.ErrNotAcquired},
		{"busy", berth.ErrBusy},
		{"deadlock", berth.ErrDeadlock},
		{"closed", berth.ErrClosed},
		{"invalid", berth.ErrInvalidConfig},
		{"incompatible", berth.ErrIncompatible},
		{"draining", berth.ErrDraining},
		{"cancelled", context.Canceled},
		{"timeout", context.DeadlineExceeded},
	} {
		if errors.Is(err, sentinel.err) {
			words = append(words, sentinel.word)
		}
	}
	if full(err) {
		words = append(words, "full")
	}
	var refusal *berth.AcquireError
	if errors.As(err, &refusal) && refusal.Reason == berth.ReasonTimedOut && !errors.Is(err, context.DeadlineExceeded) {
		words = append(words, "timeout") // by MaxWait
	}
	return words
}

// outcome is what an error of an acquire says about its effect. One that was
// cancelled or timed out has failed, though a grant may have been there for a
// moment that nobody saw; one that a full server refused likewise.
// left is the end of the caller's context, or nil: a caller may leave before the
// server has answered at all.
func outcome(err, left error) (history.Kind, berth.Reason, string) {
	var refusal *berth.AcquireError
	switch {
	case err == nil:
		return history.OK, "", ""
	case !errors.As(err, &refusal):
		if errors.Is(err, berth.ErrClosed) {
			return history.Fail, "", "" // nothing was sent
		}
		return history.Unknown, "", ""
	}
	switch refusal.Reason {
	case berth.ReasonFull, berth.ReasonResting, berth.ReasonEmpty, berth.ReasonHeld, berth.ReasonQueuedAhead, berth.ReasonPaused,
		berth.ReasonAbsent, berth.ReasonTooHeavy, berth.ReasonCapacity, berth.ReasonDiffers, berth.ReasonLimited,
		berth.ReasonDeadlock, berth.ReasonTooManyEntries, berth.ReasonDraining,
		berth.ReasonCancelled, berth.ReasonTimedOut, berth.ReasonAttempts:
		return history.Fail, refusal.Reason, refusal.Claim
	}
	if left != nil && errors.Is(err, left) {
		return history.Fail, refusal.Reason, refusal.Claim
	}
	if full(err) {
		return history.Fail, refusal.Reason, refusal.Claim // an answer: it is not to be had
	}
	return history.Unknown, refusal.Reason, refusal.Claim
}

// full says that the server has refused because its memory is full.
func full(err error) bool {
	var answer *rueidis.RedisError
	return errors.As(err, &answer) && strings.HasPrefix(answer.Error(), "OOM ")
}

// answer is what an error of any other call says about its effect.
func answer(err error) history.Kind {
	switch {
	case err == nil:
		return history.OK
	case errors.Is(err, berth.ErrNotHeld), errors.Is(err, berth.ErrReleased):
		return history.Fail
	case errors.Is(err, berth.ErrOvertaken):
		return history.Fail // another call has changed the same meanwhile
	}
	return history.Unknown
}
