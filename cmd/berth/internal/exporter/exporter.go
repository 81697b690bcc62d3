package exporter

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// exporter reads for all who ask: a server is read at most once in a while, and once at a time, however many ask.
type exporter struct {
	every  time.Duration // from the beginning of one reading to that of the next
	within time.Duration // how long a reading may take
	read   func(ctx context.Context) *reading
	say    func(problem string)
	ctx    context.Context
	end    context.CancelFunc // of all reading

	mu       sync.Mutex
	last     *reading      // guarded by mu; nil: none yet
	running  chan struct{} // guarded by mu; closed with the end of the reading that is under way, nil for none
	readings int           // guarded by mu; how many have ended
	silent   int           // guarded by mu; how many of them no server has answered
	said     string        // guarded by mu; the last problem
	loops    sync.WaitGroup
}

func newExporter(every, within time.Duration, read func(context.Context) *reading, say func(problem string)) *exporter {
	e := &exporter{every: every, within: within, read: read, say: say}
	e.ctx, e.end = context.WithCancel(context.Background())
	return e
}

// told is what an exporter knows.
type told struct {
	*reading         // nil: nothing that is not too old
	readings, silent int
}

// look returns a reading that is not too old. If need be it begins one, and waits for it no longer than a reading may take.
func (e *exporter) look() told {
	ended := e.begin()
	if ended != nil {
		limit := time.NewTimer(e.within)
		defer limit.Stop()
		select {
		case <-ended:
		case <-limit.C:
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	t := told{readings: e.readings, silent: e.silent}
	if e.running == nil || e.last != nil && !e.old(e.last) {
		t.reading = e.last
	}
	return t
}

// old says that a reading is to be followed by another one.
func (e *exporter) old(r *reading) bool { return time.Since(r.began) >= e.every }

// begin begins a reading unless there is one that will do, and returns what is closed when it ends.
func (e *exporter) begin() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.running == nil && (e.last == nil || e.old(e.last)) {
		ended := make(chan struct{})
		e.running = ended
		e.loops.Go(func() {
			defer close(ended)
			// A little earlier than who waits for it gives up: what was read by then is told.
			limit := e.within * 9 / 10
			ctx, cancel := context.WithTimeoutCause(e.ctx, limit, fmt.Errorf("the reading took longer than %s", limit))
			defer cancel()
			e.note(e.read(ctx))
		})
	}
	if e.running == nil {
		return nil
	}
	return e.running
}

// note notes a reading that has ended, and says what is wrong when that changes.
func (e *exporter) note(r *reading) {
	problem := r.problem()
	e.mu.Lock()
	e.last, e.running = r, nil
	e.readings++
	if !r.up() {
		e.silent++
	}
	news := problem != e.said
	e.said = problem
	e.mu.Unlock()
	if news && problem != "" && e.ctx.Err() == nil {
		e.say(problem)
	}
}

// close ends the reading that is under way.
func (e *exporter) close() {
	e.end()
	e.loops.Wait()
}
