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
func (b *bed) warm(c *semaphore.Client, s *semaphore.Semaphore) {
	b.Helper()
	b.subscribe(c)
	b.busy(s)
}

// busy makes so many calls at once that all connections are opened.
func (b *bed) busy(s *semaphore.Semaphore) {
	b.Helper()
	for range 5 {
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				if _, err := s.Stats(b.within(patience)); err != nil {
					b.Errorf("stats: %v", err)
				}
			})
		}
		all.Wait()
	}
}

// cost is how many scripts a step has cost.
func (b *bed) cost(step func()) int {
	b.Helper()
	before := b.runs()
	step()
	return b.runs() - before
}

func TestAHandOffCostsNoScriptBeyondAcquireAndRelease(t *testing.T) {
	b := private(t)
	// No heartbeat comes, and no call is so slow that it is sent again.
	cfg := semaphore.Config{Lease: time.Hour, CallTimeout: patience}
	var sems []*semaphore.Semaphore
	for range 2 {
		c := b.client(cfg)
		sems = append(sems, b.sem(c, "gpu", 3))
		b.warm(c, sems[len(sems)-1])
	}
	const many = 200
	scripts := b.cost(func() {
		var all sync.WaitGroup
		for i := range many {
			all.Go(func() {
				p, err := sems[i%2].Acquire(b.within(patience), nil)
				if err == nil {
					err = p.Release(b.within(patience))
				}
				if err != nil {
					b.Errorf("acquire and release: %v", err)
				}
			})
		}
		all.Wait()
	})
	t.Logf("%d scripts for %d contended permits", scripts, many)
	require.Equal(t, 2*many, scripts)
	b.idle("gpu")
}

// However many wait, one connection more at the most brings their wake-ups. In RESP 2 it
// can do nothing else.
func TestWaitersOpenAtMostOneConnection(t *testing.T) {
	t.Parallel()
	for name, old := range map[string]bool{"RESP 2": true, "RESP 3": false} {
		t.Run(name, func(t *testing.T) {
			b := private(t)
			c := b.client(semaphore.Config{}, func(o *rueidis.ClientOption) { o.AlwaysRESP2 = old })
			s := b.sem(c, "gpu", 1)
			b.busy(s)
			before := b.connections()
			p := b.take(s, nil)
			var waits []*taking
			for range 50 {
				waits = append(waits, b.begin(s, nil))
			}
			b.await("all wait", func() bool { return b.waiting("gpu") == len(waits) })
			b.subscribed(c)
			require.LessOrEqual(t, b.connections()-before, 1)
			require.NoError(t, p.Release(b.within(patience)))
			b.drainPermits(waits)
		})
	}
}
