package main

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
)

// pool is one pool, and its node.
type pool struct {
	*allocator.Pool[string]
	node *node.Node
}

// sweep drops what has expired.
func (p pool) sweep(ctx context.Context) error {
	_, err := p.node.Operator().Sweep(ctx, keyspace.Pool, p.Name())
	return err
}

type (
	allocation = *allocator.Allocation[string]
	poolConfig = allocator.Config[string]
)

func poolSteps() []step {
	hundred, many := openPool(poolConfig{}, 100), openPool(poolConfig{}, 300)
	return []step{
		{name: "pool_plain", does: "allocate and release 1 of 100", scripts: 2, budget: 250, prepare: again(hundred, allocate(nil))},
		{name: "pool_plain_200", does: "the same of 200", scripts: 2, budget: 250, prepare: again(openPool(poolConfig{}, 200), allocate(nil))},
		{name: "pool_plain_1000", does: "the same of 1 000", scripts: 2, budget: 250, prepare: again(openPool(poolConfig{}, 1000), allocate(nil))},
		{name: "pool_bound", does: "allocate and release 1 of 100 by a binding", scripts: 2, budget: 350, prepare: again(hundred, allocate(&allocator.AllocateOptions{Bind: "name"}))},
		{name: "pool_lanes", does: "allocate and release 1 of 100 while 1 000 claims wait for one resource each", scripts: 2, prepare: besideLanes(1000)},
		{
			name: "pool_limit", does: "allocate with a maximum hold, and release", scripts: 2,
			prepare: again(hundred, allocate(&allocator.AllocateOptions{MaxHold: time.Hour})),
		},
		{
			name: "pool_rest", does: "allocate and release what rests then, 1 of 300", scripts: 2,
			prepare: again(openPool(poolConfig{Cooldown: time.Hour}, 300), allocate(nil)),
		},
		{
			name: "pool_rested", does: "the same where the rest is over each time", scripts: 2,
			prepare: again(openPool(poolConfig{Cooldown: time.Millisecond}, 100), allocate(nil)),
		},
		{name: "pool_shared", does: "allocate 1 of 100 of a pool that is Shared", scripts: 2, prepare: again(openPool(poolConfig{Shared: true}, 100), allocate(nil))},
		{name: "pool_sharers", does: "allocate and release 1 of 100 that 5 may share", scripts: 2, prepare: again(openPool(poolConfig{MaxSharers: 5}, 100), allocate(nil))},
		{name: "pool_swap", does: "swap 1 of 100 for the next", scripts: 1, prepare: swaps},
		{
			name: "pool_refused", does: "try a pool that is empty", scripts: 1, cycles: 400,
			prepare: calls(openPool(poolConfig{}, 0), func(ctx context.Context, p pool, _ int) error {
				_, err := p.TryAllocate(ctx, nil)
				return wanted(err, berth.ErrNotAcquired)
			}),
		},
		{name: "pool_turn_1", does: "1 of 10 is handed on and its releaser waits again, with 1 waiting", scripts: 2, budget: 300, prepare: turns(openPool(poolConfig{}, 10), allocate(nil), 10, 1)},
		{name: "pool_turn_16", does: "the same with 16 waiting", scripts: 2, budget: 340, prepare: turns(openPool(poolConfig{}, 10), allocate(nil), 10, 16)},
		{name: "pool_join", does: "join the line of a pool, of up to 180", scripts: 1, prepare: joins(openPool(poolConfig{}, 10), allocate(nil), 10)},
		{name: "pool_leave", does: "the first in that line gives up", scripts: 1, prepare: leaves(openPool(poolConfig{}, 10), allocate(nil), 10)},
		{
			name: "pool_expired_10", does: "drop 10 holds that have expired", scripts: 1,
			cycles: 50, warm: 5, prepare: poolExpired,
		},
		{
			name: "pool_sweep", does: "drop nothing of 100", scripts: 1, cycles: 400,
			prepare: calls(hundred, func(ctx context.Context, p pool, _ int) error { return p.sweep(ctx) }),
		},
		{
			name: "pool_renew_100", does: "the heartbeat of 100 holds", scripts: 1, cycles: 2 * beaten, warm: beaten,
			prepare: beats(openBeaten, allocateHundred, 100*beaten, 1),
		},
		{
			name: "pool_renew_1", does: "renew a hold by hand", scripts: 1,
			prepare: over(many, allocate(nil), func(ctx context.Context, _ pool, held allocation) error { return held.Renew(ctx) }),
		},
		{
			name: "pool_detach", does: "detach a hold", scripts: 1,
			prepare: over(many, allocate(nil), func(ctx context.Context, _ pool, held allocation) error {
				_, err := held.Detach(ctx)
				return err
			}),
		},
		{
			name: "pool_resume", does: "resume a hold that is detached", scripts: 1,
			prepare: over(many, detached(allocate(nil)), func(ctx context.Context, p pool, token berth.Token) error {
				_, err := p.Resume(ctx, token)
				return err
			}),
		},
		{
			name: "pool_force_release", does: "release a hold by its id", scripts: 1,
			prepare: over(many, allocate(nil), func(ctx context.Context, p pool, held allocation) error {
				_, err := p.node.Operator().Release(ctx, berth.Target{Kind: keyspace.Pool, Name: held.Name(), Claim: held.ID()})
				return err
			}),
		},
		{
			name: "pool_inspect", does: "check 100 resources", scripts: 1, cycles: 20, warm: 5,
			prepare: calls(hundred, func(ctx context.Context, p pool, _ int) error {
				_, err := allocator.NewOperator(p.node).Inspect(ctx, p.Name())
				return err
			}),
		},
		{
			name: "pool_set_rest", does: "have a free resource rest, or end that", scripts: 1,
			prepare: calls(hundred, func(ctx context.Context, p pool, i int) error {
				return p.Rest(ctx, numbered(0), time.Duration(1-i%2)*time.Hour, "", nil)
			}),
		},
		{
			name: "pool_bind", does: "bind a name, and unbind it", scripts: 2,
			prepare: calls(hundred, func(ctx context.Context, p pool, i int) error {
				if err := p.Bind(ctx, "name", numbered(i%100), nil); err != nil {
					return err
				}
				return p.Unbind(ctx, "name")
			}),
		},
		{
			name: "pool_add_100", does: "add 100 resources, and remove them", scripts: 2, cycles: 20, warm: 5,
			prepare: calls(openPool(poolConfig{}, 0), func(ctx context.Context, p pool, _ int) error {
				if _, err := p.Add(ctx, resources(100), nil); err != nil {
					return err
				}
				_, err := p.Remove(ctx, resources(100))
				return err
			}),
		},
		{
			name: "pool_replace_100", does: "replace 100 resources by the same", scripts: 3, cycles: 20, warm: 5,
			prepare: calls(hundred, func(ctx context.Context, p pool, _ int) error {
				_, err := p.Replace(ctx, resources(100), nil)
				return err
			}),
		},
	}
}

func resources(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = numbered(i)
	}
	return all
}

// fill makes a pool of so many resources.
func fill(ctx context.Context, n *node.Node, name string, cfg poolConfig, size int) (p pool, err error) {
	p = pool{allocator.New(n, name, cfg), n}
	if size > 0 {
		_, err = p.Add(ctx, resources(size), nil)
	}
	return p, err
}

func openPool(cfg poolConfig, size int) opens[pool] {
	return func(p *probe) (pool, *conn, error) {
		n, c, err := p.open(long, node.SwarmConfig{})
		if err != nil {
			return pool{}, nil, err
		}
		made, err := fill(p.ctx, n, "pool", cfg, size)
		return made, c, err
	}
}

func allocate(opts *allocator.AllocateOptions) takes[pool, allocation] {
	return func(ctx context.Context, p pool, _ int) (allocation, error) { return p.Allocate(ctx, opts) }
}

// openBeaten fills as many pools as have a heartbeat.
func openBeaten(p *probe) ([]pool, *conn, error) {
	n, c, err := p.open(short+short/2, node.SwarmConfig{}) // filling and taking need some seconds
	pools := make([]pool, beaten)
	for i := range pools {
		if err == nil {
			pools[i], err = fill(p.ctx, n, numbered(i), poolConfig{}, 100)
		}
	}
	return pools, c, err
}

// allocateHundred takes 100 resources of each of these pools.
func allocateHundred(ctx context.Context, pools []pool, i int) (allocation, error) {
	return pools[i%len(pools)].Allocate(ctx, nil)
}

// besideLanes allocates and releases 1 of 100 in a pool where so many other resources rest, and have a claim
// each that waits for it.
func besideLanes(lanes int) func(*probe) (cycle, error) {
	return func(p *probe) (cycle, error) {
		var next atomic.Int64
		open := func(p *probe) (pool, *conn, error) {
			made, n, err := openPool(poolConfig{}, lanes+100)(p)
			for i := 0; i < lanes && err == nil; i++ {
				err = made.Rest(p.ctx, numbered(i), berth.Forever, "", nil)
			}
			return made, n, err
		}
		named := func(ctx context.Context, p pool, _ int) (allocation, error) {
			return p.Allocate(ctx, &allocator.AllocateOptions{Resource: numbered(int(next.Add(1) - 1))})
		}
		q, _, err := newQueue(p, open, named, 0, 1)
		for i := 1; i < lanes && err == nil; i++ { // who joins now is not asked for when the node has subscribed
			err = q.join(p.ctx, p.ctx)
		}
		return func(int) error {
			held, err := q.on.Allocate(p.ctx, nil)
			if err != nil {
				return err
			}
			return held.Release(p.ctx)
		}, err
	}
}

func swaps(p *probe) (cycle, error) {
	one, _, err := openPool(poolConfig{}, 100)(p)
	if err != nil {
		return nil, err
	}
	held, err := one.Allocate(p.ctx, nil)
	return func(int) error { return held.Swap(p.ctx) }, err
}

// poolExpired has ten holds expire in each of many pools.
func poolExpired(p *probe) (cycle, error) {
	n, _, err := p.open(long, node.SwarmConfig{})
	if err != nil {
		return nil, err
	}
	expire := detached(allocate(&allocator.AllocateOptions{Lease: expiring, NoRenew: true}))
	pools := make([]pool, p.all())
	for i := range pools {
		if pools[i], err = fill(p.ctx, n, numbered(i), poolConfig{}, 10); err != nil {
			return nil, err
		}
		for range 10 {
			if _, err := expire(p.ctx, pools[i], 0); err != nil {
				return nil, err
			}
		}
	}
	return func(i int) error { return pools[i].sweep(p.ctx) }, pause(p.ctx, expiring+time.Second)
}
