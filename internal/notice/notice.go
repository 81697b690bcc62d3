// Package notice has a process know what operators have said to all processes: that all
// names of a kind are paused, and which processes drain. [Notice] reads it in the background; who acts on
// it asks [Notice.Current] and [Notice.Drains].
package notice

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/clock"
	"github.com/berth-go/berth/internal/guard"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/scriptkit"
)

const (
	// Vouches is for how long what was read counts, from the start of the read on. A walk over
	// names lasts longer: at its end each process acts on what the walk has said.
	Vouches = 6 * time.Second
	// Heard is how long after a notice was set each client that reads it goes by it; what such a
	// client asked for before has been answered, too, but by a server that is very slow.
	Heard = Vouches + time.Second
	// every is how long after the start of a read the next one begins, at the most.
	every = 5 * time.Second
	// patience is how long a call waits for a read, at the most.
	patience = 2 * time.Second
	// MostPause is how long a pause lasts at the most.
	MostPause = 366 * 24 * time.Hour
)

// Config says what a Notice works with.
type Config struct {
	// Clock is the process's.
	Clock clock.Clock
	// Label is the process's.
	Label string
	// Kinds are those whose names may be paused.
	Kinds []keyspace.Kind
	// Timeout bounds a read, as patience does.
	Timeout time.Duration
	// Read reads the notice; own are the fields that it reads in any case.
	Read func(ctx context.Context, own []string) (Told, error)
	// Failed is told of a read that failed, or that was not whole, if the one before was another way.
	Failed func(err error)
	// Heard is told when the process begins to drain, and when it drains no more; field is the one that says so. why is
	// what Draining returns, nil for an end.
	Heard func(field string, why error)
	// Apart says that a name may be on another server than the notice, so that one may answer without the other.
	Apart bool
}

// Told is what was read of a notice.
type Told struct {
	Fields map[string]string
	// Now is the time of the server that has them (ms).
	Now int64
	// Problem is why not all that the notice says is known, nil for no reason.
	Problem error
}

// State is what operators have said of all names of a kind, as far as a process knows.
type State struct {
	// Number is that of the last pause of all names, or of its end; 0 for none.
	Number int64
	// Reason is that of the pause.
	Reason string

	ends time.Duration // when the pause ends, on the clock; 0 for no pause
}

// known is what was read of all kinds.
type known struct {
	start time.Duration // when the read began, on the clock
	of    map[keyspace.Kind]State
}

// Notice is what operators have said to all processes, as one of them knows it. One goroutine
// reads it each 5 s, from the first claim on until Close. It belongs to the process, not to one
// of its nodes: what it has heard counts for the next node as well.
type Notice struct {
	cfg  Config
	made time.Duration // on the clock

	known   atomic.Pointer[known] // nil before the first read that succeeded
	blind   atomic.Bool           // the last read failed
	refused atomic.Bool           // it was answered all the same: the next one will fail, too
	waived  atomic.Int64          // until when Sure does without a read, on the clock
	drains  atomic.Pointer[drain] // by the field that says so for longest; nil for none

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	prompt chan struct{} // has room for one
	done   chan struct{} // closed when the goroutine has ended

	mu     sync.Mutex
	begun  bool              // guarded by mu: the goroutine runs, or has run
	flight chan struct{}     // guarded by mu: closed when the read under way has ended; nil for none
	next   chan struct{}     // guarded by mu: closed when the read that begins next has ended
	nodes  []node            // guarded by mu
	heeds  map[string]*drain // of the goroutine alone: the fields by which the process drains
	heard  string            // of the goroutine alone: the field of the drain that Heard was told of, "" for none or after its end
	partly bool              // of the goroutine alone: the last read was not whole
	born   int64             // of the goroutine alone: when the process was, in ms of the server's clock; 0 while that is not known
	// numbers are, of the goroutine alone, those of the pauses that were read last.
	numbers map[keyspace.Kind]int64
}

// drain is one by which the process drains.
type drain struct {
	ends  time.Duration // on the clock
	field string
	Drained
}

// Drained is why a process gets nothing new. It matches berth.ErrDraining.
type Drained struct {
	By     berth.DrainTarget
	Reason string
}

// Error names the target and the reason.
func (d *Drained) Error() string {
	if d.Reason == "" {
		return "berth: drained by " + d.By.String()
	}
	return "berth: drained by " + d.By.String() + ": " + text.Escaped(d.Reason)
}

// Unwrap returns berth.ErrDraining.
func (d *Drained) Unwrap() error { return berth.ErrDraining }

// node is one that the process is or was.
type node struct {
	id    string
	drain func() // nil when it has left
	lost  func()
}

// New returns a Notice. It does no I/O and starts nothing.
func New(cfg Config) *Notice {
	n := &Notice{
		cfg: cfg, made: cfg.Clock.Now(), prompt: make(chan struct{}, 1), done: make(chan struct{}),
		next: make(chan struct{}), heeds: make(map[string]*drain), numbers: make(map[keyspace.Kind]int64),
	}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	return n
}

// Join adds a node of the process. drain is called when the process begins to drain; Drains is true
// before. lost is called when the server has lost what it knew, and waits for nothing.
func (n *Notice) Join(id string, drain, lost func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.nodes = append(n.nodes, node{id, drain, lost})
}

// Leave says that a node has ended. What is said to its id is about the process all the same.
func (n *Notice) Leave(id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range n.nodes {
		if n.nodes[i].id == id {
			n.nodes[i].drain = nil
		}
	}
}

// Drains says whether an operator has asked this process to drain, and the drain goes on.
func (n *Notice) Drains() bool { return n.Draining() != nil }

// Draining is why the process drains, nil if it does not: a *Drained.
func (n *Notice) Draining() error {
	if d := n.drains.Load(); d != nil && n.cfg.Clock.Now() < d.ends {
		return &d.Drained
	}
	return nil
}

// Current returns what is known, from a read that began no longer than Vouches ago; else it
// reads first, for patience at most. After a read that failed it returns what was known before,
// until one has succeeded.
func (n *Notice) Current(ctx context.Context, kind keyspace.Kind) State {
	s, vouched := n.state(kind)
	if !vouched && !n.blind.Load() {
		n.wait(ctx, false)
		s, _ = n.state(kind)
	}
	return s
}

// Sure is Current for a caller that a server has just granted something. The calls of a process that was cut off may be
// answered before its next read of the notice. So Sure reads after a read that failed, too, and returns what was known
// before only if its own read fails. Sure reads once in 5 s at the most where each such read would fail: the user may not
// read the notice, or the notice's server does not answer while that of the name does.
func (n *Notice) Sure(ctx context.Context, kind keyspace.Kind) State {
	s, vouched := n.state(kind)
	if vouched || int64(n.cfg.Clock.Now()) < n.waived.Load() {
		return s
	}
	n.wait(ctx, true)
	if s, vouched = n.state(kind); !vouched && ctx.Err() == nil && (n.cfg.Apart || n.refused.Load()) {
		n.waived.Store(int64(n.cfg.Clock.Now() + every))
	}
	return s
}

// state is what is known, and whether that still counts as if it had been read just now.
func (n *Notice) state(kind keyspace.Kind) (s State, vouched bool) {
	known := n.known.Load()
	if known == nil {
		return State{}, false
	}
	return known.of[kind], n.cfg.Clock.Now()-known.start <= Vouches
}

// Left is how long the pause of all names lasts yet, 0 for no pause.
func (n *Notice) Left(s State) time.Duration {
	if s.ends == 0 {
		return 0
	}
	return max(0, s.ends-n.cfg.Clock.Now())
}

// Ask returns when a read that began after the call has ended, or ctx has.
func (n *Notice) Ask(ctx context.Context) { n.wait(ctx, true) }

// Prompt has the notice read at once, in the background.
func (n *Notice) Prompt() {
	select {
	case n.prompt <- struct{}{}:
	default:
	}
}

// Close ends the reading, and waits for that.
func (n *Notice) Close() {
	n.cancel()
	n.mu.Lock()
	begun := n.begun
	n.mu.Unlock()
	if begun {
		<-n.done
	}
}

// wait waits for a read to end: one that is under way, unless it is to be a new one.
func (n *Notice) wait(ctx context.Context, anew bool) {
	n.mu.Lock()
	if !n.begun && n.ctx.Err() == nil {
		n.begun = true
		go n.loop()
	}
	ended := n.flight
	if anew || ended == nil {
		ended = n.next
		n.Prompt()
	}
	n.mu.Unlock()
	select {
	case <-ended:
	case <-ctx.Done():
	case <-n.ctx.Done():
	}
}

// loop is the goroutine.
func (n *Notice) loop() {
	defer close(n.done)
	timer := time.NewTimer(every)
	defer timer.Stop()
	for {
		select {
		case <-n.ctx.Done():
			return
		case <-timer.C:
		case <-n.prompt:
		}
		start := n.cfg.Clock.Now()
		n.read(start)
		pause := every - rand.N(every/5) // else processes that start together would read together for ever
		timer.Reset(max(0, pause-(n.cfg.Clock.Now()-start)))
	}
}

// read reads the notice once.
func (n *Notice) read(start time.Duration) {
	n.mu.Lock()
	ended := n.next
	n.flight, n.next = ended, make(chan struct{})
	n.mu.Unlock()
	ctx, cancel := scriptkit.Limit(n.ctx, min(patience, n.cfg.Timeout))
	var problem error
	err := guard.Run("the reading of the notice", nil, func() error { // Failed tells of it
		told, err := n.cfg.Read(ctx, n.own())
		if err == nil {
			problem = n.take(start, told)
		}
		n.settle()
		return err
	})
	cancel()
	switch {
	case err == nil:
		if n.blind.Store(false); problem != nil && !n.partly {
			n.cfg.Failed(problem)
		}
		n.partly = problem != nil
	case n.ctx.Err() == nil:
		n.refused.Store(!scriptkit.Repeatable(err) || scriptkit.ByReplica(err))
		if !n.blind.Swap(true) {
			n.cfg.Failed(err)
		}
	}
	n.mu.Lock()
	n.flight = nil
	n.mu.Unlock()
	close(ended)
}

// own are the fields that are about this process and can be named.
func (n *Notice) own() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	fields := []string{Label + n.cfg.Label}
	for _, kind := range n.cfg.Kinds {
		fields = append(fields, Pause(kind))
	}
	for _, node := range n.nodes {
		fields = append(fields, Node+node.id)
	}
	return fields
}

// take takes what was read, by a call that began at start, and returns why that is not all. A pause that is known lasts to its
// end unless a newer word has another one: neither a damaged text ends it, nor a server that has lost its newest words.
func (n *Notice) take(start time.Duration, told Told) error {
	now := n.cfg.Clock.Now()
	if n.born == 0 {
		// Too late by up to what the read took. Who was made just before a drain may take it for an older one, and
		// the drain's walk asks for what it has. The other way round, who starts after a drain would drain.
		n.born = told.Now - (start - n.made).Milliseconds()
	}
	old, read := n.known.Load(), &known{start: start, of: make(map[keyspace.Kind]State, len(n.cfg.Kinds))}
	for _, kind := range n.cfg.Kinds {
		s, f := State{}, Read(told.Fields[Pause(kind)])
		if !f.Damaged {
			n.follows(kind, f.Number)
			s.Number, s.Reason = f.Number, f.What
			if left := f.Until - told.Now; left > 0 {
				s.ends = now + min(state.Millis(left), MostPause) // a little late: no name is granted before the end
			}
		}
		if old != nil {
			if before := old.of[kind]; f.Damaged || f.Number < before.Number && before.ends > max(now, s.ends) {
				s = before
			}
		}
		read.of[kind] = s
	}
	n.known.Store(read)
	if damaged := n.heed(now, told); damaged != "" {
		return fmt.Errorf("berth: what operators say to all is %w: the field %q", state.ErrDamaged, damaged)
	}
	return told.Problem
}

// follows notes the number of the pause of a kind that was read last. One that is less than the one before is that of a server that has
// lost data, or has forgotten the notice a day after the pause.
func (n *Notice) follows(kind keyspace.Kind, number int64) {
	if number < n.numbers[kind] {
		for _, node := range n.all() {
			if node.drain != nil {
				node.lost()
			}
		}
	}
	n.numbers[kind] = number
}

// all are the nodes.
func (n *Notice) all() []node {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.nodes)
}

// heed notes by which fields the process drains, and returns one that is damaged. A field that has gone changes nothing: a flush ends
// no drain. One of a label that was set before the process was made is not about it. A drain ends by itself by the process's clock.
func (n *Notice) heed(now time.Duration, told Told) (damaged string) {
	for name, text := range told.Fields {
		f := Read(text)
		if f.Damaged {
			damaged = max(damaged, name)
		}
		if !n.fits(name, f.Number) {
			continue
		}
		reason, drains := f.Drains(told.Now)
		if !drains {
			delete(n.heeds, name)
			continue
		}
		d := &drain{field: name, ends: forever, Drained: Drained{Target(name), reason}}
		if f.Until > 0 {
			d.ends = now + min(state.Millis(f.Until-told.Now), MostPause)
		}
		n.heeds[name] = d
	}
	return damaged
}

// forever is when a drain without an end ends, on the clock.
const forever = time.Duration(math.MaxInt64)

// settle has the process drain by the drain that lasts longest, until it ends.
func (n *Notice) settle() {
	now := n.cfg.Clock.Now()
	var last *drain
	for name, d := range n.heeds {
		switch {
		case d.ends <= now:
			delete(n.heeds, name)
		case last == nil || d.ends > last.ends || d.ends == last.ends && d.field < last.field:
			last = d
		}
	}
	before := n.drains.Swap(last)
	if last != nil && (before == nil || before.ends <= n.cfg.Clock.Now()) { // else it has drained all the time
		for _, node := range n.all() {
			if node.drain != nil {
				node.drain()
			}
		}
	}
	switch {
	case last != nil && n.heard == "":
		n.heard = last.field
		n.cfg.Heard(n.heard, &last.Drained)
	case last == nil && n.heard != "":
		field := n.heard
		n.heard = ""
		n.cfg.Heard(field, nil)
	}
}

// fits says whether a field is about this process.
func (n *Notice) fits(field string, number int64) bool {
	if label, ok := strings.CutPrefix(field, Label); ok {
		return number > n.born && text.Fits(label, n.cfg.Label)
	}
	id, ok := strings.CutPrefix(field, Node)
	n.mu.Lock()
	defer n.mu.Unlock()
	return ok && number > 0 && slices.ContainsFunc(n.nodes, func(of node) bool { return of.id == id })
}
