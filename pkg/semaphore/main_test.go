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

	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/scriptkit"
	"github.com/berth-go/berth/pkg/semaphore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	ms            = time.Millisecond
	lease, margin = testkit.Lease, testkit.Margin
	// gpu is the semaphore of these tests, for those that need only one.
	gpu = "gpu"
	// stateKey and lineKey are its keys.
	stateKey, lineKey = "berth:sem:{gpu}:state", "berth:sem:{gpu}:line"
)

// world is a server in virtual time, and clients of it.
type world struct{ *testkit.World }

// inWorld runs a test in virtual time. What the test leaves running fails it.
func inWorld(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	testkit.In(t, gpu, stateKey, lineKey, func(t *testing.T, w *testkit.World) { test(t, &world{w}) })
}

// node is a client on a link of its own, as in a process of its own.
type node struct {
	*semaphore.Client
	*testkit.Process
	w *world
}

// node starts a client. Its lease is that of the tests unless cfg says so.
func (w *world) node(cfg ...semaphore.Config) *node {
	w.T.Helper()
	n := &node{Process: w.Process(), w: w}
	var c semaphore.Config
	if len(cfg) > 0 {
		c = cfg[0]
	}
	c.Lease, c.Observer = cmp.Or(c.Lease, lease), n.Observer(c.Observer)
	var err error
	n.Client, err = semaphore.New(n.Redis, c)
	require.NoError(w.T, err)
	n.Closes(n.Client.Close)
	return n
}

// connect makes all of the client's connections for calls, and has it acquire once.
func (n *node) connect() {
	n.w.T.Helper()
	s, err := n.Semaphore("connect", 1, nil)
	require.NoError(n.w.T, err)
	p, err := s.Acquire(context.Background(), nil)
	require.NoError(n.w.T, err)
	require.NoError(n.w.T, p.Release(context.Background()))
	n.w.Do("DEL", "berth:sem:{connect}:state")
	n.Connected()
}

// asks says whether a command is the script of a verb, that of semaphores or that of thin names.
func asks(c link.Command, verb string) bool {
	return c.Name == "semaphore_"+verb || c.Name == "thin_"+verb
}

// gpu is the semaphore of these tests.
func (n *node) gpu(capacity int) *semaphore.Semaphore {
	n.w.T.Helper()
	s, err := n.Semaphore(gpu, capacity, nil)
	require.NoError(n.w.T, err)
	return s
}

// take acquires at once.
func (n *node) take(capacity int, opts *semaphore.AcquireOptions) *semaphore.Permit {
	n.w.T.Helper()
	p, err := n.gpu(capacity).Acquire(context.Background(), opts)
	require.NoError(n.w.T, err)
	return p
}

// wait is an acquire that is on its way.
type wait = testkit.Wait[*semaphore.Permit]

// queue acquires in the background, and lets everything settle.
func (n *node) queue(capacity int, opts *semaphore.AcquireOptions) *wait {
	n.w.T.Helper()
	return n.queueOn(context.Background(), n.gpu(capacity), opts)
}

func (n *node) queueOn(ctx context.Context, s *semaphore.Semaphore, opts *semaphore.AcquireOptions) *wait {
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
	return w.Call("semaphore_acquire", "60000", "berth:wake:", gpu, node, claim, "1", line.Lane(r.Priority), state.FixedTerms(&r),
		strconv.Itoa(capacity), policy.String())
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
