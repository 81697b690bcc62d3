package integration

import (
	"flag"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
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
	v := w.look("gpu")
	// Its next heartbeat, within a third of its lease, hears of the deadlines.
	q := w.begin(w.sem(w.node(node.Config{Lease: safe}), "gpu", 1), nil)
	w.Await("the live one waits", func() bool { return w.waiting("gpu") == dead+1 })
	crowd.kill()
	expire := w.now() + safe.Milliseconds()/2
	w.setDeadlines("gpu", v.records[v.inLine()[0]].Node, expire)
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
    local rest, wait = string.match(redis.call("HGET", KEYS[1], field), "^w %d+ %d+ (%d+ %S+ %S+ %d+ %a (%d+) .*)$")
    if rest then
      redis.call("HSET", KEYS[1], field, string.format("w %.0f %.0f ", ARGV[2], ARGV[2] - math.floor(wait / 2)) .. rest)
    else
      redis.call("ZADD", KEYS[2], string.format("%.0f", 1e13 + ARGV[2]), "h:" .. claim)
      local values = redis.call("HGET", KEYS[1], "v")
      redis.call("HSET", KEYS[1], "v", string.sub(values, 1, 33) .. string.format("%013.0f", ARGV[2]) .. string.sub(values, 47))
    end
  end
end`
	w.do("EVAL", script, "2", w.stateKey(name), w.lineKey(name), node, fmt.Sprint(at))
}

// waiting is the count of those who wait.
func (w *world) waiting(name string) int {
	w.Helper()
	return int(w.look(name).state["waiting"])
}

// ofMiddle is how many die in the middle of a line.
var ofMiddle = flag.Int("middle.dead", 250, "how many die in the middle of a line, in TestTheDeadInTheMiddleOfALine...")

// The holder holds for long, one lives at each end, and many have died between them: no hand-off comes to them.
func TestTheDeadInTheMiddleOfALineAreMetByAHeartbeat(t *testing.T) {
	w := private(t)
	var most atomic.Int64 // of what is told, that one script has dropped
	watch := observe.Func(func(e observe.Event) {
		for n := most.Load(); e.Kind == observe.Swept && int64(e.Count) > n && !most.CompareAndSwap(n, int64(e.Count)); {
			n = most.Load()
		}
	})
	hold := w.take(w.sem(w.node(node.Config{Lease: time.Hour}), "gpu", 1), nil)
	living := w.sem(w.node(node.Config{Lease: safe, Observer: watch}), "gpu", 1)
	first := w.queue(living, nil, 1)
	crowd := w.spawn(time.Hour)
	crowd.ask(order{Do: "crowd", Name: "gpu", Capacity: 1, Count: *ofMiddle})
	w.Await("all wait", func() bool { return w.waiting("gpu") == 1+*ofMiddle })
	last := w.queue(living, nil, 2+*ofMiddle)
	v := w.look("gpu")
	crowd.kill()
	w.setDeadlines("gpu", v.records[v.inLine()[1]].Node, w.now()-1)
	before, start := w.runs(), time.Now() // a look is no script
	w.Await("the first of them are met", func() bool { return w.waiting("gpu") < 2+*ofMiddle })
	met := time.Since(start)
	w.Await("only the living wait", func() bool { return w.waiting("gpu") == 2 })
	scripts := w.runs() - before
	t.Logf("%d dead are met after %v, with heartbeats each %v, and gone after %d scripts; of what is told, one has dropped %d",
		*ofMiddle, met.Round(time.Millisecond), (safe / 3).Round(time.Millisecond), scripts, most.Load())
	require.Less(t, met, 2*safe/3, "later than a heartbeat")
	require.LessOrEqual(t, scripts, *ofMiddle/32+20, "32 or more by each")

	ranks, beats := w.ran("zrank"), w.ran("zmscore")
	w.Await("heartbeats", func() bool { return w.ran("zmscore") >= beats+2 })
	require.Equal(t, ranks, w.ran("zrank"), "those of who waits look up no rank")
	require.LessOrEqual(t, most.Load(), int64(100), "one script has dropped so many")
	w.whole("gpu")
	require.NoError(t, hold.Release(w.Within(patience)))
	p := first.Wait(w)
	require.False(t, last.Over(), "the line has lost its order")
	require.NoError(t, p.Release(w.Within(patience)))
	require.NoError(t, last.Wait(w).Release(w.Within(patience)))
	w.idle("gpu")
}
