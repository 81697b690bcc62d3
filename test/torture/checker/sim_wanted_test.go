package checker

import "github.com/berth-go/berth/test/torture/history"

// newWantedSim has holds of all names wanted back, and half of them held for longer than a lease.
func newWantedSim(seed uint64, wrong bug) *sim {
	s := newSim(seed, wrong)
	s.wants = true
	return s
}

// want asks for a hold of a name back.
func (s *sim) want(a *simActor, n *simName) {
	if a.process.cut > s.now || len(n.held) == 0 {
		return
	}
	c := n.held[s.IntN(len(n.held))]
	if c.outer != nil {
		return
	}
	a.process.ops++
	e := c.about(history.Event{Kind: history.Invoke, Op: a.process.ops, Do: history.Want})
	s.write(a, e)
	s.pass(200)
	s.sweep(n)
	held := false
	for _, h := range n.held {
		held = held || h == c
	}
	e.Kind = history.Fail
	if held {
		c.wanted, e.Kind = true, history.OK
	}
	s.pass(200)
	s.write(a, e)
}

// ask is what the server says to a heartbeat of a hold.
func (s *sim) ask(c *simClaim) {
	switch s.bug {
	case wantUnheard:
	case wantDropped:
		c.asked = c.asked || c.wanted && s.IntN(3) == 0
		c.wanted = false
	default:
		c.asked = c.asked || c.wanted
	}
}

// heed writes down that a handle says that it is wanted back.
func (s *sim) heed(a *simActor, c *simClaim) {
	if c.asked && !c.heeded {
		c.heeded = true
		s.write(a, c.about(history.Event{Kind: history.Wanted, Hold: c.op}))
	}
}
