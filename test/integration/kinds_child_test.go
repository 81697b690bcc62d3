package integration

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
)

// holdServant is a child that uses locks, or pools. Beside the orders that a child with permits knows it takes
//
//	node      the child's node
//	swarm     start the swarm
//	extend    a lock, by order.By
//	hoard     take order.Count resources, and keep them without renewing
//	add       resources, order.Names
//	mix       hold again and again, with all that there is to do, and write each stay to the file order.Path
//	die       end as by kill -9, in the midst of the next stay
//	enough    end the mix
type holdServant struct {
	*locker // without locks in a child with pools

	mu    sync.Mutex
	holds map[string]berth.Hold // guarded by mu, by name
	pools map[string]*pool      // guarded by mu, by name; nil in a child with locks

	dies, done atomic.Bool
}

func newLockServant(n *node.Node, lease time.Duration) *holdServant {
	return &holdServant{locker: &locker{n, qlock.New(n, &qlock.Config{Lease: lease})}, holds: map[string]berth.Hold{}}
}

func newPoolServant(n *node.Node) *holdServant {
	return &holdServant{locker: &locker{Node: n}, holds: map[string]berth.Hold{}, pools: map[string]*pool{}}
}

// pool is the pool of an order. The first order of a pool says how it rests.
func (c *holdServant) pool(o order) *pool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pools[o.Name] == nil {
		c.pools[o.Name] = poolOf(c.Node, o.Name, poolConfig{Cooldown: o.Rest})
	}
	return c.pools[o.Name]
}

// take takes what an order names.
func (c *holdServant) take(ctx context.Context, o order) (h berth.Hold, err error) {
	if c.pools == nil {
		h, err = c.Lock(ctx, o.Name, &qlock.LockOptions{Lease: o.Lease, NoRenew: o.NoRenew})
	} else {
		h, err = c.pool(o).Allocate(ctx, &allocator.AllocateOptions{Lease: o.Lease, NoRenew: o.NoRenew})
	}
	return h, err
}

func (c *holdServant) carryOut(ctx context.Context, o order, a *answer) (err error) {
	c.mu.Lock()
	h := c.holds[o.Name]
	c.mu.Unlock()
	switch o.Do {
	case "acquire":
		return c.acquire(ctx, o, a)
	case "crowd":
		for range o.Count {
			go func() { _, _ = c.take(ctx, o) }()
		}
	case "err":
		return h.Err()
	case "context":
		if h.Context().Err() != nil {
			return context.Cause(h.Context())
		}
	case "renew":
		return h.Renew(ctx)
	case "release":
		return h.Release(ctx)
	case "extend":
		return h.(*qlock.Lock).Extend(ctx, o.By)
	case "swarm":
		return c.Swarm().Start(ctx)
	case "node":
		a.Node = c.ID()
	case "hoard":
		return hoard(ctx, c.pool(o), o.Count)
	case "add":
		_, err = c.pool(o).Add(ctx, o.Names, nil)
	case "mix":
		return c.mix(ctx, o)
	case "die":
		c.dies.Store(true)
	case "enough":
		c.done.Store(true)
	default:
		return fmt.Errorf("no such order: %q", o.Do)
	}
	return err
}

func (c *holdServant) acquire(ctx context.Context, o order, a *answer) error {
	h, err := c.take(ctx, o)
	if err != nil {
		return err
	}
	a.Claim, a.Fence, a.Node = h.ID(), h.Fence(), c.ID()
	c.mu.Lock()
	c.holds[o.Name] = h
	c.mu.Unlock()
	return nil
}

// hoard takes many resources at once. Nothing renews them.
func hoard(ctx context.Context, p *pool, many int) error {
	const workers = 64
	errs := make([]error, workers)
	var left atomic.Int64
	left.Store(int64(many))
	var all sync.WaitGroup
	for i := range workers {
		all.Go(func() {
			for errs[i] == nil && left.Add(-1) >= 0 {
				_, errs[i] = p.TryAllocate(ctx, &allocator.AllocateOptions{NoRenew: true})
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// spawnLocker starts a child with locks and a part in a swarm.
func (w *world) spawnLocker(s spec) *child {
	w.Helper()
	s.Locks = true
	return w.spawnAs(s)
}

// acquireFixed has the child hold the door for an hour, without renewing it.
func (c *child) acquireFixed() answer {
	c.w.Helper()
	a := c.ask(order{Do: "acquire", Name: door, Lease: time.Hour, NoRenew: true})
	require.Empty(c.w, a.Err)
	return a
}
