package line

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/berth-go/berth/internal/caller"
	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/scripts/composed"
)

// Kinds are those whose claims a node carries.
var Kinds = []keyspace.Kind{keyspace.Sem, keyspace.Lock, keyspace.Pool}

// Process is what a process is on one namespace: a node, or in a swarm several, one after the other. It is safe for
// concurrent use.
type Process struct {
	Config
	decide *reader.Reader
	node   atomic.Pointer[Node] // the one that it is now

	mu     sync.Mutex
	kinds  map[keyspace.Kind]*Kind                    // guarded by mu: those that have a face
	former []*Node                                    // guarded by mu: the nodes that it was
	closed bool                                       // guarded by mu
	parts  []func(ctx context.Context) (after func()) // guarded by mu: see Part
	gone   chan struct{}                              // closed when Close has nothing more of parts to wait for
}

// NewProcess returns a Process with its first node. It does no I/O.
func NewProcess(cfg Config) *Process {
	p := &Process{Config: cfg, decide: reader.New(cfg.Runner, cfg.Space, true), kinds: make(map[keyspace.Kind]*Kind), gone: make(chan struct{})}
	p.node.Store(newNode(p))
	return p
}

// Add says what only a kind knows. Whoever makes claims of a kind does it first; what is said again counts for nothing, and
// Add reports false.
func (p *Process) Add(k *Kind) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.kinds[k.Kind] != nil {
		return false
	}
	p.kinds[k.Kind] = k
	for _, n := range append(p.former, p.node.Load()) {
		n.face(k.Kind).Store(nil) // an operator's call, or a flush, may have come before
	}
	return true
}

// kind is what is known of a kind. p.mu is held. Of one that has no face it is what operators need: so a process without
// pools, say, has none of their scripts but these.
func (p *Process) kind(kind keyspace.Kind) *Kind {
	if k := p.kinds[kind]; k != nil {
		return k
	}
	switch kind {
	case keyspace.Lock:
		return &Kind{Kind: kind, Scripts: Scripts{
			Sweep: composed.LockSweep, ForceRelease: composed.LockForceRelease, Pause: composed.LockPause, Want: composed.LockWant,
		}}
	case keyspace.Sem:
		return &Kind{Kind: kind, Scripts: Scripts{
			Sweep: composed.SemaphoreSweep, ForceRelease: composed.SemaphoreForceRelease, Pause: composed.SemaphorePause, Want: composed.SemaphoreWant,
		}}
	}
	return &Kind{Kind: kind, Parts: PoolParts, Scripts: Scripts{
		Sweep: composed.PoolSweep, ForceRelease: composed.PoolForceRelease, Pause: composed.PoolPause, Want: composed.PoolWant,
	}}
}

// PoolParts are the Parts of pools.
var PoolParts = []string{keyspace.ItemsPart, keyspace.FreePart, keyspace.BindingsPart}

// Node is the node that the process is now.
func (p *Process) Node() *Node { return p.node.Load() }

// Face is the node that the process is now, as a kind sees it.
func (p *Process) Face(kind keyspace.Kind) *Face { return p.node.Load().Face(kind) }

// Trial goes through the scripts of the kinds that have a face, see Kind.Trial.
func (p *Process) Trial(ctx context.Context) error {
	p.mu.Lock()
	var kinds []keyspace.Kind
	for _, kind := range Kinds {
		if p.kinds[kind] != nil {
			kinds = append(kinds, kind)
		}
	}
	p.mu.Unlock()
	for _, kind := range kinds {
		if err := p.Face(kind).trial(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Closed says whether Close has begun.
func (p *Process) Closed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

// IfOpen calls do unless Close has begun, which waits for do. It reports whether it has.
func (p *Process) IfOpen(do func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		do()
	}
	return !p.closed
}

// Replace gives the process another node than it has, and ends all that the former one held. It reports how many handles
// ended, and false for a process that is closed.
func (p *Process) Replace() (former *Node, ended int, ok bool) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, 0, false
	}
	former = p.node.Load()
	p.node.Store(newNode(p))
	p.former = append(slices.DeleteFunc(p.former, func(n *Node) bool {
		over := n.Engine.Ended() && !n.Engine.Left()
		if over && p.Notice != nil {
			p.Notice.Leave(n.ID)
		}
		return over
	}), former)
	p.mu.Unlock()
	close(former.over)
	return former, former.Engine.Abandon(), true
}

// Part has Close call end before it closes the nodes, the last one that was given first, and what end returns, if anything,
// when they have given back what is held. It is for what has goroutines of its own. Part reports false, and has done nothing,
// if Close has begun.
func (p *Process) Part(end func(ctx context.Context) (after func())) bool {
	return p.IfOpen(func() { p.parts = append(p.parts, end) })
}

// Close ends the parts, closes all nodes, as engine.Close has it, waits for what the parts have left to do, for as long, and
// closes what all share. It returns what each node met.
func (p *Process) Close(ctx context.Context) (errs []error) {
	p.mu.Lock()
	first, parts := !p.closed, p.parts
	p.closed, p.parts = true, nil
	if first {
		close(p.node.Load().over) // Replace has closed those of the former
	}
	nodes := append([]*Node{p.node.Load()}, p.former...)
	p.mu.Unlock()
	late, cancel := nodes[0].Engine.Overtime(ctx)
	defer cancel()
	var afters []func()
	for _, end := range slices.Backward(parts) {
		if after := end(ctx); after != nil {
			afters = append(afters, after)
		}
	}
	errs = make([]error, len(nodes))
	var closing sync.WaitGroup
	for i, n := range nodes {
		closing.Go(func() { errs[i] = n.Engine.Close(ctx) })
	}
	closing.Wait()
	if first {
		go func() {
			defer close(p.gone)
			for _, after := range afters {
				after()
			}
		}()
	}
	if p.Notice != nil {
		p.Notice.Close()
	}
	for _, n := range nodes {
		if !n.Engine.Ended() {
			return errs // ctx has ended, and it has been patient already
		}
	}
	select {
	case <-p.gone:
	case <-late.Done():
		errs = append(errs, caller.EndOf(ctx))
	}
	return errs
}

// Of returns the process of a *node.Node, nil for none. Package node sets it: so kinds reach the engine, and no exported
// signature has an internal type.
var Of func(node any) *Process
