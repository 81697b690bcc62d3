package scriptkit

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/berth-go/berth"
)

// Pace is the repeating of a call whose attempts must not be cut short by the
// context that ends the repeating: its caller sends them one by one, in mode
// Once, and pauses in between. It is for one goroutine.
type Pace struct {
	retry    berth.Retry
	started  time.Time
	attempts int
	pause    time.Duration
}

// NewPace begins a call's repeating. Zero fields of retry have the defaults of
// berth.Retry.
func NewPace(retry berth.Retry) *Pace {
	p := defaultPace(retry) // apart, so that this is inlined and p needs no memory
	return &p
}

func defaultPace(retry berth.Retry) Pace {
	return newPace(Options{Retry: retry}.withDefaults().Retry)
}

func newPace(retry berth.Retry) Pace {
	return Pace{retry: retry, started: time.Now(), pause: min(retry.Base, retry.Cap)}
}

// Next counts an attempt that failed, and reports whether another one is due:
// always where the call has no bound, else within Retry. It is not due if Within
// would be over before it could start.
func (p *Pace) Next(unbounded bool) bool {
	p.attempts++
	return unbounded || p.attempts < p.retry.Attempts && p.pause < p.left(time.Now())
}

// Within is how long retry goes on with a call that is not answered.
func Within(retry berth.Retry) time.Duration {
	return Options{Retry: retry}.withDefaults().Retry.Within
}

// Pause waits before the next attempt. It reports false as soon as ctx ends or
// stop is closed; stop may be nil.
func (p *Pace) Pause(ctx context.Context, stop <-chan struct{}) bool {
	random := rand.Float64() * p.retry.Jitter * float64(p.pause)
	timer := time.NewTimer(p.pause - time.Duration(random))
	defer timer.Stop()
	p.grow()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-stop:
	}
	return false
}

// grow makes the next pause longer. It counts in floats: a pause that grows
// without bound overflows a Duration.
func (p *Pace) grow() {
	p.pause = time.Duration(min(float64(p.pause)*p.retry.Factor, float64(p.retry.Cap)))
}

// left is how much of Retry.Within is left.
func (p *Pace) left(now time.Time) time.Duration {
	return p.retry.Within - now.Sub(p.started)
}

// Repeatable reports whether the call that ended with err may be sent again with
// a hope that it succeeds: the server did not run the script, or did not answer.
func Repeatable(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Repeatable
}

// MaybeRan reports whether the call that ended with err may have run, or may
// still run, without its answer having been read.
func MaybeRan(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.MaybeRan
}
