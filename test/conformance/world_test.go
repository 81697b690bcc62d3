package conformance

import (
	"context"
	"errors"
	"fmt"
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
	"github.com/berth-go/berth/test/harness"
)

const patience = testkit.Patience

// calls is how long a node repeats a call: with heard, no pause of the machine fails one.
const calls = time.Minute

var heard = berth.Retry{Attempts: 1000, Within: calls}

// long is the lease of what a test neither waits for nor wants renewed meanwhile.
const long = time.Minute

// short is the lease of what a test waits out.
const short = time.Second

// world is a namespace of its own on a deployment, with two processes.
type world struct {
	testkit.Patient
	deployment *harness.Deployment
	redis      [2]rueidis.Client // of all tests of the deployment
	ns         string
	cfg        node.Config // of the processes, until the first has something
	nodes      []*node.Node
}

func newWorld(t *testing.T, d *harness.Deployment, redis [2]rueidis.Client) *world {
	t.Helper()
	ns := harness.Namespace(t)
	cfg := node.Config{Namespace: ns, Lease: long, CallTimeout: calls, Retry: heard}
	return &world{Patient: testkit.RealTime(t), deployment: d, redis: redis, ns: ns, cfg: cfg}
}

// node is the node of a process, which ends with the test, without an error.
func (w *world) node(i int) *node.Node {
	w.Helper()
	for len(w.nodes) <= i {
		n, err := node.New(w.redis[len(w.nodes)], w.cfg)
		require.NoError(w, err)
		w.Cleanup(func() { require.NoError(w, n.Close(w.Within(patience))) })
		w.nodes = append(w.nodes, n)
	}
	return w.nodes[i]
}

// locks are the locks of a process.
type locks struct {
	*qlock.Locks
	*node.Node
}

func (w *world) locks() (two [2]locks) {
	w.Helper()
	for i := range two {
		n := w.node(i)
		two[i] = locks{qlock.New(n, qlock.Config{Lease: w.cfg.Lease}), n}
	}
	return two
}

// sem is a semaphore as a process sees it.
type sem struct {
	*semaphore.Semaphore
	*node.Node
}

func (w *world) sem(name string, capacity int) (two [2]sem) {
	w.Helper()
	for i := range two {
		n := w.node(i)
		two[i] = sem{semaphore.New(n, name, capacity, semaphore.Config{}), n}
	}
	return two
}

// pool is a pool as a process sees it, with the calls for operators.
type pool struct {
	*allocator.Pool[string]
	ops *allocator.Operator
}

// pools are a pool as two processes see it. In the end it must be whole.
func (w *world) pools(name string, cfg allocator.Config[string]) (two [2]*pool) {
	w.Helper()
	for i := range two {
		n := w.node(i)
		two[i] = &pool{allocator.New(n, name, cfg), allocator.NewOperator(n)}
	}
	w.Cleanup(func() {
		found, err := two[0].ops.Inspect(w.Within(patience), name)
		require.NoError(w, err)
		require.Empty(w, found.Problems)
	})
	return two
}

// must is what a call within patience returns, which must succeed.
func must[T any](w *world, call func(context.Context) (T, error)) T {
	w.Helper()
	got, err := call(w.Within(patience))
	require.NoError(w, err)
	return got
}

// there is a call for a hold that is made again where that has run out on its way here, as the
// machine had others to run.
func there[H berth.Hold](call func(context.Context) (H, error)) func(context.Context) (H, error) {
	return func(ctx context.Context) (h H, err error) {
		for again := true; again; again = errors.Is(err, berth.ErrExpired) {
			h, err = call(ctx)
		}
		return h, err
	}
}

// acquire, lock and allocate are calls with their options, for must and testkit.Begin.
func acquire(s sem, opts *semaphore.AcquireOptions) func(context.Context) (*semaphore.Permit, error) {
	return func(ctx context.Context) (*semaphore.Permit, error) { return s.Acquire(ctx, opts) }
}

func lock(c locks, name string, opts *qlock.LockOptions) func(context.Context) (*qlock.Lock, error) {
	return func(ctx context.Context) (*qlock.Lock, error) { return c.Lock(ctx, name, opts) }
}

func allocate(p *pool, opts *allocator.AllocateOptions) func(context.Context) (*allocation, error) {
	return func(ctx context.Context) (*allocation, error) { return p.Allocate(ctx, opts) }
}

// release releases holds, one after the other.
func release[H berth.Hold](w *world, holds ...H) {
	w.Helper()
	for _, h := range holds {
		require.NoError(w, h.Release(w.Within(patience)))
	}
}

// queue begins a call, and returns when so many wait in line.
func queue[T any](w *world, call func(context.Context) (T, error), waiting func() int, many int) *testkit.Call[T] {
	w.Helper()
	q := testkit.Begin(w.Within(2*patience), call)
	w.Await("the claim stands in line", func() bool { return waiting() == many })
	return q
}

// afterAWait has a node get something that another one has, so that it has had to
// wait: from then on it is told at once of what others do to its holds.
func afterAWait[H berth.Hold](w *world, node, other func(context.Context) (H, error), waiting func() int) H {
	w.Helper()
	h := must(w, other)
	q := queue(w, node, waiting, 1)
	release(w, h)
	return q.Wait(w)
}

// ended waits until a hold has ended with a cause.
func (w *world) ended(h berth.Hold, cause error) {
	w.Helper()
	w.Signalled("the hold to end", h.Done())
	require.ErrorIs(w, h.Err(), cause)
	require.ErrorIs(w, context.Cause(h.Context()), cause)
}

// refused checks that a claim was not acquired, for this reason.
func (w *world) refused(err error, reason berth.Reason) {
	w.Helper()
	var refused *berth.AcquireError
	require.ErrorAs(w, err, &refused)
	require.Equal(w, reason, refused.Reason)
	require.ErrorIs(w, err, berth.ErrNotAcquired)
}

// reader reads what the processes do.
func (w *world) reader() testkit.Reader { return w.Reader(w.redis[0], w.ns) }

// waiting counts who waits, for queue.
func (w *world) waiting(kind keyspace.Kind, name string) func() int {
	return func() int { return w.reader().Look(kind, name).Waiting }
}

// onNodes runs a command on every server of the deployment. It is repeated where the
// server cuts the connection that it came on.
func (w *world) onNodes(words ...string) {
	w.Helper()
	for at, node := range w.redis[0].Nodes() {
		w.Await(fmt.Sprintf("%s answers %s", at, words[0]), func() bool {
			err := node.Do(w.Within(patience), node.B().Arbitrary(words...).Build()).Error()
			var told *rueidis.RedisError
			require.NotErrorAs(w, err, &told, words)
			return err == nil
		})
	}
}

// one is the only one.
func one[T any](w *world, found []T) T {
	w.Helper()
	require.Len(w, found, 1)
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
