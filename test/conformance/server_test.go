package conformance

import (
	"errors"
	"strconv"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
)

// The names that limits speak of.
const (
	cutTest     = "server/waits and holds outlive their connections"
	versionTest = "server/check tells the version"
)

// errLeft is why a caller of the tests leaves.
var errLeft = errors.New("the caller has left")

func serverTests() []test {
	return []test{
		{name: "server/forgotten scripts go unnoticed", alone: true, run: scriptFlush},
		{name: cutTest, alone: true, run: cut},
		{name: "server/check passes", run: check},
		{name: versionTest, run: version},
	}
}

// trio are the three primitives, on two nodes.
type trio struct {
	sems  [2]sem
	locks [2]locks
	pools [2]*pool
}

func (w *world) trio() trio {
	w.Helper()
	three := trio{w.sem("sem", 1), w.locks(), w.pools(poolConfig{})}
	w.add(three.pools[0], "r")
	return three
}

// take takes one of each on a node.
func (three trio) take(w *world, node int) []berth.Hold {
	w.Helper()
	return []berth.Hold{
		must(w, acquire(three.sems[node], nil)),
		must(w, lock(three.locks[node], door, nil)),
		must(w, allocate(three.pools[node], nil)),
	}
}

// queue begins to wait for one of each on a node.
func (three trio) queue(w *world, node int) (line []interface{ wait(*world) berth.Hold }) {
	w.Helper()
	return append(line,
		waiter[*semaphore.Permit]{queue(w, acquire(three.sems[node], nil), w.waiting(keyspace.Sem, "sem"), 1)},
		waiter[*qlock.Lock]{queue(w, lock(three.locks[node], door, nil), w.waiting(keyspace.Lock, door), 1)},
		waiter[*allocation]{queue(w, allocate(three.pools[node], nil), w.waiting(keyspace.Pool, "pool"), 1)},
	)
}

// waiter is a pending acquire of any primitive.
type waiter[H berth.Hold] struct{ *testkit.Call[H] }

func (q waiter[H]) wait(w *world) berth.Hold {
	w.Helper()
	return q.Call.Wait(w)
}

func scriptFlush(w *world) {
	three := w.trio()
	forget := func() { w.onNodes("SCRIPT", "FLUSH") }
	forget()
	held := three.take(w, 0)
	forget()
	for _, h := range held {
		require.NoError(w, h.Renew(w.Within(patience)))
	}
	forget()
	line := three.queue(w, 1)
	forget()
	release(w, held...)
	for _, q := range line {
		h := q.wait(w)
		forget()
		release(w, h)
	}
}

func cut(w *world) {
	three := w.trio()
	held := three.take(w, 0)
	line := three.queue(w, 1)
	w.onNodes("CLIENT", "KILL", "TYPE", "pubsub")
	w.onNodes("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "no")
	for i, q := range line {
		require.NoError(w, held[i].Renew(w.Within(patience)))
		w.onNodes("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "no")
		release(w, held[i])
		release(w, q.wait(w))
	}
}

// report is what Check of a node of all three has found out.
func (w *world) report() berth.Report {
	w.Helper()
	w.trio()
	return must(w, w.node(0).Check)
}

func check(w *world) {
	report := w.report()
	require.Positive(w, report.Latency)
	if report.Version == "" {
		require.NotEmpty(w, report.Warnings, "what may not be asked is a warning")
	}
}

func version(w *world) {
	server, mode := "redis", "standalone"
	switch w.deployment.Name {
	case "valkey":
		server = "valkey"
	case "cluster":
		mode = "cluster"
	}
	report := w.report()
	require.Equal(w, server, report.Server)
	require.Equal(w, mode, report.Mode)
	require.NotEmpty(w, report.Version)
	require.Equal(w, "noeviction", report.Eviction)
}

func text(n int64) string { return strconv.FormatInt(n, 10) }
