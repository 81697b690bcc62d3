package rolling

import (
	"context"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/qlock"
)

type lock = *qlock.Lock

// lockPlays are what two releases go through together on a lock.
var lockPlays = map[string]func(s *stage, a, b *process){
	"hand on in order":   lockHandsOn,
	"enter once more":    lockReenters,
	"hold and force":     lockHolds,
	"forget and restore": lockRestores,
	"watch in a swarm":   lockSwarm,
}

func (p *process) lock(owner string, opts *qlock.LockOptions) lock {
	h, err := p.locks.TryLock(ownedBy(bg, owner), name, opts)
	return take(p.s, h, err)
}

func (p *process) lockQueued(owner string, opts *qlock.LockOptions) *wait[lock] {
	return queue(p.s, func(ctx context.Context) (lock, error) {
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
func lockHandsOn(s *stage, a, b *process) {
	begun := b.lock("", nil)
	only := a.lockQueued("", nil)
	giveBack(s, begun)
	hold := only.granted(begun.Fence())
	_, err := b.locks.TryLock(bg, name, nil)
	require.ErrorIs(s, err, berth.ErrBusy)
	back := a.lockQueued("", &qlock.LockOptions{QueueTTL: second})
	random := b.lockQueued("", &qlock.LockOptions{Access: qlock.Random})
	queued := b.lockQueued("", &qlock.LockOptions{Meta: map[string]string{"of": "b"}})
	lifo := []*wait[lock]{
		a.lockQueued("", &qlock.LockOptions{Access: qlock.LIFO}), b.lockQueued("", &qlock.LockOptions{Access: qlock.LIFO}),
	}
	ahead := b.lockQueued("", &qlock.LockOptions{Priority: 3, MaxHold: time.Minute})
	s.pass(1500 * time.Millisecond)
	for _, p := range []*process{a, b} {
		info, err := p.locks.Info(bg, name)
		s.ok(err)
		require.Equal(s, []any{hold.Fence(), 6, 1}, []any{info.Fence, info.Waiting, len(info.Entries)})
		require.Len(s, all(s, p.locks.Queue(bg, name)), 6)
	}
	// back went behind the other two of its kind; the last LIFO stands ahead of the first.
	giveBack(s, hold)
	last := ahead.granted(hold.Fence())
	giveBack(s, last)
	s.pass(10 * time.Millisecond)
	if over(queued) {
		last = queued.granted(last.Fence())
		giveBack(s, last)
		last = random.granted(last.Fence())
	} else {
		last = random.granted(last.Fence())
		giveBack(s, last)
		last = queued.granted(last.Fence())
	}
	for _, w := range []*wait[lock]{back, lifo[1], lifo[0]} {
		w.waits()
		giveBack(s, last)
		last = w.granted(last.Fence())
		lives(s, last)
	}
	giveBack(s, last)
	unlocked(s, a, b)
}

// lockReenters: an owner enters from a process of each release, in all ways.
func lockReenters(s *stage, a, b *process) {
	outer := a.lock("job", &qlock.LockOptions{Lease: 20 * second, NoRenew: true})
	other := b.lockQueued("other", nil)
	_, err := b.locks.TryLock(ownedBy(bg, "job"), name, nil)
	require.ErrorIs(s, err, berth.ErrDeadlock)
	worked := b.lock("job", &qlock.LockOptions{Conflict: qlock.WorkThrough})
	extended := b.lock("job", &qlock.LockOptions{Conflict: qlock.ExtendAndWorkThrough, Lease: 30 * second})
	s.pass(time.Millisecond) // a heartbeat of b that is on its way would write over what a writes
	inner := a.lock("job", &qlock.LockOptions{Conflict: qlock.WorkThrough})
	for _, h := range []lock{worked, extended, inner} {
		require.Equal(s, outer.Fence(), h.Fence(), "an entry has the fence of its hold")
	}
	for _, p := range []*process{a, b} {
		info, err := p.locks.Info(bg, name)
		s.ok(err)
		require.Equal(s, "job", info.Owner)
		require.Len(s, info.Entries, 4)
		require.Equal(s, outer.ID(), info.Entries[0].ID, "the outermost first")
		require.Equal(s, 30*second, info.Reentry.Extended)
		require.Equal(s, 3, info.Reentry.Count)
		require.InDelta(s, 50, info.Left.Seconds(), 1)
	}
	// An entry that has not been confirmed has a deadline of its own, which the other
	// release keeps when it writes all entries anew.
	b.wire.Delay(func() time.Duration { return 20 * time.Millisecond })
	fresh := queue(s, func(ctx context.Context) (lock, error) {
		return b.locks.TryLock(ownedBy(ctx, "job"), name, &qlock.LockOptions{Conflict: qlock.WorkThrough})
	})
	s.pass(20 * time.Millisecond) // it is granted, and its claimant does not know yet
	giveBack(s, a.lock("job", &qlock.LockOptions{Conflict: qlock.WorkThrough}))
	s.pass(100 * time.Millisecond)
	b.wire.Delay(nil)
	giveBack(s, fresh.granted(0))
	s.pass(25 * second)
	s.ok(worked.Extend(bg, 10*second))
	giveBack(s, inner)
	giveBack(s, outer) // the others go on
	s.pass(10 * second)
	for _, h := range []lock{worked, extended} {
		s.ok(h.Err())
	}
	giveBack(s, extended)
	s.ok(worked.Err())
	other.waits()
	giveBack(s, worked)
	giveBack(s, other.granted(outer.Fence()))
	unlocked(s, a, b)
}

// lockHolds: each release renews, takes over, lengthens and ends what is the other's.
func lockHolds(s *stage, a, b *process) {
	renewed := a.lock("job", nil)
	next := b.lockQueued("", &qlock.LockOptions{NoRenew: true, Lease: 8 * second})
	s.pass(3 * lease)
	lives(s, renewed)
	token, err := renewed.Detach(bg)
	s.ok(err)
	resumed, err := b.locks.Resume(bg, token)
	s.ok(err)
	s.pass(3 * lease)
	lives(s, resumed)
	require.Equal(s, renewed.Fence(), resumed.Fence())
	require.ErrorIs(s, renewed.Err(), berth.ErrReleased)

	s.ok(a.locks.ForceRelease(bg, name))
	s.pass(10 * time.Millisecond)
	require.ErrorIs(s, resumed.Err(), berth.ErrReleased)
	got := next.granted(resumed.Fence())
	s.ok(a.locks.ForceExtend(bg, name, 20*second))
	third := a.lockQueued("", nil)
	s.pass(20 * second)
	s.ok(got.Err())
	third.waits()
	s.pass(9 * second)
	require.ErrorIs(s, got.Err(), berth.ErrNotHeld)
	last := third.granted(got.Fence())

	fourth := b.lockQueued("", nil)
	cancelled := a.lockQueued("", nil)
	cancelled.stop()
	a.die()
	s.pass(lease)
	giveBack(s, fourth.granted(last.Fence()))
	unlocked(s, b)
}

// lockRestores: after a flush those who wait stand where they stood.
func lockRestores(s *stage, a, b *process) {
	hold := a.lock("", nil)
	waits := []*wait[lock]{a.lockQueued("", nil), b.lockQueued("", nil), b.lockQueued("", nil), a.lockQueued("", nil)}
	s.do("FLUSHALL")
	s.pass(lease)
	require.ErrorIs(s, hold.Err(), berth.ErrLost)
	last := hold.Fence()
	for done := range waits {
		s.pass(lease)
		for n, w := range waits {
			if w != nil && over(w) {
				require.True(s, done == 0 || n == firstOf(waits), "the line is in order")
				got := w.granted(last)
				last, waits[n] = got.Fence(), nil
				lives(s, got)
				giveBack(s, got)
				break
			}
		}
	}
	require.Equal(s, len(waits), firstOf(waits), "all were granted")
	unlocked(s, a, b)
}

// lockSwarm: one release finds the other's node dead, and flushes what it holds.
func lockSwarm(s *stage, a, b *process) {
	for _, p := range []*process{a, b} {
		s.ok(p.locks.Swarm().Start(bg))
	}
	forever := a.lock("", &qlock.LockOptions{Lease: berth.Forever})
	next := b.lockQueued("", nil)
	s.pass(20 * second)
	for _, p := range []*process{a, b} {
		nodes := all(s, p.locks.Swarm().Info(bg))
		require.Len(s, nodes, 2)
		for _, n := range nodes {
			require.Equal(s, []any{15 * second, false, false}, []any{n.ZombieAfter, n.Zombie, n.Condemned}, n.Node)
		}
	}
	next.waits()
	a.die()
	s.pass(20 * second)
	zombies, err := b.locks.Swarm().Zombies(bg)
	s.ok(err)
	require.Equal(s, []string{name}, zombies.Locks)
	flushed, err := b.locks.Swarm().FlushNow(bg)
	s.ok(err)
	require.Equal(s, qlock.Flushed{Nodes: 1, Locks: 1}, flushed)
	got := next.granted(forever.Fence())
	a.wire.Mend()
	s.pass(20 * second)
	require.ErrorIs(s, forever.Err(), berth.ErrNotHeld, "the node hears that it was found dead")
	lives(s, got)
	giveBack(s, got)
	s.pass(20 * second)
	nodes := all(s, a.locks.Swarm().Info(bg))
	require.NotEmpty(s, nodes)
	for _, p := range []*process{a, b} {
		s.ok(p.locks.Swarm().Stop(bg))
	}
	unlocked(s, a, b)
}

// unlocked wants nothing held and nobody waiting, for all of them.
func unlocked(s *stage, all ...*process) {
	s.pass(second)
	for _, p := range all {
		info, err := p.locks.Info(bg, name)
		s.ok(err)
		require.False(s, info.Held(), "nothing is held")
		require.Zero(s, info.Waiting, "nobody waits")
	}
}
