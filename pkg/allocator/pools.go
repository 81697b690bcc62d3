package allocator

import (
	"context"
	"errors"
	"sync"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/internal/reader"
)

// pools has the state that all pools of a process share, and the list of open ones.
type pools struct {
	p    *line.Process
	look *reader.Reader // for readings

	mu   sync.Mutex
	open map[string]kicker // guarded by mu
}

// kicker makes a pool be filled soon.
type kicker interface{ kick() }

// poolsOf are the pools of a process, of which it has a pool now, or only looks at some.
func poolsOf(p *line.Process, uses bool) *pools {
	s := &pools{p: p, look: reader.New(p.Runner, p.Space, false), open: make(map[string]kicker)}
	if !uses {
		return s
	}
	return p.Add(s.kind()).Of.(*pools)
}

// enter registers a pool. A process has one pool of a name, which keeps the values.
func (s *pools) enter(name string, pool kicker) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, there := s.open[name]; there {
		return berth.Invalid("name", "this node has a pool %q already: its values are kept there", name)
	}
	s.open[name] = pool
	return nil
}

// ready says that a pool that has entered can be kicked.
func (s *pools) ready(name string, pool kicker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[name] = pool
}

// leave forgets a pool.
func (s *pools) leave(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, name)
}

// empty is called when a pool was found empty.
func (s *pools) empty(name string) {
	s.mu.Lock()
	pool := s.open[name]
	s.mu.Unlock()
	if pool != nil {
		pool.kick()
	}
}

// trial goes through the scripts of an uncontended allocation.
func (s *pools) trial(ctx context.Context) (err error) {
	p := &core{pools: s, name: "berth check " + s.p.Node().ID}
	lease := s.p.Settings.Lease
	defer func() {
		_, removed := p.remove(ctx, []string{"trial"})
		err = errors.Join(err, removed)
	}()
	// Should this process die in the middle, the few keys of that pool stay. The resource outlasts the
	// four calls of a check, each answered within CallTimeout, also where a lease is shorter than that.
	if _, err := p.add(ctx, []string{"trial"}, max(lease, 4*s.p.Settings.CallTimeout), 1, 0, nil); err != nil {
		return err
	}
	f := s.face()
	claim := p.claim(ctx, f, AllocateOptions{Lease: lease}, false)
	answer, err := f.Acquire(ctx, claim)
	if err != nil {
		return err
	}
	if answer.Refused != nil {
		return answer.Refused
	}
	if _, err := f.Beat(ctx, claim.Name, engine.ModeBeat, []*engine.Claim{claim}); err != nil {
		return err
	}
	_, err = f.Release(ctx, claim, 0)
	return err
}
