package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
)

const (
	// long is a wait lease without a heartbeat while a step is measured.
	long = 10 * time.Minute
	// linger is how long idle names are remembered: longer than a lease, as by default.
	linger = time.Hour
	// short is a wait lease whose heartbeats are waited for.
	short = 15 * time.Second
)

func lockSteps() []step {
	locks, reenter := openLocks(long), openReentered
	one, each := lockName(nil, false), lockName(nil, true)
	type lock = *qlock.Lock
	return []step{
		{name: "lock_plain", does: "lock and release a name that is known", scripts: 2, budget: 97, prepare: again(locks, one)},
		{name: "lock_known", does: "the same of a name that was last used seconds ago", scripts: 2, prepare: again(lockKnown, each)},
		{name: "lock_waited", does: "the same of a name for which somebody has waited just before", scripts: 2, prepare: again(waited(openLocks(long), lockName(nil, false)), one)},
		{name: "lock_fresh", does: "the same of a name that is new each time", scripts: 2, budget: 95, prepare: again(locks, each)},
		{
			name: "lock_limit", does: "lock with a maximum hold, and release", scripts: 2,
			prepare: again(locks, lockName(&qlock.LockOptions{MaxHold: time.Hour}, false)),
		},
		{
			name: "lock_long", does: "lock with a lease above the wait lease, confirm and release", scripts: 3,
			prepare: again(waited(locks, lockName(nil, false)), lockName(&qlock.LockOptions{Lease: 2 * long, NoRenew: true}, false)),
		},
		{
			name: "lock_reenter", does: "an owner enters what it holds, and ends that entry (WorkThrough)", scripts: 2,
			prepare: again(reenter, lockName(&qlock.LockOptions{Conflict: qlock.WorkThrough}, false)),
		},
		{
			name: "lock_reenter_extend", does: "the same by ExtendAndWorkThrough, with a renewal of the outermost after each", scripts: 4,
			cycles: 50, warm: 15, prepare: reenters,
		},
		{
			name: "lock_refused", does: "try a name that is held", scripts: 1, cycles: 400,
			prepare: calls(openReentered, func(ctx context.Context, locks locker, _ int) error {
				_, err := locks.TryLock(ctx, numbered(0), nil)
				return wanted(err, berth.ErrBusy)
			}),
		},
		{name: "turn_1", does: "a lock is handed on and its releaser waits again, with 1 waiting", scripts: 2, prepare: turns(locks, one, 1, 1)},
		{name: "turn_16", does: "a lock is handed on and its releaser waits again, with 16 waiting", scripts: 2, budget: 265, prepare: turns(locks, one, 1, 16)},
		{name: "turn_100", does: "the same with 100 waiting", scripts: 2, budget: 290, prepare: turns(locks, one, 1, 100)},
		{name: "lock_join", does: "join the line of a lock, of up to 180", scripts: 1, prepare: joins(locks, one, 1)},
		{name: "lock_leave", does: "the first in that line gives up", scripts: 1, prepare: leaves(locks, one, 1)},
		{name: "lock_requeue_25", does: "each of 25 in line goes to its end once", scripts: 25, cycles: 2, warm: 1, prepare: requeues},
		{name: "lock_restore_100", does: "a heartbeat and the return to the line of 100 that a flush has removed, one of which is granted and confirms it", scripts: 3, cycles: 1, warm: 1, prepare: restores},
		{
			name: "lock_beat_100", does: "the heartbeats of 100 locks", budget: 4500, cycles: 1, warm: 1,
			prepare: beats(openLocks(short), each, 100, 100),
		},
		{
			name: "lock_renew", does: "renew a lock by hand", scripts: 1,
			prepare: over(locks, each, func(ctx context.Context, _ locker, l lock) error { return l.Renew(ctx) }),
		},
		{
			name: "lock_extend", does: "extend a lock, in two scripts", scripts: 2,
			prepare: over(locks, each, func(ctx context.Context, _ locker, l lock) error { return l.Extend(ctx, time.Second) }),
		},
		{
			name: "lock_detach", does: "detach a lock", scripts: 1,
			prepare: over(locks, each, func(ctx context.Context, _ locker, l lock) error {
				_, err := l.Detach(ctx)
				return err
			}),
		},
		{
			name: "lock_resume", does: "resume a lock that is detached", scripts: 1,
			prepare: over(locks, detached(each), func(ctx context.Context, locks locker, token berth.Token) error {
				_, err := locks.Resume(ctx, token)
				return err
			}),
		},
		{
			name: "lock_force_release", does: "read a lock that is held, and release it by force", scripts: 1,
			prepare: over(locks, each, func(ctx context.Context, locks locker, l lock) error {
				_, err := locks.Operator().Release(ctx, berth.Target{Kind: keyspace.Lock, Name: l.Name()})
				return err
			}),
		},
		{
			name: "lock_force_extend", does: "read a lock that is held, and extend it by force", scripts: 1,
			prepare: over(locks, each, func(ctx context.Context, locks locker, l lock) error {
				return qlock.NewOperator(locks.Node).Extend(ctx, l.Name(), time.Second)
			}),
		},
		{name: "lock_sweep_100", does: "sweep 100 names, of which nothing has expired", scripts: 100, cycles: 5, warm: 2, prepare: sweeps},
		{
			name: "swarm_probe", does: "a node of a swarm says that it lives", scripts: 1, cycles: 400,
			prepare: calls(openSwarm, func(ctx context.Context, swarm *node.Swarm, _ int) error { return swarm.ProbeNow(ctx) }),
		},
	}
}

// numbered returns names, and resources, which all have the same length.
func numbered(i int) string { return fmt.Sprintf("name-%06d", i) }

// open opens a node, with a wait lease and a part in a swarm.
func (p *probe) open(lease time.Duration, swarm node.SwarmConfig) (*node.Node, *conn, error) {
	c, err := p.connect()
	if err != nil {
		return nil, nil, err
	}
	n, err := node.New(c, node.Config{Lease: lease, CallTimeout: time.Minute, Linger: linger, Observer: c, Swarm: swarm})
	if err == nil {
		p.ends = append(p.ends, func() { _ = n.Close(context.Background()) }) // the server is empty
	}
	return n, c, err
}

// locker is a node that has locks.
type locker struct {
	*node.Node
	*qlock.Locks
}

func openLocks(lease time.Duration) opens[locker] {
	return func(p *probe) (locker, *conn, error) {
		n, c, err := p.open(lease, node.SwarmConfig{})
		return locker{n, qlock.New(n, qlock.Config{Lease: lease})}, c, err
	}
}

// owner holds the name that openReentered has locked.
const owner = "owner"

// openReentered opens locks, and locks the name for the owner.
func openReentered(p *probe) (locker, *conn, error) {
	locks, n, err := openLocks(long)(p)
	if err == nil {
		_, err = locks.Lock(berth.WithOwner(p.ctx, owner), numbered(0), nil)
	}
	return locks, n, err
}

func openSwarm(p *probe) (*node.Swarm, *conn, error) {
	n, c, err := p.open(long, node.SwarmConfig{ProbeEvery: time.Hour, ZombieAfter: 3 * time.Hour, FlushEvery: -1})
	if err != nil {
		return nil, nil, err
	}
	return n.Swarm(), c, n.Swarm().Start(p.ctx)
}

// lockName locks one name, or one for each cycle. It is the owner's call where the options
// allow the owner to enter again.
func lockName(opts *qlock.LockOptions, each bool) takes[locker, *qlock.Lock] {
	return func(ctx context.Context, locks locker, i int) (*qlock.Lock, error) {
		if opts != nil && opts.Conflict != 0 {
			ctx = berth.WithOwner(ctx, owner)
		}
		if !each {
			i = 0
		}
		return locks.Lock(ctx, numbered(i), opts)
	}
}

// detached detaches what it takes.
func detached[C any, H interface {
	Detach(ctx context.Context) (berth.Token, error)
}](take takes[C, H],
) takes[C, berth.Token] {
	return func(ctx context.Context, on C, i int) (berth.Token, error) {
		held, err := take(ctx, on, i)
		if err != nil {
			return berth.Token{}, err
		}
		return held.Detach(ctx)
	}
}

// requeues has 25 calls wait. Each goes to the end of the line every few seconds, one after
// the other.
func requeues(p *probe) (cycle, error) {
	const waiting, apart = 25, 100 * time.Millisecond
	opts := &qlock.LockOptions{RequeueEvery: waiting * apart * 3 / 2}
	q, _, err := newQueue(p, openLocks(long), lockName(opts, false), 1, 0)
	if err != nil {
		return nil, err
	}
	for range waiting {
		if err := errors.Join(q.join(p.ctx, p.ctx), pause(p.ctx, apart)); err != nil {
			return nil, err
		}
	}
	before := q.conn.answered.Load()
	return func(int) error {
		before += waiting
		return q.conn.answers(p.ctx, before-waiting, waiting)
	}, nil
}

// reenters enters, and ends the entry. The library renews the outermost entry after each of
// the two calls has returned.
func reenters(p *probe) (cycle, error) {
	locks, _, err := openReentered(p)
	enter := lockName(&qlock.LockOptions{Conflict: qlock.ExtendAndWorkThrough}, false)
	return func(int) error {
		entry, err := enter(p.ctx, locks, 0)
		if err != nil {
			return err
		}
		if err := p.settle(0); err != nil {
			return err
		}
		return errors.Join(entry.Release(p.ctx), p.settle(0))
	}, err
}

// restores has 100 calls wait. In each cycle the server loses them, and they come back. What is held has no heartbeat,
// which would fall into the count where the machine is busy.
func restores(p *probe) (cycle, error) {
	q, held, err := newQueue(p, openLocks(short), lockName(nil, false), 1, 100)
	if err != nil {
		return nil, err
	}
	_, err = held.Detach(p.ctx)
	return func(i int) error {
		if err := p.empty(p.ctx); err != nil {
			return err
		}
		held, err := receive(p.ctx, q.granted)
		if err := errors.Join(err, p.settle(0)); err != nil || i >= p.warm() {
			return err
		}
		_, err = held.Detach(p.ctx)
		return err
	}, err
}

// lockKnown locks and releases one name for each cycle, and then waits: the expiry of a name
// moves with the first use in each second.
func lockKnown(p *probe) (locker, *conn, error) {
	locks, n, err := openLocks(long)(p)
	for i := range p.all() {
		if err == nil {
			var held *qlock.Lock
			if held, err = locks.Lock(p.ctx, numbered(i), nil); err == nil {
				err = held.Release(p.ctx)
			}
		}
	}
	return locks, n, errors.Join(err, pause(p.ctx, 2*time.Second))
}

// sweeps holds 100 names, and sweeps them in each cycle.
func sweeps(p *probe) (cycle, error) {
	locks, _, err := openLocks(long)(p)
	for i := range 100 {
		if err == nil {
			_, err = locks.Lock(p.ctx, numbered(i), nil)
		}
	}
	return func(int) error {
		_, err := locks.Operator().Sweep(p.ctx, keyspace.Lock)
		return err
	}, err
}
