package integration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/test/harness"
)

// twoShards has names of locks on shards of a Cluster that answer, and of a pool on one that stands still when it is told
// to. Nothing that is about all names is on that one.
type twoShards struct {
	testkit.Patient
	d     *harness.Deployment
	ns    string
	dead  *harness.Server // that will be
	locks []string
	pool  string
}

func newTwoShards(t *testing.T, locks int) *twoShards {
	t.Helper()
	w := &twoShards{Patient: testkit.RealTime(t), d: harness.Cluster(t), ns: harness.Namespace(t)}
	// Nobody takes the place of what is stopped: while it stands still is what the test is about.
	for _, s := range w.d.Servers() {
		c := s.Client(t, func(o *rueidis.ClientOption) { o.ForceSingleClient = true })
		require.NoError(t, c.Do(t.Context(), c.B().ConfigSet().ParameterValue().ParameterValue("cluster-node-timeout", "600000").Build()).Error())
	}
	masters := w.d.Masters(t)
	w.dead = masters[slices.IndexFunc(masters, func(s *harness.Server) bool {
		return s != w.d.Master(t, "notice:{all}") && s != w.d.Master(t, "swarm:{nodes}")
	})]
	for n := 0; len(w.locks) < locks || w.pool == ""; n++ {
		switch name := fmt.Sprint("name-", n); {
		case w.d.Master(t, "{"+name+"}") == w.dead:
			w.pool = name
		case len(w.locks) < locks:
			w.locks = append(w.locks, name)
		}
	}
	return w
}

// on is a node, with its locks and its pool.
func (w *twoShards) on(cfg node.Config) (*node.Node, *qlock.Locks, *allocator.Pool[string]) {
	w.Helper()
	cfg.Namespace = w.ns
	// rueidis waits for a connection as long as that may take, whatever the context of a call is.
	n, err := node.New(w.d.Client(w, func(o *rueidis.ClientOption) { o.Dialer.Timeout = cfg.CallTimeout }), cfg)
	require.NoError(w, err)
	return n, qlock.New(n, qlock.Config{Lease: cfg.Lease}), allocator.New(n, w.pool, allocator.Config[string]{})
}

// One node has locks, and a pool whose shard stands still, of which it holds much and asks for more than may be under way at a
// time. Meanwhile its locks are granted and renewed as if nothing was; and Close gives them back at once, though what it
// has of the pool goes unanswered for all the time that Retry allows, and rueidis may block what is sent to that shard for longer: Close
// returns a CleanupTimeout after the end of its context.
func TestOneKindOnAShardThatStandsStill(t *testing.T) {
	t.Parallel()
	const (
		held, free, resources, asks = 20, 5, 600, 1000
		lease, long                 = 3 * time.Second, time.Minute
		within, call, cleanup       = 4 * time.Second, time.Second, 2 * time.Second
	)
	w := newTwoShards(t, held+free)
	w.Relies(lease)
	cfg := node.Config{Lease: lease, CallTimeout: call, CleanupTimeout: cleanup, Retry: berth.Retry{Attempts: 1000, Within: within}}
	n, locks, pool := w.on(cfg)
	other, others, otherPool := w.on(node.Config{Lease: testkit.Safe, CallTimeout: patience})
	_, err := pool.Add(w.Within(patience), numbered(resources), nil)
	require.NoError(t, err)
	var holds []*qlock.Lock
	for _, name := range w.locks[:held] {
		l, err := locks.Lock(w.Within(patience), name, nil)
		require.NoError(t, err)
		holds = append(holds, l)
	}
	for range resources {
		_, err := pool.Allocate(w.Within(patience), &allocator.AllocateOptions{Lease: long})
		require.NoError(t, err)
	}
	reader := w.Reader(w.d.Client(t), w.ns)
	w.Await("the long leases have begun, by heartbeats", func() bool {
		return !slices.ContainsFunc(reader.Holders(keyspace.Pool, w.pool), func(h berth.Holder) bool { return h.Left < long/2 })
	})
	var next []*testkit.Call[*qlock.Lock]
	for _, name := range w.locks[:held] {
		next = append(next, testkit.Begin(w.Within(patience), func(ctx context.Context) (*qlock.Lock, error) {
			return others.Lock(ctx, name, nil)
		}))
	}
	for _, name := range w.locks[:held] {
		w.Await("somebody stands in line", func() bool { return len(reader.Waiters(keyspace.Lock, name)) == 1 })
	}

	w.dead.Stop(t)
	var asking []*testkit.Call[*allocator.Allocation[string]]
	for range asks {
		asking = append(asking, testkit.Begin(context.Background(), func(ctx context.Context) (*allocator.Allocation[string], error) {
			return pool.Allocate(ctx, nil)
		}))
	}
	worst, turns := time.Duration(0), 0
	for stopped := time.Now(); time.Since(stopped) < 2*lease; turns++ {
		began := time.Now()
		l, err := locks.Lock(w.Within(patience), w.locks[held+turns%free], nil)
		require.NoError(t, err)
		require.NoError(t, l.Release(w.Within(patience)))
		worst = max(worst, time.Since(began))
		<-time.After(5 * time.Millisecond) // so that the others have the processors, too
	}
	require.Less(t, worst, lease/3, "a lock was slow, of %d", turns)
	for i, l := range holds {
		require.NoError(t, l.Err(), w.locks[i])
		require.False(t, next[i].Over(), "it was granted what is held: %s", w.locks[i])
	}

	began := time.Now()
	closing := testkit.Begin(w.Within(within+call), func(ctx context.Context) (struct{}, error) { return struct{}{}, n.Close(ctx) })
	for _, q := range next {
		q.Wait(w)
	}
	back := time.Since(began)
	require.Less(t, back, within, "the locks waited for what is not answered")
	w.Signalled("the close", closing.Done)
	took := time.Since(began)
	require.Error(t, closing.Err)
	require.Less(t, took, within+call+cleanup+lease)
	for _, q := range asking {
		q.Fails(w, berth.ErrClosed)
	}
	require.ErrorIs(t, n.Close(w.Within(patience)), berth.ErrUnavailable) // as the pool's holds could not be given back
	t.Logf("%d turns while the pool stood still, %v at the worst; %d locks were back after %v, and Close returned after %v",
		turns, worst.Round(time.Millisecond), held, back.Round(time.Millisecond), took.Round(time.Millisecond))

	w.dead.Cont(t)
	w.Await("what was on its way is gone", func() bool { return len(reader.Waiters(keyspace.Pool, w.pool)) == 0 })
	_, err = otherPool.TryAllocate(w.Within(patience), nil)
	// What was not given back ends with its lease.
	require.True(t, err == nil || errors.Is(err, berth.ErrBusy), "%v", err)
	require.NoError(t, other.Close(w.Within(patience)))
}
