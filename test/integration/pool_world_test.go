package integration

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/keyspace"
)

// proxies is the pool of tests that need only one.
const proxies = "proxies"

// sharedPools is a bed of pools on the server that tests share.
func sharedPools(t *testing.T) *bed {
	t.Helper()
	b := shared(t)
	b.kind = keyspace.Pool
	return b
}

// privatePools is a bed of pools on a server for this test alone.
func privatePools(t *testing.T, args ...string) *bed {
	t.Helper()
	b := private(t, args...)
	b.kind = keyspace.Pool
	return b
}

type (
	pool       = allocator.Pool[string]
	poolConfig = allocator.PoolConfig[string]
	allocation = allocator.Allocation[string]
)

// pooler returns a client of pools on a connection of its own, closed when the
// test ends.
func (b *bed) pooler(cfg allocator.Config, edits ...func(*rueidis.ClientOption)) *allocator.Client {
	b.Helper()
	return b.poolerOn(b.server.Client(b.T, edits...), cfg)
}

// poolerOn is pooler on a given connection.
func (b *bed) poolerOn(redis rueidis.Client, cfg allocator.Config) *allocator.Client {
	b.Helper()
	cfg.Namespace = b.ns
	cfg.Lease, cfg.CallTimeout = cmp.Or(cfg.Lease, time.Minute), cmp.Or(cfg.CallTimeout, calls)
	c, err := allocator.New(redis, cfg)
	require.NoError(b, err)
	b.Cleanup(func() {
		if err := c.Close(b.within(patience)); err != nil && !b.Failed() {
			b.Logf("closing a client: %v", err)
		}
	})
	return c
}

// proxies is the pool as the client sees it.
func (b *bed) proxies(c *allocator.Client, cfg poolConfig) *pool {
	b.Helper()
	p, err := allocator.NewPool(c, proxies, cfg)
	require.NoError(b, err)
	return p
}

// pool is the pool on a client and a connection of its own.
func (b *bed) pool(cfg allocator.Config) *pool {
	b.Helper()
	return b.proxies(b.pooler(cfg), poolConfig{})
}

// add puts resources into the pool.
func (b *bed) add(p *pool, resources ...string) {
	b.Helper()
	change, err := p.Add(b.within(patience), resources, nil)
	require.NoError(b, err)
	require.Len(b, resources, change.Added+change.Kept)
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
func (b *bed) allocate(p *pool, opts *allocator.AllocateOptions) *allocation {
	b.Helper()
	a, err := p.Allocate(b.within(patience), opts)
	require.NoError(b, err)
	return a
}

// giveBack releases allocations, one after the other.
func (b *bed) giveBack(all ...*allocation) {
	b.Helper()
	for _, a := range all {
		require.NoError(b, a.Release(b.within(patience)))
	}
}

// allocating is an Allocate on its way.
type allocating struct {
	done chan struct{} // closed when it has returned
	got  *allocation
	err  error
}

// allocateLater begins an allocation.
func (b *bed) allocateLater(p *pool, opts *allocator.AllocateOptions) *allocating {
	return b.allocateLaterWith(b.within(2*patience), p, opts)
}

// allocateLaterWith is allocateLater with a context of the test's.
func (b *bed) allocateLaterWith(ctx context.Context, p *pool, opts *allocator.AllocateOptions) *allocating {
	w := &allocating{done: make(chan struct{})}
	go func() {
		defer close(w.done)
		w.got, w.err = p.Allocate(ctx, opts)
	}()
	return w
}

// allocateQueue begins an allocation, and returns when so many wait on the server.
func (b *bed) allocateQueue(p *pool, opts *allocator.AllocateOptions, waiting int) *allocating {
	b.Helper()
	w := b.allocateLater(p, opts)
	b.awaitInLine(proxies, waiting, w.over)
	return w
}

// take waits for the resource.
func (w *allocating) take(b *bed) *allocation {
	b.Helper()
	b.signalled("the resource", w.done)
	require.NoError(b, w.err)
	return w.got
}

// over says whether the call has returned.
func (w *allocating) over() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// forResource asks for a resource.
func forResource(p *pool) ask {
	return func(ctx context.Context) (berth.Hold, error) { return p.Allocate(ctx, nil) }
}

// inspected checks that the pool is whole, and that nothing of it is lost.
func (b *bed) inspected(p *pool) allocator.Inspection {
	b.Helper()
	found, err := p.Inspect(b.within(patience))
	require.NoError(b, err)
	require.Empty(b, found.Problems)
	s := found.Stats
	require.Equal(b, s.Resources, s.Free+s.Leased+s.Resting, "%+v", s)
	return found
}

// allFree checks that nobody holds or waits, and that so many resources are free and
// none are anything else.
func (b *bed) allFree(p *pool, many int) {
	b.Helper()
	b.swept(p.Name())
	s, err := p.Stats(b.within(patience))
	require.NoError(b, err)
	require.Equal(b, allocator.Stats{Name: p.Name(), Resources: many, Free: many}, s)
	b.inspected(p)
	b.idle(p.Name())
}

// itemsKey, freeKey and bindingsKey are the keys that only pools have.
func (b *bed) itemsKey(name string) string { return b.space.Key(b.kind, name, keyspace.ItemsPart) }

func (b *bed) freeKey(name string) string { return b.space.Key(b.kind, name, keyspace.FreePart) }

func (b *bed) bindingsKey(name string) string {
	return b.space.Key(b.kind, name, keyspace.BindingsPart)
}

// ofPool reads a field that only pools have.
func (v *view) ofPool(b *bed, field, value string) bool {
	b.Helper()
	switch {
	case field == "pool":
		for _, word := range strings.Fields(value) {
			n, err := strconv.ParseInt(word, 10, 64)
			require.NoError(b, err, value)
			v.counts = append(v.counts, n)
		}
		return true
	case strings.HasPrefix(field, "r:"):
		v.resources[field[2:]] = value
		return true
	}
	return field == "refresh" || field == "replace"
}

// poolWhole checks what only pools have.
func (b *bed) poolWhole(name string, v view) {
	b.Helper()
	require.Empty(b, missing(v.holds, v.resources), "holds of nothing")
	require.Empty(b, missing(v.resources, v.holds), "resources of no hold")
	if v.counts != nil && v.counts[0] > 0 {
		require.Len(b, v.expires, len(b.keysOf(name)), "%q has lost a key", name)
	}
}

// load gives the server all scripts, so that a call is one command.
func (b *bed) load() {
	b.Helper()
	for _, s := range library.Scripts() {
		b.do("SCRIPT", "LOAD", s.Source)
	}
}
