package integration

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/node"
)

// A line of waiters whose process was killed, behind a hold of theirs. They all expire in one instant, which is as
// bad as it gets. A hundred passed by each heartbeat would take half a minute.
func TestAThousandDeadWaitersAhead(t *testing.T) {
	const (
		dead      = 1000
		deadLease = time.Minute // so that all stay alive on a slow machine for as long as they shall
		passBy    = 500 * time.Millisecond
	)
	w := private(t)
	lag := w.measure()
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
	lag.reset()
	p := q.Wait(w)
	granted := w.look("gpu").records[p.ID()].Granted.UnixMilli()
	require.GreaterOrEqual(t, granted, expire, "the dead still had their time")
	took := time.Duration(granted-expire) * time.Millisecond
	t.Logf("past %d dead within %v; bare timers were up to %v late", dead, took, lag.most().Round(time.Millisecond))
	require.Less(t, took, lag.allow(passBy, 10))
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
