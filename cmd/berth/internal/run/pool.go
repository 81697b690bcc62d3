package run

import (
	"context"
	"fmt"
	"iter"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/pkg/allocator"
)

// allocations is the line of a pool.
func (o *runOptions) allocations(_ context.Context, conn *app.Connection, label string, notes *notes) (*spot, error) {
	pools, err := conn.Pools(allocator.Config{
		Label: label, Lease: min(o.lease, waitLease), Observer: notes.observer(o.quiet),
		WarnHeldLongerThan: -1, // a command may take its time
	})
	if err != nil {
		return nil, err
	}
	pool, err := o.openPool(pools)
	if err != nil {
		return nil, err
	}
	viewers, err := allocator.New(conn.Redis, allocator.Config{Namespace: conn.Namespace, CallTimeout: app.Times.Call}) // it only reads: nothing to close
	if err != nil {
		return nil, err
	}
	viewer := viewers.Operator()
	take := pool.Allocate
	if o.try {
		take = pool.TryAllocate
	}
	return &spot{
		rests: true,
		take: func(ctx context.Context) (berth.Handle, error) {
			opts := &allocator.AllocateOptions{
				Priority: o.priority, Lease: o.lease, NoRenew: o.noRenew, MaxHold: o.maxHold, MaxWait: o.wait, Bind: o.bind, Meta: o.meta,
			}
			if o.bind != "" {
				opts.BindFor = o.bindFor
			}
			return take(ctx, opts)
		},
		crowd: func(ctx context.Context) (string, error) {
			stats, err := viewer.Stats(ctx, o.pool)
			if err == nil && stats.Resources == 0 {
				return fmt.Sprintf("the pool is empty, waiting %d", stats.Waiting), nil
			}
			return fmt.Sprintf("%s, %d free, %d leased, %d resting, waiting %d",
				app.Count(stats.Resources, "resource"), stats.Free, stats.Leased, stats.Resting, stats.Waiting), err
		},
		holders: func(ctx context.Context) iter.Seq2[berth.Holder, error] { return viewer.Holders(ctx, o.pool) },
	}, nil
}

// openPool returns the pool of the flags.
func (o *runOptions) openPool(pools *allocator.Client) (*allocator.Pool[string], error) {
	return allocator.NewPool(pools, o.pool, allocator.PoolConfig[string]{Cooldown: o.cooldown})
}
