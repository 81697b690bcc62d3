package integration

import (
	"cmp"
	"context"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/qlock"
)

// door is the lock of tests that need only one.
const door = "door"

// sharedLocks is a bed of locks on the server that tests share.
func sharedLocks(t *testing.T) *bed {
	t.Helper()
	b := shared(t)
	b.kind = keyspace.Lock
	return b
}

// privateLocks is a bed of locks on a server for this test alone.
func privateLocks(t *testing.T, args ...string) *bed {
	t.Helper()
	b := private(t, args...)
	b.kind = keyspace.Lock
	return b
}

// locker returns a lock client on a connection of its own, closed when the test
// ends.
func (b *bed) locker(cfg qlock.Config, edits ...func(*rueidis.ClientOption)) *qlock.Client {
	b.Helper()
	return b.lockerOn(b.server.Client(b.T, edits...), cfg)
}

// lockerOn is locker on a given connection.
func (b *bed) lockerOn(redis rueidis.Client, cfg qlock.Config) *qlock.Client {
	b.Helper()
	cfg.Namespace = b.ns
	cfg.Lease, cfg.CallTimeout = cmp.Or(cfg.Lease, time.Minute), cmp.Or(cfg.CallTimeout, calls)
	c, err := qlock.New(redis, cfg)
	require.NoError(b, err)
	b.Cleanup(func() {
		if err := c.Close(b.within(patience)); err != nil && !b.Failed() {
			b.Logf("closing a client: %v", err)
		}
	})
	return c
}

// forLock asks for the door.
func forLock(c *qlock.Client) ask {
	return func(ctx context.Context) (berth.Hold, error) { return c.Lock(ctx, door, nil) }
}

// lock takes the door, and fails the test if that takes too long.
func (b *bed) lock(c *qlock.Client, opts *qlock.LockOptions) *qlock.Lock {
	b.Helper()
	return b.lockFor(c, "", opts)
}

// lockFor takes the door for an owner.
func (b *bed) lockFor(c *qlock.Client, owner string, opts *qlock.LockOptions) *qlock.Lock {
	b.Helper()
	l, err := c.Lock(berth.WithOwner(b.within(patience), owner), door, opts)
	require.NoError(b, err)
	return l
}

// unlock releases locks, one after the other.
func (b *bed) unlock(locks ...*qlock.Lock) {
	b.Helper()
	for _, l := range locks {
		require.NoError(b, l.Release(b.within(patience)))
	}
}

// locking is a Lock on its way.
type locking struct {
	done chan struct{} // closed when it has returned
	lock *qlock.Lock
	err  error
}

// lockLater begins to lock the door.
func (b *bed) lockLater(c *qlock.Client, opts *qlock.LockOptions) *locking {
	return b.lockLaterWith(b.within(2*patience), c, opts)
}

// lockLaterWith is lockLater with a context of the test's.
func (b *bed) lockLaterWith(ctx context.Context, c *qlock.Client, opts *qlock.LockOptions) *locking {
	w := &locking{done: make(chan struct{})}
	go func() {
		defer close(w.done)
		w.lock, w.err = c.Lock(ctx, door, opts)
	}()
	return w
}

// lockQueue begins to lock the door, and returns when so many wait on the server.
func (b *bed) lockQueue(c *qlock.Client, opts *qlock.LockOptions, waiting int) *locking {
	b.Helper()
	w := b.lockLater(c, opts)
	b.awaitInLine(door, waiting, w.over)
	return w
}

// got waits for the lock.
func (w *locking) got(b *bed) *qlock.Lock {
	b.Helper()
	b.signalled("the lock", w.done)
	require.NoError(b, w.err)
	return w.lock
}

// over says whether the call has returned.
func (w *locking) over() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// fatten has a claim wait for the door, and leave: so a thin name becomes a fat one.
func (b *bed) fatten(c *qlock.Client) {
	b.Helper()
	ctx, leave := context.WithCancel(b.within(patience))
	w := b.lockLaterWith(ctx, c, nil)
	b.awaitInLine(door, 1, w.over)
	leave()
	b.signalled("the claim to leave", w.done)
	require.False(b, b.look(door).thin)
}
