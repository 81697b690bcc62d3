package conformance

import (
	"context"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
	"github.com/berth-go/berth/test/harness"
)

// patience bounds every wait for something that must happen. It is far above what
// anything takes, so that only what hangs meets it.
const patience = 3 * time.Minute

// calls is how long a node repeats a call: no pause of the machine fails one.
const calls = time.Minute

// long is the lease of what a test neither waits for nor wants renewed meanwhile.
const long = time.Minute

// short is the lease of what a test waits out.
const short = time.Second

// bed is a namespace of its own on a deployment.
type bed struct {
	*testing.T
	deployment *harness.Deployment
	redis      [2]rueidis.Client // of all tests of the deployment
	ns         string
}

func newBed(t *testing.T, d *harness.Deployment, redis [2]rueidis.Client) *bed {
	t.Helper()
	return &bed{T: t, deployment: d, redis: redis, ns: harness.Namespace(t)}
}

// within bounds a step of the test.
func (b *bed) within(d time.Duration) context.Context {
	b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	b.Cleanup(cancel)
	return ctx
}

// sems are two nodes, each on a connection of its own.
func (b *bed) sems(cfg semaphore.Config) [2]*semaphore.Client {
	b.Helper()
	return two(b, func(redis rueidis.Client) (*semaphore.Client, error) {
		cfg.Namespace, cfg.CallTimeout = b.ns, calls
		return semaphore.New(redis, cfg)
	})
}

// locks are two nodes, as sems are.
func (b *bed) locks(cfg qlock.Config) [2]*qlock.Client {
	b.Helper()
	return two(b, func(redis rueidis.Client) (*qlock.Client, error) {
		cfg.Namespace, cfg.CallTimeout = b.ns, calls
		return qlock.New(redis, cfg)
	})
}

// pools are a pool as two nodes see it, as sems are. In the end it must be whole.
func (b *bed) pools(cfg allocator.PoolConfig[string]) [2]*pool {
	b.Helper()
	clients := two(b, func(redis rueidis.Client) (*allocator.Client, error) {
		return allocator.New(redis, allocator.Config{Namespace: b.ns, Lease: long, CallTimeout: calls})
	})
	var pools [2]*pool
	for i, c := range clients {
		var err error
		pools[i], err = allocator.NewPool(c, "pool", cfg)
		require.NoError(b, err)
	}
	b.Cleanup(func() {
		found, err := pools[0].Inspect(b.within(patience))
		require.NoError(b, err)
		require.Empty(b, found.Problems)
	})
	return pools
}

// two makes two clients that end with the test, without an error.
func two[C interface{ Close(context.Context) error }](b *bed, open func(rueidis.Client) (C, error)) (clients [2]C) {
	b.Helper()
	for i := range clients {
		c, err := open(b.redis[i])
		require.NoError(b, err)
		b.Cleanup(func() { require.NoError(b, c.Close(b.within(patience))) })
		clients[i] = c
	}
	return clients
}

// sem is a semaphore as two nodes see it.
func (b *bed) sem(cfg semaphore.Config, capacity int) [2]*semaphore.Semaphore {
	b.Helper()
	var sems [2]*semaphore.Semaphore
	for i, c := range b.sems(cfg) {
		var err error
		sems[i], err = c.Semaphore("sem", capacity)
		require.NoError(b, err)
	}
	return sems
}

// must is what a call within patience returns, which must succeed.
func must[T any](b *bed, call func(context.Context) (T, error)) T {
	b.Helper()
	got, err := call(b.within(patience))
	require.NoError(b, err)
	return got
}

// acquire, lock and allocate are calls with their options, for must and begin.
func acquire(s *semaphore.Semaphore, opts *semaphore.AcquireOptions) func(context.Context) (*semaphore.Permit, error) {
	return func(ctx context.Context) (*semaphore.Permit, error) { return s.Acquire(ctx, opts) }
}

func lock(c *qlock.Client, name string, opts *qlock.LockOptions) func(context.Context) (*qlock.Lock, error) {
	return func(ctx context.Context) (*qlock.Lock, error) { return c.Lock(ctx, name, opts) }
}

func allocate(p *pool, opts *allocator.AllocateOptions) func(context.Context) (*allocation, error) {
	return func(ctx context.Context) (*allocation, error) { return p.Allocate(ctx, opts) }
}

// release releases holds, one after the other.
func release[H berth.Hold](b *bed, holds ...H) {
	b.Helper()
	for _, h := range holds {
		require.NoError(b, h.Release(b.within(patience)))
	}
}

// pending is a call on its way.
type pending[T any] struct {
	done chan struct{} // closed when it has returned
	got  T
	err  error
}

// begin begins a call that may wait.
func begin[T any](ctx context.Context, call func(context.Context) (T, error)) *pending[T] {
	w := &pending[T]{done: make(chan struct{})}
	go func() {
		defer close(w.done)
		w.got, w.err = call(ctx)
	}()
	return w
}

// queue begins a call, and returns when so many wait in line.
func queue[T any](b *bed, call func(context.Context) (T, error), waiting func() int, many int) *pending[T] {
	b.Helper()
	w := begin(b.within(2*patience), call)
	b.await("the claim stands in line", func() bool { return waiting() == many })
	return w
}

// wait waits until the call has returned, without an error.
func (w *pending[T]) wait(b *bed) T {
	b.Helper()
	b.signalled("the call", w.done)
	require.NoError(b, w.err)
	return w.got
}

// afterAWait has a node get something that another one has, so that it has had to
// wait: from then on it is told at once of what others do to its holds.
func afterAWait[H berth.Hold](b *bed, node, other func(context.Context) (H, error), waiting func() int) H {
	b.Helper()
	h := must(b, other)
	w := queue(b, node, waiting, 1)
	release(b, h)
	return w.wait(b)
}

// fails waits until the call has returned with an error that matches.
func (w *pending[T]) fails(b *bed, targets ...error) {
	b.Helper()
	b.signalled("the call", w.done)
	for _, target := range targets {
		require.ErrorIs(b, w.err, target)
	}
}

// waits says whether the call has not returned.
func (w *pending[T]) waits() bool {
	select {
	case <-w.done:
		return false
	default:
		return true
	}
}

// ended waits until a hold has ended with a cause.
func (b *bed) ended(h berth.Hold, cause error) {
	b.Helper()
	b.signalled("the hold to end", h.Done())
	require.ErrorIs(b, h.Err(), cause)
	require.ErrorIs(b, context.Cause(h.Context()), cause)
}

// signalled waits until the channel is closed.
func (b *bed) signalled(what string, done <-chan struct{}) {
	b.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		require.FailNow(b, "waited too long", "for %s", what)
	}
}

// await polls until cond holds.
func (b *bed) await(what string, cond func() bool) {
	b.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); !cond(); <-tick.C {
		if time.Now().After(end) {
			require.FailNow(b, "waited too long", "until %s", what)
		}
	}
}

// refused checks that a claim was not acquired, for this reason.
func (b *bed) refused(err error, reason berth.Reason) {
	b.Helper()
	var refused *berth.AcquireError
	require.ErrorAs(b, err, &refused)
	require.Equal(b, reason, refused.Reason)
	require.ErrorIs(b, err, berth.ErrNotAcquired)
}

// semWaiting, lockWaiting and poolWaiting count who waits, for queue.
func (b *bed) semWaiting(s *semaphore.Semaphore) func() int {
	return func() int { return must(b, s.Stats).Waiting }
}

func (b *bed) lockWaiting(c *qlock.Client, name string) func() int {
	return func() int {
		info, err := c.Info(b.within(patience), name)
		require.NoError(b, err)
		return info.Waiting
	}
}

func (b *bed) poolWaiting(p *pool) func() int {
	return func() int { return must(b, p.Stats).Waiting }
}

// onNodes runs a command on every server of the deployment. It is repeated where the
// server cuts the connection that it came on.
func (b *bed) onNodes(words ...string) {
	b.Helper()
	for at, node := range b.redis[0].Nodes() {
		b.await(fmt.Sprintf("%s answers %s", at, words[0]), func() bool {
			err := node.Do(b.within(patience), node.B().Arbitrary(words...).Build()).Error()
			var told *rueidis.RedisError
			require.NotErrorAs(b, err, &told, words)
			return err == nil
		})
	}
}

// all are what a listing goes through, which must end without an error.
func all[T any](b *bed, listing iter.Seq2[T, error]) (found []T) {
	b.Helper()
	for one, err := range listing {
		require.NoError(b, err)
		found = append(found, one)
	}
	return found
}

// one is what a listing goes through, which must be just one.
func one[T any](b *bed, listing iter.Seq2[T, error]) T {
	b.Helper()
	found := all(b, listing)
	require.Len(b, found, 1)
	return found[0]
}

// numbered are so many names. In a Cluster they are in several slots.
func numbered(many int) []string {
	all := make([]string, many)
	for i := range all {
		all[i] = fmt.Sprintf("name-%d", i)
	}
	return all
}
