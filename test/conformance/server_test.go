package conformance

import (
	"context"
	"errors"
	"strconv"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
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

// trio are the three primitives, on two nodes each.
type trio struct {
	sems  [2]*semaphore.Semaphore
	locks [2]*qlock.Client
	pools [2]*pool
}

func (b *bed) trio() trio {
	b.Helper()
	three := trio{
		sems:  b.sem(semaphore.Config{Lease: long}, 1),
		locks: b.locks(qlock.Config{Lease: long}),
		pools: b.pools(poolConfig{}),
	}
	b.add(three.pools[0], "r")
	return three
}

// take takes one of each on a node.
func (three trio) take(b *bed, node int) []berth.Hold {
	b.Helper()
	return []berth.Hold{
		must(b, acquire(three.sems[node], nil)),
		must(b, lock(three.locks[node], door, nil)),
		must(b, allocate(three.pools[node], nil)),
	}
}

// queue begins to wait for one of each on a node.
func (three trio) queue(b *bed, node int) (line []interface{ wait(*bed) berth.Hold }) {
	b.Helper()
	return append(line,
		waiter[*semaphore.Permit]{queue(b, acquire(three.sems[node], nil), b.semWaiting(three.sems[0]), 1)},
		waiter[*qlock.Lock]{queue(b, lock(three.locks[node], door, nil), b.lockWaiting(three.locks[0], door), 1)},
		waiter[*allocation]{queue(b, allocate(three.pools[node], nil), b.poolWaiting(three.pools[0]), 1)},
	)
}

// waiter is a pending acquire of any primitive.
type waiter[H berth.Hold] struct{ *pending[H] }

func (w waiter[H]) wait(b *bed) berth.Hold {
	b.Helper()
	return w.pending.wait(b)
}

func scriptFlush(b *bed) {
	three := b.trio()
	forget := func() { b.onNodes("SCRIPT", "FLUSH") }
	forget()
	held := three.take(b, 0)
	forget()
	for _, h := range held {
		require.NoError(b, h.Renew(b.within(patience)))
	}
	forget()
	line := three.queue(b, 1)
	forget()
	release(b, held...)
	for _, w := range line {
		h := w.wait(b)
		forget()
		release(b, h)
	}
}

func cut(b *bed) {
	three := b.trio()
	held := three.take(b, 0)
	line := three.queue(b, 1)
	b.onNodes("CLIENT", "KILL", "TYPE", "pubsub")
	b.onNodes("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "no")
	for i, w := range line {
		require.NoError(b, held[i].Renew(b.within(patience)))
		b.onNodes("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "no")
		release(b, held[i])
		release(b, w.wait(b))
	}
}

// reports are what the Check of each primitive has found out.
func (b *bed) reports() (reports []berth.Report) {
	b.Helper()
	for _, check := range []func(context.Context) (berth.Report, error){
		b.sems(semaphore.Config{})[0].Check,
		b.locks(qlock.Config{})[0].Check,
		b.checkPools,
	} {
		reports = append(reports, must(b, check))
	}
	return reports
}

func (b *bed) checkPools(ctx context.Context) (report berth.Report, err error) {
	c, err := allocator.New(b.redis[0], allocator.Config{Namespace: b.ns, CallTimeout: calls})
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, c.Close(ctx)) }()
	return c.Check(ctx)
}

func check(b *bed) {
	for _, report := range b.reports() {
		require.Positive(b, report.Latency)
		if report.Version == "" {
			require.NotEmpty(b, report.Warnings, "what may not be asked is a warning")
		}
	}
}

func version(b *bed) {
	server, mode := "redis", "standalone"
	switch b.deployment.Name {
	case "valkey":
		server = "valkey"
	case "cluster":
		mode = "cluster"
	}
	for _, report := range b.reports() {
		require.Equal(b, server, report.Server)
		require.Equal(b, mode, report.Mode)
		require.NotEmpty(b, report.Version)
		require.Equal(b, "noeviction", report.Eviction)
	}
}

func text(n int64) string { return strconv.FormatInt(n, 10) }
