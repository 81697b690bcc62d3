package line

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/berth-go/berth"
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

	closing chan struct{} // closed when Close begins
	ended   chan struct{} // closed when Close has ended the parts
	gone    chan struct{} // closed when Close has nothing more of parts to wait for

	mu     sync.Mutex
	kinds  map[keyspace.Kind]*Kind // guarded by mu: those that have a face
	wrong  error                   // guarded by mu: what is wrong with the first face that cannot be used
	former []*Node                 // guarded by mu: the nodes that it was
	closed bool                    // guarded by mu
	parts  []*part                 // guarded by mu: see Part
}

// NewProcess returns a Process with its first node. It does no I/O.
func NewProcess(cfg Config) *Process {
	p := &Process{
		Config: cfg, decide: reader.New(cfg.Runner, cfg.Space, true), kinds: make(map[keyspace.Kind]*Kind),
		closing: make(chan struct{}), ended: make(chan struct{}), gone: make(chan struct{}),
	}
	p.node.Store(newNode(p))
	return p
}

// Use returns the process of a *node.Node for a face of it. complete looks at what the face is to be, and says first what only its
// kind knows, by Add. What is wrong with the first such face Wrong returns from then on.
func Use(node any, complete func(p *Process) error) (*Process, error) {
	p := Of(node)
	if p == nil {
		return nil, berth.Invalid("node", "a node is needed")
	}
	err := complete(p)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wrong = cmp.Or(p.wrong, err)
	return p, err
}

// UseName is Use for a face of one name. A name that cannot be may be a stranger's: it is not for Wrong.
func UseName(node any, name string, complete func(p *Process) error) (*Process, error) {
	if p := Of(node); p != nil {
		if err := keyspace.CheckName(name); err != nil {
			return p, err
		}
	}
	return Use(node, complete)
}

// Wrong says what is wrong with a face that was made, and cannot be used.
func (p *Process) Wrong() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.wrong
}

// Add says what only a kind knows, and returns what counts: what was said first. Whoever makes claims of a kind does it before.
func (p *Process) Add(k *Kind) *Kind {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.kinds[k.Kind]; known != nil {
		return known
	}
	p.kinds[k.Kind] = k
	for _, n := range append(p.former, p.node.Load()) {
		n.face(k.Kind).Store(nil) // an operator's call, or a flush, may have come before
	}
	return k
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
			ForceHold: composed.LockForceHold,
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

// Trial goes through the scripts of the kinds that have a face, see Kind.Trial. Where none has, it runs one that finds nothing.
func (p *Process) Trial(ctx context.Context) error {
	p.mu.Lock()
	var kinds []keyspace.Kind
	for _, kind := range Kinds {
		if p.kinds[kind] != nil {
			kinds = append(kinds, kind)
		}
	}
	p.mu.Unlock()
	if len(kinds) == 0 {
		_, err := p.Face(keyspace.Lock).SweepAll(ctx, trialName+p.Node().ID)
		return err
	}
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

// Closing is closed when Close begins.
func (p *Process) Closing() <-chan struct{} { return p.closing }

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

// Leave ends what of a process is made with this Closing, see engine.Claim, and gives back what it holds.
func (p *Process) Leave(ctx context.Context, closing <-chan struct{}) error {
	p.mu.Lock()
	nodes := append([]*Node{p.node.Load()}, p.former...)
	p.mu.Unlock()
	errs := make([]error, len(nodes))
	var leaving sync.WaitGroup
	for i, n := range nodes {
		leaving.Go(func() { errs[i] = n.Engine.Leave(ctx, closing) })
	}
	leaving.Wait()
	return errors.Join(errs...)
}

// part is something that Close ends.
type part struct {
	end func(ctx context.Context) (after func())
}

// Part has Close call end, beside those of other parts, before it closes the nodes, and what end returns, if anything, when they have
// given back what is held, all side by side. It is for what has goroutines of its own, until leave is called. Part reports false, and
// has done nothing, if Close has begun.
func (p *Process) Part(end func(ctx context.Context) (after func())) (leave func(), ok bool) {
	own := &part{end}
	ok = p.IfOpen(func() { p.parts = append(p.parts, own) })
	return func() {
		p.IfOpen(func() { p.parts = slices.DeleteFunc(p.parts, func(other *part) bool { return other == own }) })
	}, ok
}

// Close ends the parts, closes all nodes, as engine.Close has it, waits for what the parts have left to do, for as long, and
// closes what all share. It returns what each node met.
func (p *Process) Close(ctx context.Context) (errs []error) {
	p.mu.Lock()
	first, parts := !p.closed, p.parts
	p.closed, p.parts = true, nil
	if first {
		close(p.closing)
		close(p.node.Load().over) // Replace has closed those of the former
	}
	nodes := append([]*Node{p.node.Load()}, p.former...)
	p.mu.Unlock()
	late, cancel := nodes[0].Engine.Overtime(ctx)
	defer cancel()
	afters := make([]func(), len(parts))
	var ending sync.WaitGroup
	for i, part := range parts {
		ending.Go(func() { afters[i] = part.end(ctx) }) // all at once: each may take its time
	}
	if ending.Wait(); first {
		close(p.ended)
	}
	select {
	case <-p.ended: // another Close may be at it
	case <-ctx.Done():
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
			var all sync.WaitGroup
			for _, after := range afters {
				if after != nil {
					all.Go(after)
				}
			}
			all.Wait()
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
