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
	for range 20 {
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

func TestAnUncontendedPermitCostsTwoScripts(t *testing.T) {
	b := private(t)
	c := b.client(semaphore.Config{})
	s := b.sem(c, "gpu", 1)
	b.warm(c, s)
	var p *semaphore.Permit
	require.Equal(t, 1, b.cost(func() { p = b.take(s, nil) }), "acquire")
	require.Equal(t, 1, b.cost(func() { require.NoError(t, p.Release(b.within(patience))) }), "release")
	require.Equal(t, 1, b.cost(func() {
		var err error
		p, err = s.TryAcquire(b.within(patience), nil)
		require.NoError(t, err)
	}), "try")
	require.Equal(t, 1, b.cost(func() { _, err := s.TryAcquire(b.within(patience), nil); require.ErrorIs(t, err, semaphore.ErrBusy) }), "try, full")
	require.NoError(t, p.Release(b.within(patience)))
}

func TestAHandOffCostsNoScriptBeyondAcquireAndRelease(t *testing.T) {
	b := private(t)
	// Heartbeats would come after 20 s.
	cfg := semaphore.Config{Lease: time.Minute}
	var sems []*semaphore.Semaphore
	for range 2 {
		c := b.client(cfg)
		sems = append(sems, b.sem(c, "gpu", 3))
		b.warm(c, sems[len(sems)-1])
	}
	const many = 500
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

func TestAThousandWaitersSendNothingButHeartbeats(t *testing.T) {
	b := private(t).turn()
	const many, batch, lease = 1000, 200, 3 * time.Second
	c := b.client(semaphore.Config{Lease: lease})
	s := b.sem(c, "gpu", 1)
	b.warm(c, s)
	p := b.take(b.sem(b.client(semaphore.Config{Lease: time.Minute}), "gpu", 1), nil)
	before := b.connections()
	waits := make([]*taking, many)
	for i := range waits {
		waits[i] = b.begin(s, nil)
	}
	b.await("all wait", func() bool { return b.look("gpu").waiting() == many })
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

	require.NoError(t, p.Release(b.within(patience)))
	var all sync.WaitGroup
	for _, w := range waits {
		all.Go(func() {
			<-w.done
			if w.err == nil {
				w.err = w.permit.Release(b.within(patience))
			}
		})
	}
	all.Wait()
	for _, w := range waits {
		require.NoError(t, w.err)
	}
	b.idle("gpu")
}

// In RESP 2 a connection that has subscribed can do nothing else, so it takes one
// more.
func TestWaitersOfAnOldProtocolOpenOneConnection(t *testing.T) {
	b := private(t)
	c := b.client(semaphore.Config{}, func(o *rueidis.ClientOption) { o.AlwaysRESP2 = true })
	s := b.sem(c, "gpu", 1)
	b.busy(s)
	before := b.connections()
	p := b.take(s, nil)
	var waits []*taking
	for i := range 50 {
		waits = append(waits, b.queue(s, nil, i+1))
	}
	for _, w := range waits {
		require.NoError(t, p.Release(b.within(patience)))
		p = w.got(b)
	}
	require.NoError(t, p.Release(b.within(patience)))
	require.LessOrEqual(t, b.connections()-before, 1)
	b.idle("gpu")
}
