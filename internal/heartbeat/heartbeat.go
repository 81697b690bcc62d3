// Package heartbeat keeps leases alive and knows when they are lost. It knows
// nothing of Redis: it is given a function that renews batches of leases.
//
// # Model
//
// One Engine serves all leases of a client. Those of one key and of like pace, that
// is less than twice the shortest, are renewed together, in batches, at a third of
// their lease. They form a lane, which waits for no other: neither another key, nor
// a lease too short for the network, costs them a beat. A lane sends its batches one
// after the other, and does not wait for an answer where that would cost its leases
// their turn: it has as many in flight as its leases and the round trip need.
//
// Batches of many lanes go in one flush: those that are due, and, of lanes that wait
// for nothing, those that are due within a ninetieth of a lease. A flush is one call of
// Beat. It has batches of like pace, at most 50, no more than their pace leaves the server
// time for, and none after as many leases as one batch may have. Each batch is answered,
// fails, and counts as unanswered by itself. While 200 batches are in flight, the next
// flush of holds waits for answers, but never longer than a pace allows that gives all leases
// their turn in a third of their length. Holds and claims that wait share no batch. A flush of claims
// that wait passes a gate, see Config.Gate, and waits there for as long as it takes; while answers
// are late, such claims are beaten at half their lease. One goroutine does all timing; a flush has a
// goroutine while it is in flight, a lease never has one.
//
// A lease that was just added is only noted down. It enters its lane, and the order of
// what happens by itself, at most a ninth of its length before it may go along with another
// one's beat, or before something else happens to it. One that is removed until then has cost
// next to nothing.
//
// A lease is in flight with one batch at a time. One that is sent again, because its
// batch counts as unanswered, or that is added anew at another pace, may be on its way
// twice. Of two answers only that of the later batch counts.
//
// # Deadlines
//
// A lease has a local deadline: the start of the last answered request, plus
// the time that the server says was left, minus a margin. The holder must not
// believe in its hold from that moment on. When it passes, the hold ends at
// that moment, whatever is in flight, and what arrives later is ignored. A
// claim that still waits never ends by its deadline: it is beaten until it is
// removed. Whoever learns otherwise that a lease is over removes it.
//
// # Failures
//
// A batch counts as unanswered after a sixth of its shortest lease, or after
// Config.Timeout. Its leases are sent again, as those of a batch that fails: after a
// thirtieth of the lease, then after twice as long each time, up to a sixth, until
// the local deadlines pass. A claim that waits is not sent again before half its lease, unless its batch has failed. The answer may still come, until the lease that it
// gives would be over. It counts then as if it had come in time, from the start of its own
// batch, unless something newer is known: the answer to a later batch, or an Update
// of the deadline.
package heartbeat

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/berth-go/berth/internal/clock"
	"github.com/berth-go/berth/internal/gate"
)

var (
	// ErrDeadline ends a hold whose local deadline has passed.
	ErrDeadline = errors.New("heartbeat: the deadline has passed")
	// ErrLimit ends a hold whose limit has passed, which renewals never move.
	ErrLimit = errors.New("heartbeat: the limit has passed")
	// ErrNoAnswer is the error of a batch that counts as unanswered.
	ErrNoAnswer = errors.New("heartbeat: no answer in time")
)

// Batch is leases of one key.
type Batch struct {
	Key    string
	Leases []*Lease
}

// Beat renews, or only checks, the leases of batches. It runs on a goroutine of its own.
// Batches of one key may overlap, in one call and in several; a lease is in one of them,
// until that counts as unanswered. Beat tells what became of the i-th batch by answer, as
// soon as it knows: outcomes[j] belongs to the batch's j-th lease; with an error the
// outcomes do not count. It may do so on several goroutines, but not after it has returned,
// and what it does not answer has failed. Beat must return when ctx ends, which it does
// once no answer is of use any more: after the longest lease among them. Beat must not
// change the slices. It may call Remove for a lease whose end it hears of, before it
// answers: the outcome for that lease does not count then.
type Beat func(ctx context.Context, batches []Batch, answer func(i int, outcomes []Outcome, err error))

// Outcome is what the server says about one lease.
type Outcome struct {
	// Left is the time left, computed on the server when it answered;
	// berth.Forever (the largest duration) when nothing bounds it.
	Left time.Duration
	// Skip says that nothing is known about this one. Its deadline stays, and
	// its next turn comes as usual.
	Skip bool
}

// Config is what an Engine is made of.
type Config struct {
	// Clock is what all deadlines refer to. Required.
	Clock clock.Clock
	// Beat renews batches. Required.
	Beat Beat
	// BatchSize is how many leases one batch takes at the most. Default 200.
	BatchSize int
	// Timeout is when a batch counts as unanswered, if that is before a sixth of
	// its shortest lease. Default none.
	Timeout time.Duration
	// Gate is what the beats of claims that wait for a key have to pass; nil for none.
	// A gate is one engine's.
	Gate func(key string) *gate.Gate
	// Over is told what became of batches that were sent together, once for each call of Beat
	// that Stop has not cut short; nil for nobody. It runs on the goroutine of that call.
	Over func(Flown)
	// Rand draws the jitter, from 0 up to 1. It is never called twice at a
	// time. Default math/rand/v2.Float64.
	Rand func() float64
}

// Flown says what became of the batches of one call of Beat.
type Flown struct {
	// Answered and Unanswered are how many leases were in batches that were answered in time,
	// and in others.
	Answered, Unanswered int
	// Late is how long after it was due the latest lease was sent, at least 0.
	Late time.Duration
	// Err is the error of a batch that was not answered in time, nil for none.
	Err error
}

// Spec says how a lease is kept. Its moments are on Config.Clock. Its
// callbacks may be nil; they run on an engine goroutine that holds no lock,
// and must not block nor call Stop.
type Spec struct {
	// Lease is how long a renewal makes it last, at least 1 ms; it also
	// decides the margin. It is beaten at a third of Lease.
	Lease time.Duration
	// Pace, when shorter than Lease, takes the place of Lease in everything
	// that is timed: a hold of an hour, or Forever, may still be checked as
	// often as one of 10 s. Default 0: as Lease.
	Pace time.Duration
	// Beyond is how much more than Lease a renewal may leave, where the lease was
	// extended. Default 0.
	Beyond time.Duration
	// Ends is true for a hold: it is over when its deadline or its limit has
	// passed. A claim that waits is only renewed.
	Ends bool
	// Renews is true when a beat extends the lease, false when it only
	// checks it.
	Renews bool
	// Bounded says that Deadline is the limit as the server has it, see Bounds: the hold
	// ends by its limit, whichever of the two moments comes first. A function that moves
	// Deadline by an Update sets Bounded too; a beat does so itself.
	Bounded bool
	// Deadline is the local deadline, see the function Deadline. 0 is none.
	Deadline time.Duration
	// Limit is a second deadline, one that renewals never move. 0 is none.
	Limit time.Duration
	// Warn is when OnWarn is called, once. 0 is never.
	Warn time.Duration
	// Ended is called once, when a hold is over: with ErrDeadline or with ErrLimit.
	Ended func(l *Lease, cause error)
	// OnWarn is called at Warn, unless the lease is over by then.
	OnWarn func(l *Lease)
	// Failed is called when a batch that contained the lease has failed, or, with
	// ErrNoAnswer, counts as unanswered.
	Failed func(l *Lease, err error)
}

// Margin is what a holder gives up of a lease, so that it stops believing in it
// before anyone else can: 2 ms for the server's rounding and 1 % of the lease
// for clocks that run at different speeds.
func Margin(lease time.Duration) time.Duration {
	return 2*time.Millisecond + lease/100
}

// Deadline returns the local deadline of a lease that lasts for left from when the server
// answers. start is when the call was sent; of a call in attempts, the attempt that was answered.
// It is 0, for none, when left is berth.Forever or as good as that.
func Deadline(start, left, lease time.Duration) time.Duration {
	if left >= never-start {
		return 0
	}
	deadline := start + left - Margin(lease)
	if deadline == 0 {
		return -1 // passed just as well, and 0 would be none
	}
	return deadline
}

// never is later than every moment on a clock.
const never time.Duration = math.MaxInt64

// moment is when something set to d happens, where 0 stands for never.
func moment(d time.Duration) time.Duration {
	if d == 0 {
		return never
	}
	return d
}

// Bounds reports whether the limit is what left a hold so little, by the answer to a call
// that renews it: less than a renewal gives. The moments themselves cannot tell, since each
// has the round trip of its own call in it.
func (s *Spec) Bounds(left time.Duration) bool {
	return s.Renews && s.Limit != 0 && left < s.Lease
}

// check refuses what would make the engine spin.
func (s *Spec) check() {
	if s.Lease < time.Millisecond || s.pace() < time.Millisecond {
		panic(fmt.Sprintf("heartbeat: Lease %s at Pace %s is below 1 ms", s.Lease, s.Pace))
	}
}

// pace is the lease that times the beats.
func (s *Spec) pace() time.Duration {
	if s.Pace != 0 {
		return min(s.Pace, s.Lease)
	}
	return s.Lease
}
