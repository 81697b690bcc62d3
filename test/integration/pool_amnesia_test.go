package integration

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/allocator"
)

// poolAmnesias are ways in which a server forgets those who wait, and the pool or
// only them.
var poolAmnesias = []struct {
	name    string
	forgets bool // the resources too
	strike  func(b *bed, lease time.Duration, lost func())
}{
	{"a flush", true, func(b *bed, _ time.Duration, _ func()) { b.do("FLUSHALL") }},
	{"a restart without data", true, func(b *bed, _ time.Duration, _ func()) { b.server.Restart(b.T) }},
	{"a stand-still longer than the lease", false, func(b *bed, lease time.Duration, lost func()) {
		b.server.Stop(b.T)
		lost()
		b.pass(lease)
		b.server.Cont(b.T)
	}},
}

// The resources of a pool that the server has lost come back by its Source, which a
// node asks that finds the pool empty.
func TestTheLineOfAPoolSurvives(t *testing.T) {
	t.Parallel()
	const many, nodes, lease = 30, 3, safe
	for _, amnesia := range poolAmnesias {
		t.Run(amnesia.name, func(t *testing.T) {
			b := privatePools(t)
			lag := b.measure()
			var asked atomic.Int64
			cfg := poolConfig{RefreshEvery: time.Hour, Source: func(context.Context) ([]string, error) {
				asked.Add(1)
				return []string{"r0"}, nil
			}}
			var crew []*pool
			for range nodes {
				crew = append(crew, b.proxies(b.pooler(allocator.Config{Lease: lease}), cfg))
			}
			holder := b.allocate(b.proxies(b.pooler(allocator.Config{Lease: lease}), cfg), nil)
			require.EqualValues(t, 1, asked.Load(), "several nodes have filled one pool")
			var waits []*allocating
			for i := range many {
				waits = append(waits, b.allocateQueue(crew[i%nodes], &allocator.AllocateOptions{Priority: i % 2}, i+1))
			}
			order := b.whole(proxies).inLine()

			amnesia.strike(b, lease, func() { b.signalled("the holder to hear", holder.Done()) })
			struck := time.Now() // how long it took to kill and start a server is not the pool's
			lag.reset()
			b.signalled("the holder to hear", holder.Done())
			require.ErrorIs(t, holder.Err(), allocator.ErrLost)
			// The pool is found empty by the next heartbeat, a third of the lease later at
			// the most; a node asks no more often than once a second.
			first := b.firstAllocated(waits)
			took := time.Since(struck)
			bound := lag.allow(lease/3+time.Second+200*time.Millisecond, 4)
			t.Logf("%s: the first of %d waits has the resource %v after it; the source was asked %d times", amnesia.name, many, took.Round(time.Millisecond), asked.Load())
			if amnesia.forgets {
				require.LessOrEqual(t, took, bound)
				require.Greater(t, asked.Load(), int64(1))
			}
			most := 2 + nodes*(1+int64(took/time.Second)) // each node no more than once a second
			require.LessOrEqual(t, asked.Load(), most, "the source is asked all the time")

			// Whoever was first to ask may have been granted before the others stood
			// again: one, as there is one resource.
			order = slices.DeleteFunc(order, func(claim string) bool { return claim == first.ID() })
			b.await("all others stand in line again", func() bool { return b.look(proxies).waiting() == many-1 })
			require.Equal(t, order, b.whole(proxies).inLine(), "the line has another order")
			require.Greater(t, first.Fence(), holder.Fence(), "fences fell back")
			served := b.drainPool(waits)
			for i, a := range served[1:] {
				require.Equal(t, order[i], a.ID(), "the %dth is out of turn", i)
				require.Greater(t, a.Fence(), served[i].Fence(), "fences fell back")
			}
			require.ErrorIs(t, holder.Release(b.within(patience)), allocator.ErrNotHeld)
			b.tombstones(proxies)
			b.allFree(crew[0], 1)
		})
	}
}

// firstAllocated waits for the first of several.
func (b *bed) firstAllocated(waits []*allocating) *allocation {
	b.Helper()
	var i int
	b.await("one has a resource", func() bool {
		i = slices.IndexFunc(waits, (*allocating).over)
		return i >= 0
	})
	return waits[i].take(b)
}

// drainPool lets one after the other have its resource, and returns them in their
// order.
func (b *bed) drainPool(waits []*allocating) (served []*allocation) {
	b.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, w := range waits {
		all.Go(func() {
			<-w.done
			if w.err != nil {
				b.Errorf("allocate: %v", w.err)
				return
			}
			mu.Lock()
			served = append(served, w.got)
			mu.Unlock()
			if err := w.got.Release(b.within(patience)); err != nil {
				b.Errorf("release: %v", err)
			}
		})
	}
	all.Wait()
	require.Len(b, served, len(waits))
	return served
}
