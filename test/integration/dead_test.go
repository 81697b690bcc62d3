package integration

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/semaphore"
)

// graveyard is a line of waiters whose process was killed, behind a hold of
// theirs. They all expire in one instant, which is as bad as it gets.
type graveyard struct {
	*world
	lag    *lag
	expire int64 // ms
}

const (
	dead = 1000
	// deadLease is long, so that all waiters stay alive on a slow machine for as long
	// as they shall.
	deadLease = time.Minute
	// passBy is how long it may take to pass all dead by: a hundred a heartbeat
	// would take half a minute.
	passBy = 500 * time.Millisecond
)

// bury kills a child with many waiters, after whoever is to stand behind them
// has been placed there, and has them expire soon.
func bury(t *testing.T, behind func(w *world)) *graveyard {
	t.Helper()
	w := private(t)
	g := &graveyard{world: w, lag: w.measure()}
	crowd := w.spawn(deadLease)
	crowd.acquire("gpu", 1)
	crowd.ask(order{Do: "crowd", Name: "gpu", Capacity: 1, Count: dead})
	w.Await("all wait", func() bool { return w.waiting("gpu") == dead })
	node := w.look("gpu").node()
	behind(w)
	crowd.kill()
	g.expire = w.now() + safe.Milliseconds()/2
	w.setDeadlines("gpu", node, g.expire)
	g.lag.reset()
	return g
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

// check is told how long it took.
func (g *graveyard) check(took time.Duration, p *semaphore.Permit) {
	g.Helper()
	g.Logf("past %d dead within %v; bare timers were up to %v late",
		dead, took.Round(time.Millisecond), g.lag.most().Round(time.Millisecond))
	require.Less(g, took, g.lag.allow(passBy, 10))
	require.NoError(g, p.Release(g.Within(patience)))
	g.idle("gpu")
}

func TestAThousandDeadWaitersAhead(t *testing.T) {
	var q *taking
	g := bury(t, func(w *world) {
		// Its next heartbeat, within a third of its lease, hears of the deadlines.
		q = w.begin(w.sem(w.node(node.Config{Lease: safe}), "gpu", 1), nil)
		w.Await("the live one waits", func() bool { return w.waiting("gpu") == dead+1 })
	})
	p := q.Wait(g.world)
	granted := g.look("gpu").records[p.ID()].Granted.UnixMilli()
	require.GreaterOrEqual(t, granted, g.expire, "the dead still had their time")
	g.check(time.Duration(granted-g.expire)*time.Millisecond, p)
}
