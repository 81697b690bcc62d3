package semaphore

import (
	"context"
	"sync"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
)

// Config configures a Semaphore. The zero value is valid.
type Config struct {
	// Defaults are used for each field that a call's AcquireOptions leave zero. Default none.
	Defaults AcquireOptions
	// CapacityPolicy says what happens when the stored capacity differs from the
	// Semaphore's. Default CapacityStored.
	CapacityPolicy CapacityPolicy
}

// Semaphore is one name with a capacity. A Semaphore is safe for concurrent use.
type Semaphore struct {
	p        *line.Process
	bad      error // the error of each call; nil for a usable Semaphore
	name     string
	capacity int
	policy   CapacityPolicy
	defaults AcquireOptions
	calm     []string // the arguments of semaphore_acquire that depend on the capacity

	// differs maps each name to the last stored capacity that was reported as different from that of a Semaphore of
	// this process.
	differs *sync.Map
}

// New returns the semaphore of a name on a node, with a capacity of at least 1. The same name is the same semaphore in
// every process.
//
// New does no I/O and always returns a Semaphore. If an argument is bad, each call of the Semaphore returns a
// *berth.ConfigError. Check of the node returns it too, unless the bad argument is the name.
func New(n *node.Node, name string, capacity int, cfg Config) *Semaphore {
	s := &Semaphore{name: name, capacity: capacity, calm: []string{state.Calm(capacity)}}
	s.p, s.bad = line.UseName(n, name, func(p *line.Process) error {
		s.p = p
		own := kind
		own.Of = new(sync.Map)
		s.differs = p.Add(&own).Of.(*sync.Map)
		return s.complete(&cfg)
	})
	return s
}

// complete checks the arguments, and takes over the settings of cfg.
func (s *Semaphore) complete(cfg *Config) error {
	if err := checkCapacity(s.capacity); err != nil {
		return err
	}
	if cfg.CapacityPolicy < CapacityStored || cfg.CapacityPolicy > CapacityOverride {
		return berth.Invalid("CapacityPolicy", "%d is no policy", int(cfg.CapacityPolicy))
	}
	s.defaults, s.policy = cfg.Defaults.own(), cfg.CapacityPolicy
	return s.defaults.validateDefaults(s.p.Settings.Lease)
}

// maxCapacity keeps sums of weights exact in every Lua.
const maxCapacity = 1 << 40

func checkCapacity(capacity int) error {
	if capacity < 1 || capacity > maxCapacity {
		return berth.Invalid("capacity", "%d is not within 1 to %d", capacity, maxCapacity)
	}
	return nil
}

// face returns the process's present node, as semaphores see it.
func (s *Semaphore) face() *line.Face { return s.p.Face(keyspace.Sem) }

// Name returns the semaphore's name.
func (s *Semaphore) Name() string { return s.name }

// held returns the hold of the permit that ctx was made under, nil for none.
func (s *Semaphore) held(ctx context.Context) *engine.Hold {
	if s.bad != nil {
		return nil
	}
	return s.face().Engine.Held(ctx, engine.Line{Kind: keyspace.Sem, Name: s.name})
}

// Fence returns the fence of the permit that ctx was made under, by Do or by a permit of this
// node and name. Fence returns 0 if ctx was not made under such a permit; every check of fences
// refuses 0.
func (s *Semaphore) Fence(ctx context.Context) int64 {
	hold := s.held(ctx)
	if hold == nil {
		return 0
	}
	return hold.Fence()
}

// Wanted returns Permit.Wanted of the permit that ctx was made under, like Fence. Wanted returns
// nil, which is never closed, if ctx was not made under such a permit.
func (s *Semaphore) Wanted(ctx context.Context) <-chan struct{} {
	hold := s.held(ctx)
	if hold == nil {
		return nil
	}
	return hold.Wanted()
}
