package checker

import (
	"maps"
	"slices"

	"github.com/berth-go/berth/test/torture/history"
)

// simWish is what a claim of a pool with lanes asks for.
type simWish struct {
	named    string
	bind     string
	bindWait int64 // us, or history.Never
	// of the server
	target string // the resource whose lane it stands in
	until  int64  // when it stops waiting for that, 0 for never
	absent bool   // its resource was taken out of the pool
}

// wishes writes down what the claim asks for.
func (c *simClaim) wishes(e *history.Event) {
	if c.name.lanes == nil {
		return
	}
	e.Named, e.Bind, e.BindWait = c.named, c.bind, c.bindWait
	if c.bindWait > 0 {
		e.BindWait /= simMS
	}
	e.Capacity, e.Cooldown = c.name.capacity, c.name.lanes.cooldown/simMS
}

// simLanes is what the server knows of a pool whose claims may wait for one resource. The
// capacity of such a name is that of each resource.
type simLanes struct {
	cooldown int64
	moves    bool             // somebody takes resources out, and puts them back
	gone     map[string]bool  // out of the pool
	rests    map[string]int64 // until when
	bindings map[string]string
}

// newLanesSim has nothing but pools with lanes, and more who use them.
func newLanesSim(seed uint64, wrong bug) *sim {
	s := newSim(seed, wrong)
	pool := func(name string, capacity int, cooldown int64, moves bool, resources ...string) *simName {
		l := &simLanes{cooldown: cooldown, moves: moves, gone: map[string]bool{}}
		l.forget()
		return &simName{primitive: "pool", name: name, capacity: capacity, resources: resources, lanes: l}
	}
	s.names = []*simName{
		pool("three", 1, 0, false, "a", "b", "c"),
		pool("pair", 2, 0, true, "a", "b"),
		pool("tired", 1, 20*simMS, true, "a", "b"),
	}
	s.more(5)
	return s
}

// forget is what a loss of all data does. The resources are back at once: the driver
// fills the pool again before that is over.
func (l *simLanes) forget() {
	if l != nil {
		l.rests, l.bindings = map[string]int64{}, map[string]string{}
	}
}

func (l *simLanes) clone() *simLanes {
	if l == nil {
		return nil
	}
	was := *l
	was.gone, was.rests, was.bindings = maps.Clone(l.gone), maps.Clone(l.rests), maps.Clone(l.bindings)
	return &was
}

// rest has a resource rest after a hold.
func (n *simName) rest(c *simClaim, from int64) {
	if n.lanes != nil && n.lanes.cooldown > 0 {
		n.lanes.rests[c.resource] = max(n.lanes.rests[c.resource], from+n.lanes.cooldown)
	}
}

// free says that a resource has room.
func (s *sim) free(n *simName, resource string) bool {
	held := 0
	for _, h := range n.held {
		if h.resource == resource {
			held++
		}
	}
	return held < n.capacity && !n.lanes.gone[resource] && n.lanes.rests[resource] <= s.server()
}

// pick is the resource that the claim may have, "" for none.
func (s *sim) pick(n *simName, c *simClaim) string {
	if c.target != "" && (s.bug != otherResource || s.IntN(10) > 0) {
		if !s.free(n, c.target) {
			return ""
		}
		return c.target
	}
	if bound := n.lanes.bindings[c.bind]; bound != "" && s.free(n, bound) {
		return bound
	}
	for _, r := range n.resources {
		if s.free(n, r) {
			return r
		}
	}
	return ""
}

// serve grants all that can be had, to the first in line of each.
func (s *sim) serve(n *simName) {
	for _, c := range n.line {
		if c.until > 0 && c.until <= s.server() {
			c.target = ""
		}
	}
	for s.serveOne(n) {
	}
}

func (s *sim) serveOne(n *simName) bool {
	n.sort()
	passed := false
	for i, c := range n.line {
		r := s.pick(n, c)
		if r == "" {
			continue
		}
		if s.bug == passedOver && !passed && s.IntN(4) == 0 {
			passed = true
			continue
		}
		n.line = slices.Delete(n.line, i, i+1)
		c.resource = r
		s.grant(n, c, c.alive)
		if c.bind != "" {
			n.lanes.bindings[c.bind] = r
		}
		return true
	}
	return passed // it is served all the same where nobody else can be
}

// arrive is what the server does with a new claim: a try gets what a waiting claim would
// get at once.
func (s *sim) arrive(c *simClaim) {
	n := c.name
	if c.named != "" && n.lanes.gone[c.named] {
		c.absent = true
		return
	}
	c.target = c.named
	if bound := n.lanes.bindings[c.bind]; c.bindWait != 0 && bound != "" && !n.lanes.gone[bound] {
		c.target = bound
		if c.bindWait > 0 {
			c.until = s.server() + c.bindWait
		}
	}
	n.ticket = max(n.ticket, c.ticket)
	c.alive = s.server() + simLease
	n.line = append(n.line, c)
	s.serve(n)
	if c.try {
		n.line = slices.DeleteFunc(n.line, func(o *simClaim) bool { return o == c })
	}
}

// lostResource says that a claim which the server has forgotten has nothing to wait for; one
// with a binding waits for any other.
func (s *sim) lostResource(c *simClaim) bool {
	if c.target == "" || !c.name.lanes.gone[c.target] {
		return false
	}
	c.absent = c.named != ""
	c.target = ""
	return c.absent
}

// wish draws what a claim asks for. What rests is mostly waited for by itself: whoever
// takes anything takes it soon.
func (s *sim) wish(c *simClaim) {
	among := 3
	if c.name.lanes.cooldown > 0 && s.IntN(20) > 0 {
		among = 1
	}
	switch s.IntN(among) {
	case 0:
		c.named = c.name.resources[s.IntN(len(c.name.resources))]
	case 1:
		c.bind = []string{"x", "y", "z"}[s.IntN(3)]
		c.bindWait = []int64{0, history.Never, s.Int64N(80) * simMS}[s.IntN(3)]
	}
}

// takeOut takes a resource out of its pool; putBack adds it again.
func (s *sim) takeOut(a *simActor, n *simName) {
	r := n.resources[s.IntN(len(n.resources))]
	a.pool, a.resource, a.phase, a.until = n, r, "took out", s.now+s.Int64N(200*simMS)
	if s.IntN(6) == 0 {
		a.until += 2500 * simMS
	}
	s.move(a, history.Remove, func() {
		n.lanes.gone[r] = true
		maps.DeleteFunc(n.lanes.bindings, func(_, bound string) bool { return bound == r })
		for _, c := range n.line {
			if c.target == r {
				c.target, c.absent = "", c.named != ""
			}
		}
		n.line = slices.DeleteFunc(n.line, func(c *simClaim) bool { return c.absent })
	})
}

func (s *sim) putBack(a *simActor) {
	s.move(a, history.Add, func() {
		l := a.pool.lanes
		l.gone[a.resource] = false
		if s.bug == sleepingAdd {
			l.rests[a.resource] = s.server() + 3000*simMS
		}
	})
	a.phase = "idle"
}

// move makes a call about a resource, which is answered.
func (s *sim) move(a *simActor, do string, effect func()) {
	n := a.pool
	e := history.Event{Do: do, Primitive: n.primitive, Name: n.name, Resource: a.resource}
	s.call(a, 300, 300, e, func(*history.Event) {
		s.sweep(n)
		effect()
		s.serve(n)
	})
}

// fill puts back all that is not in the pools, as the driver does.
func (s *sim) fill() {
	from := s.now
	if s.names[0].lanes == nil {
		return
	}
	for _, n := range s.names {
		if n.lanes != nil {
			clear(n.lanes.gone)
			s.sweep(n)
			s.serve(n)
		}
	}
	s.pass(300)
	s.run.Fills = append(s.run.Fills, history.Fill{From: from * 1000, To: s.now * 1000})
}
