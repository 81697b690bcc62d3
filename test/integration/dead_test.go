package integration

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/semaphore"
)

// graveyard is a line of waiters whose process was killed, behind a hold of
// theirs. They all expire in one instant, which is as bad as it gets.
type graveyard struct {
	*bed
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
func bury(t *testing.T, behind func(b *bed)) *graveyard {
	t.Helper()
	b := private(t)
	g := &graveyard{bed: b, lag: b.measure()}
	crowd := b.spawn(deadLease)
	crowd.acquire("gpu", 1)
	crowd.ask(order{Do: "crowd", Name: "gpu", Capacity: 1, Count: dead})
	b.await("all wait", func() bool { return b.waiting("gpu") == dead })
	node := b.look("gpu").node()
	behind(b)
	crowd.kill()
	g.expire = b.now() + safe.Milliseconds()/2
	b.setDeadlines("gpu", node, g.expire)
	g.lag.reset()
	return g
}

// setDeadlines moves the deadlines of all claims of a node.
func (b *bed) setDeadlines(name, node string, at int64) {
	b.Helper()
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
	b.do("EVAL", script, "2", b.stateKey(name), b.lineKey(name), node, fmt.Sprint(at))
}

// node is the node of the first in line.
func (v view) node() string { return v.records[v.inLine()[0]].Node }

// waiting is the count of those who wait.
func (b *bed) waiting(name string) int {
	b.Helper()
	return int(b.look(name).state["waiting"])
}

// check is told how long it took.
func (g *graveyard) check(took time.Duration, p *semaphore.Permit) {
	g.Helper()
	g.Logf("past %d dead within %v; bare timers were up to %v late",
		dead, took.Round(time.Millisecond), g.lag.most().Round(time.Millisecond))
	require.Less(g, took, g.lag.allow(passBy, 10))
	require.NoError(g, p.Release(g.within(patience)))
	g.idle("gpu")
}

func TestAThousandDeadWaitersAhead(t *testing.T) {
	var w *taking
	g := bury(t, func(b *bed) {
		// Its next heartbeat, within a third of its lease, hears of the deadlines.
		w = b.begin(b.sem(b.client(semaphore.Config{Lease: safe}), "gpu", 1), nil)
		b.await("the live one waits", func() bool { return b.waiting("gpu") == dead+1 })
	})
	p := w.got(g.bed)
	granted := g.look("gpu").records[p.ID()].Granted.UnixMilli()
	require.GreaterOrEqual(t, granted, g.expire, "the dead still had their time")
	g.check(time.Duration(granted-g.expire)*time.Millisecond, p)
}
