// Package pace repeats calls: how often, for how long, and with which pauses.
package pace

import (
	"context"
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

// New begins a call's repeating. Zero fields of retry have the defaults of
// berth.Retry.
func New(retry berth.Retry) *Pace {
	p := begin(retry) // apart, so that this is inlined and p needs no memory
	return &p
}

func begin(retry berth.Retry) Pace { return Of(Complete(retry)) }

// Of is New for a retry that is complete.
func Of(retry berth.Retry) Pace {
	return Pace{retry: retry, started: time.Now(), pause: min(retry.Base, retry.Cap)}
}

// Complete fills what is zero or makes no sense.
func Complete(r berth.Retry) berth.Retry {
	if r.Attempts <= 0 {
		r.Attempts = 20
	}
	if r.Within <= 0 {
		r.Within = 10 * time.Second
	}
	if r.Base <= 0 {
		r.Base = 20 * time.Millisecond
	}
	if !(r.Factor >= 1) {
		r.Factor = 2
	}
	if r.Cap <= 0 {
		r.Cap = time.Second
	}
	switch {
	case r.Jitter < 0:
		r.Jitter = 0
	case r.Jitter == 0 || !(r.Jitter <= 1):
		r.Jitter = 0.2
	}
	return r
}

// Started is when the repeating began.
func (p *Pace) Started() time.Time { return p.started }

// Attempts is how many attempts have failed.
func (p *Pace) Attempts() int { return p.attempts }

// Next counts an attempt that failed, and reports whether another one is due:
// always where the call has no bound, else within Retry. It is not due if Within
// would be over before it could start.
func (p *Pace) Next(unbounded bool) bool {
	p.attempts++
	return unbounded || p.attempts < p.retry.Attempts && p.pause < p.Left(time.Now())
}

// Within is how long retry goes on with a call that is not answered.
func Within(retry berth.Retry) time.Duration {
	return Complete(retry).Within
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

// Left is how much of Retry.Within is left.
func (p *Pace) Left(now time.Time) time.Duration {
	return p.retry.Within - now.Sub(p.started)
}
