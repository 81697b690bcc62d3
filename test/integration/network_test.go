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
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/test/harness"
)

// traffic is goroutines that take and release holds of one name, over and
// over, until they are told to stop.
type traffic struct {
	*world
	inside *live
	stop   chan struct{}
	all    sync.WaitGroup
	rounds []atomic.Int64 // by worker
	lost   atomic.Int64   // holds that ended before their release
}

// traffic is 12 goroutines that contend for 3 permits, over these connections in turn.
func (w *world) traffic(cfg node.Config, over ...rueidis.Client) *traffic {
	w.Helper()
	w.capacity = 3
	tr := &traffic{world: w, inside: newLive(w.capacity), stop: make(chan struct{}), rounds: make([]atomic.Int64, 12)}
	var users []*user
	for _, redis := range over {
		users = append(users, w.useOn(redis, cfg))
	}
	for i := range tr.rounds {
		tr.all.Go(func() { tr.work(i, users[i%len(users)]) })
	}
	return tr
}

func (tr *traffic) work(i int, u *user) {
	for {
		select {
		case <-tr.stop:
			return
		default:
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		p, err := u.claim(ctx)
		if err == nil {
			tr.inside.enter(p)
			select { // it is kept for a moment, or until it ends
			case <-time.After(rand.N(2 * time.Millisecond)):
			case <-p.Done():
			}
			err = p.Release(ctx)
			tr.inside.leave(p)
			if errors.Is(err, berth.ErrLost) {
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
	tr.inside.check(tr.world)
	tr.Await("nothing is held", func() bool {
		v := tr.look(tr.name())
		return len(v.holds)+len(v.alive) == 0
	})
	tr.whole(tr.name())
}

func (tr *traffic) goesOn() {
	tr.Helper()
	before := make([]int64, len(tr.rounds))
	for i := range before {
		before[i] = tr.rounds[i].Load()
	}
	tr.Await("every worker gets through", func() bool {
		for i := range before {
			if tr.rounds[i].Load() < before[i]+2 && !tr.Failed() {
				return false
			}
		}
		return true
	})
}

// A server may forget its scripts and break connections. One that keeps its data may also crash, and stand still for
// less than a lease: nobody is lost, and never are too many inside.
func TestTrafficThroughAServerThatFalters(t *testing.T) {
	w := private(t, "--appendonly", "yes", "--appendfsync", "always")
	redis := []rueidis.Client{w.server.Client(t), w.server.Client(t), w.server.Client(t)}
	tr := w.traffic(node.Config{Lease: time.Minute}, redis...)
	breakAll := func(kind string) { w.do("CLIENT", "KILL", "TYPE", kind) } // but for the one that it is sent on
	tr.under(2,
		func() { w.do("SCRIPT", "FLUSH") },
		func() { breakAll("normal") },
		func() { breakAll("pubsub") },
		func() { w.do("SCRIPT", "FLUSH"); breakAll("normal"); breakAll("pubsub") },
		func() { w.server.Restart(t) },
		func() { w.server.Stop(t); w.pass(300 * time.Millisecond); w.server.Cont(t) },
	)
	require.Zero(t, tr.lost.Load())
	w.tombstones("gpu")
}

func TestTrafficThroughABadNetwork(t *testing.T) {
	w := shared(t)
	proxy := harness.Proxy(t, w.server)
	cfg := node.Config{Lease: safe, CallTimeout: time.Second}
	tr := w.traffic(cfg, w.server.Client(t), proxy.Client(t), proxy.Client(t))
	const outage = 200 * time.Millisecond
	tr.under(2,
		func() { proxy.AddLatency(30 * time.Millisecond) },
		func() { proxy.AddRequestLatency(30 * time.Millisecond) },
		func() { proxy.Heal(t) },
		func() { proxy.DropReplies(); w.pass(outage); proxy.Heal(t) },
		func() { proxy.Reset() },
		func() { proxy.BlackHole(); w.pass(outage); proxy.Heal(t) },
		func() { proxy.Cut(); w.pass(outage); proxy.Heal(t) },
	)
	w.tombstones("gpu")
}

// noticed makes a client notice a dead connection within some seconds, and take none for dead in a pause of the
// machine.
func noticed(o *rueidis.ClientOption) {
	o.Dialer.KeepAlive = 250 * time.Millisecond
	o.ConnWriteTimeout = safe / 2
}

// A half-open connection takes pushes and answers nothing. The wait goes on over
// a new one, as soon as rueidis gives the dead one up: what was lost is asked for
// when the node has subscribed again, long before its next heartbeat.
func TestAWaitOverAHalfOpenConnection(t *testing.T) {
	w := shared(t)
	const lease = time.Hour // no heartbeat comes
	proxy := harness.Proxy(t, w.server)
	holder := w.sem(w.node(node.Config{Lease: lease}), "gpu", 2)
	client := w.nodeOn(proxy.Client(t, noticed), node.Config{Lease: lease})
	s := w.sem(client, "gpu", 2)
	p, far := w.take(holder, nil), w.take(s, nil)
	q := w.queue(s, nil, 1)
	w.subscribed(client)
	require.Positive(t, proxy.Forget())
	start := time.Now()
	require.NoError(t, p.Release(w.Within(patience)))
	granted := w.look("gpu").holds
	p = q.Wait(w)
	t.Logf("the wait ended %v after its connection had died", time.Since(start).Round(time.Millisecond))
	require.Contains(t, granted, p.ID(), "it was granted anew")
	require.NoError(t, far.Err(), "a hold was lost with a connection")
	require.NoError(t, far.Release(w.Within(patience)))
	require.NoError(t, p.Release(w.Within(patience)))
	w.idle("gpu")
}

// live are the holds that somebody in this process believes in. Whoever enters
// looks at all others: a hold whose Err is nil now was valid a moment ago too,
// when the newest was there already, so more of them than the capacity were
// inside at once. No clock of the test is needed for it.
type live struct {
	capacity int

	mu     sync.Mutex
	inside map[berth.Hold]bool // guarded by mu
	most   int                 // guarded by mu: inside at once
	worst  []string            // guarded by mu: who was inside when there were too many
}

func newLive(capacity int) *live {
	return &live{capacity: capacity, inside: map[berth.Hold]bool{}}
}

func (l *live) enter(p berth.Hold) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inside[p] = true
	var valid []string
	for other := range l.inside {
		if other.Err() == nil {
			valid = append(valid, other.ID())
		} else {
			delete(l.inside, other)
		}
	}
	l.most = max(l.most, len(valid))
	if len(valid) > l.capacity && l.worst == nil {
		l.worst = valid
	}
}

// leave is called when the permit has ended.
func (l *live) leave(p berth.Hold) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.inside, p)
}

// check fails the test if ever more were inside than the capacity.
func (l *live) check(w *world) {
	w.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	require.Empty(w, l.worst, "%d inside at once on capacity %d", l.most, l.capacity)
}
