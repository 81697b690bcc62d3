package integration

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/node"
)

// poolServant is a child that uses a pool, order.Name. Beside the orders that a
// child with permits knows it takes
//
//	hoard     take order.Count resources, and keep them without renewing
//	remove    resources, order.Names
//	add       resources, order.Names
//	mix       all operations again and again, and write what happened to order.Path
//	die       end as by kill -9, in the midst of the next hold
//	enough    end the mix
type poolServant struct {
	node *node.Node

	mu    sync.Mutex
	pools map[string]*pool       // guarded by mu, by name
	held  map[string]*allocation // guarded by mu, by pool

	dies, done atomic.Bool
}

func newPoolServant(n *node.Node) *poolServant {
	return &poolServant{node: n, pools: map[string]*pool{}, held: map[string]*allocation{}}
}

// pool is the pool of an order. The first order of a pool says how it rests.
func (c *poolServant) pool(o order) *pool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pools[o.Name] == nil {
		c.pools[o.Name] = poolOf(c.node, o.Name, poolConfig{Cooldown: o.Rest})
	}
	return c.pools[o.Name]
}

func (c *poolServant) carryOut(ctx context.Context, o order, a *answer) (err error) {
	p := c.pool(o)
	c.mu.Lock()
	held := c.held[o.Name]
	c.mu.Unlock()
	switch o.Do {
	case "acquire":
		return c.acquire(ctx, p, o, a)
	case "crowd":
		for range o.Count {
			go func() { _, _ = p.Allocate(ctx, nil) }()
		}
		return nil
	case "hoard":
		return hoard(ctx, p, o.Count)
	case "add":
		_, err = p.Add(ctx, o.Names, nil)
		return err
	case "remove":
		_, err = p.Remove(ctx, o.Names)
		return err
	case "err":
		return held.Err()
	case "context":
		if held.Context().Err() == nil {
			return nil
		}
		return context.Cause(held.Context())
	case "renew":
		return held.Renew(ctx)
	case "release":
		return held.Release(ctx)
	case "mix":
		return c.mix(ctx, p, o)
	case "die":
		c.dies.Store(true)
		return nil
	case "enough":
		c.done.Store(true)
		return nil
	}
	return fmt.Errorf("no such order: %q", o.Do)
}

func (c *poolServant) acquire(ctx context.Context, p *pool, o order, a *answer) error {
	got, err := p.Allocate(ctx, &allocator.AllocateOptions{Lease: o.Lease, NoRenew: o.NoRenew})
	if err != nil {
		return err
	}
	a.Claim, a.Fence, a.Node, a.Got = got.ID(), got.Fence(), c.node.ID(), got.Resource()
	c.mu.Lock()
	c.held[o.Name] = got
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

// does has the child carry out an order on the pool that must not fail.
func (c *child) does(o order) answer {
	c.w.Helper()
	o.Name = proxies
	a := c.ask(o)
	require.Empty(c.w, a.Err)
	return a
}
