package integration

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
)

// door is the lock of tests that need only one.
const door = "door"

// contended is what the processes of a test over all kinds contend for, by kind. One can hold it.
var contended = map[keyspace.Kind]string{keyspace.Sem: "gpu", keyspace.Lock: door, keyspace.Pool: proxies}

// overKinds runs a scenario for each kind, in a world of its own.
func overKinds(t *testing.T, start func(*testing.T) *world, run func(w *world)) {
	t.Helper()
	for kind := range contended {
		t.Run(string(kind), func(t *testing.T) {
			w := start(t)
			w.kind = kind
			run(w)
		})
	}
}

// alone is private for overKinds.
func alone(t *testing.T) *world {
	t.Helper()
	return private(t)
}

// terms are the options of a claim that all kinds have.
type terms struct {
	Lease, MaxHold time.Duration
	NoRenew        bool
	Priority       int
}

// user is a process that uses the contended name.
type user struct {
	*node.Node
	take, try asking[berth.Hold]
	resume    func(context.Context, berth.Token) (berth.Hold, error)
	locks     *locker // where the kind is that of locks
	pool      *pool   // where it is that of pools
}

// use returns a user on a connection of its own.
func (w *world) use(cfg node.Config, edits ...func(*rueidis.ClientOption)) *user {
	w.Helper()
	return w.useOn(w.server.Client(w.T, edits...), cfg)
}

// useOn is use on a given connection. A pool has its resource from then on.
func (w *world) useOn(redis rueidis.Client, cfg node.Config) *user {
	w.Helper()
	u := w.useFrom(redis, cfg, poolConfig{})
	if u.pool != nil {
		w.add(u.pool, "r0")
	}
	return u
}

// useFrom is useOn with a configuration for a pool, which may fill it.
func (w *world) useFrom(redis rueidis.Client, cfg node.Config, of poolConfig) (u *user) {
	w.Helper()
	switch w.kind {
	case keyspace.Lock:
		c := w.lockerOn(redis, cfg)
		ask := func(call func(context.Context, string, *qlock.LockOptions) (*qlock.Lock, error)) asking[*qlock.Lock] {
			return func(ctx context.Context, o terms) (*qlock.Lock, error) {
				return call(ctx, door, &qlock.LockOptions{Lease: o.Lease, MaxHold: o.MaxHold, NoRenew: o.NoRenew, Priority: o.Priority})
			}
		}
		u = userOf(c.Node, ask(c.Lock), ask(c.TryLock), c.Resume)
		u.locks = c
	case keyspace.Pool:
		p := w.proxies(w.nodeOn(redis, cfg), of)
		ask := func(call func(context.Context, *allocator.AllocateOptions) (*allocation, error)) asking[*allocation] {
			return func(ctx context.Context, o terms) (*allocation, error) {
				return call(ctx, &allocator.AllocateOptions{Lease: o.Lease, MaxHold: o.MaxHold, NoRenew: o.NoRenew, Priority: o.Priority})
			}
		}
		u = userOf(p.node, ask(p.Allocate), ask(p.TryAllocate), p.Resume)
		u.pool = p
	default:
		n := w.nodeOn(redis, cfg)
		s := w.sem(n, w.name(), 1)
		ask := func(call func(context.Context, *semaphore.AcquireOptions) (*semaphore.Permit, error)) asking[*semaphore.Permit] {
			return func(ctx context.Context, o terms) (*semaphore.Permit, error) {
				return call(ctx, &semaphore.AcquireOptions{Lease: o.Lease, MaxHold: o.MaxHold, NoRenew: o.NoRenew, Priority: o.Priority})
			}
		}
		u = userOf(n, ask(s.Acquire), ask(s.TryAcquire), s.Resume)
	}
	return u
}

// asking is how a user asks for a hold of its kind.
type asking[H berth.Hold] func(context.Context, terms) (H, error)

func userOf[H berth.Hold](n *node.Node, take, try asking[H], resume func(context.Context, berth.Token) (H, error)) *user {
	return &user{
		Node: n,
		take: func(ctx context.Context, o terms) (berth.Hold, error) { return asHold(take(ctx, o)) },
		try:  func(ctx context.Context, o terms) (berth.Hold, error) { return asHold(try(ctx, o)) },
		resume: func(ctx context.Context, token berth.Token) (berth.Hold, error) {
			return asHold(resume(ctx, token))
		},
	}
}

// asHold is a handle as the hold that it is, nil where there is none.
func asHold[H berth.Hold](h H, err error) (berth.Hold, error) {
	if err != nil {
		return nil, err
	}
	return h, nil
}

// name is what is contended for.
func (w *world) name() string { return contended[w.kind] }

// hold takes the contended name, and fails the test if that takes too long.
func (w *world) hold(u *user, o terms) berth.Hold {
	w.Helper()
	h, err := u.take(w.Within(patience), o)
	require.NoError(w, err)
	return h
}

// holding is a take on its way.
type holding = testkit.Call[berth.Hold]

// holdLater begins to take the contended name.
func (w *world) holdLater(ctx context.Context, u *user, o terms) *holding {
	return testkit.Begin(ctx, func(ctx context.Context) (berth.Hold, error) { return u.take(ctx, o) })
}

// holdQueue begins to take the contended name, and returns when so many wait on the server.
func (w *world) holdQueue(u *user, o terms, waiting int) *holding {
	w.Helper()
	q := w.holdLater(w.Within(2*patience), u, o)
	w.awaitInLine(w.name(), waiting, q.Over)
	return q
}

// release gives holds back, one after the other.
func (w *world) release(holds ...berth.Hold) {
	w.Helper()
	for _, h := range holds {
		require.NoError(w, h.Release(w.Within(patience)))
	}
}

// ended waits until a hold has ended with an error that matches.
func (w *world) ended(h berth.Hold, by error) {
	w.Helper()
	w.Signalled("the holder to hear", h.Done())
	require.ErrorIs(w, h.Err(), by)
}

// nothingLeft checks that nobody holds or waits, and that a pool has its resource.
func (w *world) nothingLeft(u *user) {
	w.Helper()
	w.tombstones(w.name())
	if u.pool != nil {
		w.allFree(u.pool, 1)
	}
}

// target is a claim of the contended name.
func (w *world) target(h berth.Hold) berth.Target {
	return berth.Target{Kind: w.kind, Name: w.name(), Claim: h.ID()}
}

// firstOf waits for the first of several calls.
func firstOf[H any](w *world, waits []*testkit.Call[H]) (i int, got H) {
	w.Helper()
	w.Await("one has it", func() bool {
		i = slices.IndexFunc(waits, (*testkit.Call[H]).Over)
		return i >= 0
	})
	return i, waits[i].Wait(w)
}

// drain lets one after the other in, and returns them in the order in which they came.
func drain[H berth.Hold](w *world, waits []*testkit.Call[H]) (served []H) {
	w.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, q := range waits {
		all.Go(func() {
			<-q.Done
			if q.Err != nil {
				w.Errorf("a wait has failed: %v", q.Err)
				return
			}
			mu.Lock()
			served = append(served, q.Got)
			mu.Unlock()
			if err := q.Got.Release(w.Within(patience)); err != nil {
				w.Errorf("release: %v", err)
			}
		})
	}
	all.Wait()
	require.Len(w, served, len(waits))
	return served
}

// forget does to a name what FLUSHALL does to a server.
func (w *world) forget(name string) {
	w.Helper()
	w.do("DEL", w.stateKey(name), w.lineKey(name))
}

// pass lets time go by: what is under test is what happens in it.
func (w *world) pass(d time.Duration) {
	w.Helper()
	<-time.After(d)
}

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

// lockFor takes the door for an owner, and fails the test if that takes too long.
func (w *world) lockFor(c *locker, owner string, opts *qlock.LockOptions) *qlock.Lock {
	w.Helper()
	l, err := c.Lock(berth.WithOwner(w.Within(patience), owner), door, opts)
	require.NoError(w, err)
	return l
}

// unlock releases a lock.
func (w *world) unlock(l *qlock.Lock) {
	w.Helper()
	w.release(l)
}
