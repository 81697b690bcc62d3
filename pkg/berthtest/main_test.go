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

// start starts a process: a semaphore of capacity 2, locks, and a pool without resources.
func start(t *testing.T, server *berthtest.Server) *process {
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
	p.gpu, p.locks = semaphore.New(p.node, "gpu", 2, nil), qlock.New(p.node, &qlock.Config{Lease: lease})
	cfg.Namespace = "shop"
	p.pool = allocator.New(server.Node(cfg), "proxies", allocator.PoolConfig[string]{})
	return p
}

// permit acquires one at once.
func (p *process) permit(opts *semaphore.AcquireOptions) *semaphore.Permit {
	p.t.Helper()
	permit, err := p.gpu.Acquire(context.Background(), opts)
	require.NoError(p.t, err)
	return permit
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
	lock, err := p.locks.Lock(ctx, "order:7", opts)
	require.NoError(p.t, err)
	return lock
}

// proxy allocates one.
func (p *process) proxy() *allocator.Allocation[string] {
	p.t.Helper()
	proxy, err := p.pool.Allocate(context.Background(), nil)
	require.NoError(p.t, err)
	return proxy
}

// add puts resources into the pool.
func (p *process) add(resources ...string) {
	p.t.Helper()
	_, err := p.pool.Add(context.Background(), resources, nil)
	require.NoError(p.t, err)
}

// call is a call that may wait.
type call[H berth.Hold] struct {
	done chan struct{}
	hold H
	err  error
	at   time.Time // when it returned
}

// begin begins one.
func begin[H berth.Hold](acquire func() (H, error)) *call[H] {
	c := &call[H]{done: make(chan struct{})}
	go func() {
		defer close(c.done)
		c.hold, c.err = acquire()
		c.at = time.Now()
	}()
	return c
}

// got waits for the hold.
func (c *call[H]) got(t *testing.T) H {
	t.Helper()
	<-c.done
	require.NoError(t, c.err)
	return c.hold
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
	n, err := redis.Do(context.Background(), redis.B().Exists().Key(key).Build()).AsInt64()
	require.NoError(t, err)
	return n == 1
}

func set(t *testing.T, redis rueidis.Client, key, value string) {
	t.Helper()
	require.NoError(t, redis.Do(context.Background(), redis.B().Set().Key(key).Value(value).Build()).Error())
}
