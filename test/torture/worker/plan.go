package main

import (
	"context"
	"errors"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
	"github.com/berth-go/berth/test/torture/history"
	"github.com/berth-go/berth/test/torture/job"
)

// bindings is how many names there are that claims of a pool bind to.
const bindings = 5

// plan is what one operation of a goroutine is to be.
type plan struct {
	primitive, name string
	capacity        int      // of a semaphore, or of each resource of a pool
	kind            job.Kind // of a lock
	pool            job.Pool

	try      bool
	weight   int
	priority int
	lease    time.Duration
	fixed    bool
	maxHold  time.Duration
	maxWait  time.Duration
	access   qlock.Access
	requeue  time.Duration
	named    string
	bind     string
	bindWait time.Duration

	conflict qlock.Conflict // of a re-entry
	again    bool           // it is one

	leaves time.Duration // when the caller leaves, 0 for never
}

// plans are the names that there are, as plans with nothing drawn yet, by primitive.
func plans(j job.Job) (all [][]plan) {
	lease := time.Duration(j.Lease) * time.Millisecond
	var sems, locks, pools []plan
	for _, s := range j.Sems {
		sems = append(sems, plan{primitive: sem, name: s.Name, capacity: s.Capacity, weight: 1, lease: lease})
	}
	for _, l := range j.Locks {
		locks = append(locks, plan{primitive: lock, name: l.Name, kind: l.Kind, weight: 1, lease: lease})
	}
	for _, p := range j.Pools {
		pools = append(pools, plan{primitive: pool, name: p.Name, capacity: max(1, p.Sharers), pool: p, weight: 1, lease: lease})
	}
	for _, some := range [][]plan{sems, locks, pools} {
		if len(some) > 0 {
			all = append(all, some)
		}
	}
	return all
}

// plan draws the next operation.
func (h *hand) plan() plan {
	some := h.all[h.IntN(len(h.all))]
	p := some[h.IntN(len(some))]
	if p.primitive == pool {
		h.wish(&p)
	}
	if h.w.job.Calm {
		return p
	}
	if p.primitive == sem && p.capacity > 1 && h.oneIn(3) {
		p.weight = 1 + h.IntN(p.capacity)
	}
	if h.oneIn(25) {
		p.priority = h.IntN(3) - 1
	}
	if h.oneIn(8) {
		p.fixed, p.lease = true, h.between(300, 2000)
	} else if h.oneIn(20) {
		p.lease = h.between(300, 2000)
	}
	if h.oneIn(40) {
		p.maxHold = h.between(50, 1500)
	}
	if p.kind == job.Mixed {
		p.access = []qlock.Access{qlock.Queued, qlock.Queued, qlock.Random, qlock.LIFO}[h.IntN(4)]
		if p.access != qlock.LIFO && h.oneIn(10) {
			p.requeue = h.between(20, 200)
		}
	}
	switch h.IntN(12) {
	case 0, 1:
		p.try, p.requeue = true, 0
	case 2:
		p.maxWait = h.between(1, 200)
	case 3, 4:
		p.leaves = h.moment(60 * time.Millisecond)
	}
	return p
}

// wish draws which resource of a pool will do: any, one, or the one of a binding.
func (h *hand) wish(p *plan) {
	switch h.IntN(6) {
	case 0, 1:
		p.named = p.pool.Resources[h.IntN(len(p.pool.Resources))]
	case 2, 3:
		p.bind = string(rune('a' + h.IntN(bindings)))
		switch h.IntN(3) {
		case 0:
			p.bindWait = berth.Forever
		case 1:
			p.bindWait = h.between(1, 100)
		}
	}
}

// inside draws a re-entry of a lock that the owner holds.
func (h *hand) inside(outer plan) plan {
	p := plan{primitive: lock, name: outer.name, kind: outer.kind, weight: 1, lease: outer.lease, again: true}
	switch h.IntN(8) {
	case 0:
		p.conflict = qlock.FailDeadlock
	case 1, 2, 3:
		p.conflict, p.lease = qlock.ExtendAndWorkThrough, h.between(300, 2000)
	default:
		p.conflict = qlock.WorkThrough
	}
	if h.oneIn(10) {
		p.leaves = h.moment(5 * time.Millisecond)
	}
	return p
}

// event is the plan as the history has it.
func (p plan) event() history.Event {
	e := history.Event{
		Do: history.Acquire, Primitive: p.primitive, Name: p.name, Weight: p.weight, Capacity: p.capacity,
		Priority: p.priority, Lease: p.lease.Milliseconds(), Fixed: p.fixed,
		Unordered: p.access == qlock.Random || p.access == qlock.LIFO || p.requeue > 0,
		Named:     p.named, Bind: p.bind, BindWait: p.bindWait.Milliseconds(), Cooldown: p.pool.Cooldown,
	}
	if p.bindWait == berth.Forever {
		e.BindWait = history.Never
	}
	if p.lease == berth.Forever {
		e.Lease = 0
	}
	switch {
	case p.again:
		e.Do = history.Reenter
	case p.try:
		e.Do = history.Try
	}
	return e
}

// acquire carries the plan out.
func (p plan) acquire(ctx context.Context, c *crew, op int64) (berth.Hold, error) {
	attrs := map[string]any{"op": op}
	switch p.primitive {
	case sem:
		call := c.sem[p.name].Acquire
		if p.try {
			call = c.sem[p.name].TryAcquire
		}
		return hold(call(ctx, &semaphore.AcquireOptions{
			Weight: p.weight, Priority: p.priority, Lease: p.lease, NoRenew: p.fixed, MaxHold: p.maxHold,
			MaxWait: p.maxWait, Attrs: attrs,
		}))
	case lock:
		call := c.locks.Lock
		if p.try {
			call = c.locks.TryLock
		}
		return hold(call(ctx, p.name, &qlock.LockOptions{
			Priority: p.priority, Lease: p.lease, NoRenew: p.fixed, MaxHold: p.maxHold,
			MaxWait: p.maxWait, Access: p.access, RequeueEvery: p.requeue, Conflict: p.conflict, Attrs: attrs,
		}))
	}
	call := c.pool[p.name].Allocate
	if p.try {
		call = c.pool[p.name].TryAllocate
	}
	return hold(call(ctx, &allocator.AllocateOptions{
		Priority: p.priority, Lease: p.lease, NoRenew: p.fixed, MaxHold: p.maxHold,
		MaxWait: p.maxWait, Resource: p.named, Bind: p.bind, BindWait: p.bindWait, Attrs: attrs,
	}))
}

// hold makes one type of the handles of all primitives.
func hold[H interface {
	berth.Hold
	comparable
}](h H, err error) (berth.Hold, error) {
	var none H
	switch {
	case err != nil && h != none:
		return nil, errors.Join(errors.New("a handle came with an error"), err)
	case err != nil:
		return nil, err
	case h == none:
		return nil, errors.New("neither a handle nor an error")
	}
	return h, nil
}

// kindOf is the kind of the plan's name.
func (p plan) kindOf() keyspace.Kind { return keyspace.Kind(p.primitive) }

// list returns the holds of the plan's name.
func (p plan) list(ctx context.Context, c *crew) ([]berth.Holder, error) {
	return c.holders(ctx, p.kindOf(), p.name)
}

// pause has nothing granted of the plan's name for so long, or ends that.
func (p plan) pause(ctx context.Context, c *crew, lasts time.Duration) error {
	if lasts == 0 {
		return c.node.Operator().Unpause(ctx, p.kindOf(), p.name)
	}
	return c.node.Operator().Pause(ctx, p.kindOf(), p.name, lasts.Truncate(time.Millisecond), "torture")
}

// want asks for a hold of the plan's name back or, where claim is "", for all of them.
func (p plan) want(ctx context.Context, c *crew, claim string) error {
	_, err := c.node.Operator().Want(ctx, berth.Target{Kind: p.kindOf(), Name: p.name, Claim: claim})
	return err
}

// force ends a claim by its id, as an operator would.
func (p plan) force(ctx context.Context, c *crew, claim string) error {
	_, err := c.node.Operator().Release(ctx, berth.Target{Kind: p.kindOf(), Name: p.name, Claim: claim})
	return err
}
