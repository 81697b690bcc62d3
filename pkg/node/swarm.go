package node

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/internal/swarm"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// SwarmConfig configures a node's part in a swarm. The nodes of a swarm watch each other, so
// that holds that do not renew end when their node has died.
type SwarmConfig struct {
	// Auto starts the swarm together with the node, in the background. Default false.
	Auto bool
	// ProbeEvery is the time between two probes, by which this node reports that it lives: at
	// least 1 ms. Default 2 s.
	ProbeEvery time.Duration
	// ZombieAfter is the age of this node's last probe at which the node counts as dead: whole
	// milliseconds, at least twice ProbeEvery, at most 24 h. Each probe carries the node's
	// ZombieAfter, so nodes may have different values. Default 15 s.
	ZombieAfter time.Duration
	// FlushEvery is the time between two flushes, by which this node ends the holds of dead nodes;
	// below 0 never. Default 10 s.
	FlushEvery time.Duration
}

func (c SwarmConfig) withDefaults() SwarmConfig {
	fill := func(d *time.Duration, value time.Duration) {
		if *d == 0 {
			*d = value
		}
	}
	fill(&c.ProbeEvery, 2*time.Second)
	fill(&c.ZombieAfter, 15*time.Second)
	fill(&c.FlushEvery, 10*time.Second)
	return c
}

func (c SwarmConfig) validate() error {
	return swarm.Config{ProbeEvery: c.ProbeEvery, ZombieAfter: c.ZombieAfter, FlushEvery: c.FlushEvery}.Validate()
}

// SwarmStatus is this node's part in the swarm.
type SwarmStatus struct {
	// Running reports whether the swarm is started and not being stopped.
	Running bool
	// Node is the id under which the swarm runs.
	Node string
	// ProbedAt is the start of the last confirmed probe, by the clock of this process; zero for
	// none.
	ProbedAt time.Time
	// FlushedAt is when the last flush ended, by the clock of this process; zero for none.
	FlushedAt time.Time
	// Err is the error of the last probe, else the error of the last flush, else nil.
	Err error
}

// SwarmNode is a node of the swarm.
type SwarmNode struct {
	// Node is the node's id.
	Node string `json:"node"`
	// Label is the node's Config.Label.
	Label string `json:"label"`
	// ProbedAt is when the node's last probe arrived, or when a flush found the probe missing, by
	// the server's clock, in milliseconds.
	ProbedAt time.Time `json:"probedAt"`
	// ZombieAfter is the node's SwarmConfig.ZombieAfter.
	ZombieAfter time.Duration `json:"zombieAfterMs"`
	// Zombie reports whether ZombieAfter has passed since ProbedAt.
	Zombie bool `json:"zombie"`
	// Condemned reports whether a flush ends the node's holds. A condemned node never probes again.
	Condemned bool `json:"condemned"`
}

// Zombies lists dead nodes and their claims.
type Zombies struct {
	// Nodes are the ids of the dead nodes, sorted: those not yet condemned, and condemned nodes
	// with holds or waits left.
	Nodes []string `json:"nodes"`
	// Owners are the owners with holds or waits on these nodes, sorted. For a claim without an
	// owner, Owners has the claim's id.
	Owners []string `json:"owners"`
	// Names are the names that the dead nodes hold, each once, sorted by kind and name.
	Names []berth.Ref `json:"names"`
	// Waiters are the waiting claims of the dead nodes.
	Waiters []berth.Waiter `json:"waiters"`
}

// Flushed is the result of a flush.
type Flushed struct {
	// Nodes is how many nodes the flush condemned.
	Nodes int `json:"nodes"`
	// Holds is how many holds the flush ended.
	Holds int `json:"holds"`
	// Waiters is how many waiting claims the flush removed.
	Waiters int `json:"waiters"`
}

// Swarm is a node's part in the swarm of its namespace. A Swarm is safe for concurrent use.
//
// While the swarm runs, all handles of the node, of all kinds and including holds with a fixed lease, end with
// berth.ErrLost if no probe was confirmed for ZombieAfter minus 2 ms and 1 %. The process then goes on under a new node
// id, and others may get its former holds. Make a separate node for holds that must not end in this way.
//
// A flush covers names of all kinds. A flush never touches detached holds, or holds of a node that has never started a
// swarm. If the server has lost the list of nodes, a flush still finds holds without end, since the record of such a hold
// says that its node is in the swarm.
type Swarm struct {
	n   *Node
	s   *swarm.Swarm
	cfg SwarmConfig

	closing chan struct{} // closed when the node closes, to end starts under way
	closed  sync.Once
	work    sync.WaitGroup // starts under way; Add only while the process is open
}

// newSwarm returns the swarm part of a node whose configuration is valid.
func newSwarm(n *Node, cfg SwarmConfig, of *line.Config) (*Swarm, error) {
	s := &Swarm{n: n, cfg: cfg, closing: make(chan struct{})}
	var err error
	s.s, err = swarm.New(swarm.Config{
		Runner: of.Runner, Space: of.Space, Label: of.Settings.Label,
		ProbeEvery: cfg.ProbeEvery, ZombieAfter: cfg.ZombieAfter, FlushEvery: cfg.FlushEvery,
		Clock: of.Clock, Node: n.ID, Replace: s.replace, Line: flushable{n}, Observe: of.Tell.Send,
		Leaving: func(ctx context.Context) error { return n.p.Node().Engine.Reaffirm(ctx) },
	})
	return s, err
}

// Swarm returns the node's part in the swarm, always the same one. The swarm does not run until
// it is started.
func (n *Node) Swarm() *Swarm { return n.swarm }

// Start probes once, and then runs the swarm in the background. Start does nothing if the swarm
// runs. During a Stop, Start waits for the end of the Stop. Start returns the error of the
// first probe or ctx's error. If the node is closed before Start returns, Start returns
// berth.ErrClosed and the swarm does not run.
func (s *Swarm) Start(ctx context.Context) error {
	if !s.enter() {
		return berth.ErrClosed
	}
	defer s.work.Done()
	ctx, cancel := s.whileOpen(ctx)
	defer cancel()
	err := s.s.Start(ctx)
	if s.n.p.Closed() {
		return berth.ErrClosed // stop, which waits for this goroutine, ends the swarm
	}
	return err
}

// enter registers work that stop waits for, unless the node is closed.
func (s *Swarm) enter() bool { return s.n.p.IfOpen(func() { s.work.Add(1) }) }

// whileOpen returns a context that also ends when the node closes.
func (s *Swarm) whileOpen(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	s.work.Go(func() {
		select {
		case <-s.closing:
			cancel()
		case <-ctx.Done():
		}
	})
	return ctx, cancel
}

// Stop ends probing and flushing, waits for both, and takes the node out of the swarm, so that
// no other node flushes it. Stop does nothing if the swarm does not run. If Stop cannot learn
// whether the node has left the swarm, all handles of the node end with berth.ErrLost, and Stop
// returns the error.
func (s *Swarm) Stop(ctx context.Context) error { return s.s.Stop(ctx) }

// Status returns this node's status in the swarm, without asking the server.
func (s *Swarm) Status() SwarmStatus { return SwarmStatus(s.s.Status()) }

// Info yields the nodes of the swarm, in no order, whether this node's swarm runs or not. Info
// ends after an error: berth.ErrIncompatible or the server's.
func (s *Swarm) Info(ctx context.Context) iter.Seq2[SwarmNode, error] {
	return func(yield func(SwarmNode, error) bool) {
		for n, err := range s.s.Info(ctx) {
			if !yield(nodeOf(n), err) {
				return
			}
		}
	}
}

func nodeOf(n swarm.Node) SwarmNode {
	return SwarmNode{
		Node: n.ID, Label: n.Label, ProbedAt: n.ProbedAt, ZombieAfter: n.ZombieAfter, Zombie: n.Zombie, Condemned: n.Condemned,
	}
}

// Zombies returns the dead nodes and their claims, and changes nothing.
func (s *Swarm) Zombies(ctx context.Context) (Zombies, error) {
	found, err := s.s.Zombies(ctx)
	z := Zombies{Nodes: found.Nodes, Owners: found.Owners}
	for _, h := range found.Holds {
		z.Names = append(z.Names, h.Ref)
	}
	slices.SortFunc(z.Names, func(a, b berth.Ref) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name)) })
	z.Names = slices.Compact(z.Names)
	for _, w := range found.Waiters {
		z.Waiters = append(z.Waiters, w.Waiter)
	}
	return z, err
}

// ProbeNow probes once. ProbeNow returns berth.ErrNotRunning if the swarm does not run,
// berth.ErrClosed if the node is closed, or the error of the probe or of ctx.
func (s *Swarm) ProbeNow(ctx context.Context) error {
	err := s.s.ProbeNow(ctx)
	if errors.Is(err, berth.ErrNotRunning) && s.n.p.Closed() {
		return berth.ErrClosed
	}
	return err
}

// FlushNow flushes once, whether the swarm runs or not. FlushNow condemns the nodes whose own
// ZombieAfter has passed since their last probe, and removes the holds and waits of condemned
// nodes. If the names cannot be read, FlushNow condemns no node. A node that the server has
// lost, but that has holds without end, gets its own ZombieAfter to probe; the first FlushNow
// afterwards condemns it. An error of one name or node does not stop the others; the errors are
// joined.
func (s *Swarm) FlushNow(ctx context.Context) (Flushed, error) {
	done, err := s.s.FlushNow(ctx)
	return Flushed(done), err
}

// auto starts the swarm in the background, and tries again until the start succeeds.
func (s *Swarm) auto() {
	s.work.Go(func() {
		for err := s.Start(context.Background()); err != nil; err = s.Start(context.Background()) {
			select {
			case <-s.closing:
				return
			case <-time.After(s.cfg.ProbeEvery):
			}
		}
	})
}

// stop ends the swarm when its node closes.
func (s *Swarm) stop(ctx context.Context) error {
	s.closed.Do(func() { close(s.closing) })
	s.work.Wait()
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = scriptkit.Limit(context.WithoutCancel(ctx), s.n.p.Settings.CleanupTimeout)
		defer cancel()
	}
	return s.s.Stop(ctx)
}

// replace gives the process another node.
func (s *Swarm) replace(context.Context, swarm.Reason) (node string) {
	former, ended, ok := s.n.p.Replace()
	if !ok {
		return ""
	}
	id := s.n.ID()
	s.n.p.Tell.Send(observe.Event{Kind: observe.NodeReplaced, Node: id, Detail: former.ID, Count: ended})
	return id
}

// flushable gives a swarm the names of the namespace, of all kinds.
type flushable struct{ n *Node }

func (l flushable) Names(ctx context.Context) iter.Seq2[berth.Ref, error] {
	return func(yield func(berth.Ref, error) bool) {
		for _, kind := range line.Kinds {
			for name, err := range l.n.p.Face(kind).Names(ctx) {
				if !yield(berth.Ref{Kind: kind, Name: name}, err) {
					return
				}
			}
		}
	}
}

func (l flushable) Holders(ctx context.Context, of berth.Ref) iter.Seq2[berth.Holder, error] {
	return l.n.p.Face(of.Kind).Holders(ctx, of.Name)
}

func (l flushable) Waiters(ctx context.Context, of berth.Ref) iter.Seq2[berth.Waiter, error] {
	return l.n.p.Face(of.Kind).Waiters(ctx, of.Name)
}

func (l flushable) Unknown(claim string) bool { return l.n.p.Node().Engine.Unknown(claim) }

func (l flushable) ForceRelease(ctx context.Context, of berth.Ref, claim, node string) error {
	return l.n.p.Face(of.Kind).ForceRelease(ctx, of.Name, claim, node)
}
