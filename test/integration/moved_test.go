package integration

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/test/harness"
)

// The lease of the holds behind an address that moves. Connections are broken some seconds after the move, and a machine that
// stands still adds to that.
var movedLease = flag.Duration("moved.lease", 30*time.Second, "the lease of holds behind an address that moves")

// tenants are what is held on one node of the name of each kind, and what a command holds: whether it still is.
type tenants struct {
	testkit.Patient
	ns    string
	alive map[string]func() error

	broken atomic.Int64 // how often the connections were broken
}

func newTenants(t *testing.T, redis rueidis.Client) (n *tenants, try ask) {
	t.Helper()
	n = &tenants{Patient: testkit.RealTime(t), ns: harness.Namespace(t), alive: map[string]func() error{}}
	watch := observe.Func(func(e observe.Event) {
		if e.Kind == observe.ConnectionsBroken {
			n.broken.Add(1)
			t.Logf("%d connections broken: %v", e.Count, e.Err)
		}
	})
	fills(n.Patient, redis, n.ns)
	own, err := node.New(redis, node.Config{Namespace: n.ns, Lease: *movedLease, Observer: watch})
	require.NoError(t, err)
	t.Cleanup(func() { _ = own.Close(n.Within(patience)) })
	by := byKindOf(own, the, *movedLease)
	for _, kind := range kinds {
		hold, err := by.take[kind](n.Within(patience))
		require.NoError(n, err, kind)
		n.alive[kind] = hold.Err
	}
	return n, byKindOf(own, free, *movedLease).try["lock"]
}

// command holds a lock by `berth run` until the test ends.
func (n *tenants) command(program, url string) (end func() (code int, said string)) {
	n.Helper()
	//nolint:gosec // a program that the test has built
	cmd := exec.CommandContext(n.Within(2*patience), program,
		"run", "--lock", "the-run", "--lease", (*movedLease).String(), "--", "sh", "-c", "echo up; cat")
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
	n.alive["run"] = func() error { return nil }
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
	for of, alive := range n.alive {
		kind := keyspace.Lock
		if of != "run" {
			kind = keyspace.Kind(of)
		}
		n.Await(of+" is renewed", func() bool {
			require.NoError(n, alive(), "%s, %s after the address has moved", of, time.Since(since))
			holders := read.Holders(kind, name(of))
			return len(holders) == 1 && time.Now().Add(holders[0].Left).After(since.Add(*movedLease))
		})
	}
	for of, alive := range n.alive {
		require.NoError(n, alive(), of)
	}
}

// Connections that stay open lead to the old master for as long as they live. All that a process
// holds outlives that.
func TestHoldsOutliveAnAddressThatMoves(t *testing.T) {
	t.Parallel()
	program, err := harness.Command()
	require.NoError(t, err)
	for pipelines := range 3 {
		t.Run(fmt.Sprint("PipelineMultiplex ", pipelines), func(t *testing.T) {
			t.Parallel()
			e := harness.NewEndpoint(t)
			n, try := newTenants(t, e.Client(t, func(o *rueidis.ClientOption) { o.PipelineMultiplex = pipelines }))
			end := n.command(program, e.URL())
			e.Move(t)

			n.renewed(e.Master())
			n.Await("the break is told of", func() bool { return n.broken.Load() > 0 })
			another, err := try(n.Within(patience))
			require.NoError(t, err)
			require.NoError(t, another.Release(n.Within(patience)))
			code, said := end()
			require.Zero(t, code, said)
		})
	}
}
