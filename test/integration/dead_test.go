package integration

import (
	"context"
	"flag"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/semaphore"
)

// A line of waiters whose process was killed, behind a hold of theirs. They all expire in one instant, which is as
// bad as it gets. A hundred passed by each heartbeat would take half a minute.
func TestAThousandDeadWaitersAhead(t *testing.T) {
	const (
		dead      = 1000
		deadLease = time.Minute // so that all stay alive on a slow machine for as long as they shall
		passBy    = time.Second
	)
	w := private(t)
	w.Relies(3 * passBy)
	crowd := w.spawn(deadLease)
	crowd.acquire("gpu", 1)
	crowd.ask(order{Do: "crowd", Name: "gpu", Capacity: 1, Count: dead})
	w.Await("all wait", func() bool { return w.waiting("gpu") == dead })
	of := w.look("gpu").node()
	// Its next heartbeat, within a third of its lease, hears of the deadlines.
	q := w.begin(w.sem(w.node(node.Config{Lease: safe}), "gpu", 1), nil)
	w.Await("the live one waits", func() bool { return w.waiting("gpu") == dead+1 })
	crowd.kill()
	expire := w.now() + safe.Milliseconds()/2
	w.setDeadlines("gpu", of, expire)
	p := q.Wait(w)
	granted := w.look("gpu").records[p.ID()].Granted.UnixMilli()
	require.GreaterOrEqual(t, granted, expire, "the dead still had their time")
	took := time.Duration(granted-expire) * time.Millisecond
	t.Logf("past %d dead within %v", dead, took)
	require.Less(t, took, passBy)
	require.NoError(t, p.Release(w.Within(patience)))
	w.idle("gpu")
}

// setDeadlines moves the deadlines of all claims of a node.
func (w *world) setDeadlines(name, node string, at int64) {
	w.Helper()
	const script = `
for _, field in ipairs(redis.call("HKEYS", KEYS[1])) do
  local claim = string.sub(field, 3)
  if string.sub(claim, 1, #ARGV[1]) == ARGV[1] then
    local head, rest, wait = string.match(redis.call("HGET", KEYS[1], field), "^(w %S+ %d+ %d+ )%d+ (%d+ %d+ %S+ %a (%d+) .*)$")
    if head then
      redis.call("HSET", KEYS[1], field, head .. string.format("%.0f ", ARGV[2] - wait) .. rest)
    else
      redis.call("ZADD", KEYS[2], string.format("%.0f", 2^44 + ARGV[2]), "h:" .. claim)
      local values = redis.call("HGET", KEYS[1], "v")
      redis.call("HSET", KEYS[1], "v", string.sub(values, 1, 33) .. string.format("%013.0f", ARGV[2]) .. string.sub(values, 47))
    end
  end
end`
	w.do("EVAL", script, "2", w.stateKey(name), w.lineKey(name), node, fmt.Sprint(at))
}

// node is the node of the first in line.
func (v view) node() string { return v.records[v.inLine()[0]].Node }

// waiting is the count of those who wait.
func (w *world) waiting(name string) int {
	w.Helper()
	return int(w.look(name).state["waiting"])
}

// ofMiddle is how many die in the middle of a line.
var ofMiddle = flag.Int("middle.dead", 250, "how many die in the middle of a line, in TestTheDeadInTheMiddleOfALine...")

// middle is a line whose holder holds for long, with one that lives at each end, and many
// who have died between them: no hand-off comes to them.
type middle struct {
	*world
	most   atomic.Int64 // of what is told, that one script has dropped
	queued atomic.Int64 // how often one of the living has heard that it waits
	before int          // scripts before they had died
	hold   *semaphore.Permit
	living *semaphore.Semaphore
	ends   [2]*taking
}

// Observe notes what scripts have dropped, and who waits.
func (m *middle) Observe(e observe.Event) {
	if e.Kind == observe.Queued {
		m.queued.Add(1)
	}
	if e.Kind != observe.Swept {
		return
	}
	for most := m.most.Load(); int64(e.Count) > most && !m.most.CompareAndSwap(most, int64(e.Count)); {
		most = m.most.Load()
	}
}

// dieInTheMiddle makes such a line, whose living have that lease.
func dieInTheMiddle(t *testing.T, lease time.Duration) *middle {
	t.Helper()
	w := private(t)
	m := &middle{world: w}
	m.hold = w.take(w.sem(w.node(node.Config{Lease: time.Hour}), "gpu", 1), nil)
	m.living = w.sem(w.node(node.Config{Lease: lease, Observer: m}), "gpu", 1)
	m.ends[0] = w.queue(m.living, nil, 1)
	crowd := w.spawn(time.Hour)
	crowd.ask(order{Do: "crowd", Name: "gpu", Capacity: 1, Count: *ofMiddle})
	w.Await("all wait", func() bool { return w.waiting("gpu") == 1+*ofMiddle })
	m.ends[1] = w.queue(m.living, nil, 2+*ofMiddle)
	v := w.look("gpu")
	crowd.kill()
	w.setDeadlines("gpu", v.records[v.inLine()[1]].Node, w.now()-1)
	m.before = w.runs() // a look is no script
	return m
}

// gone waits until the dead are, and returns how many scripts that took.
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

func TestTheDeadInTheMiddleOfALineAreMetByAHeartbeat(t *testing.T) {
	m := dieInTheMiddle(t, safe)
	start := time.Now()
	m.Await("the first of them are met", func() bool { return m.waiting("gpu") < 2+*ofMiddle })
	met := time.Since(start)
	t.Logf("met after %v, with heartbeats each %v", met.Round(time.Millisecond), (safe / 3).Round(time.Millisecond))
	scripts := m.gone()
	require.Less(t, met, 2*safe/3, "later than a heartbeat")
	require.LessOrEqual(t, scripts, *ofMiddle/32+20, "32 or more by each")

	ranks, beats := m.ran("zrank"), m.ran("zmscore")
	m.Await("heartbeats", func() bool { return m.ran("zmscore") >= beats+2 })
	require.Equal(t, ranks, m.ran("zrank"), "those of who waits look up no rank")
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
		waits, queued := m.waiting("gpu"), m.queued.Load()
		q := m.beginWith(ctx, m.living, nil)
		m.Await("it has heard: who leaves before sweeps no further", func() bool { return m.queued.Load() > queued })
		leave()
		m.Signalled("the arrival to leave", q.Done)
		m.Await("the server knows that it has left", func() bool { return m.waiting("gpu") <= waits })
	}
	m.gone()
	t.Logf("%d arrivals", arrivals)
	m.over()
}
