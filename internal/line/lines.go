package line

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/observe"
)

// lineEvery is how often a line is written of what an outage does to claims, of each kind of event and of names.
const lineEvery = time.Minute

// Lines write the events of a node to its logger. An outage has one event, or several, for each claim of
// the node: Lines write the first event of a kind at once, and of those that follow one line a minute that
// counts them. A nil Lines writes nothing.
type Lines struct {
	to           observe.Observer
	holds, waits atomic.Int64 // of this node now, by its events

	mu      sync.Mutex
	outage  time.Time         // guarded by mu: until when the last Unavailable counts as an outage
	minutes map[about]*minute // guarded by mu: of what was written less than a minute ago
	closed  bool              // guarded by mu
	timers  sync.WaitGroup    // those that have neither run nor been stopped
}

// about is what a line is about.
type about struct {
	kind      observe.Kind
	primitive string
}

// minute is one that follows a line.
type minute struct {
	end   *time.Timer
	last  observe.Event
	count int
}

// Observe writes an event, or counts it.
func (l *Lines) Observe(e observe.Event) {
	l.follow(&e)
	if !l.counts(&e) {
		l.to.Observe(e)
	}
}

// follow keeps the gauges, as the comment of package observe has them.
func (l *Lines) follow(e *observe.Event) {
	switch e.Kind {
	case observe.Queued:
		l.waits.Add(1)
		return
	case observe.Granted, observe.Reentered, observe.Resumed:
		l.holds.Add(1)
	}
	if e.WasQueued {
		l.waits.Add(-1)
	}
	if e.WasHeld {
		l.holds.Add(-1)
	}
}

// counts says whether an event waits for the end of the minute in which its kind was written.
func (l *Lines) counts(e *observe.Event) bool {
	switch e.Kind {
	case observe.Unavailable, observe.Failed, observe.Lost, observe.ReleaseFailed, observe.CleanupFailed:
	default:
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.Kind == observe.Unavailable {
		l.outage = e.At.Add(lineEvery)
		e.Detail = fmt.Sprintf("%s; the node has %d holds and %d waits", e.Detail, l.holds.Load(), l.waits.Load())
	}
	if l.closed || !e.At.Before(l.outage) && !errors.Is(e.Err, berth.ErrUnavailable) {
		return false
	}
	of := about{e.Kind, e.Primitive}
	m := l.minutes[of]
	if m == nil {
		l.begin(of)
		return false
	}
	m.last, m.count = *e, m.count+1
	return true
}

// begin begins a minute. l.mu is held.
func (l *Lines) begin(of about) {
	l.timers.Add(1)
	l.minutes[of] = &minute{end: time.AfterFunc(lineEvery, func() {
		defer l.timers.Done()
		l.end(of)
	})}
}

// end writes what a minute has counted, and begins the next one unless that is nothing.
func (l *Lines) end(of about) {
	l.mu.Lock()
	m := l.minutes[of]
	delete(l.minutes, of)
	if m != nil && m.count > 0 && !l.closed {
		l.begin(of)
	}
	l.mu.Unlock()
	l.write(m)
}

// write writes the line of a minute: its event where that is the only one.
func (l *Lines) write(m *minute) {
	if m == nil || m.count == 0 {
		return
	}
	e := m.last
	if m.count > 1 {
		e = observe.Event{
			Kind: e.Kind, Primitive: e.Primitive, Namespace: e.Namespace, Node: e.Node, At: e.At, Context: e.Context,
			Silent: e.Silent, Count: m.count, Detail: e.Detail, Err: e.Err,
		}
	}
	l.to.Observe(e)
}

// Close writes what is counted. No timer runs any more when Close returns; later events are written as they come.
func (l *Lines) Close() {
	if l == nil {
		return
	}
	l.mu.Lock()
	l.closed = true
	open := l.minutes
	l.minutes = nil
	l.mu.Unlock()
	for _, m := range open {
		if m.end.Stop() {
			l.timers.Done()
		}
		l.write(m)
	}
	l.timers.Wait()
}
