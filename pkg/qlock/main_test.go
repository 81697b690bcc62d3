package qlock_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/claims"
	"github.com/berth-go/berth/internal/model/link"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/scriptkit"
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

// names are the names of the scripts by their SHA-1.
var names = sync.OnceValue(func() map[string]string {
	byHash := make(map[string]string)
	for _, s := range claims.Library().Scripts() {
		byHash[s.SHA] = s.Name
	}
	return byHash
})

// world is a server in virtual time, and clients of it.
type world struct {
	t      *testing.T
	server *embedded.Server
	redis  rueidis.Client // looks on
	run    *scriptkit.Runner
	began  time.Time
}

// inWorld runs a test in virtual time. What the test leaves running fails it.
func inWorld(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server, err := embedded.Start()
		require.NoError(t, err)
		defer server.Close()
		redis, err := server.Client(rarePings)
		require.NoError(t, err)
		defer redis.Close()
		w := &world{t: t, server: server, redis: redis, began: time.Now()}
		w.run = scriptkit.NewRunner(redis, scriptkit.Options{})
		require.NoError(t, w.run.Load(t.Context(), claims.Library().Scripts()...))
		test(t, w)
	})
}

// rarePings keeps rueidis from sending a PING a second, which makes hours of
// virtual time long.
func rarePings(option *rueidis.ClientOption) {
	option.Dialer.KeepAlive = time.Hour
	option.ConnWriteTimeout = 10 * time.Second
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
	w.t.Helper()
	n := &node{w: w, Link: link.New(func(sha string) string { return names()[sha] })}
	var err error
	n.redis, err = w.server.Client(rarePings, n.Wrap)
	require.NoError(w.t, err)
	w.t.Cleanup(n.redis.Close)
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
	require.NoError(w.t, err)
	w.t.Cleanup(func() { n.close() })
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

// connect makes all of the client's connections for calls.
func (n *node) connect() {
	n.w.t.Helper()
	for range 32 {
		l, err := n.Lock(context.Background(), "connect", nil)
		require.NoError(n.w.t, err)
		require.NoError(n.w.t, l.Release(context.Background()))
	}
	n.w.do("DEL", "berth:lock:{connect}:state")
	n.mu.Lock()
	n.events = nil
	n.mu.Unlock()
	n.Reset()
}

// die ends the node's connections for good: nothing of it reaches the server
// any more, as after a kill -9.
func (n *node) die() { n.Cut() }

// take locks the door at once.
func (n *node) take(opts *qlock.LockOptions) *qlock.Lock {
	n.w.t.Helper()
	return n.takeOn(context.Background(), opts)
}

// takeFor locks the door at once for an owner.
func (n *node) takeFor(owner string, opts *qlock.LockOptions) *qlock.Lock {
	n.w.t.Helper()
	return n.takeOn(berth.WithOwner(context.Background(), owner), opts)
}

func (n *node) takeOn(ctx context.Context, opts *qlock.LockOptions) *qlock.Lock {
	n.w.t.Helper()
	l, err := n.Lock(ctx, door, opts)
	require.NoError(n.w.t, err)
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
	n.w.t.Helper()
	return n.queueOn(context.Background(), opts)
}

func (n *node) queueOn(ctx context.Context, opts *qlock.LockOptions) *wait {
	a := &wait{w: n.w, done: make(chan struct{})}
	ctx, a.cancel = context.WithCancelCause(ctx)
	go func() {
		defer close(a.done)
		a.lock, a.err = n.Lock(ctx, door, opts)
		a.at = n.w.now()
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
	a.w.t.Helper()
	patience := time.NewTimer(max(by-a.w.now(), 0) + time.Second)
	defer patience.Stop()
	select {
	case <-a.done:
	case <-patience.C:
		require.Fail(a.w.t, "it has not returned")
	}
}

// granted waits for the lock, and fails if it came at another time.
func (a *wait) granted(at time.Duration) *qlock.Lock {
	a.w.t.Helper()
	a.returned(at)
	require.NoError(a.w.t, a.err)
	require.Equal(a.w.t, at, a.at, "when it was granted")
	return a.lock
}

// grantedBy waits for the lock, and fails if it came before at, or more than
// 50 ms after it.
func (a *wait) grantedBy(at time.Duration) *qlock.Lock {
	a.w.t.Helper()
	a.returned(at)
	require.NoError(a.w.t, a.err)
	require.GreaterOrEqual(a.w.t, a.at, at)
	require.LessOrEqual(a.w.t, a.at, at+50*ms)
	return a.lock
}

// refused waits for the error, and fails if it came at another time or for
// another reason.
func (a *wait) refused(at time.Duration, reason berth.Reason) *berth.AcquireError {
	a.w.t.Helper()
	a.returned(at)
	require.Nil(a.w.t, a.lock)
	require.ErrorIs(a.w.t, a.err, berth.ErrNotAcquired)
	var refusal *berth.AcquireError
	require.ErrorAs(a.w.t, a.err, &refusal)
	require.Equal(a.w.t, reason, refusal.Reason)
	require.Equal(a.w.t, at, a.at, "when it was refused")
	require.Equal(a.w.t, door, refusal.Name)
	require.NotEmpty(a.w.t, refusal.Claim)
	return refusal
}

// now is how long the test has run.
func (w *world) now() time.Duration { return time.Since(w.began) }

// advance lets time pass, and everything that happens then.
func (w *world) advance(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// until lets the time pass up to a moment of the test.
func (w *world) until(at time.Duration) {
	w.t.Helper()
	require.LessOrEqual(w.t, w.now(), at, "that moment has passed")
	w.advance(at - w.now())
}

// call runs a script as a process would that a test has no client for.
func (w *world) call(script string, args ...string) scriptkit.Reply {
	w.t.Helper()
	r, err := w.run.Run(context.Background(), claims.Library().Script(script), scriptkit.Once,
		[]string{stateKey, lineKey}, args)
	require.NoError(w.t, err)
	return r
}

// do runs a command on the server, and returns its answer.
func (w *world) do(words ...string) rueidis.RedisResult {
	w.t.Helper()
	r := w.redis.Do(context.Background(), w.redis.B().Arbitrary(words...).Build())
	if err := r.Error(); !rueidis.IsRedisNil(err) {
		require.NoError(w.t, err)
	}
	return r
}

func (w *world) int(words ...string) int64 {
	w.t.Helper()
	n, err := w.do(words...).AsInt64()
	require.NoError(w.t, err)
	return n
}

// keys are all keys on the server.
func (w *world) keys() []string {
	w.t.Helper()
	keys, err := w.do("KEYS", "*").AsStrSlice()
	require.NoError(w.t, err)
	return keys
}

// dump is all that the server has, for comparing.
func (w *world) dump() string {
	w.t.Helper()
	fields, err := w.do("HGETALL", stateKey).AsStrMap()
	require.NoError(w.t, err)
	line, err := w.do("ZRANGE", lineKey, "0", "-1", "WITHSCORES").AsZScores()
	require.NoError(w.t, err)
	return fmt.Sprint(fields, line)
}

// expiry is when the keys of the door expire, as a moment of the test. It
// fails if that is not the same instant for all that exist.
func (w *world) expiry() time.Duration {
	w.t.Helper()
	at := w.int("PEXPIRETIME", stateKey)
	if line := w.int("PEXPIRETIME", lineKey); line != -2 {
		require.Equal(w.t, at, line, "the keys expire at the same instant")
	}
	if at < 0 {
		return time.Duration(at)
	}
	return time.UnixMilli(at).Sub(w.began)
}

// held is who holds the door, the outermost first, and who waits, by their claims.
func (w *world) held(n *node) (entries, waiters []string) {
	w.t.Helper()
	info, err := n.Info(context.Background(), door)
	require.NoError(w.t, err)
	for _, h := range info.Entries {
		entries = append(entries, h.ID)
	}
	for _, q := range collect(w.t, n.Queue(context.Background(), door)) {
		waiters = append(waiters, q.ID)
	}
	return entries, waiters
}

// field is a number of the state.
func (w *world) field(name string) int64 {
	w.t.Helper()
	n, err := w.do("HGET", stateKey, name).AsInt64()
	if rueidis.IsRedisNil(err) {
		return 0
	}
	require.NoError(w.t, err)
	return n
}

// leftOf is what the server says is left of a claim's hold; ok is false if it
// has none.
func (w *world) leftOf(claim string) (left time.Duration, ok bool) {
	w.t.Helper()
	score, err := w.do("ZSCORE", lineKey, "h:"+claim).AsFloat64()
	if rueidis.IsRedisNil(err) {
		return 0, false
	}
	require.NoError(w.t, err)
	return time.Until(time.UnixMilli(int64(score))), true
}

// requireIdle fails unless nothing is held, nobody waits, and no record is left.
func (w *world) requireIdle() {
	w.t.Helper()
	synctest.Wait()
	require.Zero(w.t, w.int("EXISTS", lineKey), "the line is empty")
	fields, err := w.do("HGETALL", stateKey).AsStrMap()
	require.NoError(w.t, err)
	for name, value := range fields {
		require.False(w.t, strings.HasPrefix(name, "c:"), "a record is left: %s = %s", name, value)
	}
	for _, name := range []string{"used", "waiting", "gone", "forever"} {
		require.Zero(w.t, w.field(name), name)
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
