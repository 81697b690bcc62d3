package main

import (
	"context"
	"fmt"

	"github.com/berth-go/berth/pkg/allocator"
)

// allocations is the line of a pool.
func (o *runOptions) allocations(conn *connection, label string, notes *notes) (*line, error) {
	pool, err := o.openPool(conn, allocator.Config{
		Label: label, Lease: min(o.lease, waitLease), Observer: notes.observer(),
		WarnHeldLongerThan: -1, // a command may take its time
	})
	if err != nil {
		return nil, err
	}
	take := pool.Allocate
	if o.try {
		take = pool.TryAllocate
	}
	return &line{
		rests: true,
		take: func(ctx context.Context) (holding, error) {
			opts := &allocator.AllocateOptions{
				Priority: o.priority, Lease: o.lease, NoRenew: o.noRenew, MaxHold: o.maxHold, MaxWait: o.wait, Bind: o.bind,
			}
			if o.bind != "" {
				opts.BindFor = o.bindFor
			}
			return take(ctx, opts)
		},
		crowd: func(ctx context.Context) (string, error) {
			pool, err := o.openPool(conn, allocator.Config{})
			if err != nil {
				return "", err
			}
			stats, err := pool.Stats(ctx)
			if err == nil && stats.Resources == 0 {
				return fmt.Sprintf("the pool is empty, waiting %d", stats.Waiting), nil
			}
			return fmt.Sprintf("%s, %d free, %d leased, %d resting, waiting %d",
				count(stats.Resources, "resource"), stats.Free, stats.Leased, stats.Resting, stats.Waiting), err
		},
	}, nil
}

// openPool returns the pool of the flags, on a client of its own: a client has one
// of a name.
func (o *runOptions) openPool(conn *connection, cfg allocator.Config) (*allocator.Pool[string], error) {
	pools, err := conn.pools(cfg)
	if err != nil {
		return nil, err
	}
	return allocator.NewPool(pools, o.pool, allocator.PoolConfig[string]{Cooldown: o.cooldown})
}
