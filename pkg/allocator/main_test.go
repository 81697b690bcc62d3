package allocator_test

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	ms            = time.Millisecond
	lease, margin = testkit.Lease, testkit.Margin
	// proxies is the pool of these tests.
	proxies = "proxies"
	// Its keys.
	stateKey, lineKey = "berth:pool:{proxies}:state", "berth:pool:{proxies}:line"
	itemsKey, freeKey = "berth:pool:{proxies}:items", "berth:pool:{proxies}:free"
	bindingsKey       = "berth:pool:{proxies}:bindings"
)

var (
	ctx     = context.Background()
	errMine = errors.New("my own reason")
)

// must is what a call has returned, which must have worked.
func must[T any](got T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		require.NoError(t, err)
		return got
	}
}

// world is a server in virtual time, and processes on it.
type world struct {
	*testkit.World
	*operators
	// pool is that of the process which looks on, and operates.
	pool *allocator.Pool[string]
}

// inWorld runs a test in virtual time. What the test leaves running fails it.
func inWorld(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	testkit.In(t, proxies, stateKey, lineKey, func(t *testing.T, base *testkit.World) {
		base.Others = []string{itemsKey, freeKey, bindingsKey}
		n := must(node.New(base.Redis, node.Config{Lease: lease}))(t)
		defer func() { _ = n.Close(ctx) }()
		test(t, &world{base, operatorsOf(n), allocator.New(n, proxies, allocator.Config[string]{})})
	})
}

// proc is a process with its node and its pool, on a link of its own.
type proc struct {
	*allocator.Pool[string]
	*testkit.Process
	*operators
	w    *world
	node *node.Node
}

// node starts a process with the defaults of these tests, and adds resources.
func (w *world) node(resources ...string) *proc {
	w.T.Helper()
	return w.nodeOf(allocator.Config[string]{}, resources...)
}

// nodeOf starts a process whose pool has these settings, and adds resources.
func (w *world) nodeOf(pool allocator.Config[string], resources ...string) *proc {
	w.T.Helper()
	return w.nodeWith(node.Config{}, pool, resources...)
}

// nodeWith starts a process, and adds resources. Its node's lease is that of the tests unless cfg says so.
func (w *world) nodeWith(cfg node.Config, pool allocator.Config[string], resources ...string) *proc {
	w.T.Helper()
	if len(resources) > 0 {
		w.add(resources...)
	}
	n := &proc{Process: w.Process(), w: w}
	cfg.Lease, cfg.Observer = cmp.Or(cfg.Lease, lease), n.Observer(cfg.Observer)
	n.node = must(node.New(n.Redis, cfg))(w.T)
	n.Closes(n.node.Close)
	n.Pool, n.operators = allocator.New(n.node, proxies, pool), operatorsOf(n.node)
	return n
}

// operators are the operator of a node and that of its pools.
type operators struct {
	all   *node.Operator
	pools *allocator.Operator
}

func operatorsOf(n *node.Node) *operators { return &operators{n.Operator(), allocator.NewOperator(n)} }

// ops are the calls for pools of both.
func (o *operators) ops() ops { return ops{o.pools, o.all} }

// force ends a claim of the pool by its id.
func (o *operators) force(id string) error {
	return second(o.ops().Release(ctx, berth.Target{Name: proxies, Claim: id}))
}

// ops are the calls of the operator of pools, and those of the node's as they are for pools.
type ops struct {
	*allocator.Operator
	all *node.Operator
}

func (o ops) Release(ctx context.Context, t berth.Target) (int, error) {
	t.Kind = keyspace.Pool
	return o.all.Release(ctx, t)
}

func (o ops) Want(ctx context.Context, t berth.Target) (int, error) {
	t.Kind = keyspace.Pool
	return o.all.Want(ctx, t)
}

func (o ops) Sweep(ctx context.Context, names ...string) (int, error) {
	return o.all.Sweep(ctx, keyspace.Pool, names...)
}

// on decides the fate of each call of a script.
func (n *proc) on(script string, fate func() link.Fate) {
	n.OnCommand(func(c link.Command) link.Fate {
		if c.Name == script {
			return fate()
		}
		return link.Pass
	})
}

// connect makes all of the process's connections for calls, has it allocate once, and
// forgets what it took.
func (n *proc) connect() *proc {
	n.w.T.Helper()
	p := allocator.New(n.node, "connect", allocator.Config[string]{})
	defer func() { require.NoError(n.w.T, p.Close(ctx)) }()
	must(p.Add(ctx, []string{"a"}, nil))(n.w.T)
	a := must(p.TryAllocate(ctx, nil))(n.w.T)
	require.NoError(n.w.T, a.Release(ctx))
	for _, part := range []string{"state", "line", "items", "free", "bindings"} {
		n.w.Do("DEL", "berth:pool:{connect}:"+part)
	}
	n.Connected()
	return n
}

// subscribe has the node wait once: a subscription that comes later asks at once.
func (n *proc) subscribe() {
	n.w.T.Helper()
	q := n.queue(nil)
	require.True(n.w.T, q.Pending(), "there must be nothing to get")
	q.Cancel(nil)
	<-q.Done
	synctest.Wait()
	n.Fresh()
}

// add adds resources, or fails.
func (w *world) add(resources ...string) {
	w.T.Helper()
	must(w.pool.Add(ctx, resources, nil))(w.T)
}

// wait is an allocation that is on its way.
type wait struct {
	*testkit.Wait[*allocator.Allocation[string]]
}

// queue allocates in the background, and lets everything settle.
func (n *proc) queue(opts *allocator.AllocateOptions) *wait {
	n.w.T.Helper()
	return n.queueOn(ctx, opts)
}

func (n *proc) queueOn(ctx context.Context, opts *allocator.AllocateOptions) *wait {
	return &wait{testkit.Queue(ctx, n.w.World, func(ctx context.Context) (*allocator.Allocation[string], error) {
		return n.Allocate(ctx, opts)
	})}
}

// gets waits for the allocation, and fails if it came at another time, or with
// another resource.
func (a *wait) gets(at time.Duration, resource string) *allocator.Allocation[string] {
	a.W.T.Helper()
	got := a.Granted(at)
	require.Equal(a.W.T, resource, got.Resource())
	require.Equal(a.W.T, resource, got.Value())
	return got
}

// getsIn is gets within one millisecond: the server counts whole ones, and what it
// says to a request in the middle of one comes up to one later.
func (a *wait) getsIn(at time.Duration, resource string) {
	a.W.T.Helper()
	require.Equal(a.W.T, resource, a.GrantedWithin(at, ms).Resource())
}

// take allocates at once, or after a call was repeated.
func (n *proc) take(opts *allocator.AllocateOptions) *allocator.Allocation[string] {
	n.w.T.Helper()
	q := n.queue(opts)
	q.Returned(n.w.Now())
	require.NoError(n.w.T, q.Err)
	return q.Got
}

// takes is take, and fails if it is another resource.
func (n *proc) takes(resource string, opts *allocator.AllocateOptions) *allocator.Allocation[string] {
	n.w.T.Helper()
	a := n.take(opts)
	require.Equal(n.w.T, resource, a.Resource())
	require.Equal(n.w.T, resource, a.Value())
	return a
}

// release gives back, or fails.
func (w *world) release(all ...*allocator.Allocation[string]) {
	w.T.Helper()
	for _, a := range all {
		require.NoError(w.T, a.Release(ctx))
		synctest.Wait()
	}
}

// counts are those of a pool. Of what is stored Expired is 0.
type counts struct{ Resources, Free, Leased, Resting, Leaving, Holders, Waiting, Expired int }

func countsOf(i allocator.Inspection) counts {
	return counts{i.Resources, i.Free, i.Leased, i.Resting, i.Leaving, i.Holders, i.Waiting, 0}
}

// stats counts what a sweep would leave.
func (w *world) stats() counts {
	w.T.Helper()
	n := must(w.Look())(w.T)
	c := counts{Resources: n.Capacity, Leased: n.Held, Holders: n.Holders, Waiting: n.Waiting, Expired: n.Expired}
	if n.Pool != nil {
		c.Free, c.Resting, c.Leaving = n.Pool.Free, n.Pool.Resting, n.Pool.Leaving
	}
	return c
}

// inspect requires the pool to be whole, and counts it. It changes nothing.
func (w *world) inspect() counts {
	w.T.Helper()
	found := must(w.ops().Inspect(ctx, proxies))(w.T)
	require.Empty(w.T, found.Problems)
	require.False(w.T, found.Moving)
	return countsOf(found)
}

// status is what is known of one resource. It changes nothing.
func (w *world) status(resource string) allocator.ResourceInfo {
	w.T.Helper()
	info := must(w.ops().Resource(ctx, proxies, resource))(w.T)
	return info
}

// holder is the claim that holds a resource, "" for none.
func (w *world) holder(resource string) string {
	w.T.Helper()
	info := w.status(resource)
	if len(info.Holders) == 0 {
		return ""
	}
	require.Len(w.T, info.Holders, 1)
	return info.Holders[0].ID
}

// states are the resources and what they are. It changes nothing.
func (w *world) states() map[string]allocator.State {
	w.T.Helper()
	all := make(map[string]allocator.State)
	for _, info := range testkit.Collect(w.T, w.ops().Resources(ctx, proxies)) {
		all[info.Resource] = info.State
	}
	return all
}

// list are the free resources in their order, the head first.
func (w *world) list() []string {
	w.T.Helper()
	all := must(w.Do("ZRANGE", freeKey, "0", "-1").AsStrSlice())(w.T)
	return all[:max(len(all)-1, 0)]
}

// requireIdle fails unless nothing is held or waits, no record is left, and the pool
// is whole.
func (w *world) requireIdle() {
	w.T.Helper()
	synctest.Wait()
	fields := must(w.Do("HGETALL", stateKey).AsStrMap())(w.T)
	for name, value := range fields {
		require.False(w.T, strings.HasPrefix(name, "c:") || strings.HasPrefix(name, "r:"), "%s = %s is left", name, value)
	}
	for _, name := range []string{"used", "waiting", "gone", "forever"} {
		require.Zero(w.T, w.Field(name), name)
	}
	require.Zero(w.T, w.inspect().Leased)
}
