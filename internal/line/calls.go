// Package line runs the scripts that every kind has, and reads their replies: typed
// arguments in, typed results out. It also has the text of a claim's record, the walk over the
// names that a server knows, and what the kinds tell and check alike.
//
// A primitive embeds [Calls] in a type of its own, which adds to Acquire and Release what only
// its kind says and hears. With that, the type is an engine.Scripts.
package line

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/berth-go/berth/internal/clock"
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
	// Clock is that of the node.
	Clock clock.Clock
	// Linger is how long an idle name is remembered.
	Linger time.Duration
	// Scripts is what the names of the kind's scripts begin with: semaphore, lock, pool.
	Scripts string
	// Parts are keys of a name beyond its state and its line, for scripts that take
	// them.
	Parts []string
	// Empty is told that a pool on which claims of this node wait has no resources;
	// nil for nobody.
	Empty func(name string)
	// Swarm is the ZombieAfter of the node while a swarm knows it, else 0: what the
	// claims without end say of it. Nil where no swarm can know it.
	Swarm func() time.Duration
	// Swept is given what only the kind's own Sweep tells; nil for nobody.
	Swept func(name string, told []string)
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
	// Node is the node's id.
	Node string
	// Linger is the linger in milliseconds, as the scripts take it.
	Linger string
	// Tell takes the events of this node.
	Tell Teller

	channel string // what the scripts put before a node's id
	space   keyspace.Space
	kind    keyspace.Kind
	run     *scriptkit.Runner
	parts   []string

	swarm   func() time.Duration
	request func() any
	empty   func(name string)
	swept   func(name string, told []string)

	clock  clock.Clock
	linger time.Duration
	thin   bool // the kind's names have a thin form
	names  names
	made   atomic.Pointer[made]

	acquire, release, renew, resume, restore, sweep, force *scriptkit.Script
	stats, holders, waiters                                *scriptkit.Script
	thinAcquire, thinRelease, thinRenew                    *scriptkit.Script
}

// New returns calls without an engine. It does no I/O.
func New(cfg Config) *Calls {
	lib := Library()
	own := func(verb string) *scriptkit.Script { return lib.Script(cfg.Scripts + "_" + verb) }
	request := cfg.Request
	if request == nil {
		request = func() any { return nil }
	}
	empty := cfg.Empty
	if empty == nil {
		empty = func(string) {}
	}
	swept := cfg.Swept
	if swept == nil {
		swept = func(string, []string) {}
	}
	return &Calls{
		Node:    cfg.Node,
		Linger:  Decimal(cfg.Linger.Milliseconds()),
		channel: cfg.Space.Wake(""),
		space:   cfg.Space,
		kind:    cfg.Kind,
		run:     cfg.Runner,
		parts:   append([]string{keyspace.StatePart, keyspace.LinePart}, cfg.Parts...),
		swarm:   cfg.Swarm,
		request: request,
		empty:   empty,
		swept:   swept,
		Tell:    cfg.Tell.from(cfg.Node),
		acquire: own("acquire"),
		release: own("release"),
		renew:   own("renew"),
		resume:  own("resume"),
		restore: own("restore"),
		sweep:   own("sweep"),
		force:   own("force_release"),
		stats:   lib.Script("claim_stats"),
		holders: lib.Script("claim_holders"),
		waiters: lib.Script("claim_waiters"),

		clock:       cfg.Clock,
		linger:      cfg.Linger,
		thin:        cfg.Kind != keyspace.Pool,
		thinAcquire: lib.Script("thin_acquire"),
		thinRelease: lib.Script("thin_release"),
		thinRenew:   lib.Script("thin_renew"),
	}
}

// Key is the Redis key of a name's state.
func (s *Calls) Key(name string) string { return s.space.State(s.kind, name) }

// Run runs a script on as many keys of a name as it takes: its state, its line,
// and the primitive's own.
func (s *Calls) Run(ctx context.Context, script *scriptkit.Script, mode scriptkit.Mode, name string, args ...string) (scriptkit.Reply, error) {
	return s.RunOn(ctx, script, mode, s.keysFor(script, name), args...)
}

// keysFor are the Redis keys of a name that a script takes.
func (s *Calls) keysFor(script *scriptkit.Script, name string) []string {
	keys, _ := s.names.of(name, s.keys)
	return keys[:min(len(keys), len(script.Header.Keys))]
}

// keys makes the Redis keys of a name.
func (s *Calls) keys(name string) []string {
	keys := make([]string, len(s.parts))
	for i := range keys {
		keys[i] = s.space.Key(s.kind, name, s.parts[i])
	}
	return keys
}

// Write runs a script that writes a name: each takes the linger, the channel prefix and
// the name first.
func (s *Calls) Write(ctx context.Context, script *scriptkit.Script, mode scriptkit.Mode, name string, args ...string) (scriptkit.Reply, error) {
	return s.Run(ctx, script, mode, name, s.writeArgs(name, args)...)
}

func (s *Calls) writeArgs(name string, args []string) []string {
	return append([]string{s.Linger, s.channel, name}, args...)
}

// RunOn runs a script on the keys given.
func (s *Calls) RunOn(ctx context.Context, script *scriptkit.Script, mode scriptkit.Mode, keys []string, args ...string) (scriptkit.Reply, error) {
	return s.run.Run(ctx, script, mode, keys, args)
}

// Load loads the primitive's script for own calls on every node.
func (s *Calls) Load(ctx context.Context) error {
	if s.thin {
		if err := s.run.Load(ctx, s.thinRenew); err != nil {
			return err
		}
	}
	return s.run.Load(ctx, s.renew)
}

// Acquire sends the kind's acquire once. wait says whether the claim may wait: 0, 1, or
// what only the kind's script knows. own are the arguments that only that script takes.
// extra is what only that script says.
func (s *Calls) Acquire(ctx context.Context, c *engine.Claim, wait string, own ...string) (a engine.Answer, extra string, err error) {
	if a, ok, err := s.acquireThin(ctx, c); ok || err != nil {
		return a, "", err
	}
	_, record := c.Standing()
	args := append([]string{s.Node, c.ID, wait, Lane(record.Priority), Tail(&record)}, own...)
	r, err := s.Write(ctx, s.acquire, scriptkit.Once, c.Name, args...)
	if err != nil {
		return engine.Answer{}, "", err
	}
	a, extra, err = answer(c.Name, &r)
	if a.Refused != nil {
		s.Tell.Swept(c.Name, a.Refused.Swept)
	}
	return a, extra, err
}

// Release sends the kind's release, repeated by Config.Retry. own are the arguments that
// only that script takes. extra is what only that script says.
func (s *Calls) Release(ctx context.Context, c *engine.Claim, stays time.Duration, own ...string) (p engine.Parting, extra string, err error) {
	unanswered := false
	if c.Thin.Load() && stays == 0 {
		var done bool
		if done, unanswered, err = s.releaseThin(ctx, c); done || err != nil {
			return engine.Parting{Word: engine.GivenBack, Fence: c.Fence(), Unanswered: unanswered}, "", err
		}
	}
	args := append([]string{s.Node, c.ID, Decimal(stays.Milliseconds())}, own...)
	r, err := s.Write(ctx, s.release, scriptkit.Bounded, c.Name, args...)
	if err != nil {
		return engine.Parting{}, "", err
	}
	p, extra, err = parting(c.Name, &r)
	p.Unanswered = p.Unanswered || unanswered
	return p, extra, err
}

// Restore sends the kind's script that puts claims back in line, once.
func (s *Calls) Restore(ctx context.Context, name string, claims []*engine.Claim) (engine.Round, error) {
	args := make([]string, 0, 2+3*len(claims))
	args = append(args, s.Node, strconv.Itoa(claims[0].Capacity))
	for _, c := range claims {
		place, record := c.Standing()
		args = append(args, c.ID, place, Text(&record))
	}
	r, err := s.Write(ctx, s.restore, scriptkit.Once, name, args...)
	if err != nil {
		return engine.Round{}, err
	}
	return s.round(name, &r, statusRestored, len(claims), restored)
}

// round reads the answer to a call of n claims.
func (s *Calls) round(name string, r *scriptkit.Reply, status string, n int, read func(r *scriptkit.Reply, n, i int) engine.Status) (engine.Round, error) {
	if r.Status() != status {
		return engine.Round{}, Unexpected(name, r)
	}
	round, waiting := engine.Round{Tide: tide(r), Status: make([]engine.Status, n)}, false
	for i := range round.Status {
		round.Status[i] = read(r, n, i)
		waiting = waiting || round.Status[i].Word == engine.WordWaiting
	}
	if waiting && setting(r) == 0 {
		s.empty(name)
	}
	return round, r.Err()
}
