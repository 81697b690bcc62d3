package swarm

import (
	"context"
	"errors"

	"github.com/berth-go/berth"
)

// errUnsure is what Stop returns if no call told whether the node has left.
var errUnsure = errors.New("berth: the node is not known to have left the swarm, and was replaced")

// end lets the node leave.
func (r *run) end() { r.stopOnce.Do(func() { close(r.stop) }) }

// hurry ends the run whether the node has left or not.
func (r *run) hurry() { r.stopNowOnce.Do(func() { close(r.stopNow) }) }

// leave begins to end the run. err is what a Start that still waits returns.
func (r *run) leave(err error) {
	if r.leaving {
		return
	}
	r.leaving = true
	r.s.known.Store(nil)
	r.s.mu.Lock()
	r.ending = true
	r.s.mu.Unlock()
	if !r.up {
		r.startErr = err
		close(r.started)
	}
	r.served = append(r.served, r.waiting...)
	r.waiting = nil
	switch {
	case r.sent == nil:
		r.serve(berth.ErrNotRunning)
	case !r.up:
		r.sent.cancel() // it is repeated for longer than anybody wants to wait now
	}
	r.due = r.s.cfg.Clock.Now()
}

// leave takes the node out of the swarm. Before, its claims stop saying that it is in
// one: who is not in the list, and has a claim that says so, is taken for lost.
func (s *Swarm) leave(ctx context.Context, node string, number int64, doubt, marked bool) said {
	if marked && s.cfg.Leaving != nil {
		if err := s.cfg.Leaving(ctx); err != nil {
			return said{err: err}
		}
	}
	return s.calls.Leave(ctx, node, number, doubt)
}

// hearLeft takes what a call to leave has learned.
func (r *run) hearLeft(f *flight) {
	switch {
	case f.said.err != nil:
		r.endErr = f.said.err // should the horizon pass before an answer
		r.retry()
	case f.said.status == statusCondemned:
		r.replace(ReasonCondemned)
	case r.s.disarm(r.node):
		r.joined, r.endErr = false, nil
	default: // late: it is not certain, and turn replaces the node
	}
}

// finish ends the run for good.
func (r *run) finish() {
	r.cancel()
	r.served = append(r.served, r.waiting...)
	r.serve(berth.ErrNotRunning)
	close(r.settled)
	r.tasks.Wait()
	r.s.mu.Lock()
	r.s.run = nil
	r.s.mu.Unlock()
	close(r.done)
}
