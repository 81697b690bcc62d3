package engine

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/gate"
	"github.com/berth-go/berth/internal/pace"
	"github.com/berth-go/berth/pkg/keyspace"
)

// doors has a gate for each server that the node asks, and in each gate a door for each kind.
type doors struct {
	server func(key string) int                 // nil for one server
	made   atomic.Pointer[map[where]*gate.Door] // written with mu held, each time another map

	new   func() *gate.Gate
	mu    sync.Mutex
	gates map[int]*gate.Gate // guarded by mu
}

// where says which door that is.
type where struct {
	server int
	kind   keyspace.Kind
}

func newDoors(cfg *Config) *doors {
	useful := min(cfg.CallTimeout, cfg.Wait)
	d := &doors{server: cfg.Server, new: func() *gate.Gate { return gate.New(cfg.Clock, useful) }, gates: map[int]*gate.Gate{}}
	d.made.Store(&map[where]*gate.Door{})
	return d
}

// of is the number of the server that has a Redis key.
func (d *doors) of(key string) int {
	if d.server == nil {
		return 0
	}
	return d.server(key)
}

// gate is that of the server that has a Redis key.
func (d *doors) gate(key string) *gate.Gate {
	server := d.of(key)
	d.mu.Lock()
	defer d.mu.Unlock()
	g := d.gates[server]
	if g == nil {
		g = d.new()
		d.gates[server] = g
	}
	return g
}

// to is the door that a claim's asks pass.
func (d *doors) to(c *Claim) *gate.Door {
	at := where{d.of(c.key), c.Kind}
	if door := (*d.made.Load())[at]; door != nil {
		return door
	}
	g := d.gate(c.key)
	d.mu.Lock()
	defer d.mu.Unlock()
	made := maps.Clone(*d.made.Load())
	if made[at] == nil {
		made[at] = g.Door()
		d.made.Store(&made)
	}
	return made[at]
}

// errNotSent is why an acquire failed that has not been sent.
var errNotSent = fmt.Errorf("%w: the acquire was not sent, as the server is late with other calls of this node", berth.ErrUnavailable)

// pass returns when an acquire may be sent. One that may not wait in line waits here for no longer than its attempts take.
func (e *Engine) pass(ctx context.Context, c *Claim, door *gate.Door) *berth.AcquireError {
	if door.Try() {
		return nil
	}
	at, cancel := ctx, func() {}
	if !c.MayWait {
		at, cancel = context.WithTimeout(ctx, pace.Within(e.cfg.Retry))
	}
	defer cancel()
	switch {
	case door.Enter(at, e.closing, c.Closing):
		return nil
	case ctx.Err() == nil && at.Err() != nil && !e.isClosing() && !isClosed(c.Closing):
		return &berth.AcquireError{Reason: berth.ReasonFailed, Cause: errNotSent}
	}
	return cutShort
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
