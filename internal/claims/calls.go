// Package claims runs the scripts that do not care what a claim is for: a line
// of claims has the same two keys and the same records for every primitive
// that has one. It also has what the primitives tell and check alike.
//
// A primitive embeds [Calls] in the type that runs its own scripts. Acquire and
// Release are the primitive's; with them, it is an engine.Scripts.
package claims

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/scriptkit"
	"github.com/berth-go/berth/scripts"
)

// library composes a script once, when the first client that uses it is made.
var library = sync.OnceValue(func() *scriptkit.Library { return scriptkit.Lazy(scripts.FS) })

// Library has the scripts of all primitives.
func Library() *scriptkit.Library { return library() }

// Config says whose calls they are. All fields are set by the primitive.
type Config struct {
	// Runner runs the scripts.
	Runner *scriptkit.Runner
	// Space builds the keys.
	Space keyspace.Space
	// Kind is the primitive's kind of keys.
	Kind keyspace.Kind
	// Node is the id under which the calls are made.
	Node string
	// Linger is how long an idle name is remembered.
	Linger time.Duration
	// Renew is the primitive's script for own calls. It takes and answers what
	// semaphore_renew does.
	Renew *scriptkit.Script
	// Resume is the primitive's script that takes up a detached hold. It takes
	// and answers what semaphore_resume does.
	Resume *scriptkit.Script
	// Restore, Sweep and Force are the primitive's scripts in the place of
	// claim_restore, claim_sweep and claim_force_release, which they answer like;
	// nil for those.
	Restore, Sweep, Force *scriptkit.Script
	// Parts are keys of a name beyond its state and its line, for scripts that take
	// them.
	Parts []string
	// Resources says that Renew tells of each claim which resource it holds.
	Resources bool
	// Empty is told that a pool on which claims of this node wait has no resources;
	// nil for nobody.
	Empty func(name string)
	// Swarm is the ZombieAfter of the node while a swarm knows it, else 0: what the
	// claims without end say of it. Nil where Renew and Resume are not told.
	Swarm func() time.Duration
	// Swept is given the reply of every Sweep, for what only the primitive reads; nil
	// for nobody.
	Swept func(name string, r *scriptkit.Reply)
	// Request returns the Request of a claim that is resumed; nil for none.
	Request func() any
	// Tell takes the events that no claim of this node is behind; nil for none.
	Tell Teller
}

// Calls are the calls of one node: typed arguments in, typed results out. A
// client whose node changes makes new ones.
type Calls struct {
	// Engine carries the claims of the node. It stands on these calls, so the
	// primitive sets it once it is made, before the first call.
	Engine *engine.Engine
	// Node, Linger and Channel are arguments of most scripts: the node's id, the
	// linger in milliseconds, and what the scripts put before a node's id.
	Node, Linger, Channel string
	// Tell takes the events of this node.
	Tell Teller

	space keyspace.Space
	kind  keyspace.Kind
	run   *scriptkit.Runner
	parts []string
	each  int // fields of a claim in the reply of renew

	swarm   func() time.Duration
	request func() any
	empty   func(name string)
	swept   func(name string, r *scriptkit.Reply)

	renew, resume, restore, sweep, force, stats, holders, waiters *scriptkit.Script
}

// New returns calls without an engine. It does no I/O.
func New(cfg Config) *Calls {
	lib := Library()
	or := func(own *scriptkit.Script, shared string) *scriptkit.Script {
		if own != nil {
			return own
		}
		return lib.Script(shared)
	}
	each, request := 3, cfg.Request
	if cfg.Resources {
		each++
	}
	if request == nil {
		request = func() any { return nil }
	}
	empty := cfg.Empty
	if empty == nil {
		empty = func(string) {}
	}
	swept := cfg.Swept
	if swept == nil {
		swept = func(string, *scriptkit.Reply) {}
	}
	return &Calls{
		Node:    cfg.Node,
		Linger:  Decimal(cfg.Linger.Milliseconds()),
		Channel: cfg.Space.Wake(""),
		space:   cfg.Space,
		kind:    cfg.Kind,
		run:     cfg.Runner,
		parts:   append([]string{keyspace.StatePart, keyspace.LinePart}, cfg.Parts...),
		each:    each,
		swarm:   cfg.Swarm,
		request: request,
		empty:   empty,
		swept:   swept,
		Tell:    cfg.Tell.from(cfg.Node),
		renew:   cfg.Renew,
		resume:  cfg.Resume,
		restore: or(cfg.Restore, "claim_restore"),
		sweep:   or(cfg.Sweep, "claim_sweep"),
		force:   or(cfg.Force, "claim_force_release"),
		stats:   lib.Script("claim_stats"),
		holders: lib.Script("claim_holders"),
		waiters: lib.Script("claim_waiters"),
	}
}

// Key is the Redis key of a name's state.
func (s *Calls) Key(name string) string { return s.space.State(s.kind, name) }

// Run runs a script on as many keys of a name as it takes: its state, its line,
// and the primitive's own.
func (s *Calls) Run(ctx context.Context, script *scriptkit.Script, mode scriptkit.Mode, name string, args ...string) (scriptkit.Reply, error) {
	keys := make([]string, min(len(s.parts), len(script.Header.Keys)))
	for i := range keys {
		keys[i] = s.space.Key(s.kind, name, s.parts[i])
	}
	return s.RunOn(ctx, script, mode, keys, args...)
}

// RunOn runs a script on the keys given.
func (s *Calls) RunOn(ctx context.Context, script *scriptkit.Script, mode scriptkit.Mode, keys []string, args ...string) (scriptkit.Reply, error) {
	return s.run.Run(ctx, script, mode, keys, args)
}

// beat is the mode of a beat that says whether the node is in a swarm.
func (s *Calls) beat() engine.Mode {
	if limit := s.swarm(); limit > 0 {
		return engine.ModeBeat + " " + engine.Mode(Decimal(limit.Milliseconds()))
	}
	return engine.ModeBeat
}

// Load loads the primitive's script for own calls on every node.
func (s *Calls) Load(ctx context.Context) error { return s.run.Load(ctx, s.renew) }

// Beat sends the primitive's script for own calls, once.
func (s *Calls) Beat(ctx context.Context, name string, mode engine.Mode, claims []*engine.Claim) (engine.Round, error) {
	args := make([]string, 0, 4+2*len(claims))
	args = append(args, s.Node, s.Linger, s.Channel, name)
	for _, c := range claims {
		m := mode
		if m == engine.ModeBeat && s.swarm != nil && c.Endless() {
			m = s.beat()
		}
		args = append(args, c.ID, string(m))
	}
	r, err := s.Run(ctx, s.renew, scriptkit.Once, name, args...)
	if err != nil {
		return engine.Round{}, err
	}
	if r.Status() != statusRenewed {
		return engine.Round{}, Unexpected(name, &r)
	}
	const fixed = 5
	round := engine.Round{Tide: Tide(&r, 1, 4), Status: make([]engine.Status, len(claims))}
	for i := range claims {
		at := fixed + s.each*i
		round.Status[i] = engine.Status{Word: engine.Word(r.Str(at)), Left: Left(r.Int(at + 1)), Fence: r.Int(at + 2)}
		if s.each > 3 {
			round.Status[i].Resource = r.Str(at + 3)
		}
		if round.Status[i].Word == engine.WordTooHeavy {
			round.Status[i] = tooHeavy(&r, at+1)
		}
		if round.Status[i].Word == engine.WordWaiting && r.Int(3) == 0 {
			s.empty(name)
		}
	}
	return round, r.Err()
}

// Restore sends claim_restore once.
func (s *Calls) Restore(ctx context.Context, name string, claims []*engine.Claim) (engine.Round, error) {
	args := make([]string, 0, 5+3*len(claims))
	args = append(args, s.Node, strconv.Itoa(claims[0].Capacity), s.Linger, s.Channel, name)
	for _, c := range claims {
		place, text := c.Standing()
		args = append(args, c.ID, Decimal(place), text)
	}
	r, err := s.Run(ctx, s.restore, scriptkit.Once, name, args...)
	if err != nil {
		return engine.Round{}, err
	}
	if r.Status() != statusRestored {
		return engine.Round{}, Unexpected(name, &r)
	}
	const fixed = 5
	round := engine.Round{Tide: Tide(&r, 1, 4), Status: make([]engine.Status, len(claims))}
	for i := range claims {
		round.Status[i] = engine.Status{Word: engine.Word(r.Str(fixed + i))}
		if round.Status[i].Word == engine.WordTooHeavy {
			round.Status[i] = tooHeavy(&r, fixed+len(claims))
		}
	}
	if r.Int(3) == 0 {
		s.empty(name)
	}
	return round, r.Err()
}

// tooHeavy reads the counts of a name, held and waiting from i on.
func tooHeavy(r *scriptkit.Reply, i int) engine.Status {
	return engine.Status{
		Word: engine.WordTooHeavy, Capacity: int(r.Int(3)), Held: int(r.Int(i)), Waiting: int(r.Int(i + 1)),
	}
}

// Parting reads the reply of a release. What a primitive's script says beyond
// it, the primitive reads itself.
func Parting(name string, r *scriptkit.Reply) (engine.Parting, error) {
	p := engine.Parting{Word: engine.Released(r.Status()), Unanswered: r.Unanswered}
	switch r.Status() {
	case statusReleased, statusCancelled, statusExpired:
		p.More = r.Int(1) == 1
		if r.Status() != statusCancelled {
			p.Fence = r.Int(2)
		}
	case statusNotHeld:
		if r.Str(1) == toldReleased {
			p.Word = engine.ForceReleased
		}
	case statusTaken:
	default:
		return p, Unexpected(name, r)
	}
	return p, r.Err()
}
