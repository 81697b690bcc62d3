package swarm

import "time"

// term is the horizon of one node id. It is immutable: a new one takes its place.
type term struct {
	node string
	at   time.Duration
}

// over is the moment of a horizon that was seen to have passed. It lies before
// every moment of a clock, and nothing moves it any more.
const over time.Duration = -1

// Horizon is the moment on Config.Clock at which the node with that id must have
// ended unless a further probe is confirmed before, and 0 for an id that is not in
// the swarm: none runs, or the node has been replaced. Below 0 it has passed. It
// never waits.
func (s *Swarm) Horizon(node string) time.Duration {
	if t := s.term.Load(); t != nil && t.node == node {
		return t.at
	}
	return 0
}

// Passed reports whether the horizon of the node with that id has passed. Once it
// has said so, it says so until the node has been replaced: no probe that is
// confirmed meanwhile counts. It never waits.
func (s *Swarm) Passed(node string) bool {
	for {
		t := s.term.Load()
		switch {
		case t == nil || t.node != node:
			return false
		case t.at == over:
			return true
		case s.cfg.Clock.Now() < t.at:
			return false
		}
		if s.term.CompareAndSwap(t, &term{node, over}) {
			s.rouse()
			return true
		}
	}
}

// Limit is ZombieAfter while the server is known to have the node with that id in the
// swarm, else 0. It is what the node's claims without end say of it on the server: of a
// node that the server has lost, they are the only trace. It never waits.
func (s *Swarm) Limit(node string) time.Duration {
	if known := s.known.Load(); known != nil && *known == node {
		return s.cfg.ZombieAfter
	}
	return 0
}

// arm puts a horizon in force for a node that has none.
func (s *Swarm) arm(node string, at time.Duration) { s.term.Store(&term{node, at}) }

// confirm moves the horizon of a node forward. It reports false, and moves nothing,
// if it has passed.
func (s *Swarm) confirm(node string, at time.Duration) bool {
	for {
		t := s.term.Load()
		if t == nil || t.node != node || s.Passed(node) {
			return false
		}
		if s.term.CompareAndSwap(t, &term{node, max(t.at, at)}) {
			return true
		}
	}
}

// disarm takes the horizon of a node away. It reports false, and leaves it, if it
// has passed.
func (s *Swarm) disarm(node string) bool {
	for {
		t := s.term.Load()
		if s.Passed(node) {
			return false
		}
		if s.term.CompareAndSwap(t, nil) {
			return true
		}
	}
}

// rouse lets the swarm's goroutine look at the horizon at once.
func (s *Swarm) rouse() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
