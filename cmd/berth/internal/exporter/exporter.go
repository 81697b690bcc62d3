package exporter

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/berth-go/berth/internal/guard"
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
	last     *asked // guarded by mu; what was begun last, nil: none yet
	readings int    // guarded by mu; how many have ended
	silent   int    // guarded by mu; how many of them no server has answered
	said     string // guarded by mu; the last problem
	loops    sync.WaitGroup
}

// asked is a reading that was begun.
type asked struct {
	ended chan struct{} // closed with its end
	found *reading      // guarded by the exporter's mu; nil: it is under way
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
	a := e.begin()
	select {
	case <-a.ended:
	case <-time.After(e.within):
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return told{a.found, e.readings, e.silent} // not e.last, which somebody else may have begun since
}

// begin returns a reading that will do. It begins one if there is none.
func (e *exporter) begin() *asked {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.last != nil && (e.last.found == nil || time.Since(e.last.found.began) < e.every) {
		return e.last
	}
	a := &asked{ended: make(chan struct{})}
	e.last = a
	e.loops.Go(func() {
		defer close(a.ended)
		// The reading ends a little before the scraper gives up, so that all that was read by then is
		// reported.
		limit := e.within * 9 / 10
		ctx, cancel := context.WithTimeoutCause(e.ctx, limit, fmt.Errorf("the reading took longer than %s", limit))
		defer cancel()
		r := &reading{began: time.Now()}
		r.failed("the reading", guard.Run("the reading", nil, func() error { // it is said below
			r = e.read(ctx)
			return nil
		}))
		problem := r.problem()
		e.mu.Lock()
		a.found = r
		e.readings++
		if !r.up() {
			e.silent++
		}
		news := problem != e.said // what is wrong is said when it changes
		e.said = problem
		e.mu.Unlock()
		if news && problem != "" && e.ctx.Err() == nil {
			e.say(problem)
		}
	})
	return a
}

// close ends the reading that is under way.
func (e *exporter) close() {
	e.end()
	e.loops.Wait()
}
