package engine

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/berth-go/berth/internal/clock"
)

// flights are the attempts of acquires that wait for an answer, and have not yet counted as
// unanswered: as many as the gate lets in. They share one timer, which is cheaper than one
// for each. It is set anew when it has fired, not when an answer has come.
type flights struct {
	clock   clock.Clock
	timeout time.Duration

	mu    sync.Mutex
	all   []*flight   // guarded by mu
	timer *time.Timer // guarded by mu: nil until first set
	set   bool        // guarded by mu: the timer is, for no later than the first of them is due
}

// flight is one attempt.
type flight struct {
	a     *ask
	start time.Duration
	at    int           // guarded by flights.mu: its index in all
	late  chan struct{} // guarded by flights.mu: not nil once it counts as unanswered, closed when another goroutine goes on
}

// begin begins an attempt. end must follow.
func (f *flights) begin(a *ask) *flight {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := &flight{a: a, start: f.clock.Now(), at: len(f.all)}
	a.sent = t.start
	f.all = append(f.all, t)
	if !f.set {
		f.wait(f.timeout)
	}
	return t
}

// end ends an attempt, and returns nil for one that was answered in time.
func (f *flights) end(t *flight) (late <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if t.late == nil {
		last := f.all[len(f.all)-1]
		f.all[t.at], last.at = last, t.at
		f.all[len(f.all)-1] = nil // for the garbage collector
		f.all = f.all[:len(f.all)-1]
	}
	return t.late
}

// wait sets the timer. It is called with mu held.
func (f *flights) wait(d time.Duration) {
	f.set = true
	if f.timer == nil {
		f.timer = time.AfterFunc(d, f.look)
	} else {
		f.timer.Reset(d)
	}
}

// look hands over what has taken too long, the oldest first.
func (f *flights) look() {
	for _, t := range f.overdue() {
		t.a.handOver(t.start)
		close(t.late)
	}
}

// overdue takes out what has taken too long, and sets the timer for the rest.
func (f *flights) overdue() (late []*flight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now, next := f.clock.Now(), time.Duration(0)
	rest := f.all[:0]
	for _, t := range f.all {
		due := t.start + f.timeout
		if due <= now {
			t.late = make(chan struct{})
			late = append(late, t)
			continue
		}
		if len(rest) == 0 || due < next {
			next = due
		}
		t.at = len(rest)
		rest = append(rest, t)
	}
	clear(f.all[len(rest):]) // for the garbage collector
	f.all, f.set = rest, false
	if len(rest) > 0 {
		f.wait(next - now)
	}
	slices.SortFunc(late, func(a, b *flight) int { return cmp.Compare(a.start, b.start) })
	return late
}
