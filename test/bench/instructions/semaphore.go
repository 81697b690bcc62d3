package main

import (
	"context"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/semaphore"
)

// capacity is that of the semaphores.
const capacity = 10

func semaphoreSteps() []step {
	one, each := openSemaphore(long, capacity), openSemaphores(long)
	type sem = *semaphore.Semaphore
	type permit = *semaphore.Permit
	return []step{
		{name: "semaphore_plain", does: "acquire and release 1 of 10", scripts: 2, budget: 175, prepare: again(one, acquire(nil))},
		{name: "semaphore_plain_100", does: "the same of 200, beside 100 that are held", scripts: 2, budget: 190, prepare: again(openBeside(100), acquire(nil))},
		{name: "semaphore_fresh", does: "acquire and release 1 of 10 of a name that is new each time", scripts: 2, prepare: again(each, acquireEach)},
		{
			name: "semaphore_weighted", does: "acquire and release 3 of 10, of which others hold 5", scripts: 2,
			prepare: again(openPartly, acquire(&semaphore.AcquireOptions{Weight: 3})),
		},
		{
			name: "semaphore_limit", does: "acquire with a maximum hold, and release", scripts: 2,
			prepare: again(one, acquire(&semaphore.AcquireOptions{MaxHold: time.Hour})),
		},
		{
			name: "semaphore_long", does: "acquire with a lease above the wait lease, confirm and release", scripts: 3,
			prepare: again(waited(one, acquire(&semaphore.AcquireOptions{Weight: capacity})), acquire(&semaphore.AcquireOptions{Lease: 2 * long, NoRenew: true})),
		},
		{
			name: "semaphore_refused", does: "try 8 of 10, of which others hold 5", scripts: 1, cycles: 400,
			prepare: calls(openPartly, func(ctx context.Context, s sem, _ int) error {
				_, err := s.TryAcquire(ctx, &semaphore.AcquireOptions{Weight: 8})
				return wanted(err, berth.ErrBusy)
			}),
		},
		{name: "semaphore_turn_1", does: "a permit of 10 is handed on and its releaser waits again, with 1 waiting", scripts: 2, prepare: turns(one, acquire(nil), capacity, 1)},
		{name: "semaphore_turn_16", does: "a permit of 10 is handed on and its releaser waits again, with 16 waiting", scripts: 2, budget: 300, prepare: turns(one, acquire(nil), capacity, 16)},
		{name: "semaphore_join", does: "join the line of a semaphore, of up to 180", scripts: 1, prepare: joins(one, acquire(nil), capacity)},
		{name: "semaphore_leave", does: "the first in that line gives up", scripts: 1, prepare: leaves(one, acquire(nil), capacity)},
		{
			name: "semaphore_expired_10", does: "try 1 of 10 that have all expired", scripts: 1,
			cycles: 50, warm: 5, prepare: semaphoreExpired,
		},
		{
			name: "semaphore_beat_100", does: "the heartbeats of 100 names with 1 permit each", budget: 7500, cycles: 1, warm: 1,
			prepare: beats(openSemaphores(short), acquireEach, 100, 100),
		},
		{
			name: "renew_100", does: "the heartbeat of 100 permits of one name", scripts: 1, budget: 5500, cycles: 2 * beaten, warm: beaten,
			prepare: beats(openSemaphores(short), acquireHundred, 100*beaten, 1),
		},
		{
			name: "renew_1", does: "renew a permit by hand", scripts: 1,
			prepare: over(each, acquireEach, func(ctx context.Context, _ *node.Node, held permit) error { return held.Renew(ctx) }),
		},
		{
			name: "semaphore_detach", does: "detach a permit", scripts: 1,
			prepare: over(each, acquireEach, func(ctx context.Context, _ *node.Node, held permit) error {
				_, err := held.Detach(ctx)
				return err
			}),
		},
		{
			name: "semaphore_resume", does: "resume a permit that is detached", scripts: 1,
			prepare: over(each, detached(acquireEach), func(ctx context.Context, n *node.Node, token berth.Token) error {
				_, err := semaphore.New(n, token.Name, capacity, semaphore.Config{}).Resume(ctx, token)
				return err
			}),
		},
		{
			name: "semaphore_force_release", does: "release a permit by its id", scripts: 1,
			prepare: over(each, acquireEach, func(ctx context.Context, n *node.Node, held permit) error {
				_, err := n.Operator().Release(ctx, berth.Target{Kind: keyspace.Sem, Name: held.Name(), Claim: held.ID()})
				return err
			}),
		},
		{
			name: "semaphore_resize", does: "another capacity for these", scripts: 1, cycles: 400,
			prepare: calls(openHeld, func(ctx context.Context, n *node.Node, i int) error {
				return semaphore.NewOperator(n).Resize(ctx, numbered(0), capacity+1-i%2, nil)
			}),
		},
	}
}

func openSemaphores(lease time.Duration) opens[*node.Node] {
	return func(p *probe) (*node.Node, *conn, error) { return p.open(lease, node.SwarmConfig{}) }
}

// openSemaphore opens one name.
func openSemaphore(lease time.Duration, capacity int) opens[*semaphore.Semaphore] {
	return func(p *probe) (*semaphore.Semaphore, *conn, error) {
		n, c, err := p.open(lease, node.SwarmConfig{})
		return semaphore.New(n, numbered(0), capacity, semaphore.Config{}), c, err
	}
}

// openBeside opens one name, of which so many are held, and as many free.
func openBeside(held int) opens[*semaphore.Semaphore] {
	return func(p *probe) (*semaphore.Semaphore, *conn, error) {
		s, c, err := openSemaphore(long, 2*held)(p)
		for range held {
			if err == nil {
				_, err = s.Acquire(p.ctx, nil)
			}
		}
		return s, c, err
	}
}

// openHeld opens a node that holds 5 of its first name, in two permits.
func openHeld(p *probe) (*node.Node, *conn, error) {
	n, c, err := openSemaphores(long)(p)
	for _, weight := range []int{2, 3} {
		if err == nil {
			_, err = semaphore.New(n, numbered(0), capacity, semaphore.Config{}).Acquire(p.ctx, &semaphore.AcquireOptions{Weight: weight})
		}
	}
	return n, c, err
}

// openPartly opens that name.
func openPartly(p *probe) (*semaphore.Semaphore, *conn, error) {
	n, c, err := openHeld(p)
	return semaphore.New(n, numbered(0), capacity, semaphore.Config{}), c, err
}

func acquire(opts *semaphore.AcquireOptions) takes[*semaphore.Semaphore, *semaphore.Permit] {
	return func(ctx context.Context, sem *semaphore.Semaphore, _ int) (*semaphore.Permit, error) {
		return sem.Acquire(ctx, opts)
	}
}

// acquireEach takes a permit of another name in each cycle.
func acquireEach(ctx context.Context, n *node.Node, i int) (*semaphore.Permit, error) {
	return semaphore.New(n, numbered(i), capacity, semaphore.Config{}).Acquire(ctx, nil)
}

// beaten is how many names have a heartbeat of 100 holds: the garbage collector of Lua makes
// single ones differ.
const beaten = 3

// acquireHundred takes 100 permits of each of these names.
func acquireHundred(ctx context.Context, n *node.Node, i int) (*semaphore.Permit, error) {
	return semaphore.New(n, numbered(i%beaten), 100, semaphore.Config{}).Acquire(ctx, nil)
}

// semaphoreExpired has one name for each cycle, whose permits have all expired.
func semaphoreExpired(p *probe) (cycle, error) {
	n, _, err := openSemaphores(long)(p)
	if err != nil {
		return nil, err
	}
	expire := detached(acquire(&semaphore.AcquireOptions{Lease: expiring, NoRenew: true}))
	sems := make([]*semaphore.Semaphore, p.all())
	for i := range sems {
		sems[i] = semaphore.New(n, numbered(i), capacity, semaphore.Config{})
		for range capacity {
			if _, err := expire(p.ctx, sems[i], 0); err != nil {
				return nil, err
			}
		}
	}
	return func(i int) error {
		_, err := sems[i].TryAcquire(p.ctx, nil)
		return err
	}, pause(p.ctx, expiring+time.Second)
}

// expiring is the lease of holds that are to expire. All holds of one name are taken within
// it. They are detached at once: a heartbeat would drop those that have expired before.
const expiring = 2 * time.Second
