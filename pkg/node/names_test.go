package node_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
)

// A heartbeat carries what one script is about. A batch of all that is called so would ask one kind's script for the claims of the
// others: unknown there, they would end although their node is well. Meta makes the names fat, so that they are asked for in batches.
func TestOneNameOfAllKindsLivesByHeartbeats(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		equal := node.Config{Lease: 5 * time.Second} // as locks have: what is as long goes together
		a, b := w.process(equal, door), w.process(equal)
		held := a.take(door, terms{Meta: map[string]string{"a": "b"}})
		waits := b.queue(door, terms{})
		w.Advance(time.Minute)
		requirePending(t, waits)
		for _, kind := range kinds {
			require.NoError(t, held[kind].Err(), kind)
			require.Equal(t, a.n.ID(), held[kind].Node())
		}
		for i, kind := range kinds { // each is given back, and on, without the others
			require.NoError(t, held[kind].Release(ctx))
			waits[kind].Granted(w.Now())
			for _, other := range kinds[i+1:] {
				require.NoError(t, held[other].Err(), other)
				require.True(t, waits[other].Pending(), other)
			}
		}
	})
}

// What an owner holds of one name is extended together, but only what is of one kind. A permit that were of the lock's group
// would be believed in here long after its place was given to others there.
func TestAnOwnersExtensionIsOfOneKind(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.process(node.Config{}), w.process(node.Config{})
		mine := berth.WithOwner(ctx, "o")
		permit := must(a.ask(mine, "permit", door, terms{Lease: 8 * time.Second, NoRenew: true}))(t)
		must(a.ask(mine, "lock", door, terms{Lease: 9 * time.Second, NoRenew: true}))(t)
		must(a.locks.Lock(mine, door, &qlock.LockOptions{Conflict: qlock.ExtendAndWorkThrough, Lease: time.Minute}))(t)
		require.LessOrEqual(t, permit.Left(), 8*time.Second)
		next := testkit.Queue(ctx, w.World, func(ctx context.Context) (berth.Hold, error) { return b.ask(ctx, "permit", door, terms{}) })
		ends := w.Watch(permit)
		next.GrantedBy(8 * time.Second)
		require.LessOrEqual(t, (<-ends).At, 8*time.Second, "before the next one has it")
	})
}

// The fence of a context is that of the thing that is asked about: a guarded system that were handed the lock's fence with a
// permit's work would refuse all permits from then on.
func TestAContextKnowsItsHoldsByKind(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.process(node.Config{})
		for range 5 { // so that the fences differ
			l := must(a.locks.Lock(ctx, door, nil))(t)
			require.NoError(t, l.Release(ctx))
		}
		lock := must(a.locks.Lock(ctx, door, nil))(t)
		permit := must(a.sem(door).Acquire(ctx, nil))(t)
		require.NotEqual(t, lock.Fence(), permit.Fence())

		underLock, done := lock.Within(ctx)
		defer done()
		require.Equal(t, lock.Fence(), a.locks.Fence(underLock, door))
		require.Zero(t, a.sem(door).Fence(underLock))
		require.Nil(t, a.sem(door).Wanted(underLock))
		underBoth, done := permit.Within(underLock)
		defer done()
		require.Equal(t, lock.Fence(), a.locks.Fence(underBoth, door))
		require.Equal(t, permit.Fence(), a.sem(door).Fence(underBoth))
		require.Equal(t, permit.ID(), berth.Owner(underBoth))
	})
}

// A node has one timer for what it waits for. One for all that is called so would go by what it heard last: a place of the
// other kind, free since its holder has died, would be seen when that one's moment comes.
func TestDeadHoldersOfAllKindsAreFollowedOnTime(t *testing.T) {
	leases := map[string]time.Duration{"lock": 9 * time.Second, "permit": 3 * time.Second, "allocation": 6 * time.Second}
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.process(node.Config{}, door), w.process(node.Config{})
		for kind, lease := range leases {
			must(a.ask(ctx, kind, door, terms{Lease: lease, NoRenew: true}))(t)
		}
		a.Die()
		waits := b.queue(door, terms{})
		for _, kind := range []string{"permit", "allocation", "lock"} {
			waits[kind].GrantedBy(leases[kind])
		}
	})
}

// Two clients of one kind are one node's: who waits by the one stands in line with who waits by the other, and each hold has the
// lease of the client that it was taken by.
func TestTwoClientsOfAKindWithLeasesOfTheirOwn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.bare(node.Config{Lease: 40 * time.Second}), w.process(node.Config{})
		short := qlock.New(a.n, qlock.Config{Lease: 2 * time.Second, Defaults: qlock.LockOptions{NoRenew: true}})
		long := qlock.New(a.n, qlock.Config{Lease: 40 * time.Second})
		queue := func(c *qlock.Locks) *testkit.Wait[*qlock.Lock] {
			q := testkit.Queue(ctx, w.World, func(ctx context.Context) (*qlock.Lock, error) { return c.Lock(ctx, door, nil) })
			w.Advance(ms)
			return q
		}
		l := queue(short).Granted(0)
		waits := []*testkit.Wait[*qlock.Lock]{queue(long), queue(short), queue(b.locks), queue(long)}
		inner, done := l.Within(ctx)
		defer done()
		require.Equal(t, l.Fence(), long.Fence(inner, door), "each sees what the other holds")

		m := waits[0].GrantedBy(2 * time.Second)
		require.Equal(t, 40*time.Second, m.Lease())
		require.Greater(t, m.Fence(), l.Fence())
		require.ErrorIs(t, l.Err(), berth.ErrExpired)
		require.Zero(t, long.Fence(ctx, door))
		w.Until(2*time.Second + time.Minute) // it renews, as its client does
		require.NoError(t, m.Err())
		require.NoError(t, m.Release(ctx))
		at := w.Now()
		s := waits[1].Granted(at)
		require.Equal(t, 2*time.Second, s.Lease())
		require.LessOrEqual(t, s.Left(), 2*time.Second)
		other := waits[2].GrantedBy(at + 2*time.Second)
		require.ErrorIs(t, s.Err(), berth.ErrExpired, "and renews not")
		require.NoError(t, other.Release(ctx))
		last := waits[3].Granted(w.Now())
		require.True(t, l.Fence() < m.Fence() && m.Fence() < s.Fence() && s.Fence() < other.Fence() && other.Fence() < last.Fence())
		a.Die() // and is believed in for as long as its client says
		next := testkit.Queue(ctx, w.World, func(ctx context.Context) (*qlock.Lock, error) { return b.locks.Lock(ctx, door, nil) })
		gone := w.Now()
		w.Until(gone + 26*time.Second)
		require.True(t, next.Pending())
		next.Returned(gone + 40*time.Second)
		require.NoError(t, next.Err)
	})
}

// handOffs has so many claims of a process wait for a lock that is handed on and on, over a link that takes a while, and returns
// what scripts that took.
func (w *world) handOffs(p *proc, many int) map[string]int {
	w.T.Helper()
	first := must(p.locks.Lock(ctx, door, nil))(w.T)
	p.Delay(func() time.Duration { return ms })
	var turns sync.WaitGroup
	for range many {
		turns.Go(func() {
			l, err := p.locks.Lock(ctx, door, nil)
			if err == nil {
				err = l.Release(ctx)
			}
			if err != nil {
				w.T.Error(err)
			}
		})
	}
	w.Advance(10 * ms)
	p.Fresh()
	require.NoError(w.T, first.Release(ctx))
	turns.Wait()
	p.Delay(nil)
	return p.Scripts()
}

// A push hands a lock over without a call, as long as the claim waited no longer than it holds. So locks wait by their own lease, not by
// the node's, which is longer: else each turn would cost a call more, to say how long it lasts.
func TestALockOfANodeIsHandedOnAsOneAlone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const many = 50
		p, alone := w.process(node.Config{Lease: 10 * time.Second}), w.bare(node.Config{Lease: 5 * time.Second})
		alone.locks = qlock.New(alone.n, qlock.Config{})
		with := w.handOffs(p, many)
		require.Equal(t, map[string]int{"lock_release": many + 1}, with, "nothing is confirmed by a call")
		require.Equal(t, w.handOffs(alone, many), with)
	})
}
