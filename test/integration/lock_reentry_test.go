package integration

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
)

// The strategies on a real server; what they do to deadlines, to the millisecond,
// is for the tests in virtual time.

func TestAConflictFailsByDefault(t *testing.T) {
	w := sharedLocks(t)
	c, other := w.locker(node.Config{}), w.locker(node.Config{})
	outer := w.lockFor(c, "me", nil)
	for _, node := range []*locker{c, other} {
		_, err := node.Lock(berth.WithOwner(w.Within(patience), "me"), door, nil)
		require.ErrorIs(t, err, berth.ErrDeadlock)
	}
	// Behind a hold that ends by nothing it would wait for ever.
	_, err := c.Lock(berth.WithOwner(t.Context(), "me"), door, &qlock.LockOptions{Conflict: qlock.Wait})
	require.ErrorIs(t, err, berth.ErrDeadlock)
	w.unlock(outer)
	w.idle(door)
}

func TestAWaitOnOnesOwnHoldQueuesBehindIt(t *testing.T) {
	w := sharedLocks(t)
	c := w.locker(node.Config{Lease: safe})
	outer := w.lockFor(c, "me", &qlock.LockOptions{NoRenew: true, Lease: safe})
	inner := w.lockFor(c, "me", &qlock.LockOptions{Conflict: qlock.Wait})
	require.ErrorIs(t, outer.Err(), berth.ErrExpired)
	require.Greater(t, inner.Fence(), outer.Fence())
	require.Equal(t, qlock.Granted, inner.Via())
	w.unlock(inner)
	w.idle(door)
}

func TestEntriesAreReleasedInEitherOrder(t *testing.T) {
	t.Parallel()
	for conflict, outerFirst := range map[qlock.Conflict]bool{qlock.WorkThrough: true, qlock.ExtendAndWorkThrough: false} {
		t.Run(conflict.String(), func(t *testing.T) {
			w := sharedLocks(t)
			c, other := w.locker(node.Config{Lease: safe}), w.locker(node.Config{Lease: safe})
			outer := w.lockFor(c, "me", nil)
			next := w.lockQueue(other, nil, 1)
			// Past the line, and from another node of the owner too.
			inner := w.lockFor(c, "me", &qlock.LockOptions{Conflict: conflict})
			far := w.lockFor(other, "me", &qlock.LockOptions{Conflict: conflict})
			for _, l := range []*qlock.Lock{inner, far} {
				require.Equal(t, outer.Fence(), l.Fence())
				require.NotEqual(t, qlock.Granted, l.Via())
			}
			w.pass(safe + safe/10) // a lease
			for _, l := range []*qlock.Lock{outer, inner, far} {
				require.NoError(t, l.Err(), "it does not renew")
			}
			w.whole(door)
			order := []*qlock.Lock{outer, inner, far}
			if !outerFirst {
				order = []*qlock.Lock{far, inner, outer}
			}
			w.unlock(order[0])
			w.pass(safe + safe/10) // whoever is left renews
			w.whole(door)
			w.unlock(order[1])
			require.NoError(t, order[2].Err())
			require.False(t, next.Over())
			w.unlock(order[2])
			l := next.Wait(w)
			require.Greater(t, l.Fence(), outer.Fence())
			w.unlock(l)
			w.idle(door)
			require.Empty(t, w.look(door).group)
		})
	}
}

// What an entry has not used of its extension is given back: the server's clock
// says how much that is.
func TestUnusedExtensionIsGivenBack(t *testing.T) {
	w := sharedLocks(t)
	const extension = time.Minute
	c := w.locker(node.Config{Lease: time.Minute})
	outer := w.lockFor(c, "me", &qlock.LockOptions{NoRenew: true, Lease: time.Minute})
	before := w.look(door).holds[outer.ID()]
	inner := w.lockFor(c, "me", &qlock.LockOptions{Lease: extension, Conflict: qlock.ExtendAndWorkThrough})
	require.Equal(t, qlock.ReenteredExtended, inner.Via())
	v := w.look(door)
	began := v.records[inner.ID()].Granted.UnixMilli()
	require.Equal(t, before+extension.Milliseconds(), v.holds[outer.ID()])
	require.Equal(t, v.holds[outer.ID()], v.holds[inner.ID()])
	require.Greater(t, outer.Left(), extension, "the outer handle has not heard of it")
	w.pass(300 * time.Millisecond)
	least := w.now() - began
	w.unlock(inner)
	most := w.now() - began
	used := w.look(door).holds[outer.ID()] - before
	require.GreaterOrEqual(t, used, least)
	require.LessOrEqual(t, used, most)
	at := w.now()
	require.LessOrEqual(t, outer.Left(), time.Duration(before+used-at)*time.Millisecond)
	w.unlock(outer)
	w.idle(door)
}

// A lock that has run out is not entered once more, it is taken anew.
func TestALockThatHasRunOutIsNotReentered(t *testing.T) {
	t.Parallel()
	for _, conflict := range []qlock.Conflict{qlock.WorkThrough, qlock.ExtendAndWorkThrough, qlock.FailDeadlock} {
		t.Run(conflict.String(), func(t *testing.T) {
			w := sharedLocks(t)
			c := w.locker(node.Config{})
			lease := 100 * time.Millisecond
			for shown := 0; shown < 3; {
				outer, err := c.Lock(berth.WithOwner(w.Within(patience), "me"), door, &qlock.LockOptions{NoRenew: true, Lease: lease})
				w.Await("it has run out on the server", func() bool {
					v := w.look(door)
					for _, at := range v.holds {
						if at > v.now {
							return false
						}
					}
					return true
				})
				if errors.Is(err, berth.ErrExpired) {
					lease += lease // it had run out on its way here, as the machine had others to run
					continue
				}
				require.NoError(t, err)
				require.ErrorIs(t, outer.Err(), berth.ErrExpired, "the handle lives longer than the lock")
				l := w.lockFor(c, "me", &qlock.LockOptions{Conflict: conflict})
				require.Equal(t, qlock.Granted, l.Via())
				require.Greater(t, l.Fence(), outer.Fence())
				w.unlock(l)
				shown++
			}
			w.tombstones(door) // of those that had run out on their way
		})
	}
}

// fenced are the handles that somebody in this process believes in: all of them
// must have one fence.
type fenced struct {
	mu    sync.Mutex
	locks map[*qlock.Lock]bool // guarded by mu
	worst [2]string            // guarded by mu: two that were believed in at once
	owner int                  // guarded by mu: how many were entered once more
}

// enter looks at all others, as live does.
func (f *fenced) enter(l *qlock.Lock) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if l.Via() != qlock.Granted {
		f.owner++
	}
	for other := range f.locks {
		if other.Err() != nil {
			delete(f.locks, other)
		} else if other.Fence() != l.Fence() && l.Err() == nil {
			f.worst = [2]string{other.ID(), l.ID()}
		}
	}
	f.locks[l] = true
}

// entered says that a hold was entered once more before it ran out.
func (f *fenced) entered() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.owner > 0
}

// Owners who enter once more, extend, run out of time and release in any order,
// each against the others: no handle is alive when the server has given the lock
// away.
func TestNoHandleOutlivesTheLock(t *testing.T) {
	w := sharedLocks(t)
	const owners, rounds = 6, 6
	w.Relies(time.Second)
	f := &fenced{locks: map[*qlock.Lock]bool{}}
	conflicts := []qlock.Conflict{qlock.WorkThrough, qlock.ExtendAndWorkThrough}
	between := func(least, most int) time.Duration {
		return time.Duration(least+rand.N(most-least)) * time.Millisecond
	}
	round := func(ctx context.Context, c *locker) error {
		fixed, lease := rand.N(3) > 0, between(150, 400)
		var locks []*qlock.Lock
		for range 1 + rand.N(3) {
			opts := &qlock.LockOptions{NoRenew: fixed, Lease: lease, Conflict: conflicts[rand.N(2)]}
			l, err := c.Lock(ctx, door, opts)
			if errors.Is(err, berth.ErrNotHeld) {
				continue // it had run out before it could be had
			}
			if err != nil {
				return err
			}
			f.enter(l)
			locks = append(locks, l)
			lease = between(250, 1000) // of what extends it
			w.pass(rand.N(10 * time.Millisecond))
		}
		rand.Shuffle(len(locks), func(i, j int) { locks[i], locks[j] = locks[j], locks[i] })
		for i, l := range locks {
			if fixed && i == len(locks)-1 {
				w.Signalled("it to run out", l.Done())
			}
			_ = l.Release(ctx) // many have run out
		}
		return nil
	}
	var all sync.WaitGroup
	for i := range owners {
		c := w.locker(node.Config{Lease: time.Second})
		all.Go(func() {
			ctx := berth.WithOwner(w.Within(2*patience), string(rune('a'+i)))
			for n := 0; n < rounds || !f.entered(); n++ {
				if err := round(ctx, c); err != nil {
					t.Errorf("lock: %v", err)
					return
				}
			}
		})
	}
	all.Wait()
	t.Logf("%d entries of owners that held the lock already", f.owner)
	require.Empty(t, f.worst[0], "%v were believed in at once", f.worst)
	w.Await("nothing is held", func() bool {
		v := w.look(door)
		return len(v.holds)+len(v.alive) == 0
	})
	w.tombstones(door)
}
