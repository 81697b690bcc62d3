package integration

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/node"
)

// poolAmnesias are ways in which a server forgets those who wait, and the pool or
// only them.
var poolAmnesias = []struct {
	name    string
	forgets bool // the resources too
	strike  func(w *world, lease time.Duration, lost func())
}{
	{"a flush", true, func(w *world, _ time.Duration, _ func()) { w.do("FLUSHALL") }},
	{"a restart without data", true, func(w *world, _ time.Duration, _ func()) { w.server.Restart(w.T) }},
	{"a stand-still longer than the lease", false, func(w *world, lease time.Duration, lost func()) {
		w.server.Stop(w.T)
		lost()
		w.pass(lease)
		w.server.Cont(w.T)
	}},
}

// The resources of a pool that the server has lost come back by its Source, which a
// node asks that finds the pool empty.
func TestTheLineOfAPoolSurvives(t *testing.T) {
	t.Parallel()
	const many, nodes, lease = 30, 3, safe
	for _, amnesia := range poolAmnesias {
		t.Run(amnesia.name, func(t *testing.T) {
			w := privatePools(t)
			var asked atomic.Int64
			cfg := poolConfig{RefreshEvery: time.Hour, Source: func(context.Context) ([]string, error) {
				asked.Add(1)
				return []string{"r0"}, nil
			}}
			var crew []*pool
			for range nodes {
				crew = append(crew, w.proxies(w.node(node.Config{Lease: lease}), cfg))
			}
			holder := w.allocate(w.proxies(w.node(node.Config{Lease: lease}), cfg), nil)
			require.EqualValues(t, 1, asked.Load(), "several nodes have filled one pool")
			var waits []*allocating
			for i := range many {
				waits = append(waits, w.allocateQueue(crew[i%nodes], &allocator.AllocateOptions{Priority: i % 2}, i+1))
			}
			order := w.whole(proxies).inLine()

			begun := time.Now()
			amnesia.strike(w, lease, func() { w.Signalled("the holder to hear", holder.Done()) })
			w.Signalled("the holder to hear", holder.Done())
			require.ErrorIs(t, holder.Err(), berth.ErrLost)
			// The pool is found empty by a heartbeat, long before the next refresh; a node asks no more often
			// than once a second.
			first := w.firstAllocated(waits)
			times, took := asked.Load(), time.Since(begun)
			t.Logf("%s: the first of %d waits has the resource %v after it had begun; the source was asked %d times", amnesia.name, many, took.Round(time.Millisecond), times)
			require.Equal(t, amnesia.forgets, times > 1)
			most := 2 + nodes*(1+int64(took/time.Second)) // each node no more than once a second
			require.LessOrEqual(t, times, most, "the source is asked all the time")

			// Whoever was first to ask may have been granted before the others stood
			// again: one, as there is one resource.
			order = slices.DeleteFunc(order, func(claim string) bool { return claim == first.ID() })
			w.Await("all others stand in line again", func() bool { return w.look(proxies).waiting() == many-1 })
			require.Equal(t, order, w.whole(proxies).inLine(), "the line has another order")
			require.Greater(t, first.Fence(), holder.Fence(), "fences fell back")
			served := w.drainPool(waits)
			for i, a := range served[1:] {
				require.Equal(t, order[i], a.ID(), "the %dth is out of turn", i)
				require.Greater(t, a.Fence(), served[i].Fence(), "fences fell back")
			}
			require.ErrorIs(t, holder.Release(w.Within(patience)), berth.ErrNotHeld)
			w.tombstones(proxies)
			w.allFree(crew[0], 1)
		})
	}
}

// firstAllocated waits for the first of several.
func (w *world) firstAllocated(waits []*allocating) *allocation {
	w.Helper()
	var i int
	w.Await("one has a resource", func() bool {
		i = slices.IndexFunc(waits, (*allocating).Over)
		return i >= 0
	})
	return waits[i].Wait(w)
}

// drainPool lets one after the other have its resource, and returns them in their
// order.
func (w *world) drainPool(waits []*allocating) (served []*allocation) {
	w.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, q := range waits {
		all.Go(func() {
			<-q.Done
			if q.Err != nil {
				w.Errorf("allocate: %v", q.Err)
				return
			}
			mu.Lock()
			served = append(served, q.Got)
			mu.Unlock()
			if err := q.Got.Release(w.Within(patience)); err != nil {
				w.Errorf("release: %v", err)
			}
		})
	}
	all.Wait()
	require.Len(w, served, len(waits))
	return served
}
