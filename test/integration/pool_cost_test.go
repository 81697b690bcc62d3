package integration

import (
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/test/harness"
)

// warmPool is a pool of a client that has opened all its connections and has
// subscribed, on a server that has all scripts, so that none of it counts. It needs a resource, and nobody else there.
func (b *bed) warmPool(cfg allocator.Config) *pool {
	b.Helper()
	b.load()
	c := b.pooler(cfg)
	p := b.proxies(c, poolConfig{})
	b.add(p, "r0")
	b.subscribePooler(c, p)
	b.busyPooler(p)
	return p
}

func TestAnUncontendedAllocationCostsTwoScripts(t *testing.T) {
	b := privatePools(t)
	p := b.warmPool(allocator.Config{Lease: time.Minute})
	ctx := b.within(patience)
	var a *allocation
	one := func(what string, step func()) { require.Equal(t, 1, b.cost(step), what) }
	one("allocate", func() { a = b.allocate(p, nil) })
	one("try, full", func() { _, err := p.TryAllocate(ctx, nil); require.ErrorIs(t, err, allocator.ErrBusy) })
	one("release", func() { b.giveBack(a) })
	one("allocate, bound", func() { a = b.allocate(p, &allocator.AllocateOptions{Bind: "customer"}) })
	one("release", func() { b.giveBack(a) })
	one("allocate, bound again", func() { a = b.allocate(p, &allocator.AllocateOptions{Bind: "customer"}) })
	b.add(p, "r1")
	one("swap", func() { require.NoError(t, a.Swap(ctx)) })
	_ = a.Rest(time.Millisecond, "429")
	one("release with a rest", func() { b.giveBack(a) })
	one("status", func() { _, err := p.Status(ctx, "r0"); require.NoError(t, err) })
	one("stats", func() { _, err := p.Stats(ctx); require.NoError(t, err) })
	one("inspect", func() { b.inspected(p) })
	one("rest", func() { require.NoError(t, p.Rest(ctx, "r0", time.Hour, "")) })
	one("bind", func() { require.NoError(t, p.Bind(ctx, "customer", "r0", nil)) })
	one("add of 200", func() { b.add(p, numbered(200)...) })
	require.Equal(t, 2, b.cost(func() { b.add(p, numbered(201)...) }), "add of 201")
	one("remove of 200", func() { _, err := p.Remove(ctx, numbered(200)); require.NoError(t, err) })
	t.Log("an allocation and its release: 2 scripts; with a binding, a rest: the same")
}

func TestAHandOffOfAResourceCostsNoScriptBeyondAllocateAndRelease(t *testing.T) {
	b := privatePools(t)
	// Heartbeats would come after 20 s.
	var crew []*pool
	for range 3 {
		crew = append(crew, b.warmPool(allocator.Config{Lease: time.Minute}))
	}
	b.add(crew[0], numbered(3)...)
	const many = 500
	scripts := b.cost(func() {
		var all sync.WaitGroup
		for i := range many {
			all.Go(func() {
				a, err := crew[i%len(crew)].Allocate(b.within(patience), nil)
				if err == nil {
					err = a.Release(b.within(patience))
				}
				if err != nil {
					t.Errorf("allocate and release: %v", err)
				}
			})
		}
		all.Wait()
	})
	t.Logf("%d scripts for %d contended allocations", scripts, many)
	require.Equal(t, 2*many, scripts)
	b.allFree(crew[0], 3)
}

func TestAThousandWaitersForAResourceSendNothingButHeartbeats(t *testing.T) {
	b := privatePools(t).turn()
	const many, batch, lease = 1000, 200, 3 * time.Second
	p := b.proxies(b.pooler(allocator.Config{Lease: lease}), poolConfig{})
	b.add(p, "r0")
	b.busyPooler(p) // it has not subscribed yet
	held := b.allocate(b.pool(allocator.Config{Lease: time.Minute}), nil)
	before := b.connections()
	waits := make([]*allocating, many)
	for i := range waits {
		waits[i] = b.allocateLater(p, nil)
	}
	b.await("all wait", func() bool { return b.waiting(proxies) == many })
	connections := b.connections() - before
	require.LessOrEqual(t, connections, 1, "connections for %d waiters", many)

	// Six thirds of a lease: each may come a tenth early, and one has begun.
	const thirds = 7.7 // 6 / 0.9 and 1
	start := b.now()
	scripts := b.cost(func() {
		b.await("two leases have passed", func() bool { return b.now()-start >= 2*lease.Milliseconds() })
	})
	t.Logf("%d waiters: %d more connections, %d scripts within two leases", many, connections, scripts)
	require.Positive(t, scripts)
	require.LessOrEqual(t, float64(scripts), thirds*many/batch)

	b.giveBack(held)
	b.drainPool(waits)
	b.allFree(p, 1)
}

func TestTenThousandCancelledAllocations(t *testing.T) {
	const cancels, resources = 10_000, 3
	b := sharedPools(t).turn()
	// A ghost would live for the whole lease, and no call is so slow that it
	// counts as unanswered.
	cfg := allocator.Config{Lease: 2 * time.Minute, CallTimeout: 20 * time.Second, CleanupTimeout: 20 * time.Second}
	b.add(b.pool(cfg), numbered(resources)...)
	s := b.storm(resources)
	proxy := harness.Proxy(t, b.server)
	proxy.AddLatency(t, time.Millisecond)
	cfg.Observer = s.failures()
	for _, pipelines := range []int{1, 3, 5} {
		edit := func(o *rueidis.ClientOption) { o.PipelineMultiplex = pipelines }
		for _, redis := range []rueidis.Client{b.server.Client(t, edit), proxy.Client(t, edit)} {
			s.asks = append(s.asks, forResource(b.proxies(b.poolerOn(redis, cfg), poolConfig{})))
		}
	}
	s.rage(60, cancels)
	s.settled(proxies)
	require.Greater(t, s.grants.Load(), int64(cancels/50), "hardly any got through")
	require.Zero(t, s.failed.Load())
	b.allFree(b.pool(cfg), resources) // without a tombstone: every call was answered
}
