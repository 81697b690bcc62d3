package integration

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/semaphore"
	"github.com/berth-go/berth/test/harness"
)

// traffic is goroutines that take and release holds of one name, over and
// over, until they are told to stop.
type traffic struct {
	*bed
	name   string // of the semaphore or lock
	inside *live
	stop   chan struct{}
	all    sync.WaitGroup
	rounds []atomic.Int64 // by worker
	lost   atomic.Int64   // holds that ended before their release
}

func (b *bed) traffic(sems []*semaphore.Semaphore, workers, capacity int) *traffic {
	asks := make([]ask, len(sems))
	for i, s := range sems {
		asks[i] = forPermit(s)
	}
	return b.trafficOf("gpu", asks, workers, capacity)
}

// trafficOf is traffic on whatever the calls ask for.
func (b *bed) trafficOf(name string, asks []ask, workers, capacity int) *traffic {
	tr := &traffic{bed: b, name: name, inside: newLive(capacity), stop: make(chan struct{}), rounds: make([]atomic.Int64, workers)}
	for i := range workers {
		tr.all.Go(func() { tr.work(i, asks[i%len(asks)]) })
	}
	return tr
}

func (tr *traffic) work(i int, ask ask) {
	for {
		select {
		case <-tr.stop:
			return
		default:
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		p, err := ask(ctx)
		if err == nil {
			tr.inside.enter(p)
			tr.hold(p)
			err = p.Release(ctx)
			tr.inside.leave(p)
			if errors.Is(err, semaphore.ErrLost) {
				tr.lost.Add(1)
				err = nil
			}
		}
		cancel()
		if err != nil {
			tr.Errorf("worker %d after %d rounds: %v", i, tr.rounds[i].Load(), err)
			return
		}
		tr.rounds[i].Add(1)
	}
}

// hold keeps a permit for a moment, or until it ends.
func (tr *traffic) hold(p berth.Hold) {
	timer := time.NewTimer(rand.N(2 * time.Millisecond))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.Done():
	}
}

// under runs the steps of a fault, one after the other, many times. After each
// every worker must get through again by itself.
func (tr *traffic) under(times int, steps ...func()) {
	tr.Helper()
	for range times {
		for _, step := range steps {
			step()
			tr.goesOn()
		}
	}
	close(tr.stop)
	tr.all.Wait()
	total := int64(0)
	for i := range tr.rounds {
		total += tr.rounds[i].Load()
	}
	tr.Logf("%d permits, at most %d inside, %d lost, through %d faults", total, tr.inside.most, tr.lost.Load(), times*len(steps))
	tr.inside.check(tr.bed)
	tr.await("nothing is held", func() bool {
		v := tr.look(tr.name)
		return len(v.holds)+len(v.alive) == 0
	})
	tr.whole(tr.name)
}

func (tr *traffic) goesOn() {
	tr.Helper()
	before := make([]int64, len(tr.rounds))
	for i := range before {
		before[i] = tr.rounds[i].Load()
	}
	tr.await("every worker gets through", func() bool {
		for i := range before {
			if tr.rounds[i].Load() < before[i]+2 && !tr.Failed() {
				return false
			}
		}
		return true
	})
}

func TestScriptFlushAndClientKillInMidTraffic(t *testing.T) {
	b := private(t)
	const capacity = 3
	var sems []*semaphore.Semaphore
	for range 3 {
		sems = append(sems, b.sem(b.client(semaphore.Config{Lease: time.Minute}), "gpu", capacity))
	}
	tr := b.traffic(sems, 12, capacity)
	tr.under(3,
		func() { b.do("SCRIPT", "FLUSH") },
		func() { b.killClients("normal") },
		func() { b.killClients("pubsub") },
		func() { b.do("SCRIPT", "FLUSH"); b.killClients("normal"); b.killClients("pubsub") },
	)
	require.Zero(t, tr.lost.Load())
	b.tombstones("gpu")
}

// A server that keeps its data may crash, and may stand still for less than a
// lease: nobody is lost, and never are too many inside.
func TestTrafficThroughAServerThatFalters(t *testing.T) {
	b := private(t, "--appendonly", "yes", "--appendfsync", "always")
	const capacity = 3
	var sems []*semaphore.Semaphore
	for range 3 {
		sems = append(sems, b.sem(b.client(semaphore.Config{Lease: time.Minute}), "gpu", capacity))
	}
	tr := b.traffic(sems, 12, capacity)
	tr.under(2,
		func() { b.server.Restart(t) },
		func() { b.server.Stop(t); b.pass(300 * time.Millisecond); b.server.Cont(t) },
	)
	require.Zero(t, tr.lost.Load())
	b.tombstones("gpu")
}

func TestTrafficThroughResizes(t *testing.T) {
	b := shared(t)
	const most = 6
	s := b.sem(b.client(semaphore.Config{}), "gpu", most)
	resize := func(capacity int) func() {
		return func() {
			require.NoError(t, s.Resize(b.within(patience), capacity, &semaphore.ResizeOptions{Create: true}))
		}
	}
	tr := b.traffic([]*semaphore.Semaphore{s, b.sem(b.client(semaphore.Config{}), "gpu", most)}, 20, most)
	tr.under(2, resize(1), resize(most), resize(2), resize(most-1))
	require.Zero(t, tr.lost.Load())
	b.idle("gpu")
}

// killClients breaks connections, but for the one that it is sent on.
func (b *bed) killClients(kind string) {
	b.Helper()
	b.do("CLIENT", "KILL", "TYPE", kind)
}

func TestTrafficThroughABadNetwork(t *testing.T) {
	b := shared(t)
	const capacity = 3
	proxy := harness.Proxy(t, b.server)
	cfg := semaphore.Config{Lease: safe, CallTimeout: time.Second}
	sems := []*semaphore.Semaphore{
		b.sem(b.client(cfg), "gpu", capacity),
		b.sem(b.clientOn(proxy.Client(t), cfg), "gpu", capacity),
		b.sem(b.clientOn(proxy.Client(t), cfg), "gpu", capacity),
	}
	const outage = 200 * time.Millisecond
	tr := b.traffic(sems, 12, capacity)
	tr.under(2,
		func() { proxy.AddLatency(30 * time.Millisecond) },
		func() { proxy.AddRequestLatency(30 * time.Millisecond) },
		func() { proxy.Heal(t) },
		func() { proxy.DropReplies(); b.pass(outage); proxy.Heal(t) },
		func() { proxy.Reset() },
		func() { proxy.BlackHole(); b.pass(outage); proxy.Heal(t) },
		func() { proxy.Cut(); b.pass(outage); proxy.Heal(t) },
	)
	b.tombstones("gpu")
}

// A holder that is cut off for longer than its lease is out before anybody else
// is in; those who were cut off go on by themselves when the network is back.
func TestAnOutageLongerThanTheLease(t *testing.T) {
	b := shared(t)
	const capacity = 2
	proxy := harness.Proxy(t, b.server)
	cfg := semaphore.Config{Lease: safe, CallTimeout: 2 * time.Second}
	far := b.sem(b.clientOn(proxy.Client(t), cfg), "gpu", capacity)
	near := b.sem(b.client(cfg), "gpu", capacity)
	inside := newLive(capacity)
	var cut []*semaphore.Permit
	for range capacity {
		cut = append(cut, b.take(far, nil))
		inside.enter(cut[len(cut)-1])
	}
	waits := []*taking{b.queue(near, nil, 1), b.queue(near, nil, 2), b.queue(far, nil, 3)}
	proxy.BlackHole()
	for _, w := range waits[:capacity] {
		inside.enter(w.got(b))
	}
	inside.check(b)
	for _, p := range cut {
		require.ErrorIs(t, p.Err(), semaphore.ErrLost)
	}
	proxy.Heal(t)
	b.await("the one that was cut off stands in line again", func() bool { return b.look("gpu").waiting() == 1 })
	require.NoError(t, waits[0].permit.Release(b.within(patience)))
	inside.enter(waits[2].got(b))
	inside.check(b)
	for _, p := range cut {
		require.ErrorIs(t, p.Release(b.within(patience)), semaphore.ErrNotHeld)
	}
	require.NoError(t, waits[1].permit.Release(b.within(patience)))
	require.NoError(t, waits[2].permit.Release(b.within(patience)))
	b.tombstones("gpu") // of calls that the black hole swallowed
}

// keepAlive is how often rueidis looks after a connection in these tests.
const keepAlive = 250 * time.Millisecond

// noticed makes a client notice a dead connection within two seconds.
func noticed(o *rueidis.ClientOption) {
	o.Dialer.KeepAlive = keepAlive
	o.ConnWriteTimeout = 4 * keepAlive
}

// A half-open connection takes pushes and answers nothing. The wait goes on over
// a new one, as soon as rueidis gives the dead one up: what was lost is asked for
// when the node has subscribed again, long before its next heartbeat.
func TestAWaitOverAHalfOpenConnection(t *testing.T) {
	b := shared(t)
	const lease = time.Hour // no heartbeat comes
	proxy := harness.Proxy(t, b.server)
	holder := b.sem(b.client(semaphore.Config{Lease: lease}), "gpu", 2)
	client := b.clientOn(proxy.Client(t, noticed), semaphore.Config{Lease: lease})
	s := b.sem(client, "gpu", 2)
	p, far := b.take(holder, nil), b.take(s, nil)
	w := b.queue(s, nil, 1)
	b.subscribed(client)
	require.Positive(t, proxy.Forget())
	start := time.Now()
	require.NoError(t, p.Release(b.within(patience)))
	granted := b.look("gpu").holds
	p = w.got(b)
	t.Logf("the wait ended %v after its connection had died", time.Since(start).Round(time.Millisecond))
	require.Contains(t, granted, p.ID(), "it was granted anew")
	require.NoError(t, far.Err(), "a hold was lost with a connection")
	require.NoError(t, far.Release(b.within(patience)))
	require.NoError(t, p.Release(b.within(patience)))
	b.idle("gpu")
}
