package integration

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
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
			run(start(t).of(kind))
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

// user is a process that uses a name.
type user struct {
	*node.Node
	take, try func(context.Context, terms) (berth.Hold, error)
	resume    func(context.Context, berth.Token) (berth.Hold, error)
	locks     *locker // where the kind is that of locks
	pool      *pool   // where it is that of pools
}

// claim is a take without options.
func (u *user) claim(ctx context.Context) (berth.Hold, error) { return u.take(ctx, terms{}) }

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
func (w *world) useFrom(redis rueidis.Client, cfg node.Config, of poolConfig) *user {
	w.Helper()
	return userOf(w.nodeOn(redis, cfg), w.kind, w.name(), max(1, w.capacity), cmp.Or(cfg.Lease, time.Minute), of)
}

// userOf is how a node uses a name. The capacity is that of a semaphore.
func userOf(n *node.Node, kind keyspace.Kind, name string, capacity int, lease time.Duration, of poolConfig) *user {
	u := &user{Node: n}
	switch kind {
	case keyspace.Lock:
		l := &locker{n, qlock.New(n, qlock.Config{Lease: lease})}
		opts := func(o terms) *qlock.LockOptions {
			return &qlock.LockOptions{Lease: o.Lease, MaxHold: o.MaxHold, NoRenew: o.NoRenew, Priority: o.Priority}
		}
		u.locks = l
		u.take = func(ctx context.Context, o terms) (berth.Hold, error) { return asHold(l.Lock(ctx, name, opts(o))) }
		u.try = func(ctx context.Context, o terms) (berth.Hold, error) { return asHold(l.TryLock(ctx, name, opts(o))) }
		u.resume = func(ctx context.Context, token berth.Token) (berth.Hold, error) { return asHold(l.Resume(ctx, token)) }
	case keyspace.Pool:
		p := poolOf(n, name, of)
		opts := func(o terms) *allocator.AllocateOptions {
			return &allocator.AllocateOptions{Lease: o.Lease, MaxHold: o.MaxHold, NoRenew: o.NoRenew, Priority: o.Priority}
		}
		u.pool = p
		u.take = func(ctx context.Context, o terms) (berth.Hold, error) { return asHold(p.Allocate(ctx, opts(o))) }
		u.try = func(ctx context.Context, o terms) (berth.Hold, error) { return asHold(p.TryAllocate(ctx, opts(o))) }
		u.resume = func(ctx context.Context, token berth.Token) (berth.Hold, error) { return asHold(p.Resume(ctx, token)) }
	default:
		s := semaphore.New(n, name, capacity, semaphore.Config{})
		opts := func(o terms) *semaphore.AcquireOptions {
			return &semaphore.AcquireOptions{Lease: o.Lease, MaxHold: o.MaxHold, NoRenew: o.NoRenew, Priority: o.Priority}
		}
		u.take = func(ctx context.Context, o terms) (berth.Hold, error) { return asHold(s.Acquire(ctx, opts(o))) }
		u.try = func(ctx context.Context, o terms) (berth.Hold, error) { return asHold(s.TryAcquire(ctx, opts(o))) }
		u.resume = func(ctx context.Context, token berth.Token) (berth.Hold, error) { return asHold(s.Resume(ctx, token)) }
	}
	return u
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
func firstOf[H any](w testkit.Patient, waits []*testkit.Call[H]) (i int, got H) {
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

// of is the world of a kind.
func (w *world) of(kind keyspace.Kind) *world {
	w.kind = kind
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
	return &locker{n, qlock.New(n, qlock.Config{Lease: cfg.Lease})}
}

// lockFor takes the door for an owner, and fails the test if that takes too long.
func (w *world) lockFor(c *locker, owner string, opts *qlock.LockOptions) *qlock.Lock {
	w.Helper()
	l, err := c.Lock(berth.WithOwner(w.Within(patience), owner), door, opts)
	require.NoError(w, err)
	return l
}

// proxies is the pool of tests that need only one.
const proxies = "proxies"

type (
	poolConfig = allocator.Config[string]
	allocation = allocator.Allocation[string]
)

// pool is a pool as one node sees it, with the calls for operators.
type pool struct {
	*allocator.Pool[string]
	node *node.Node
	ops  *allocator.Operator
}

// proxies is the pool as the node sees it.
func (w *world) proxies(n *node.Node, cfg poolConfig) *pool { return poolOf(n, proxies, cfg) }

func poolOf(n *node.Node, name string, cfg poolConfig) *pool {
	return &pool{allocator.New(n, name, cfg), n, allocator.NewOperator(n)}
}

// pool is the pool on a node and a connection of its own.
func (w *world) pool(cfg node.Config) *pool {
	w.Helper()
	return w.proxies(w.node(cfg), poolConfig{})
}

// add puts resources into the pool.
func (w *world) add(p *pool, resources ...string) {
	w.Helper()
	change, err := p.Add(w.Within(patience), resources, nil)
	require.NoError(w, err)
	require.Len(w, resources, change.Added+change.Kept)
}

// numbered are so many names of resources.
func numbered(many int) []string {
	all := make([]string, many)
	for i := range all {
		all[i] = "r" + strconv.Itoa(i)
	}
	return all
}

// allocate takes a resource, and fails the test if that takes too long.
func (w *world) allocate(p *pool, opts *allocator.AllocateOptions) *allocation {
	w.Helper()
	a, err := p.Allocate(w.Within(patience), opts)
	require.NoError(w, err)
	return a
}

// allocateQueue begins an allocation, and returns when so many wait on the server.
func (w *world) allocateQueue(p *pool, opts *allocator.AllocateOptions, waiting int) *testkit.Call[*allocation] {
	w.Helper()
	q := testkit.Begin(w.Within(2*patience), func(ctx context.Context) (*allocation, error) { return p.Allocate(ctx, opts) })
	w.awaitInLine(proxies, waiting, q.Over)
	return q
}

// inspected checks that the pool is whole, and that nothing of it is lost.
func (w *world) inspected(p *pool) allocator.Inspection {
	w.Helper()
	found, err := p.ops.Inspect(w.Within(patience), p.Name())
	require.NoError(w, err)
	require.Empty(w, found.Problems)
	require.Equal(w, found.Resources, found.Free+found.Leased+found.Resting, "%+v", found)
	return found
}

// allFree checks that nobody holds or waits, and that so many resources are free and
// none are anything else.
func (w *world) allFree(p *pool, many int) {
	w.Helper()
	w.swept(p.Name())
	s := w.inspected(p)
	require.Equal(w, allocator.Inspection{Resources: many, Free: many, Bindings: s.Bindings}, s)
	w.idle(p.Name())
}

// itemsKey, freeKey and bindingsKey are the keys that only pools have.
func (w *world) itemsKey(name string) string { return w.space.Key(w.kind, name, keyspace.ItemsPart) }

func (w *world) freeKey(name string) string { return w.space.Key(w.kind, name, keyspace.FreePart) }

func (w *world) bindingsKey(name string) string {
	return w.space.Key(w.kind, name, keyspace.BindingsPart)
}

// ofPool reads a field that only pools have.
func (v *view) ofPool(w *world, field, value string) bool {
	w.Helper()
	switch {
	case strings.HasPrefix(field, "r:"):
		v.resources[field[2:]] = value
		return true
	}
	return field == "pool" || field == "refresh" || field == "replace" || field == "removed"
}

// poolWhole checks what only pools have.
func (w *world) poolWhole(name string, v view) {
	w.Helper()
	require.Empty(w, missing(v.holds, v.resources), "holds of nothing")
	require.Empty(w, missing(v.resources, v.holds), "resources of no hold")
	if v.counts.Resources > 0 {
		require.Len(w, v.expires, len(w.keysOf(name)), "%q has lost a key", name)
	}
}
