package semaphore_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/scriptkit"
	"github.com/berth-go/berth/pkg/semaphore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	ms = time.Millisecond
	// lease is what the clients of these tests have as their wait lease: its
	// third, half and hundredth are whole milliseconds.
	lease = 6 * time.Second
	// margin is what a holder gives up of it: 2 ms and 1 %.
	margin = 62 * ms
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
	testkit.In(t, stateKey, lineKey, func(t *testing.T, w *testkit.World) { test(t, &world{w}) })
}

// node is a client on a link of its own, as in a process of its own.
type node struct {
	*semaphore.Client
	*link.Link
	w      *world
	redis  rueidis.Client
	mu     sync.Mutex
	events []observe.Event // guarded by mu
	closed bool
}

// node starts a client. Its lease is that of the tests unless cfg says so.
func (w *world) node(cfg ...semaphore.Config) *node {
	w.T.Helper()
	n := &node{w: w, Link: link.New(testkit.Script)}
	var err error
	n.redis, err = w.Server.Client(testkit.RarePings, n.Wrap)
	require.NoError(w.T, err)
	w.T.Cleanup(n.redis.Close)
	var c semaphore.Config
	if len(cfg) > 0 {
		c = cfg[0]
	}
	if c.Lease == 0 {
		c.Lease = lease
	}
	also := c.Observer
	c.Observer = observe.Func(func(e observe.Event) {
		n.mu.Lock()
		n.events = append(n.events, e)
		n.mu.Unlock()
		if also != nil {
			also.Observe(e)
		}
	})
	n.Client, err = semaphore.New(n.redis, c)
	require.NoError(w.T, err)
	w.T.Cleanup(func() { n.close() })
	return n
}

// close ends the client, as a program does before it ends.
func (n *node) close() {
	if n.closed {
		return
	}
	n.closed = true
	_ = n.Client.Close(context.Background())
}

// connect makes all of the client's connections for calls, and has it acquire once.
func (n *node) connect() {
	n.w.T.Helper()
	s, err := n.Semaphore("connect", 1)
	require.NoError(n.w.T, err)
	p, err := s.Acquire(context.Background(), nil)
	require.NoError(n.w.T, err)
	require.NoError(n.w.T, p.Release(context.Background()))
	for range 16 { // each goes over one of two connections
		require.NoError(n.w.T, n.redis.Do(context.Background(), n.redis.B().Exists().Key("connect").Build()).Error())
	}
	n.w.Do("DEL", "berth:sem:{connect}:state")
	synctest.Wait() // also for what the first claim has the client load
	n.mu.Lock()
	n.events = nil
	n.mu.Unlock()
	n.Reset()
}

// asks says whether a command is the script of a verb, that of semaphores or that of thin names.
func asks(c link.Command, verb string) bool {
	return c.Name == "semaphore_"+verb || c.Name == "thin_"+verb
}

// asked is how many scripts of a verb have been sent since the last Reset.
func (n *node) asked(verb string) int { return n.Count("semaphore_"+verb) + n.Count("thin_"+verb) }

// die ends the node's connections for good: nothing of it reaches the server
// any more, as after a kill -9.
func (n *node) die() { n.Cut() }

// gpu is the semaphore of these tests.
func (n *node) gpu(capacity int) *semaphore.Semaphore {
	n.w.T.Helper()
	s, err := n.Semaphore(gpu, capacity)
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

// kinds are the kinds of the events so far, but for those in leave.
func (n *node) kinds() []observe.Kind {
	n.mu.Lock()
	defer n.mu.Unlock()
	var kinds []observe.Kind
	for _, e := range n.events {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

// wait is an acquire that is on its way.
type wait struct {
	w      *world
	cancel context.CancelCauseFunc
	done   chan struct{}
	permit *semaphore.Permit
	err    error
	at     time.Duration // when it returned
}

// queue acquires in the background, and lets everything settle.
func (n *node) queue(capacity int, opts *semaphore.AcquireOptions) *wait {
	n.w.T.Helper()
	return n.queueOn(context.Background(), n.gpu(capacity), opts)
}

func (n *node) queueOn(ctx context.Context, s *semaphore.Semaphore, opts *semaphore.AcquireOptions) *wait {
	a := &wait{w: n.w, done: make(chan struct{})}
	ctx, a.cancel = context.WithCancelCause(ctx)
	go func() {
		defer close(a.done)
		a.permit, a.err = s.Acquire(ctx, opts)
		a.at = n.w.Now()
	}()
	synctest.Wait()
	return a
}

// pending says that the acquire has not returned.
func (a *wait) pending() bool {
	select {
	case <-a.done:
		return false
	default:
		return true
	}
}

// granted waits for the permit, and fails if it came at another time.
func (a *wait) granted(at time.Duration) *semaphore.Permit {
	a.w.T.Helper()
	<-a.done
	require.NoError(a.w.T, a.err)
	require.Equal(a.w.T, at, a.at, "when it was granted")
	return a.permit
}

// grantedBy waits for the permit, and fails if it came before at, or more than
// 50 ms after it.
func (a *wait) grantedBy(at time.Duration) *semaphore.Permit {
	a.w.T.Helper()
	<-a.done
	require.NoError(a.w.T, a.err)
	require.GreaterOrEqual(a.w.T, a.at, at)
	require.LessOrEqual(a.w.T, a.at, at+50*ms)
	return a.permit
}

// refused waits for the error, and fails if it came at another time or for
// another reason.
func (a *wait) refused(at time.Duration, reason berth.Reason) *berth.AcquireError {
	a.w.T.Helper()
	<-a.done
	require.Nil(a.w.T, a.permit)
	require.ErrorIs(a.w.T, a.err, berth.ErrNotAcquired)
	var refusal *berth.AcquireError
	require.ErrorAs(a.w.T, a.err, &refusal)
	require.Equal(a.w.T, reason, refusal.Reason)
	require.Equal(a.w.T, at, a.at, "when it was refused")
	require.Equal(a.w.T, gpu, refusal.Name)
	require.NotEmpty(a.w.T, refusal.Claim)
	return refusal
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
	return w.Call("semaphore_acquire", "60000", "berth:wake:", gpu, node, claim, "1", line.Lane(r.Priority), line.Tail(&r),
		strconv.Itoa(capacity), policy.String())
}

func millis(n int64) string { return strconv.FormatInt(n, 10) }

// stats are the counts after a sweep, by the scripts alone.
func (w *world) stats() semaphore.Stats {
	w.T.Helper()
	w.Call("semaphore_sweep", "60000", "berth:wake:", gpu, "looks-on", "0")
	r := w.Call("claim_stats", "1000")
	return semaphore.Stats{
		Capacity: int(r.Int(1)), Held: int(r.Int(2)), Holders: int(r.Int(3)), Waiting: int(r.Int(4)),
	}
}

// collect reads a listing to its end.
func collect[T any](t *testing.T, seq func(func(T, error) bool)) []T {
	t.Helper()
	var all []T
	for item, err := range seq {
		require.NoError(t, err)
		all = append(all, item)
	}
	return all
}

var errMine = errors.New("my own reason")
