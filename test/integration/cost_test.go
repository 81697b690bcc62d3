package integration

import (
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/semaphore"
)

// warm has the server know the scripts, opens all connections of the node and
// has it subscribe, so that none of it counts.
func (w *world) warm(n *node.Node) {
	w.Helper()
	w.subscribe(n)
	w.busy(n.Operator())
}

// busy runs so many scripts at once that all connections of the node are opened. What only reads
// goes over the first one.
func (w *world) busy(ops *node.Operator) {
	w.Helper()
	for range 5 {
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				if _, err := ops.Sweep(w.Within(patience), keyspace.Sem, "gpu"); err != nil {
					w.Errorf("sweep: %v", err)
				}
			})
		}
		all.Wait()
	}
}

// cost is how many scripts a step has cost.
func (w *world) cost(step func()) int {
	w.Helper()
	before := w.runs()
	step()
	return w.runs() - before
}

func TestAHandOffCostsNoScriptBeyondAcquireAndRelease(t *testing.T) {
	w := private(t)
	// No heartbeat comes, and no call is so slow that it is sent again.
	cfg := node.Config{Lease: time.Hour, CallTimeout: patience}
	var sems []*semaphore.Semaphore
	for range 2 {
		n := w.node(cfg)
		sems = append(sems, w.sem(n, "gpu", 3))
		w.warm(n)
	}
	const many = 200
	start := time.Now()
	scripts := w.cost(func() {
		var all sync.WaitGroup
		for i := range many {
			all.Go(func() {
				p, err := sems[i%2].Acquire(w.Within(patience), nil)
				if err == nil {
					err = p.Release(w.Within(patience))
				}
				if err != nil {
					w.Errorf("acquire and release: %v", err)
				}
			})
		}
		all.Wait()
	})
	t.Logf("%d scripts for %d contended permits", scripts, many)
	require.GreaterOrEqual(t, scripts, 2*many)
	const noted = 30 * time.Second // for which a node does not note that again
	require.LessOrEqual(t, scripts, 2*many+len(sems)*(1+int(time.Since(start)/noted)), "each node notes once that it waits")
	w.idle("gpu")
}

// However many wait, one connection more at the most brings their wake-ups. In RESP 2 it
// can do nothing else.
func TestWaitersOpenAtMostOneConnection(t *testing.T) {
	t.Parallel()
	for name, old := range map[string]bool{"RESP 2": true, "RESP 3": false} {
		t.Run(name, func(t *testing.T) {
			w := private(t)
			n := w.node(node.Config{}, func(o *rueidis.ClientOption) { o.AlwaysRESP2 = old })
			s := w.sem(n, "gpu", 1)
			w.busy(n.Operator())
			before := w.connections()
			p := w.take(s, nil)
			var waits []*taking
			for range 50 {
				waits = append(waits, w.begin(s, nil))
			}
			w.Await("all wait", func() bool { return w.waiting("gpu") == len(waits) })
			w.subscribed(n)
			require.LessOrEqual(t, w.connections()-before, 1)
			require.NoError(t, p.Release(w.Within(patience)))
			w.drainPermits(waits)
		})
	}
}
