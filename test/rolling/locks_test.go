package rolling

import (
	"context"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
)

type lock = *qlock.Lock

// lockPlays are what two releases go through together on a lock.
var lockPlays = map[string]func(w *world, a, b *process){
	"hand on in order":   lockHandsOn,
	"enter once more":    lockReenters,
	"hold and force":     lockHolds,
	"forget and restore": lockRestores,
	"watch in a swarm":   lockSwarm,
}

func (p *process) lock(owner string, opts *qlock.LockOptions) lock {
	h, err := p.locks.TryLock(ownedBy(bg, owner), name, opts)
	return take(p.w, h, err)
}

func (p *process) lockQueued(owner string, opts *qlock.LockOptions) *wait[lock] {
	return queue(p.w, func(ctx context.Context) (lock, error) {
		return p.locks.Lock(ownedBy(ctx, owner), name, opts)
	})
}

func ownedBy(ctx context.Context, owner string) context.Context {
	if owner == "" {
		return ctx
	}
	return berth.WithOwner(ctx, owner)
}

// lockHandsOn: one line for both, whatever the access, and one that goes to its end.
func lockHandsOn(w *world, a, b *process) {
	begun := b.lock("", nil)
	only := a.lockQueued("", nil)
	giveBack(w, begun)
	hold := only.granted(begun.Fence())
	_, err := b.locks.TryLock(bg, name, nil)
	require.ErrorIs(w, err, berth.ErrBusy)
	back := a.lockQueued("", &qlock.LockOptions{RequeueEvery: second})
	random := b.lockQueued("", &qlock.LockOptions{Access: qlock.Random})
	queued := b.lockQueued("", &qlock.LockOptions{Meta: map[string]string{"of": "b"}})
	lifo := []*wait[lock]{
		a.lockQueued("", &qlock.LockOptions{Access: qlock.LIFO}), b.lockQueued("", &qlock.LockOptions{Access: qlock.LIFO}),
	}
	ahead := b.lockQueued("", &qlock.LockOptions{Priority: 3, MaxHold: time.Minute})
	w.pass(1500 * time.Millisecond)
	w.read(func(p *process) {
		n := w.look(keyspace.Lock)
		require.Equal(w, []any{hold.Fence(), 6, 1}, []any{n.Fence, n.Waiting, n.Holders})
		require.Len(w, w.waiters(keyspace.Lock), 6)
	}, a, b)
	// back went behind the other two of its kind; the last LIFO stands ahead of the first.
	giveBack(w, hold)
	last := ahead.granted(hold.Fence())
	giveBack(w, last)
	w.pass(10 * time.Millisecond)
	if over(queued) {
		last = queued.granted(last.Fence())
		giveBack(w, last)
		last = random.granted(last.Fence())
	} else {
		last = random.granted(last.Fence())
		giveBack(w, last)
		last = queued.granted(last.Fence())
	}
	for _, q := range []*wait[lock]{back, lifo[1], lifo[0]} {
		q.waits()
		giveBack(w, last)
		last = q.granted(last.Fence())
		lives(w, last)
	}
	giveBack(w, last)
	unlocked(w, a, b)
}

// lockReenters: an owner enters from a process of each release, in all ways.
func lockReenters(w *world, a, b *process) {
	outer := a.lock("job", &qlock.LockOptions{Lease: 20 * second, NoRenew: true})
	other := b.lockQueued("other", nil)
	_, err := b.locks.TryLock(ownedBy(bg, "job"), name, nil)
	require.ErrorIs(w, err, berth.ErrDeadlock)
	worked := b.lock("job", &qlock.LockOptions{Conflict: qlock.WorkThrough})
	extended := b.lock("job", &qlock.LockOptions{Conflict: qlock.ExtendAndWorkThrough, Lease: 30 * second})
	w.pass(time.Millisecond) // a heartbeat of b that is on its way would write over what a writes
	inner := a.lock("job", &qlock.LockOptions{Conflict: qlock.WorkThrough})
	for _, h := range []lock{worked, extended, inner} {
		require.Equal(w, outer.Fence(), h.Fence(), "an entry has the fence of its hold")
	}
	w.read(func(p *process) {
		of := w.look(keyspace.Lock).Lock
		require.Equal(w, "job", of.Owner)
		entries := w.holders(keyspace.Lock)
		require.Len(w, entries, 4)
		require.Equal(w, outer.ID(), entries[0].ID, "the outermost first")
		require.Equal(w, 30*second, of.Extended)
		require.Equal(w, 3, of.Reentries)
		require.InDelta(w, 50, of.Left.Seconds(), 1)
	}, a, b)
	// An entry that has not been confirmed has a deadline of its own, which the other
	// release keeps when it writes all entries anew.
	b.wire.Delay(func() time.Duration { return 20 * time.Millisecond })
	fresh := queue(w, func(ctx context.Context) (lock, error) {
		return b.locks.TryLock(ownedBy(ctx, "job"), name, &qlock.LockOptions{Conflict: qlock.WorkThrough})
	})
	w.pass(20 * time.Millisecond) // it is granted, and its claimant does not know yet
	giveBack(w, a.lock("job", &qlock.LockOptions{Conflict: qlock.WorkThrough}))
	w.pass(100 * time.Millisecond)
	b.wire.Delay(nil)
	giveBack(w, fresh.granted(0))
	w.pass(25 * second)
	w.ok(worked.Extend(bg, 10*second))
	giveBack(w, inner)
	giveBack(w, outer) // the others go on
	w.pass(10 * second)
	for _, h := range []lock{worked, extended} {
		w.ok(h.Err())
	}
	giveBack(w, extended)
	w.ok(worked.Err())
	other.waits()
	giveBack(w, worked)
	giveBack(w, other.granted(outer.Fence()))
	unlocked(w, a, b)
}

// lockHolds: each release renews, takes over, lengthens and ends what is the other's.
func lockHolds(w *world, a, b *process) {
	renewed := a.lock("job", nil)
	next := b.lockQueued("", &qlock.LockOptions{NoRenew: true, Lease: 8 * second})
	w.pass(3 * lease)
	lives(w, renewed)
	token, err := renewed.Detach(bg)
	w.ok(err)
	resumed, err := b.locks.Resume(bg, token)
	w.ok(err)
	w.pass(3 * lease)
	lives(w, resumed)
	require.Equal(w, renewed.Fence(), resumed.Fence())
	require.ErrorIs(w, renewed.Err(), berth.ErrReleased)

	_, err = a.Operator().Release(bg, berth.Target{Kind: keyspace.Lock, Name: name})
	w.ok(err)
	w.pass(10 * time.Millisecond)
	require.ErrorIs(w, resumed.Err(), berth.ErrReleased)
	got := next.granted(resumed.Fence())
	w.ok(qlock.NewOperator(a.Node).Extend(bg, name, 20*second))
	third := a.lockQueued("", nil)
	w.pass(20 * second)
	w.ok(got.Err())
	third.waits()
	w.pass(9 * second)
	require.ErrorIs(w, got.Err(), berth.ErrNotHeld)
	last := third.granted(got.Fence())

	fourth := b.lockQueued("", nil)
	cancelled := a.lockQueued("", nil)
	cancelled.stop()
	a.die()
	w.pass(lease)
	giveBack(w, fourth.granted(last.Fence()))
	unlocked(w, b)
}

// lockRestores: after a flush those who wait stand where they stood.
func lockRestores(w *world, a, b *process) {
	hold := a.lock("", nil)
	waits := []*wait[lock]{a.lockQueued("", nil), b.lockQueued("", nil), b.lockQueued("", nil), a.lockQueued("", nil)}
	w.do("FLUSHALL")
	w.pass(lease)
	require.ErrorIs(w, hold.Err(), berth.ErrLost)
	last := hold.Fence()
	for done := range waits {
		w.pass(lease)
		for n, q := range waits {
			if q != nil && over(q) {
				require.True(w, done == 0 || n == firstOf(waits), "the line is in order")
				got := q.granted(last)
				last, waits[n] = got.Fence(), nil
				lives(w, got)
				giveBack(w, got)
				break
			}
		}
	}
	require.Equal(w, len(waits), firstOf(waits), "all were granted")
	unlocked(w, a, b)
}

// lockSwarm: one release finds the other's node dead, and flushes what it holds.
func lockSwarm(w *world, a, b *process) {
	for _, p := range []*process{a, b} {
		w.ok(p.Swarm().Start(bg))
	}
	forever := a.lock("", &qlock.LockOptions{Lease: berth.Forever})
	next := b.lockQueued("", nil)
	w.pass(20 * second)
	w.read(func(p *process) {
		nodes := all(w, p.Swarm().Info(bg))
		require.Len(w, nodes, 2)
		for _, n := range nodes {
			require.Equal(w, []any{15 * second, false, false}, []any{n.ZombieAfter, n.Zombie, n.Condemned}, n.Node)
		}
	}, a, b)
	next.waits()
	a.die()
	w.pass(20 * second)
	zombies, err := b.Swarm().Zombies(bg)
	w.ok(err)
	require.Equal(w, []node.Name{{Kind: "lock", Name: name}}, zombies.Names)
	flushed, err := b.Swarm().FlushNow(bg)
	w.ok(err)
	require.Equal(w, node.Flushed{Nodes: 1, Holds: 1}, flushed)
	got := next.granted(forever.Fence())
	a.wire.Mend()
	w.pass(20 * second)
	require.ErrorIs(w, forever.Err(), berth.ErrNotHeld, "the node hears that it was found dead")
	lives(w, got)
	giveBack(w, got)
	w.pass(20 * second)
	nodes := all(w, a.Swarm().Info(bg))
	require.NotEmpty(w, nodes)
	for _, p := range []*process{a, b} {
		w.ok(p.Swarm().Stop(bg))
	}
	unlocked(w, a, b)
}

// unlocked wants nothing held and nobody waiting, for all of them.
func unlocked(w *world, all ...*process) {
	w.pass(second)
	w.read(func(p *process) {
		n := w.look(keyspace.Lock)
		require.Nil(w, n.Lock, "nothing is held")
		require.Zero(w, n.Waiting, "nobody waits")
	}, all...)
}
