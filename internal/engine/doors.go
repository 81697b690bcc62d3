package engine

import (
	"context"
	"fmt"
	"sync"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/gate"
	"github.com/berth-go/berth/internal/pace"
)

// doors has a gate for each server that the client asks.
type doors struct {
	of  func(name string) int // nil for one server
	one *gate.Gate
	new func() *gate.Gate

	mu  sync.Mutex
	all map[int]*gate.Gate // guarded by mu
}

func newDoors(cfg *Config) *doors {
	useful := min(cfg.CallTimeout, cfg.Wait)
	d := &doors{of: cfg.Server, new: func() *gate.Gate { return gate.New(cfg.Clock, useful) }, all: map[int]*gate.Gate{}}
	d.one = d.new()
	return d
}

// to is the gate of the server that runs a name's scripts.
func (d *doors) to(name string) *gate.Gate {
	if d.of == nil {
		return d.one
	}
	server := d.of(name)
	d.mu.Lock()
	defer d.mu.Unlock()
	g := d.all[server]
	if g == nil {
		g = d.new()
		d.all[server] = g
	}
	return g
}

// errNotSent is why an acquire failed that has not been sent.
var errNotSent = fmt.Errorf("%w: the acquire was not sent, as the server is late with other calls of this client", berth.ErrUnavailable)

// pass returns when an acquire may be sent. One that may not wait in line waits here for no longer than its attempts take.
func (e *Engine) pass(ctx context.Context, c *Claim, door *gate.Gate) *berth.AcquireError {
	if door.Try() {
		return nil
	}
	at, cancel := ctx, func() {}
	if !c.MayWait {
		at, cancel = context.WithTimeout(ctx, pace.Within(e.cfg.Retry))
	}
	defer cancel()
	switch {
	case door.Enter(at, e.closing):
		return nil
	case ctx.Err() == nil && at.Err() != nil && !e.isClosing():
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
