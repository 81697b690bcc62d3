package berthtest_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/berthtest"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const lease = 6 * time.Second

// process is what one process of a test has.
type process struct {
	t     *testing.T
	node  *node.Node
	gpu   *semaphore.Semaphore
	locks *qlock.Locks
	pool  *allocator.Pool[string] // of another namespace

	queued chan struct{} // has one for each claim that has come to wait
}

// start starts a process: a semaphore of capacity 2, locks, and a pool of these resources.
func start(t *testing.T, server *berthtest.Server, resources ...string) *process {
	t.Helper()
	p := &process{t: t, queued: make(chan struct{}, 100)}
	observer := observe.Func(func(e observe.Event) {
		if e.Kind == observe.Queued {
			p.queued <- struct{}{}
		}
	})
	lease, timeout := lease, time.Duration(0)
	if strings.HasSuffix(t.Name(), "/real_time") {
		lease, timeout = time.Minute, time.Minute // no pause of a busy machine ends a hold or a call
	}
	cfg := node.Config{Lease: lease, CallTimeout: timeout, Observer: observer}
	p.node = server.Node(cfg)
	p.gpu, p.locks = semaphore.New(p.node, "gpu", 2, semaphore.Config{}), qlock.New(p.node, qlock.Config{Lease: lease})
	cfg.Namespace = "shop"
	p.pool = allocator.New(server.Node(cfg), "proxies", allocator.Config[string]{})
	must(p.pool.Add(context.Background(), resources, nil))(t) // nothing is sent where there are none
	return p
}

// permit acquires one at once.
func (p *process) permit(opts *semaphore.AcquireOptions) *semaphore.Permit {
	p.t.Helper()
	return must(p.gpu.Acquire(context.Background(), opts))(p.t)
}

// requireHeld fails unless so much of the semaphore is held.
func (p *process) requireHeld(held int) {
	p.t.Helper()
	for free := 2 - held; free >= 0; free-- {
		permit, err := p.gpu.TryAcquire(context.Background(), nil)
		if free == 0 {
			require.ErrorIs(p.t, err, berth.ErrBusy)
			return
		}
		require.NoError(p.t, err)
		defer func() { _ = permit.Release(context.Background()) }()
	}
}

// lock locks at once.
func (p *process) lock(ctx context.Context, opts *qlock.LockOptions) *qlock.Lock {
	p.t.Helper()
	return must(p.locks.Lock(ctx, "order:7", opts))(p.t)
}

// proxy allocates one.
func (p *process) proxy() *allocator.Allocation[string] {
	p.t.Helper()
	return must(p.pool.Allocate(context.Background(), nil))(p.t)
}

// begin begins a call that may wait; got waits for its hold.
func begin[H berth.Hold](t *testing.T, acquire func() (H, error)) (got func() H) {
	t.Helper()
	call := testkit.Begin(context.Background(), func(context.Context) (H, error) { return acquire() })
	return func() H {
		t.Helper()
		<-call.Done
		return must(call.Got, call.Err)(t)
	}
}

// must is what a call has returned, which must have worked.
func must[T any](got T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		require.NoError(t, err)
		return got
	}
}

// inBubble runs a test in virtual time.
func inBubble(t *testing.T, test func(t *testing.T, server *berthtest.Server)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { test(t, berthtest.New(t)) })
}

// inBoth runs a test in virtual and in real time.
func inBoth(t *testing.T, test func(t *testing.T, server *berthtest.Server)) {
	t.Helper()
	t.Parallel()
	t.Run("virtual time", func(t *testing.T) { inBubble(t, test) })
	t.Run("real time", func(t *testing.T) {
		t.Parallel()
		test(t, berthtest.New(t))
	})
}

// pass lets virtual time pass, and everything that happens then.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func exists(t *testing.T, redis rueidis.Client, key string) bool {
	t.Helper()
	return must(redis.Do(context.Background(), redis.B().Exists().Key(key).Build()).AsInt64())(t) == 1
}

func set(t *testing.T, redis rueidis.Client, key, value string) {
	t.Helper()
	require.NoError(t, redis.Do(context.Background(), redis.B().Set().Key(key).Value(value).Build()).Error())
}
