package qlock_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/qlock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	ms = time.Millisecond
	// lease is what the clients of these tests have as their wait lease: its
	// third, half and hundredth are whole milliseconds.
	lease = 6 * time.Second
	// margin is what a holder gives up of it: 2 ms and 1 %.
	margin = 62 * ms
	// door is the lock of these tests, for those that need only one.
	door = "door"
	// stateKey and lineKey are its keys.
	stateKey, lineKey = "berth:lock:{door}:state", "berth:lock:{door}:line"
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
	*qlock.Client
	*link.Link
	w      *world
	redis  rueidis.Client
	mu     sync.Mutex
	events []observe.Event // guarded by mu
	closed bool
}

// node starts a client. Its lease is that of the tests unless cfg says so.
func (w *world) node(cfg ...qlock.Config) *node {
	w.T.Helper()
	n := &node{w: w, Link: link.New(testkit.Script)}
	var err error
	n.redis, err = w.Server.Client(testkit.RarePings, n.Wrap)
	require.NoError(w.T, err)
	w.T.Cleanup(n.redis.Close)
	var c qlock.Config
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
	n.Client, err = qlock.New(n.redis, c)
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
	l, err := n.Lock(context.Background(), "connect", nil)
	require.NoError(n.w.T, err)
	require.NoError(n.w.T, l.Release(context.Background()))
	for range 16 { // each goes over one of two connections
		require.NoError(n.w.T, n.redis.Do(context.Background(), n.redis.B().Exists().Key("connect").Build()).Error())
	}
	n.w.Do("DEL", "berth:lock:{connect}:state")
	synctest.Wait() // also for what the first claim has the client load
	n.mu.Lock()
	n.events = nil
	n.mu.Unlock()
	n.Reset()
}

// asks says whether a command is the script of a verb, that of locks or that of thin names.
func asks(c link.Command, verb string) bool { return c.Name == "lock_"+verb || c.Name == "thin_"+verb }

// asked is how many scripts of a verb have been sent since the last Reset.
func (n *node) asked(verb string) int { return n.Count("lock_"+verb) + n.Count("thin_"+verb) }

// die ends the node's connections for good: nothing of it reaches the server
// any more, as after a kill -9.
func (n *node) die() { n.Cut() }

// leftOf is what the server says is left of a lock's hold; ok is false if it has none.
func (w *world) leftOf(l *qlock.Lock) (left time.Duration, ok bool) {
	w.T.Helper()
	of := *w.World
	of.State, of.Line = "berth:lock:{"+l.Name()+"}:state", "berth:lock:{"+l.Name()+"}:line"
	return of.LeftOf(l.ID())
}

// take locks the door at once.
func (n *node) take(opts *qlock.LockOptions) *qlock.Lock {
	n.w.T.Helper()
	return n.takeOn(context.Background(), opts)
}

// takeFor locks the door at once for an owner.
func (n *node) takeFor(owner string, opts *qlock.LockOptions) *qlock.Lock {
	n.w.T.Helper()
	return n.takeOn(berth.WithOwner(context.Background(), owner), opts)
}

func (n *node) takeOn(ctx context.Context, opts *qlock.LockOptions) *qlock.Lock {
	n.w.T.Helper()
	l, err := n.Lock(ctx, door, opts)
	require.NoError(n.w.T, err)
	return l
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
	lock   *qlock.Lock
	err    error
	at     time.Duration // when it returned
}

// queue locks the door in the background, and lets everything settle.
func (n *node) queue(opts *qlock.LockOptions) *wait {
	n.w.T.Helper()
	return n.queueOn(context.Background(), opts)
}

func (n *node) queueOn(ctx context.Context, opts *qlock.LockOptions) *wait {
	a := &wait{w: n.w, done: make(chan struct{})}
	ctx, a.cancel = context.WithCancelCause(ctx)
	go func() {
		defer close(a.done)
		a.lock, a.err = n.Lock(ctx, door, opts)
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

// returned waits for the acquire to return, no longer than a second beyond the
// moment at which it should: what renews by itself would go on for ever.
func (a *wait) returned(by time.Duration) {
	a.w.T.Helper()
	patience := time.NewTimer(max(by-a.w.Now(), 0) + time.Second)
	defer patience.Stop()
	select {
	case <-a.done:
	case <-patience.C:
		require.Fail(a.w.T, "it has not returned")
	}
}

// granted waits for the lock, and fails if it came at another time.
func (a *wait) granted(at time.Duration) *qlock.Lock {
	a.w.T.Helper()
	a.returned(at)
	require.NoError(a.w.T, a.err)
	require.Equal(a.w.T, at, a.at, "when it was granted")
	return a.lock
}

// grantedBy waits for the lock, and fails if it came before at, or more than
// 50 ms after it.
func (a *wait) grantedBy(at time.Duration) *qlock.Lock {
	a.w.T.Helper()
	a.returned(at)
	require.NoError(a.w.T, a.err)
	require.GreaterOrEqual(a.w.T, a.at, at)
	require.LessOrEqual(a.w.T, a.at, at+50*ms)
	return a.lock
}

// refused waits for the error, and fails if it came at another time or for
// another reason.
func (a *wait) refused(at time.Duration, reason berth.Reason) *berth.AcquireError {
	a.w.T.Helper()
	a.returned(at)
	require.Nil(a.w.T, a.lock)
	require.ErrorIs(a.w.T, a.err, berth.ErrNotAcquired)
	var refusal *berth.AcquireError
	require.ErrorAs(a.w.T, a.err, &refusal)
	require.Equal(a.w.T, reason, refusal.Reason)
	require.Equal(a.w.T, at, a.at, "when it was refused")
	require.Equal(a.w.T, door, refusal.Name)
	require.NotEmpty(a.w.T, refusal.Claim)
	return refusal
}

// held is who holds the door, the outermost first, and who waits, by their claims.
func (w *world) held(n *node) (entries, waiters []string) {
	w.T.Helper()
	info, err := n.Info(context.Background(), door)
	require.NoError(w.T, err)
	for _, h := range info.Entries {
		entries = append(entries, h.ID)
	}
	for _, q := range collect(w.T, n.Queue(context.Background(), door)) {
		waiters = append(waiters, q.ID)
	}
	return entries, waiters
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
