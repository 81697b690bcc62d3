package run

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/internal/view"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
)

// allocations is the line of a pool.
func (o *runOptions) allocations(ctx context.Context, n *node.Node, read *inspect.Reader) (*spot, error) {
	pool, viewer := allocator.New(n, o.pool, allocator.Config[string]{}), allocator.NewOperator(n)
	if err := o.within(ctx, viewer); err != nil {
		return nil, err
	}
	take := pool.Allocate
	if o.try {
		take = pool.TryAllocate
	}
	return &spot{
		rests: true,
		take: func(ctx context.Context) (berth.Handle, error) {
			lease := o.lease
			if !o.leaseGiven {
				lease = 0 // that of the node, or what the pool allows
			}
			opts := &allocator.AllocateOptions{
				Priority: o.priority, Lease: lease, NoRenew: o.noRenew, MaxHold: o.maxHold, MaxWait: o.wait, Meta: o.meta,
				Resource: o.key, Bind: o.bind, BindFor: o.bindFor, BindWait: o.bindWait, Cooldown: o.cooldown,
			}
			return take(ctx, opts)
		},
		crowd: func(ctx context.Context, settle func()) (string, error) {
			return o.allocated(ctx, viewer, read, pool, settle)
		},
		holders: func(ctx context.Context) []berth.Holder { return o.allocatees(ctx, viewer, read) },
	}, nil
}

// within takes the limits that are set of the pool for what no flag says: the lease and the longest hold, by
// which the command is ended in time.
func (o *runOptions) within(ctx context.Context, viewer *allocator.Operator) error {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(app.Times.Call, 2*time.Second))
	defer cancel()
	set, err := viewer.Settings(ctx, o.pool)
	if err != nil {
		return nil //nolint:nilerr // the claim waits through an outage, and is told the limits then
	}
	if limit := set.MaxLease; !o.leaseGiven && limit > 0 {
		o.lease = min(o.lease, limit)
	}
	if limit := set.MaxHold; o.maxHold == 0 && limit > 0 && limit != berth.Forever {
		o.maxHold = limit
	}
	return o.fillGrace(o.graceGiven)
}

// allocated says what a pool has, or what became of the one resource that is waited for.
func (o *runOptions) allocated(
	ctx context.Context, viewer *allocator.Operator, read *inspect.Reader, pool *allocator.Pool[string], settle func(),
) (string, error) {
	var bound berth.Binding
	if o.bindWait != 0 {
		var err error
		if bound, err = pool.Binding(ctx, o.bind); err != nil {
			return "", err
		}
	}
	settle()
	n, err := read.Name(ctx, keyspace.Pool, o.pool)
	switch {
	case err != nil:
		return "", err
	case o.key != "":
		state, err := stateOf(ctx, viewer, o.pool, o.key)
		return state + paused(n), err
	case n.Pool == nil || n.Capacity == 0:
		return fmt.Sprintf("the pool is empty, waiting %d", n.Waiting) + paused(n), nil
	}
	text := fmt.Sprintf("%s, %d free, %d leased, %d resting, waiting %d",
		view.Count(n.Capacity, "resource"), n.Pool.Free, n.Held, n.Pool.Resting, n.Waiting) + paused(n)
	if bound.Resource == "" {
		return text, nil
	}
	state, err := stateOf(ctx, viewer, o.pool, bound.Resource)
	return text + "; bound: " + state, err
}

// stateOf is the state of a resource in a line.
func stateOf(ctx context.Context, viewer *allocator.Operator, pool, key string) (string, error) {
	info, err := viewer.Resource(ctx, pool, key)
	says := fmt.Sprintf("%s is %s", view.Key(key), info.State)
	switch {
	case info.State == allocator.Resting && info.Reason != "":
		says += fmt.Sprintf(" for %s: %s", text.Human(info.Left), text.Plain(info.Reason))
	case info.State == allocator.Resting:
		says += " for " + text.Human(info.Left)
	}
	return says, err
}

// allocatees are those that hold what is waited for.
func (o *runOptions) allocatees(ctx context.Context, viewer *allocator.Operator, read *inspect.Reader) []berth.Holder {
	if o.key == "" {
		return lookedAt(ctx, read, keyspace.Pool, o.pool)
	}
	info, _ := viewer.Resource(ctx, o.pool, o.key) // where it cannot be read nobody is named
	return info.Holders
}
