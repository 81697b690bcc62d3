package node_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	ms = time.Millisecond
	// door is what most of these tests contend for, of all kinds: a lock, a semaphore and a pool are called so.
	door = "door"
)

var ctx = context.Background()

// must is what a call has returned, which must have worked.
func must[T any](got T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		require.NoError(t, err)
		return got
	}
}

// world is a server in virtual time, and processes of it.
type world struct{ *testkit.World }

// inWorld runs a test in virtual time. What the test leaves running fails it.
func inWorld(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	testkit.In(t, door, "berth:lock:{door}:state", "berth:lock:{door}:line", func(t *testing.T, w *testkit.World) {
		test(t, &world{w})
	})
}

// inEach runs a test in a world of its own for each case.
func inEach[C any](t *testing.T, cases map[string]C, test func(t *testing.T, w *world, c C)) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) { test(t, w, c) })
		})
	}
}

// proc is a process: a node on a link of its own, and what it has made of each kind.
type proc struct {
	*testkit.Process
	n     *node.Node
	w     *world
	locks *qlock.Locks
	pool  map[string]*allocator.Pool[string]
}

// bare starts a process that has made nothing of its node yet.
func (w *world) bare(cfg node.Config) *proc {
	w.T.Helper()
	p := &proc{Process: w.Process(), w: w, pool: make(map[string]*allocator.Pool[string])}
	cfg.Observer = p.Observer(cfg.Observer)
	p.n = must(node.New(p.Redis, cfg))(w.T)
	p.Closes(p.n.Close)
	return p
}

// process starts a process that uses all kinds, and has these pools filled.
func (w *world) process(cfg node.Config, pools ...string) *proc {
	w.T.Helper()
	p := w.bare(cfg)
	p.faces()
	p.fill(pools...)
	return p
}

// faces makes something of each kind on the node.
func (p *proc) faces() {
	p.locks = qlock.New(p.n, qlock.Config{})
	p.sem("faces")
	p.of("faces")
}

// sem is a semaphore for one.
func (p *proc) sem(name string) *semaphore.Semaphore {
	return semaphore.New(p.n, name, 1, semaphore.Config{})
}

// of is the process's pool of a name.
func (p *proc) of(name string) *allocator.Pool[string] {
	return p.with(name, allocator.Config[string]{})
}

// with is of, of a pool that is made so where it is not made yet.
func (p *proc) with(name string, cfg allocator.Config[string]) *allocator.Pool[string] {
	if p.pool[name] == nil {
		p.pool[name] = allocator.New(p.n, name, cfg)
	}
	return p.pool[name]
}

// fill adds a resource to each pool.
func (p *proc) fill(names ...string) {
	p.w.T.Helper()
	for _, name := range names {
		must(p.of(name).Add(ctx, []string{"r"}, nil))(p.w.T)
	}
}

// kinds are those of a node, by the words that the tests have for them.
var kinds = []string{"lock", "permit", "allocation"}

// terms are the options that the kinds share.
type terms struct {
	Lease   time.Duration
	NoRenew bool
	Meta    map[string]string
}

// ask takes something of a kind, or waits for it.
func (p *proc) ask(ctx context.Context, kind, name string, o terms) (berth.Hold, error) {
	switch kind {
	case "lock":
		return hold(p.locks.Lock(ctx, name, &qlock.LockOptions{Lease: o.Lease, NoRenew: o.NoRenew, Meta: o.Meta}))
	case "permit":
		return hold(p.sem(name).Acquire(ctx, &semaphore.AcquireOptions{Lease: o.Lease, NoRenew: o.NoRenew, Meta: o.Meta}))
	}
	return hold(p.of(name).Allocate(ctx, &allocator.AllocateOptions{Lease: o.Lease, NoRenew: o.NoRenew, Meta: o.Meta}))
}

// try takes something of a kind if it is free.
func (p *proc) try(kind, name string) (berth.Hold, error) {
	switch kind {
	case "lock":
		return hold(p.locks.TryLock(ctx, name, nil))
	case "permit":
		return hold(p.sem(name).TryAcquire(ctx, nil))
	}
	return hold(p.of(name).TryAllocate(ctx, nil))
}

// hold is nil where there is an error.
func hold[H berth.Hold](h H, err error) (berth.Hold, error) {
	if err != nil {
		return nil, err
	}
	return h, nil
}

// take takes something of each kind at once.
func (p *proc) take(name string, o terms) map[string]berth.Hold {
	p.w.T.Helper()
	held := make(map[string]berth.Hold)
	for _, kind := range kinds {
		held[kind] = must(p.ask(ctx, kind, name, o))(p.w.T)
	}
	return held
}

// wait is an acquire that is on its way.
type wait = testkit.Wait[berth.Hold]

// queue asks for something of each kind in the background, and lets everything settle.
func (p *proc) queue(name string, o terms) map[string]*wait {
	p.w.T.Helper()
	waits := make(map[string]*wait)
	for _, kind := range kinds {
		waits[kind] = testkit.Queue(ctx, p.w.World, func(ctx context.Context) (berth.Hold, error) { return p.ask(ctx, kind, name, o) })
	}
	return waits
}

// requireFree fails unless another process can have each kind of a name at once, which it gives back.
func (p *proc) requireFree(name string) {
	p.w.T.Helper()
	for _, kind := range kinds {
		require.NoError(p.w.T, must(p.try(kind, name))(p.w.T).Release(ctx), kind)
	}
}

// requirePending fails unless all of them still wait.
func requirePending(t *testing.T, waits map[string]*wait) {
	t.Helper()
	synctest.Wait()
	for _, kind := range kinds {
		require.True(t, waits[kind].Pending(), kind)
	}
}
