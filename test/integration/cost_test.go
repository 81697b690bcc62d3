package integration

import (
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/semaphore"
)

// warm has the server know the scripts, opens all connections of the client and
// has it subscribe, so that none of it counts.
func (w *world) warm(c *semaphore.Client) {
	w.Helper()
	w.subscribe(c)
	w.busy(c.Operator())
}

// busy runs so many scripts at once that all connections of the client are opened. What only reads
// goes over the first one.
func (w *world) busy(ops *semaphore.Operator) {
	w.Helper()
	for range 5 {
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				if _, err := ops.Sweep(w.Within(patience), "gpu"); err != nil {
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
	cfg := semaphore.Config{Lease: time.Hour, CallTimeout: patience}
	var sems []*semaphore.Semaphore
	for range 2 {
		c := w.client(cfg)
		sems = append(sems, w.sem(c, "gpu", 3))
		w.warm(c)
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
	const noted = 30 * time.Second // for which a client does not note that again
	require.LessOrEqual(t, scripts, 2*many+len(sems)*(1+int(time.Since(start)/noted)), "each client notes once that it waits")
	w.idle("gpu")
}

// However many wait, one connection more at the most brings their wake-ups. In RESP 2 it
// can do nothing else.
func TestWaitersOpenAtMostOneConnection(t *testing.T) {
	t.Parallel()
	for name, old := range map[string]bool{"RESP 2": true, "RESP 3": false} {
		t.Run(name, func(t *testing.T) {
			w := private(t)
			c := w.client(semaphore.Config{}, func(o *rueidis.ClientOption) { o.AlwaysRESP2 = old })
			s := w.sem(c, "gpu", 1)
			w.busy(c.Operator())
			before := w.connections()
			p := w.take(s, nil)
			var waits []*taking
			for range 50 {
				waits = append(waits, w.begin(s, nil))
			}
			w.Await("all wait", func() bool { return w.waiting("gpu") == len(waits) })
			w.subscribed(c)
			require.LessOrEqual(t, w.connections()-before, 1)
			require.NoError(t, p.Release(w.Within(patience)))
			w.drainPermits(waits)
		})
	}
}
