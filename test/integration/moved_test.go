package integration

import (
	"flag"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/test/harness"
)

// The lease of the holds behind an address that moves. Connections are broken some seconds after the move, and a machine that
// stands still adds to that.
var movedLease = flag.Duration("moved.lease", 30*time.Second, "the lease of holds behind an address that moves")

// tenants are what is held on one node of the name of each kind.
type tenants struct {
	testkit.Patient
	ns     string
	holds  map[string]berth.Hold
	broken atomic.Int64 // how often the connections were broken
}

func newTenants(t *testing.T, redis rueidis.Client) (n *tenants, other *user) {
	t.Helper()
	n = &tenants{Patient: testkit.RealTime(t), ns: harness.Namespace(t), holds: map[string]berth.Hold{}}
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
	users := usersOf(own, *movedLease)
	for _, kind := range kinds {
		n.holds[kind], err = users[kind].claim(n.Within(patience))
		require.NoError(n, err, kind)
	}
	return n, userOf(own, keyspace.Lock, "free", 1, *movedLease, poolConfig{})
}

// renewed waits until all that is held has been renewed on the new master, and fails the test if
// anything was lost.
func (n *tenants) renewed(master *harness.Server) {
	n.Helper()
	since := time.Now() // nobody renews on the old master any more
	read := n.Reader(master.Client(n.T), n.ns)
	for kind, hold := range n.holds {
		n.Await(kind+" is renewed", func() bool {
			require.NoError(n, hold.Err(), "%s, %s after the address has moved", kind, time.Since(since))
			holders := read.Holders(keyspace.Kind(kind), name(kind))
			return len(holders) == 1 && time.Now().Add(holders[0].Left).After(since.Add(*movedLease))
		})
	}
	for kind, hold := range n.holds {
		require.NoError(n, hold.Err(), kind)
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
			n, other := newTenants(t, e.Client(t, func(o *rueidis.ClientOption) { o.PipelineMultiplex = pipelines }))
			e.Move(t)
			n.renewed(e.Master())
			n.Await("the break is told of", func() bool { return n.broken.Load() > 0 })
			another, err := other.try(n.Within(patience), terms{})
			require.NoError(t, err)
			require.NoError(t, another.Release(n.Within(patience)))
		})
	}
}

// cluster is a world in a Cluster.
func cluster(t *testing.T) (*world, *harness.Deployment) {
	t.Helper()
	t.Parallel()
	d := harness.Cluster(t)
	return onAll(t, d), d
}

// onAll is a world on all servers of a deployment.
func onAll(t *testing.T, d *harness.Deployment) *world {
	t.Helper()
	w := newWorld(t, d.Servers()[0])
	w.server, w.admin = nil, d.Client(t)
	return w
}

// listensAt is the server that has the subscription of a node, nil for none.
func (w *world) listensAt(servers []*harness.Server, n *node.Node) *harness.Server {
	w.Helper()
	for _, s := range servers {
		c := s.Client(w.T, func(o *rueidis.ClientOption) { o.ForceSingleClient = true })
		heard, err := c.Do(w.Within(patience), c.B().Arbitrary("PUBSUB", "CHANNELS", w.space.Wake(n.ID())).Build()).AsStrSlice()
		require.NoError(w, err)
		if len(heard) > 0 {
			return s
		}
	}
	return nil
}

// A node that was taken out of its Cluster runs on, keeps its subscriptions and is
// told of nothing. Whoever listens there finds that out by itself.
func TestAProcessThatListensAtARemovedNodeSubscribesElsewhere(t *testing.T) {
	const lease = 9 * time.Second
	w, d := cluster(t)
	holder := w.sem(w.nodeOn(d.Client(t), node.Config{Lease: lease}), "gpu", 1)
	held := w.take(holder, nil)
	var deaf, queued, subscribed atomic.Int64
	// What the test itself asks may go to who was removed: so events tell how far things are.
	wait := func(n *node.Node) *taking {
		before := queued.Load()
		q := w.begin(w.sem(n, "gpu", 1), nil)
		w.Await("it stands in line", func() bool { return queued.Load() > before })
		return q
	}
	listen := func() (*node.Node, *taking) {
		before := subscribed.Load()
		n := w.nodeOn(d.Client(t), node.Config{Lease: lease, Observer: observe.Func(func(e observe.Event) {
			switch e.Kind {
			case observe.Deaf:
				deaf.Add(1)
			case observe.Queued:
				queued.Add(1)
			case observe.Subscribed:
				subscribed.Add(1)
			}
		})})
		q := wait(n)
		w.Await("it has subscribed", func() bool { return subscribed.Load() > before })
		return n, q
	}

	// Rueidis subscribes at any node. It is to be a replica, which has no slots.
	masters := d.Masters(t)
	n, q := listen()
	at := w.listensAt(d.Servers(), n)
	for tries := 1; slices.Contains(masters, at); tries++ {
		require.Less(t, tries, 50, "nobody has subscribed at a replica")
		require.NoError(t, n.Close(w.Within(patience)))
		n, q = listen()
		at = w.listensAt(d.Servers(), n)
	}
	require.NotNil(t, at)
	d.Remove(t, at)
	turn := func() {
		require.NoError(t, held.Release(w.Within(patience)))
		p, again := q.Wait(w), w.begin(holder, nil)
		require.NoError(t, p.Release(w.Within(patience)))
		held = again.Wait(w)
		q = wait(n)
	}
	// A grant of which no message came raises a doubt. What a busy machine does not
	// publish in time settles none: then the next grant raises another.
	for turns := 0; deaf.Load() == 0; turns++ {
		require.Less(t, turns, 20, "nobody has found out that it is deaf")
		turn()
	}
	w.Await("it listens at a node of the Cluster", func() bool { return w.listensAt(d.Servers(), n) != nil })
	turn()
	turn()
	require.NoError(t, held.Release(w.Within(patience)))
	require.NoError(t, q.Wait(w).Release(w.Within(patience)))
	require.EqualValues(t, 1, deaf.Load(), "it hears")
}
