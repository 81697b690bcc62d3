package semaphore_test

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/scriptkit"
	"github.com/berth-go/berth/pkg/semaphore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ctx = context.Background()

const (
	ms            = time.Millisecond
	lease, margin = testkit.Lease, testkit.Margin
	// gpu is the semaphore of these tests, for those that need only one.
	gpu = "gpu"
	// stateKey and lineKey are its keys.
	stateKey, lineKey = "berth:sem:{gpu}:state", "berth:sem:{gpu}:line"
)

// world is a server in virtual time, and processes of it.
type world struct{ *testkit.World }

// inWorld runs a test in virtual time. What the test leaves running fails it.
func inWorld(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	testkit.In(t, gpu, stateKey, lineKey, func(t *testing.T, w *testkit.World) { test(t, &world{w}) })
}

// inWorldOf runs one row of a table in a world of its own.
func inWorldOf(t *testing.T, row string, test func(t *testing.T, w *world)) {
	t.Helper()
	t.Run(row, func(t *testing.T) { inWorld(t, test) })
}

// each runs a test in a world of its own for each row of a table.
func each[R any](t *testing.T, rows map[string]R, test func(t *testing.T, w *world, row R)) {
	t.Helper()
	for name, row := range rows {
		inWorldOf(t, name, func(t *testing.T, w *world) { test(t, w, row) })
	}
}

// proc is a process on a link of its own: a node, and how its semaphores are made.
type proc struct {
	*node.Node
	*testkit.Process
	cfg semaphore.Config
	w   *world
}

// node starts a process. The lease of its node is that of the tests unless cfg says so.
func (w *world) node(cfg ...node.Config) *proc {
	w.T.Helper()
	n := &proc{Process: w.Process(), w: w}
	var c node.Config
	if len(cfg) > 0 {
		c = cfg[0]
	}
	c.Lease, c.Observer = cmp.Or(c.Lease, lease), n.Observer(c.Observer)
	var err error
	n.Node, err = node.New(n.Redis, c)
	require.NoError(w.T, err)
	n.Closes(n.Close)
	return n
}

// with starts a process whose semaphores are made so.
func (w *world) with(cfg semaphore.Config) *proc {
	w.T.Helper()
	n := w.node()
	n.cfg = cfg
	return n
}

// connect makes all of the process's connections for calls, and has it acquire once.
func (n *proc) connect() {
	n.w.T.Helper()
	p := n.w.got(n.on("connect").Acquire(context.Background(), nil))
	require.NoError(n.w.T, p.Release(context.Background()))
	n.w.Do("DEL", "berth:sem:{connect}:state")
	n.Connected()
}

// asks says whether a command is the script of a verb, that of semaphores or that of thin names.
func asks(c link.Command, verb string) bool {
	return c.Name == "semaphore_"+verb || c.Name == "thin_"+verb
}

// refuse has the server answer a command of that name with an error.
func refuse(command, answer string) func(link.Command) link.Fate {
	return func(c link.Command) link.Fate {
		if c.Name == command {
			return link.Refuse(answer)
		}
		return link.Pass
	}
}

// gpu is the semaphore of these tests.
func (n *proc) gpu(capacity int) *semaphore.Semaphore {
	return semaphore.New(n.Node, gpu, capacity, n.cfg)
}

// on is another semaphore, for one.
func (n *proc) on(name string) *semaphore.Semaphore { return semaphore.New(n.Node, name, 1, n.cfg) }

// resize sets the capacity.
func (n *proc) resize(capacity int) error {
	return semaphore.NewOperator(n.Node).Resize(context.Background(), gpu, capacity, &semaphore.ResizeOptions{Create: true})
}

// end ends a claim by force.
func (n *proc) end(claim string) error {
	return testkit.Second(n.Operator().Release(context.Background(), berth.Target{Kind: keyspace.Sem, Name: gpu, Claim: claim}))
}

// Resume takes up a permit that was detached.
func (n *proc) Resume(ctx context.Context, token berth.Token) (*semaphore.Permit, error) {
	return n.gpu(1).Resume(ctx, token)
}

// take acquires at once.
func (n *proc) take(capacity int, opts *semaphore.AcquireOptions) *semaphore.Permit {
	n.w.T.Helper()
	p := n.w.got(n.gpu(capacity).Acquire(context.Background(), opts))
	return p
}

// got is a permit that a call must have got.
func (w *world) got(p *semaphore.Permit, err error) *semaphore.Permit {
	w.T.Helper()
	require.NoError(w.T, err)
	return p
}

// wait is an acquire that is on its way.
type wait = testkit.Wait[*semaphore.Permit]

// queue acquires in the background, and lets everything settle.
func (n *proc) queue(capacity int, opts *semaphore.AcquireOptions) *wait {
	n.w.T.Helper()
	return n.queueOn(context.Background(), n.gpu(capacity), opts)
}

func (n *proc) queueOn(ctx context.Context, s *semaphore.Semaphore, opts *semaphore.AcquireOptions) *wait {
	return testkit.Queue(ctx, n.w.World, func(ctx context.Context) (*semaphore.Permit, error) { return s.Acquire(ctx, opts) })
}

// record is what a node asks for with weight 1, unless change says otherwise.
func record(node string, change ...func(*engine.Record)) engine.Record {
	r := engine.Record{Weight: 1, Wait: lease, Lease: lease, Phase: 'w', Node: node}
	for _, f := range change {
		f(&r)
	}
	return r
}

// acquireScript sends semaphore_acquire as node would, under a policy, and
// returns its reply.
func (w *world) acquireScript(node, claim string, capacity int, policy semaphore.CapacityPolicy, change ...func(*engine.Record)) scriptkit.Reply {
	w.T.Helper()
	r := record(node, change...)
	return w.Acquires("semaphore", node, claim, &r, "1", policy.String(), state.Calm(capacity))
}

func millis(n int64) string { return strconv.FormatInt(n, 10) }

// counts are those of a semaphore.
type counts struct{ Capacity, Held, Holders, Waiting int }

// stats are the counts after a sweep, by what is stored.
func (w *world) stats() counts {
	w.T.Helper()
	w.Call("semaphore_sweep", "60000", "berth:wake:", gpu, "looks-on", "0")
	n, err := w.Look()
	require.NoError(w.T, err)
	return counts{Capacity: n.Capacity, Held: n.Held, Holders: n.Holders, Waiting: n.Waiting}
}

// errMine is the cause of a caller who leaves.
var errMine = errors.New("my own reason")
