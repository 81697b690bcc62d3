package checker

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/berth-go/berth/test/torture/history"
)

// bug is what is wrong with a simulated library.
type bug string

const (
	none       bug = ""
	noHandOff  bug = "no hand-off"
	lastFirst  bug = "the last in line first"
	overGrant  bug = "more is granted than the capacity"
	longBelief bug = "holders believe for twice the lease"
	sameFence  bug = "fences stand still"
	revived    bug = "a handle that has ended lives again"
	forceWorks bug = "a release by id that is never refused"
	noPush     bug = "grants of which nobody tells"
	needless   bug = "releases without an answer"
	otherGrant bug = "a heartbeat that is answered for another grant renews the hold"

	passedOver    bug = "a claim that could be served is passed over"
	otherResource bug = "who waits for one resource is given another"
	sleepingAdd   bug = "what is added is not handed out for a while"
	pauseIgnored  bug = "what is free is granted in a pause, now and then"
	neverResumed  bug = "nobody is served for seconds after a pause"
	wantUnheard   bug = "no heartbeat says that a hold is wanted back"
)

// The simulated library's times, in us.
const (
	simLease  = 1_000_000
	simMargin = 12_000
	simMS     = 1000
)

// simClaim is a claim, on both sides.
type simClaim struct {
	name *simName
	op   int64
	id   string

	// of the server
	weight, priority int
	unordered, try   bool
	ticket           int64
	alive            int64 // deadline in line, server's time
	deadline         int64 // of the hold
	fence            int64
	resource         string
	outer            *simClaim // whose hold this re-entry shares
	wanted           bool      // somebody wants it back
	simWish
	// of the process
	believes int64 // until when
	told     bool
	mine     grant // what it was told
	asked    bool  // it was told that it is wanted back
	heeded   bool  // and Wanted was written
}

// grant is what a hold is of.
type grant struct {
	fence    int64
	resource string
}

func (c *simClaim) grant() grant { return grant{c.fence, c.resource} }

type simName struct {
	primitive, name string
	capacity        int
	resources       []string
	ticket, fence   int64
	line            []*simClaim
	held            []*simClaim
	lanes           *simLanes // nil for what has none
	pauses          bool      // somebody pauses it now and then
	paused          int64     // until when, server's time
}

// simActor is a goroutine of a process.
type simActor struct {
	process *simProcess
	phase   string
	claim   *simClaim
	op      int64
	do      string
	until   int64 // when it leaves, or gives back
	beat    int64 // when the next heartbeat is due
	at      int64 // read for an Alive that is under way, 0 for none
	over    bool  // Ended was written
	past    []*simClaim

	pool     *simName // what it took a resource out of, to put that back
	resource string
}

type simProcess struct {
	name    string
	life    int
	ops     int64
	stopped int64 // until when
	cut     int64 // until when nothing is answered
	actors  []*simActor
}

func (p *simProcess) id() string { return fmt.Sprintf("%s.%d", p.name, p.life) }

// sim is a small model of a correct library and server, and of what is done to them;
// now is in us.
type sim struct {
	*rand.Rand
	bug       bug
	now       int64
	offset    int64 // of the server's clock
	names     []*simName
	processes []*simProcess
	run       *history.Run
	claims    int
	draining  bool
	calm      bool // nobody leaves, and nobody only tries
	wants     bool // holds are wanted back now and then
}

const simEpoch = 1_700_000_000_000_000

func newSim(seed uint64, wrong bug) *sim {
	s := &sim{Rand: rand.New(rand.NewPCG(seed, 7)), bug: wrong, now: 1_000_000, run: &history.Run{Seed: int64(seed), Topology: "sim"}}
	s.names = []*simName{
		{primitive: "sem", name: "single", capacity: 1},
		{primitive: "sem", name: "triple", capacity: 3},
		{primitive: "sem", name: "heavy", capacity: 4},
		{primitive: "lock", name: "queued", capacity: 1},
		{primitive: "lock", name: "nested", capacity: 1},
		{primitive: "pool", name: "one", capacity: 1, resources: []string{"a"}},
		{primitive: "pool", name: "two", capacity: 2, resources: []string{"a", "b"}},
	}
	for i := range 3 {
		s.processes = append(s.processes, &simProcess{name: fmt.Sprintf("w%d", i+1), life: 1})
	}
	s.more(5)
	for _, p := range s.processes {
		s.subscribe(p)
	}
	return s
}

// more has each process get so many more actors.
func (s *sim) more(actors int) {
	for _, p := range s.processes {
		for range actors {
			p.actors = append(p.actors, &simActor{process: p, phase: "idle"})
		}
	}
}

// subscribe has a new life of a process tell that it hears what is pushed to it.
func (s *sim) subscribe(p *simProcess) {
	s.write(p.actors[0], history.Event{Kind: history.Trouble, Detail: "subscribed", Node: p.id()})
}

func (s *sim) pass(most int64) { s.now += 1 + s.Int64N(most) }

func (s *sim) write(a *simActor, e history.Event) {
	if e.At == 0 {
		e.At, e.Real = s.now*1000, simEpoch+s.now
	}
	e.Process = a.process.id()
	s.run.Events = append(s.run.Events, e)
}

// next is the number of the next operation of an actor's process.
func (s *sim) next(a *simActor) int64 {
	a.process.ops++
	return a.process.ops
}

// call makes a call, which takes some time before its effect and after it. That may change what is answered.
func (s *sim) call(a *simActor, before, after int64, e history.Event, effect func(answer *history.Event)) {
	e.Kind, e.Op = history.Invoke, s.next(a)
	s.write(a, e)
	s.pass(before)
	e.Kind = history.OK
	effect(&e)
	if after > 0 {
		s.pass(after)
	}
	s.write(a, e)
}

func (s *sim) server() int64 { return simEpoch + s.now + s.offset }

// about is what all events of a claim have in common.
func (c *simClaim) about(e history.Event) history.Event {
	e.Primitive, e.Name, e.Claim = c.name.primitive, c.name.name, c.id
	return e
}

// The server.

func (s *sim) sweep(n *simName) {
	for _, c := range n.held {
		if c.deadline <= s.server() {
			n.rest(c, c.deadline)
		}
	}
	n.held = slices.DeleteFunc(n.held, func(c *simClaim) bool { return c.deadline <= s.server() })
	n.line = slices.DeleteFunc(n.line, func(c *simClaim) bool { return c.alive <= s.server() })
}

func (s *sim) room(n *simName, c *simClaim) bool {
	used := 0
	for _, h := range n.held {
		if h.outer == nil {
			used += h.weight
		}
	}
	if s.bug == overGrant && s.IntN(10) == 0 && n.resources == nil {
		used--
	}
	return used+c.weight <= n.capacity
}

func ahead(a, b *simClaim) bool {
	return a.priority > b.priority || a.priority == b.priority && a.ticket < b.ticket
}

// sort has a line in its order.
func (n *simName) sort() {
	slices.SortStableFunc(n.line, func(a, b *simClaim) int {
		if ahead(a, b) {
			return -1
		}
		return 1
	})
}

func (s *sim) grant(n *simName, c *simClaim, deadline int64) {
	fence := max(n.fence+1, s.server())
	if s.bug == sameFence && s.IntN(10) == 0 && n.fence > 0 {
		fence = n.fence
	}
	n.fence, c.fence, c.deadline = fence, fence, deadline
	c.wanted = false
	for _, r := range n.resources {
		if n.lanes == nil && !slices.ContainsFunc(n.held, func(h *simClaim) bool { return h.resource == r }) {
			c.resource = r
			break
		}
	}
	n.held = append(n.held, c)
}

func (s *sim) handOff(n *simName) {
	if s.isPaused(n) {
		return
	}
	if n.lanes != nil {
		s.serve(n)
		return
	}
	for len(n.line) > 0 {
		n.sort()
		i := 0
		if s.bug == lastFirst {
			i = len(n.line) - 1
		}
		c := n.line[i]
		if !s.room(n, c) {
			return
		}
		n.line = slices.Delete(n.line, i, i+1)
		s.grant(n, c, c.alive)
	}
}

// request is what the server does with an acquire.
func (s *sim) request(c *simClaim) {
	n := c.name
	s.sweep(n)
	s.handOff(n)
	c.ticket = max(n.ticket+1, s.server()/1000)
	if c.unordered {
		c.ticket -= s.Int64N(1000)
	}
	if n.lanes != nil && !s.isPaused(n) {
		s.arrive(c)
		return
	}
	if c.outer != nil {
		if slices.Contains(n.held, c.outer) {
			c.fence, c.deadline = c.outer.fence, c.outer.deadline
			n.held = append(n.held, c)
		}
		return
	}
	first := !slices.ContainsFunc(n.line, func(o *simClaim) bool { return !ahead(c, o) })
	switch {
	case first && s.room(n, c) && !s.isPaused(n):
		s.grant(n, c, s.server()+simLease)
	case !c.try:
		n.ticket = max(n.ticket, c.ticket)
		c.alive = s.server() + simLease
		n.line = append(n.line, c)
	}
}

func (s *sim) giveBack(c *simClaim) bool {
	n := c.name
	had := slices.Contains(n.held, c)
	if had {
		n.rest(c, s.server())
	}
	n.held = slices.DeleteFunc(n.held, func(o *simClaim) bool { return o == c || o.outer == c })
	n.line = slices.DeleteFunc(n.line, func(o *simClaim) bool { return o == c })
	if s.bug != noHandOff {
		s.sweep(n)
		s.handOff(n)
	}
	return had
}

// The processes.

// tell has an actor hear, of a wait or a hold, what the server says.
func (s *sim) tell(a *simActor, c *simClaim) (held bool) {
	n, start := c.name, s.now
	s.sweep(n)
	if s.bug != noHandOff || s.IntN(20) == 0 {
		s.handOff(n)
	}
	defer func() { s.pass(200) }()
	holds := slices.Contains(n.held, c)
	switch {
	case c.told && s.bug != otherGrant && (holds && c.mine != c.grant() || slices.Contains(n.line, c)):
		c.believes = 0
		s.giveBack(c)
	case holds:
		c.deadline = max(c.deadline, s.server()+simLease)
		if c.outer == nil {
			for _, o := range n.held {
				if o.outer == c {
					o.deadline = c.deadline
				}
			}
		}
		c.asked = c.asked || c.wanted && s.bug != wantUnheard
		c.believes = start + simLease - simMargin
		if s.bug == longBelief {
			c.believes = start + 2*simLease
		}
		return true
	case slices.Contains(n.line, c):
		c.alive = s.server() + simLease
	case c.absent || !c.told && s.lostResource(c):
	case !c.told || c.fence == 0:
		// Forgotten: it stands again where it stood.
		c.alive = s.server() + simLease
		n.ticket = max(n.ticket, c.ticket)
		n.line = append(n.line, c)
		s.handOff(n)
		s.write(a, c.about(history.Event{Kind: history.Restored, Hold: c.op}))
	default:
		c.believes = 0
	}
	return false
}

// claim is a new one of an actor.
func (s *sim) claim(a *simActor, n *simName) *simClaim {
	s.claims++
	return &simClaim{name: n, op: s.next(a), id: fmt.Sprintf("%s.c%d", a.process.id(), s.claims), weight: 1}
}

func (s *sim) begin(a *simActor) {
	n := s.names[s.IntN(len(s.names))]
	if n.lanes != nil && n.lanes.moves && s.IntN(40) == 0 {
		s.takeOut(a, n)
		return
	}
	if s.wants && s.IntN(3) == 0 {
		s.want(a, n)
		return
	}
	if n.pauses && s.IntN(15) == 0 {
		s.decide(a, n)
		return
	}
	c := s.claim(a, n)
	e := history.Event{Kind: history.Invoke, Op: c.op, Do: history.Acquire, Primitive: n.primitive, Name: n.name, Lease: simLease / 1000, Node: a.process.id()}
	if !s.calm && s.IntN(5) == 0 {
		e.Do, c.try = history.Try, true
	}
	if n.name == "heavy" {
		c.weight = 1 + s.IntN(4)
		e.Weight = c.weight
	}
	if s.IntN(6) == 0 {
		c.priority = 1
		e.Priority = 1
	}
	if s.IntN(10) == 0 && n.primitive == "lock" {
		c.unordered, e.Unordered = true, true
	}
	if n.lanes != nil {
		s.wish(c)
		c.wishes(&e)
	}
	a.claim, a.op, a.do, a.over, a.at = c, c.op, e.Do, false, 0
	a.phase, a.until = "sent", 0
	if !s.calm && s.IntN(8) == 0 {
		a.until = s.now + s.Int64N(60*simMS) // it leaves
	}
	s.write(a, e)
}

func (s *sim) outcome(a *simActor, c *simClaim, do string, kind history.Kind) {
	e := c.about(history.Event{Kind: kind, Op: c.op, Do: do, Weight: c.weight, Priority: c.priority, Unordered: c.unordered, Lease: simLease / 1000})
	c.wishes(&e)
	if kind == history.Fail && c.absent {
		e.Reason = reasonAbsent
	}
	if kind == history.OK {
		c.mine = c.grant()
		e.Fence, e.Resource = c.fence, c.resource
		if c.name.primitive == "sem" {
			e.Capacity = c.name.capacity
		}
		c.told = true
	}
	s.write(a, e)
}

// act takes one step of an actor.
func (s *sim) act(a *simActor) {
	p := a.process
	if p.stopped > s.now {
		return
	}
	cut := p.cut > s.now
	if cut && slices.Contains([]string{"sent", "asked", "took out", "leaves"}, a.phase) {
		return
	}
	c := a.claim
	switch a.phase {
	case "idle":
		if s.draining {
			return
		}
		if len(a.past) > 0 && s.IntN(10) == 0 {
			s.force(a, cut)
			return
		}
		s.begin(a)
	case "sent":
		s.pass(100)
		s.request(c)
		a.phase, a.beat = "asked", s.now+simLease/3
	case "asked": // the reply
		held, waits := slices.Contains(c.name.held, c), slices.Contains(c.name.line, c)
		switch {
		case held:
			s.granted(a)
		case waits:
			s.write(a, c.about(history.Event{Kind: history.Queued, Hold: c.op}))
			a.phase = "waits"
		case c.try || c.absent:
			s.outcome(a, c, a.do, history.Fail)
			a.phase = "idle"
		default:
			a.phase = "waits"
			a.beat = s.now // forgotten
		}
	case "waits":
		if a.until > 0 && s.now >= a.until {
			s.outcome(a, c, a.do, history.Fail)
			a.phase = "leaves"
			return
		}
		if cut {
			return
		}
		if c.absent {
			s.outcome(a, c, a.do, history.Fail)
			a.phase = "idle"
			return
		}
		if s.bug != noPush && slices.Contains(c.name.held, c) || s.now >= a.beat {
			a.beat = s.now + simLease/3
			if s.tell(a, c) {
				s.granted(a)
			}
		}
	case "took out":
		if s.now >= a.until || s.draining {
			s.putBack(a)
		}
	case "leaves":
		s.giveBack(c)
		a.phase = "idle"
	case "holds":
		s.hold(a, cut)
	case "parting":
		switch {
		case cut && s.IntN(50) == 0, !cut && s.bug == needless && s.IntN(20) == 0: // it arrives, unanswered
			s.write(a, c.about(history.Event{Kind: history.Unknown, Op: a.op, Hold: c.op, Do: history.Release}))
			a.phase = "idle"
			s.giveBack(c)
		case cut:
		case s.giveBack(c):
			a.phase = "parted"
		default:
			a.phase = "refused"
		}
	case "parted", "refused":
		kind := history.OK
		if a.phase == "refused" {
			kind = history.Fail
		} else if len(a.past) < 3 && c.name.primitive != "lock" {
			a.past = append(a.past, c)
		}
		s.write(a, c.about(history.Event{Kind: kind, Op: a.op, Hold: c.op, Do: history.Release}))
		a.phase = "idle"
	}
}

func (s *sim) granted(a *simActor) {
	c := a.claim
	if !s.tell(a, c) {
		a.phase = "waits"
		return
	}
	s.outcome(a, c, a.do, history.OK)
	a.phase, a.until, a.beat = "holds", s.now+s.Int64N(30*simMS), s.now+simLease/3
	if s.IntN(20) == 0 || s.wants && s.IntN(2) == 0 || (s.bug == longBelief || s.bug == otherGrant) && s.IntN(4) == 0 {
		a.until = s.now + simLease + s.Int64N(simLease)
	}
}

func (s *sim) hold(a *simActor, cut bool) {
	c := a.claim
	if !cut && s.now >= a.beat && c.believes > s.now {
		a.beat = s.now + simLease/3
		s.tell(a, c)
	}
	if !cut && s.IntN(50) == 0 {
		s.look(a)
	}
	if a.at == 0 {
		a.at = s.now
		return // whatever comes between
	}
	e := c.about(history.Event{At: a.at * 1000, Real: simEpoch + a.at, Kind: history.Alive, Hold: c.op, Fence: c.mine.fence})
	a.at = 0
	lives := c.believes > s.now
	if s.bug == revived && a.over {
		lives = true
	}
	if lives {
		s.write(a, e)
		s.heed(a, c)
		if c.name.name == "nested" && s.IntN(3) == 0 && !cut {
			s.reenter(a)
		}
	} else if !a.over {
		a.over = true
		e.At, e.Kind, e.Is = 0, history.Ended, []string{"lost", "not held"}
		s.write(a, e)
		if s.bug == revived {
			return
		}
	}
	if s.now >= a.until || !lives || s.draining || s.bug == revived && a.over {
		a.op = s.next(a)
		s.write(a, c.about(history.Event{Kind: history.Invoke, Op: a.op, Hold: c.op, Do: history.Release}))
		a.phase = "parting"
	}
}

// look asks for the listing of the hold.
func (s *sim) look(a *simActor) {
	c := a.claim
	s.call(a, 200, 200, c.about(history.Event{Hold: c.op, Do: history.Look}), func(e *history.Event) {
		if e.Fence, e.Resource = c.fence, c.resource; !slices.Contains(c.name.held, c) || c.deadline <= s.server() {
			e.Kind, e.Fence, e.Resource = history.Fail, 0, ""
		}
	})
}

// reenter enters once more, and leaves again, at once.
func (s *sim) reenter(a *simActor) {
	outer := a.claim
	c := s.claim(a, outer.name)
	c.outer = outer
	s.write(a, history.Event{Kind: history.Invoke, Op: c.op, Do: history.Reenter, Primitive: "lock", Name: c.name.name, Lease: simLease / 1000})
	s.pass(300)
	s.request(c)
	s.pass(300)
	if c.fence == 0 {
		s.outcome(a, c, history.Reenter, history.Fail)
		return
	}
	s.outcome(a, c, history.Reenter, history.OK)
	if outer.believes > s.now {
		s.write(a, c.about(history.Event{Kind: history.Alive, Hold: c.op, Fence: c.fence}))
	}
	s.pass(300)
	s.call(a, 300, 0, c.about(history.Event{Hold: c.op, Do: history.Release}), func(*history.Event) { s.giveBack(c) })
}

func (s *sim) force(a *simActor, cut bool) {
	if cut {
		return
	}
	c := a.past[0]
	a.past = a.past[1:]
	s.call(a, 300, 0, c.about(history.Event{Do: history.Force}), func(e *history.Event) {
		if s.bug != forceWorks && !slices.Contains(c.name.held, c) {
			e.Kind = history.Fail
		}
	})
}

// The nemesis.

func (s *sim) fault(f history.Fault, lasts int64, begin, end func()) func() {
	f.From, f.Real = s.now*1000, simEpoch+s.now
	begin()
	until, over := s.now+lasts, false
	return func() {
		if over || s.now < until && !s.draining {
			return
		}
		over = true
		end()
		if f.Amnesia || f.Kills {
			s.fill()
		}
		f.To, f.RealEnd = s.now*1000, simEpoch+s.now
		s.run.Faults = append(s.run.Faults, f)
	}
}

// faults are what may be drawn.
func (s *sim) strike(kinds []string) func() {
	p := s.processes[s.IntN(len(s.processes))]
	lasts := 100*simMS + s.Int64N(2000*simMS)
	nothing := func() {}
	switch kind := kinds[s.IntN(len(kinds))]; kind {
	case "kill":
		return s.fault(history.Fault{Name: kind, Process: p.id(), Kills: true}, 100*simMS, func() {
			for _, a := range p.actors {
				a.phase, a.past = "idle", nil
			}
			p.stopped = s.now + 200*simMS
			p.life++
			p.ops = 0
			s.subscribe(p)
		}, nothing)
	case "stop":
		return s.fault(history.Fault{Name: kind, Process: p.id()}, lasts, func() { p.stopped = s.now + lasts }, nothing)
	case "cut":
		return s.fault(history.Fault{Name: kind, Process: p.id()}, lasts, func() { p.cut = s.now + lasts }, nothing)
	case "flush":
		return s.fault(history.Fault{Name: kind, Amnesia: true}, 10*simMS, func() {
			for _, n := range s.names {
				n.held, n.line, n.ticket, n.fence, n.paused = nil, nil, 0, 0, 0
				n.lanes.forget()
			}
		}, nothing)
	case "restore":
		// The data of a moment ago.
		var undo []func()
		return s.fault(history.Fault{Name: kind, Amnesia: true}, 20*simMS+s.Int64N(600*simMS),
			func() { undo = s.snapshot() }, func() {
				for _, u := range undo {
					u()
				}
			})
	case "clock forward":
		return s.fault(history.Fault{Name: "clock set forward", Amnesia: true}, lasts,
			func() { s.offset = 500*simMS + s.Int64N(4000*simMS) }, func() { s.offset = 0 })
	case "clock back":
		return s.fault(history.Fault{Name: "clock set back", Amnesia: true, Behind: true}, lasts,
			func() { s.offset = -500*simMS - s.Int64N(4000*simMS) }, func() { s.offset = 0 })
	}
	panic("no such fault")
}

var allFaults = []string{"kill", "stop", "cut", "flush", "restore", "clock forward", "clock back"}

// snapshot remembers what the server has, and returns what makes it so again.
func (s *sim) snapshot() (undo []func()) {
	for _, n := range s.names {
		was := *n
		was.line, was.held, was.lanes = slices.Clone(n.line), slices.Clone(n.held), n.lanes.clone()
		for _, c := range slices.Concat(n.line, n.held) {
			fence, resource, alive, deadline := c.fence, c.resource, c.alive, c.deadline
			target, gone := c.target, c.absent
			undo = append(undo, func() {
				c.fence, c.resource, c.alive, c.deadline = fence, resource, alive, deadline
				c.target, c.absent = target, gone
			})
		}
		undo = append(undo, func() { *n = was })
	}
	return undo
}

// play makes a history of so many steps.
func (s *sim) play(steps int, faults []string) *history.Run {
	tick := func() {}
	next := s.now + 1000*simMS
	for range steps {
		s.step()
		tick()
		if len(faults) > 0 && s.now >= next {
			tick()
			tick = s.strike(faults)
			next = s.now + 3000*simMS
		}
	}
	s.draining = true
	tick()
	s.run.Healed = s.now * 1000
	for s.busy() && s.now < 1<<40 {
		s.step()
	}
	for _, p := range s.processes {
		s.write(p.actors[0], history.Event{Kind: history.Closed, Node: p.id()})
	}
	sortEvents(s.run)
	return s.run
}

func (s *sim) step() {
	s.pass(400)
	p := s.processes[s.IntN(len(s.processes))]
	s.act(p.actors[s.IntN(len(p.actors))])
}

func (s *sim) busy() bool {
	for _, p := range s.processes {
		for _, a := range p.actors {
			if a.phase != "idle" {
				return true
			}
		}
	}
	return false
}

func sortEvents(run *history.Run) {
	slices.SortStableFunc(run.Events, func(a, b history.Event) int { return cmp.Compare(a.At, b.At) })
}

// newPausedSim has a name that is paused now and then, and more who use that and the others: somebody
// always has something to do.
func newPausedSim(seed uint64, wrong bug) *sim {
	s := newSim(seed, wrong)
	s.names[s.IntN(2)*3].pauses = true
	s.more(10)
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
	e := history.Event{Do: history.Pause, Primitive: n.primitive, Name: n.name, Lasts: 50 + s.Int64N(700)}
	if s.IntN(3) == 0 {
		e.Do, e.Lasts = history.Unpause, 0
	}
	s.call(a, 200, 200, e, func(*history.Event) {
		n.paused = s.server() + e.Lasts*simMS
		if e.Lasts == 0 && s.bug != neverResumed {
			n.paused = 0
			s.sweep(n)
			s.handOff(n)
		}
	})
}

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
	s.call(a, 200, 200, c.about(history.Event{Do: history.Want}), func(e *history.Event) {
		s.sweep(n)
		held := slices.Contains(n.held, c)
		if c.wanted = c.wanted || held; !held {
			e.Kind = history.Fail
		}
	})
}

// heed writes down that a handle says that it is wanted back.
func (s *sim) heed(a *simActor, c *simClaim) {
	if c.asked && !c.heeded {
		c.heeded = true
		s.write(a, c.about(history.Event{Kind: history.Wanted, Hold: c.op}))
	}
}
