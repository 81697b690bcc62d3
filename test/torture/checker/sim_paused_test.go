package checker

import "github.com/berth-go/berth/test/torture/history"

// newPausedSim has a name that is paused now and then, and more who use that and the others: somebody
// always has something to do.
func newPausedSim(seed uint64, wrong bug) *sim {
	s := newSim(seed, wrong)
	s.names[s.IntN(2)*3].pauses = true
	for _, p := range s.processes {
		for range 10 {
			p.actors = append(p.actors, &simActor{process: p, phase: "idle"})
		}
	}
	return s
}

// isPaused says whether the server grants nothing of a name.
func (s *sim) isPaused(n *simName) bool {
	switch {
	case n.paused == 0 || s.bug == pauseIgnored && s.IntN(5) == 0:
		return false
	case s.bug == neverResumed:
		return n.paused+1500*simMS > s.server()
	}
	return n.paused > s.server()
}

// decide pauses a name, or ends its pause.
func (s *sim) decide(a *simActor, n *simName) {
	if a.process.cut > s.now {
		return
	}
	a.process.ops++
	e := history.Event{Kind: history.Invoke, Op: a.process.ops, Do: history.Pause, Primitive: n.primitive, Name: n.name, Lasts: 50 + s.Int64N(700)}
	if s.IntN(3) == 0 {
		e.Do, e.Lasts = history.Unpause, 0
	}
	s.write(a, e)
	s.pass(200)
	n.paused = s.server() + e.Lasts*simMS
	if e.Lasts == 0 && s.bug != neverResumed {
		n.paused = 0
		s.sweep(n)
		s.handOff(n)
	}
	s.pass(200)
	e.Kind = history.OK
	s.write(a, e)
}
