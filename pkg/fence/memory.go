package fence

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/berth-go/berth/pkg/keyspace"
)

// Memory is a guard that remembers in this process, for the one process that owns the
// resource. The zero value is ready. It is safe for concurrent use and must not be
// copied.
//
// It keeps one number per admitted name, about 200 bytes with the name, for as long as
// the process runs: it cannot know when the last older hold has ended. Forget drops
// names that come and go.
type Memory struct {
	mu    sync.Mutex
	names map[string]*memory // guarded by mu
}

// memory is one name. Only the owner of its turn reads and writes greatest.
type memory struct {
	turn     chan struct{} // has room for one: whose turn it is
	greatest int64         // 0 for none; guarded by turn
	users    int           // who has the turn or waits for it; guarded by Memory.mu
}

// Admit returns nil if no greater fence was admitted for the name before; from then on
// smaller ones are refused. It waits while a Do of the name runs.
//
// Its errors are a *StaleError, which matches ErrStale; a *berth.ConfigError for a name
// that keyspace.CheckName refuses; and, if ctx ends first, an error that matches
// ctx.Err() and context.Cause(ctx).
func (g *Memory) Admit(ctx context.Context, name string, fence int64) error {
	return g.Do(ctx, name, fence, func() error { return nil })
}

// Do runs f if the fence is admitted, and returns f's error. While f runs, every other
// call of the guard for that name waits. So an older hold never writes after a newer
// one what only f changes. The fence stays admitted if f fails or panics. A call for
// the same name inside of f waits for itself, until its ctx ends.
//
// Its other errors are those of Admit; then f has not run.
func (g *Memory) Do(ctx context.Context, name string, fence int64, f func() error) error {
	m, err := g.take(ctx, name, fence)
	if err != nil {
		return err
	}
	defer g.give(name, m)
	if fence < m.greatest {
		return &StaleError{Name: name, Fence: fence, Greatest: m.greatest}
	}
	m.greatest = fence
	return f()
}

// Forget drops the name, unless a greater fence than the given one was admitted. After
// it every fence is admitted, as before the first. Forget a name when its resource is
// gone for good, or when no older hold can still write.
//
// Its errors are those of Admit.
func (g *Memory) Forget(ctx context.Context, name string, fence int64) error {
	m, err := g.take(ctx, name, fence)
	if err != nil {
		return err
	}
	defer g.give(name, m)
	if fence < m.greatest {
		return &StaleError{Name: name, Fence: fence, Greatest: m.greatest}
	}
	m.greatest = 0
	return nil
}

// take waits for the turn of the name. The caller must give it back.
func (g *Memory) take(ctx context.Context, name string, fence int64) (*memory, error) {
	if err := check(name, fence); err != nil {
		return nil, err
	}
	if ctx.Err() != nil { // where the turn is free too, select would toss a coin
		return nil, ended(ctx)
	}
	g.mu.Lock()
	m := g.names[name]
	if m == nil {
		if g.names == nil {
			g.names = make(map[string]*memory)
		}
		m = &memory{turn: make(chan struct{}, 1)}
		g.names[name] = m
	}
	m.users++
	g.mu.Unlock()

	select {
	case m.turn <- struct{}{}:
		return m, nil
	case <-ctx.Done():
		g.leave(name, m)
		return nil, ended(ctx)
	}
}

// give ends a turn.
func (g *Memory) give(name string, m *memory) {
	<-m.turn
	g.leave(name, m)
}

// leave drops a name without an admitted fence when its last user has left. Without
// users nobody has the turn, so greatest may be read.
func (g *Memory) leave(name string, m *memory) {
	g.mu.Lock()
	defer g.mu.Unlock()
	m.users--
	if m.users == 0 && m.greatest == 0 {
		delete(g.names, name)
	}
}

// check refuses what every guard refuses.
func check(name string, fence int64) error {
	if err := keyspace.CheckName(name); err != nil {
		return err
	}
	if fence <= 0 {
		return &StaleError{Name: name, Fence: fence}
	}
	return nil
}

// ended is the error of a context that has ended, with its cause.
func ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(err, cause) {
		return err
	}
	return fmt.Errorf("%w: %w", err, cause)
}
