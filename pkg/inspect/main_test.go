package inspect_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ctx = context.Background()

const ms = time.Millisecond

// world is a server in virtual time, processes on it, and who looks.
type world struct {
	*testkit.World
	look  *inspect.Reader
	claim string // that is to be explained, "" for the name
	sees  func(c link.Command)
}

func inWorld(t *testing.T, test func(w *world)) {
	t.Helper()
	testkit.In(t, "nightly", "berth:lock:{nightly}:state", "berth:lock:{nightly}:line", func(t *testing.T, base *testkit.World) {
		look := testkit.Must(inspect.New(base.Redis, inspect.Config{})).In(t)
		test(&world{World: base, look: look})
	})
}

// inWorldOf runs one row of a table in a world of its own.
func inWorldOf(t *testing.T, row string, test func(w *world)) {
	t.Helper()
	t.Run(row, func(t *testing.T) { inWorld(t, test) })
}

// process is one with a node, whose label is its name.
type process struct {
	*testkit.Process
	*node.Node
	w     *world
	locks *qlock.Locks
}

func (w *world) process(label string) *process {
	w.T.Helper()
	return w.made(node.Config{Label: label})
}

// made is a process whose node is as cfg says.
func (w *world) made(cfg node.Config) *process {
	w.T.Helper()
	p := w.Process()
	cfg.Lease, cfg.Observer = testkit.Lease, p.Observer(nil)
	n := testkit.Must(node.New(p.Redis, cfg)).In(w.T)
	p.Closes(n.Close)
	return &process{p, n, w, qlock.New(n, qlock.Config{Lease: testkit.Lease})}
}

// of is a context with an owner, "" for none.
func of(owner string) context.Context { return berth.WithOwner(ctx, owner) }

// lock takes a lock at once, for an owner if it is not "".
func (p *process) lock(name, owner string, opts *qlock.LockOptions) *qlock.Lock {
	p.w.T.Helper()
	return testkit.Must(p.locks.Lock(of(owner), name, opts)).In(p.w.T)
}

// awaitLock stands in line.
func (p *process) awaitLock(name, owner string, opts *qlock.LockOptions) *testkit.Wait[*qlock.Lock] {
	return testkit.Queue(of(owner), p.w.World, func(ctx context.Context) (*qlock.Lock, error) { return p.locks.Lock(ctx, name, opts) })
}

// contends has alpha hold the lock nightly, and beta wait for it a while.
func (w *world) contends(hold *qlock.LockOptions, while time.Duration) (alpha *process) {
	w.T.Helper()
	alpha = w.process("alpha")
	alpha.lock("nightly", "", hold)
	w.process("beta").awaitLock("nightly", "", nil)
	w.Advance(while)
	return alpha
}

// awaits has beta wait for a resource.
func (w *world) awaits(opts *allocator.AllocateOptions) {
	w.T.Helper()
	beta := w.process("beta")
	beta.await(beta.pool(allocator.Config[string]{}), opts)
}

// permit takes a semaphore's permit at once, for an owner if it is not "".
func (p *process) permit(owner, name string, capacity int, opts *semaphore.AcquireOptions) {
	p.w.T.Helper()
	testkit.Must(semaphore.New(p.Node, name, capacity, semaphore.Config{}).Acquire(of(owner), opts)).In(p.w.T)
}

func (p *process) awaitPermit(owner, name string, capacity int, opts *semaphore.AcquireOptions) {
	s := semaphore.New(p.Node, name, capacity, semaphore.Config{})
	testkit.Queue(of(owner), p.w.World, func(ctx context.Context) (*semaphore.Permit, error) { return s.Acquire(ctx, opts) })
}

// pool is one of a process.
func (p *process) pool(cfg allocator.Config[string]) *allocator.Pool[string] {
	return allocator.New(p.Node, "proxies", cfg)
}

// filled is a pool with resources.
func (p *process) filled(resources ...string) *allocator.Pool[string] {
	p.w.T.Helper()
	pool := p.pool(allocator.Config[string]{})
	testkit.Must(pool.Add(ctx, resources, nil)).In(p.w.T)
	return pool
}

// take takes a resource at once.
func (p *process) take(pool *allocator.Pool[string], opts *allocator.AllocateOptions) {
	p.w.T.Helper()
	testkit.Must(pool.Allocate(ctx, opts)).In(p.w.T)
}

func (p *process) await(pool *allocator.Pool[string], opts *allocator.AllocateOptions) {
	testkit.Queue(ctx, p.w.World, func(ctx context.Context) (*allocator.Allocation[string], error) { return pool.Allocate(ctx, opts) })
}

// waiting is the id of the claim of a label that waits.
func (w *world) waiting(kind keyspace.Kind, name, label string) string {
	w.T.Helper()
	page := testkit.Must(w.look.Waiters(ctx, kind, name, "", 0)).In(w.T)
	for _, c := range page.Items {
		if c.Label == label {
			return c.ID
		}
	}
	require.Fail(w.T, "it does not wait", label)
	return ""
}

// swarmed is a process that is in a swarm.
func (w *world) swarmed(label string) *process {
	w.T.Helper()
	p := w.made(node.Config{Label: label, Swarm: node.SwarmConfig{Auto: true}})
	w.Advance(time.Second)
	return p
}
