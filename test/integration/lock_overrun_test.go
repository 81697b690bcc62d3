package integration

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
)

// A holder that was stopped for longer than its lease runs again, and does with
// the lock what it likes: it must learn of its loss, and not touch its
// successor's.
func TestAHolderThatOverranCannotTouchItsSuccessorsLock(t *testing.T) {
	w := sharedLocks(t)
	c := w.locker(node.Config{})
	holder := w.spawn(safe)
	old := holder.acquire(door, 1)
	// A fixed lease, which nothing moves but a call of somebody.
	q := w.lockQueue(c, &qlock.LockOptions{Lease: time.Hour, NoRenew: true}, 1)
	holder.stop()
	l := q.Wait(w)
	require.Greater(t, l.Fence(), old.Fence, "fences do not rise")
	claim, deadline := w.holder(door)
	require.Equal(t, l.ID(), claim)

	// The order waits in the pipe, so that it is served as soon as the child runs again,
	// if possible before any timer of its.
	first := holder.send(order{Do: "extend", Name: door, By: time.Hour})
	holder.signal(syscall.SIGCONT)
	require.Subset(t, holder.hear(first).Is, []string{"lost", "not held"})
	for _, next := range []string{"release", "extend", "renew", "err", "context"} {
		require.Contains(t, holder.ask(order{Do: next, Name: door, By: time.Hour}).Is, "not held", next)
	}
	claim, after := w.holder(door)
	require.Equal(t, l.ID(), claim)
	require.Equal(t, deadline, after, "the successor's deadline was moved")
	require.NoError(t, l.Err())
	w.unlock(l)
	w.idle(door)
}

// The same where the calls reach the server, because the holder does not know yet
// that somebody else holds the lock.
func TestLateCallsOfAFormerHolderAreRefusedByTheServer(t *testing.T) {
	t.Parallel()
	for _, script := range []string{"thin_release", "lock_release", "lock_renew"} {
		t.Run(script, func(t *testing.T) {
			w := sharedLocks(t)
			const lease = safe
			m := w.meddler()
			c := w.lockerOn(m, node.Config{Lease: lease, CallTimeout: 2 * time.Second})
			other := w.locker(node.Config{Lease: lease})
			former := w.lock(c, &qlock.LockOptions{NoRenew: true})
			if script == "lock_release" {
				w.fatten(other)
			}
			m.always(script, deferred)
			if script != "lock_renew" {
				go func() { _ = former.Release(w.Within(patience)) }()
			} else {
				go func() { _ = former.Extend(w.Within(patience), time.Hour) }()
			}
			w.Await("the call is on its way", func() bool { return m.meddled(script) > 0 })
			l := w.lock(other, &qlock.LockOptions{Lease: time.Hour, NoRenew: true})
			claim, deadline := w.holder(door)
			m.always(script, passed)
			m.deliver()
			after, moved := w.holder(door)
			require.Equal(t, claim, after)
			require.Equal(t, deadline, moved)
			require.Error(t, former.Err())
			require.NoError(t, l.Err())
			w.unlock(l)
		})
	}
}
