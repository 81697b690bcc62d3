package integration

import (
	"context"
	"flag"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/semaphore"
)

// ofMiddle is how many die in the middle of a line.
var ofMiddle = flag.Int("middle.dead", 250, "how many die in the middle of a line, in TestTheDeadInTheMiddleOfALine...")

// middle is a line whose holder holds for long, with one that lives at each end, and many
// who have died between them: no hand-off comes to them.
type middle struct {
	*world
	lag     *lag
	most    atomic.Int64 // that one script has dropped
	dropped atomic.Int64
	before  int // scripts before they had died
	hold    *semaphore.Permit
	living  *semaphore.Semaphore
	ends    [2]*taking
}

// Observe notes what scripts have dropped.
func (m *middle) Observe(e observe.Event) {
	if e.Kind != observe.Swept {
		return
	}
	m.dropped.Add(int64(e.Count))
	for most := m.most.Load(); int64(e.Count) > most && !m.most.CompareAndSwap(most, int64(e.Count)); {
		most = m.most.Load()
	}
}

// dieInTheMiddle makes such a line, whose living have that lease.
func dieInTheMiddle(t *testing.T, lease time.Duration) *middle {
	t.Helper()
	w := private(t)
	m := &middle{world: w, lag: w.measure()}
	m.hold = w.take(w.sem(w.node(node.Config{Lease: time.Hour}), "gpu", 1), nil)
	m.living = w.sem(w.node(node.Config{Lease: lease, Observer: m}), "gpu", 1)
	m.ends[0] = w.queue(m.living, nil, 1)
	crowd := w.spawn(time.Hour)
	crowd.ask(order{Do: "crowd", Name: "gpu", Capacity: 1, Count: *ofMiddle})
	w.Await("all wait", func() bool { return w.waiting("gpu") == 1+*ofMiddle })
	m.ends[1] = w.queue(m.living, nil, 2+*ofMiddle)
	v := w.look("gpu")
	node := v.records[v.inLine()[1]].Node
	crowd.kill()
	w.setDeadlines("gpu", node, w.now()-1)
	m.before = m.runs()
	m.lag.reset()
	return m
}

// gone waits until the dead are, and returns how many scripts that took; a look is none of them.
func (m *middle) gone() (scripts int) {
	m.Helper()
	m.Await("only the living wait", func() bool { return m.waiting("gpu") == 2 })
	scripts = m.runs() - m.before
	m.Logf("%d dead are gone after %d scripts; of what is told, one has dropped %d", *ofMiddle, scripts, m.most.Load())
	return scripts
}

// over wants the living to be served in their order.
func (m *middle) over() {
	m.Helper()
	require.LessOrEqual(m, m.most.Load(), int64(100), "one script has dropped so many")
	m.whole("gpu")
	require.NoError(m, m.hold.Release(m.Within(patience)))
	for n, q := range m.ends {
		p := q.Wait(m.world)
		require.True(m, n == 1 || !m.ends[1].Over(), "the line has lost its order")
		require.NoError(m, p.Release(m.Within(patience)))
	}
	m.idle("gpu")
}

func TestAHeartbeatOfThoseWhoWaitLooksUpNoRank(t *testing.T) {
	w := private(t)
	sem := w.sem(w.node(node.Config{Lease: safe}), "gpu", 1)
	hold := w.take(sem, nil)
	var waits []*taking
	for n := range 20 {
		waits = append(waits, w.queue(sem, nil, n+1))
	}
	ranks, beats := w.ran("zrank"), w.ran("zmscore")
	w.Await("heartbeats", func() bool { return w.ran("zmscore") >= beats+6 })
	require.Equal(t, ranks, w.ran("zrank"))
	require.NoError(t, hold.Release(w.Within(patience)))
	for _, q := range waits {
		require.NoError(t, q.Wait(w).Release(w.Within(patience)))
	}
}

func TestTheDeadInTheMiddleOfALineAreMetByAHeartbeat(t *testing.T) {
	m := dieInTheMiddle(t, safe)
	start := time.Now()
	m.Await("the first of them are met", func() bool { return m.waiting("gpu") < 2+*ofMiddle })
	met, bound := time.Since(start), m.lag.allow(safe/3+time.Second, 20)
	scripts := m.gone()
	t.Logf("met after %v, with heartbeats each %v; gone after %v", met.Round(time.Millisecond), (safe / 3).Round(time.Millisecond),
		time.Since(start).Round(time.Millisecond))
	require.Less(t, met, bound, "later than a heartbeat")
	require.LessOrEqual(t, scripts, *ofMiddle/32+20, "32 or more by each")
	m.over()
}

// An arrival that waits looks with every sixteenth ticket; which one it gets is a matter of the
// moment, so more of them may be needed, but no heartbeat and no time.
func TestTheDeadInTheMiddleOfALineAreMetByArrivals(t *testing.T) {
	m := dieInTheMiddle(t, time.Hour)
	arrivals := 0 // of a node that has subscribed long ago: no heartbeat comes with that
	for ; m.waiting("gpu") >= 2+*ofMiddle; arrivals++ {
		require.Less(t, arrivals, 400, "none of them has looked")
		ctx, leave := context.WithCancel(m.Within(patience))
		waits := m.waiting("gpu")
		q := m.beginWith(ctx, m.living, nil)
		m.Await("it waits, or has met the dead", func() bool { n := m.waiting("gpu"); return n > waits || n < waits })
		leave()
		m.Signalled("the arrival to leave", q.Done)
		m.Await("the server knows that it has left", func() bool { return m.waiting("gpu") <= waits })
	}
	m.gone()
	t.Logf("%d arrivals", arrivals)
	m.over()
}

// While nobody in the middle has died nobody is dropped, however often the line is looked at.
func TestNobodyWhoLivesIsDropped(t *testing.T) {
	w := private(t)
	m := &middle{world: w}
	hold := w.take(w.sem(w.node(node.Config{Lease: time.Hour}), "gpu", 1), nil)
	const many = 100
	s := w.sem(w.node(node.Config{Lease: safe, Observer: m}), "gpu", 1)
	var all []*taking
	for n := range many {
		all = append(all, w.queue(s, nil, n+1))
	}
	sweeper := w.sweeper()
	for range 10 {
		<-time.After(safe / 10)
		_, err := sweeper.SweepAll(w.Within(patience), "gpu")
		require.NoError(t, err)
	}
	require.Zero(t, m.dropped.Load())
	require.Equal(t, many, w.waiting("gpu"))
	require.NoError(t, hold.Release(w.Within(patience)))
	for _, q := range all {
		require.NoError(t, q.Wait(w).Release(w.Within(patience)))
	}
}
