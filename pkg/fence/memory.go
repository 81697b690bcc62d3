package fence

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/berth-go/berth/pkg/keyspace"
)

// Memory is a guard that keeps its fences in this process, for a resource that one process
// owns. The zero value is ready. Memory is safe for concurrent use and must not be copied.
//
// Memory keeps one number for each admitted name, about 200 bytes with the name, as long as the
// process runs, because it cannot know when the last older hold has ended. Use Forget for names
// that come and go.
type Memory struct {
	mu    sync.Mutex
	names map[string]*memory // guarded by mu
}

// memory is one name. Only the goroutine that has the turn reads and writes greatest.
type memory struct {
	turn     chan struct{} // of capacity 1: full while a goroutine has the turn
	greatest int64         // 0 for none; guarded by turn
	users    int           // how many have the turn or wait for it; guarded by Memory.mu
}

// Admit returns nil if no greater fence was admitted for the name before, and refuses smaller
// fences from then on. Admit waits while a Do of the name runs.
//
// Otherwise Admit returns a *StaleError, which matches ErrStale; a *berth.ConfigError for a
// name that keyspace.CheckName refuses; or, if ctx ends first, an error that matches ctx.Err()
// and context.Cause(ctx).
func (g *Memory) Admit(ctx context.Context, name string, fence int64) error {
	return g.Do(ctx, name, fence, func() error { return nil })
}

// Do runs f if the fence is admitted, and returns f's error. While f runs, every other call of
// the guard for that name waits. So if only f writes, an older hold never writes after a newer
// one. The fence stays admitted if f fails or panics. A call for the same name inside f waits
// until its ctx ends.
//
// If f did not run, Do returns an error of Admit.
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

// Forget drops the name, unless a greater fence than the given one was admitted. Afterwards
// every fence is admitted again. Call Forget when the resource is gone for good, or when no
// older hold can still write.
//
// Forget returns the errors of Admit.
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

// take waits for the turn of the name. The caller must end the turn with give.
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

// leave drops a name without an admitted fence when its last user has left. Without users
// nobody has the turn, so leave may read greatest.
func (g *Memory) leave(name string, m *memory) {
	g.mu.Lock()
	defer g.mu.Unlock()
	m.users--
	if m.users == 0 && m.greatest == 0 {
		delete(g.names, name)
	}
}

// check refuses names and fences that every guard refuses.
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
