package integration

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/leader"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/once"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
	"github.com/berth-go/berth/test/harness"
)

// The lease of the holds behind an address that moves. Connections are broken some seconds after the move, and a machine that
// stands still adds to that.
var movedLease = flag.Duration("moved.lease", 30*time.Second, "the lease of holds behind an address that moves")

// tenants are all that Berth has, on one node: what is held, by name, and whether it
// still is.
type tenants struct {
	testkit.Patient
	ns    string
	kinds map[string]keyspace.Kind
	alive map[string]func() error
	try   func(ctx context.Context) (berth.Hold, error)

	broken atomic.Int64 // how often the connections were broken
}

func newTenants(t *testing.T, redis rueidis.Client) *tenants {
	t.Helper()
	n := &tenants{Patient: testkit.RealTime(t), ns: harness.Namespace(t), kinds: map[string]keyspace.Kind{}, alive: map[string]func() error{}}
	watch := observe.Func(func(e observe.Event) {
		if e.Kind == observe.ConnectionsBroken {
			n.broken.Add(1)
			t.Logf("%d connections broken: %v", e.Count, e.Err)
		}
	})
	own, err := node.New(redis, node.Config{Namespace: n.ns, Lease: *movedLease, Observer: watch})
	require.NoError(t, err)
	t.Cleanup(func() { _ = own.Close(n.Within(patience)) })
	locks := qlock.New(own, &qlock.Config{Lease: *movedLease})

	permit, err := semaphore.New(own, "sem", 2, nil).Acquire(n.Within(patience), nil)
	n.holds("sem", keyspace.Sem, permit.Err, err)
	lock, err := locks.Lock(n.Within(patience), "lock", nil)
	n.holds("lock", keyspace.Lock, lock.Err, err)
	pool := allocator.New(own, "pool", allocator.PoolConfig[string]{})
	_, err = pool.Add(n.Within(patience), []string{"only"}, nil)
	require.NoError(t, err)
	resource, err := pool.Allocate(n.Within(patience), nil)
	n.holds("pool", keyspace.Pool, resource.Err, err)
	run, _, err := once.New(own, "once", once.Config{Every: 24 * time.Hour, Lease: *movedLease}).Begin(n.Within(patience))
	n.holds("once", keyspace.Lock, run.Hold().Err, err)
	t.Cleanup(func() { _ = run.End(n.Within(patience), nil) })
	n.lead(leader.New(own, "leader", &leader.Config{Lease: *movedLease}))
	n.try = func(ctx context.Context) (berth.Hold, error) { return locks.TryLock(ctx, "another", nil) }
	return n
}

// holds notes what is held.
func (n *tenants) holds(name string, kind keyspace.Kind, alive func() error, err error) {
	n.Helper()
	require.NoError(n, err, name)
	n.kinds[name], n.alive[name] = kind, alive
}

// lead leads until the test ends.
func (n *tenants) lead(e *leader.Election) {
	n.Helper()
	ctx, leave := context.WithCancel(context.Background())
	leads := make(chan context.Context)
	var all sync.WaitGroup
	all.Go(func() {
		_ = e.Run(ctx, func(term context.Context) error {
			select {
			case leads <- term:
			case <-ctx.Done():
			}
			<-term.Done()
			return nil
		})
	})
	n.Cleanup(func() { leave(); all.Wait() })
	select {
	case term := <-leads:
		n.holds("leader", keyspace.Lock, term.Err, nil)
	case <-time.After(patience):
		require.FailNow(n, "nobody leads")
	}
}

// command holds a lock by `berth run` until the test ends.
func (n *tenants) command(program, url string) (end func() (code int, said string)) {
	n.Helper()
	//nolint:gosec // a program that the test has built
	cmd := exec.CommandContext(n.Within(2*patience), program, "run", "--lock", "run", "--lease", (*movedLease).String(), "--", "sh", "-c", "echo up; cat")
	cmd.Env = append(os.Environ(), "BERTH_REDIS="+url, "BERTH_NAMESPACE="+n.ns)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	in, err := cmd.StdinPipe()
	require.NoError(n, err)
	out, err := cmd.StdoutPipe()
	require.NoError(n, err)
	require.NoError(n, cmd.Start())
	up := make([]byte, len("up\n"))
	_, err = io.ReadFull(out, up)
	require.NoError(n, err)
	n.holds("run", keyspace.Lock, func() error { return nil }, nil)
	return func() (int, string) {
		_ = in.Close()
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
		return cmd.ProcessState.ExitCode(), errs.String()
	}
}

// renewed waits until all that is held has been renewed on the new master, and fails the test if
// anything was lost.
func (n *tenants) renewed(master *harness.Server) {
	n.Helper()
	since := time.Now() // nobody renews on the old master any more
	read := n.Reader(master.Client(n.T), n.ns)
	for name, kind := range n.kinds {
		n.Await(name+" is renewed", func() bool {
			require.NoError(n, n.alive[name](), "%s, %s after the address has moved", name, time.Since(since))
			holders := read.Holders(kind, name)
			return len(holders) == 1 && time.Now().Add(holders[0].Left).After(since.Add(*movedLease))
		})
	}
	for name := range n.kinds {
		require.NoError(n, n.alive[name](), name)
	}
}

// Connections that stay open lead to the old master for as long as they live. All that a process
// holds outlives that.
func TestHoldsOutliveAnAddressThatMoves(t *testing.T) {
	t.Parallel()
	for pipelines := range 3 {
		t.Run(fmt.Sprint("PipelineMultiplex ", pipelines), func(t *testing.T) {
			t.Parallel()
			e := harness.NewEndpoint(t)
			n := newTenants(t, e.Client(t, func(o *rueidis.ClientOption) { o.PipelineMultiplex = pipelines }))
			e.Move(t)

			n.renewed(e.Master())
			n.Await("the break is told of", func() bool { return n.broken.Load() > 0 })
			another, err := n.try(n.Within(patience))
			require.NoError(t, err)
			require.NoError(t, another.Release(n.Within(patience)))
		})
	}
}

func TestACommandOutlivesAnAddressThatMoves(t *testing.T) {
	t.Parallel()
	program, err := harness.Command()
	require.NoError(t, err)
	e := harness.NewEndpoint(t)
	n := &tenants{Patient: testkit.RealTime(t), ns: harness.Namespace(t), kinds: map[string]keyspace.Kind{}, alive: map[string]func() error{}}
	end := n.command(program, e.URL())
	e.Move(t)

	n.renewed(e.Master())
	code, said := end()
	require.Zero(t, code, said)
}
