package integration

import (
	"cmp"
	"context"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
)

// door is the lock of tests that need only one.
const door = "door"

// sharedLocks is a world of locks on the server that tests share.
func sharedLocks(t *testing.T) *world {
	t.Helper()
	w := shared(t)
	w.kind = keyspace.Lock
	return w
}

// privateLocks is a world of locks on a server for this test alone.
func privateLocks(t *testing.T, args ...string) *world {
	t.Helper()
	w := private(t, args...)
	w.kind = keyspace.Lock
	return w
}

// locker is a process that has locks.
type locker struct {
	*node.Node
	*qlock.Locks
}

// locker returns a process on a connection of its own, whose node is closed when the test ends.
func (w *world) locker(cfg node.Config, edits ...func(*rueidis.ClientOption)) *locker {
	w.Helper()
	return w.lockerOn(w.server.Client(w.T, edits...), cfg)
}

// lockerOn is locker on a given connection.
func (w *world) lockerOn(redis rueidis.Client, cfg node.Config) *locker {
	w.Helper()
	cfg.Lease = cmp.Or(cfg.Lease, time.Minute)
	n := w.nodeOn(redis, cfg)
	return &locker{n, qlock.New(n, &qlock.Config{Lease: cfg.Lease})}
}

// forLock asks for the door.
func forLock(c *locker) ask {
	return func(ctx context.Context) (berth.Hold, error) { return c.Lock(ctx, door, nil) }
}

// lock takes the door, and fails the test if that takes too long.
func (w *world) lock(c *locker, opts *qlock.LockOptions) *qlock.Lock {
	w.Helper()
	return w.lockFor(c, "", opts)
}

// lockFor takes the door for an owner.
func (w *world) lockFor(c *locker, owner string, opts *qlock.LockOptions) *qlock.Lock {
	w.Helper()
	l, err := c.Lock(berth.WithOwner(w.Within(patience), owner), door, opts)
	require.NoError(w, err)
	return l
}

// unlock releases locks, one after the other.
func (w *world) unlock(locks ...*qlock.Lock) {
	w.Helper()
	for _, l := range locks {
		require.NoError(w, l.Release(w.Within(patience)))
	}
}

// locking is a Lock on its way.
type locking = testkit.Call[*qlock.Lock]

// lockLater begins to lock the door.
func (w *world) lockLater(c *locker, opts *qlock.LockOptions) *locking {
	return w.lockLaterWith(w.Within(2*patience), c, opts)
}

// lockLaterWith is lockLater with a context of the test's.
func (w *world) lockLaterWith(ctx context.Context, c *locker, opts *qlock.LockOptions) *locking {
	return testkit.Begin(ctx, func(ctx context.Context) (*qlock.Lock, error) { return c.Lock(ctx, door, opts) })
}

// lockQueue begins to lock the door, and returns when so many wait on the server.
func (w *world) lockQueue(c *locker, opts *qlock.LockOptions, waiting int) *locking {
	w.Helper()
	q := w.lockLater(c, opts)
	w.awaitInLine(door, waiting, q.Over)
	return q
}

// fatten has a claim wait for the door, and leave: so a thin name becomes a fat one.
func (w *world) fatten(c *locker) {
	w.Helper()
	ctx, leave := context.WithCancel(w.Within(patience))
	q := w.lockLaterWith(ctx, c, nil)
	w.awaitInLine(door, 1, q.Over)
	leave()
	w.Signalled("the claim to leave", q.Done)
	require.False(w, w.look(door).thin)
}
