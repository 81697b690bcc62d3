package swarm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/clock"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/scriptkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	ms = time.Millisecond
	// limit is the zombie limit of these tests, and margin what a node gives up of
	// it: 2 ms and 1 %.
	limit, margin = 15 * time.Second, 152 * ms
	// last is when a node ends that has confirmed nothing since 0.
	last = limit - margin

	stateKey, probesKey = "berth:swarm:{nodes}:state", "berth:swarm:{nodes}:probes"
)

// world is a server in virtual time, and nodes of it.
type world struct {
	t      *testing.T
	server *embedded.Server
	redis  rueidis.Client // looks on
	run    *scriptkit.Runner
	line   *fakeLine
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
		redis, err := server.Client(testkit.RarePings)
		require.NoError(t, err)
		defer redis.Close()
		w := &world{t: t, server: server, redis: redis, line: newLine(), began: time.Now()}
		w.run = scriptkit.NewRunner(redis, scriptkit.Options{})
		test(t, w)
	})
}

// replaced is one call of Replace.
type replaced struct {
	at     time.Duration
	old    string
	reason Reason
}

// node is a client on a link of its own, as in a process of its own.
type node struct {
	*Swarm
	*link.Link
	w *world

	mu       sync.Mutex
	id       string          // guarded by mu
	ids      int             // guarded by mu
	replaced []replaced      // guarded by mu
	events   []observe.Event // guarded by mu
	closing  bool            // guarded by mu
}

// node makes a client whose swarm is not started. It never flushes by itself unless
// change says otherwise.
func (w *world) node(id string, change ...func(*Config)) *node {
	w.t.Helper()
	n := &node{w: w, id: id, Link: link.New(testkit.Script)}
	redis, err := w.server.Client(testkit.RarePings, n.Wrap)
	require.NoError(w.t, err)
	w.t.Cleanup(redis.Close)
	space, err := keyspace.New("berth")
	require.NoError(w.t, err)
	cfg := Config{
		Runner: scriptkit.NewRunner(redis, scriptkit.Options{Retry: berth.Retry{Jitter: -1}}), Space: space,
		Label: "label of " + id, FlushEvery: -1, Clock: clock.New(), Line: w.line,
		Node: n.current, Replace: n.replace, Observe: n.observe, Rand: func() float64 { return 0.5 },
	}
	for _, f := range change {
		f(&cfg)
	}
	n.Swarm, err = New(cfg)
	require.NoError(w.t, err)
	w.t.Cleanup(func() {
		// As a process that is killed: it asks nobody.
		gone, cancel := context.WithCancel(context.Background())
		cancel()
		_ = n.Stop(gone)
		_ = n.Stop(context.Background())
	})
	return n
}

func (n *node) current() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.id
}

func (n *node) replace(_ context.Context, reason Reason) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.Passed(n.id) {
		panic("a node is replaced whose horizon has not passed")
	}
	n.replaced = append(n.replaced, replaced{n.w.now(), n.id, reason})
	n.ids++
	n.id = fmt.Sprintf("%s-%d", n.replaced[0].old, n.ids)
	if n.Passed(n.id) {
		panic("the new node has passed its horizon")
	}
	if n.closing {
		return ""
	}
	return n.id
}

func (n *node) observe(e observe.Event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.events = append(n.events, e)
}

// told are the events of a kind.
func (n *node) told(kind observe.Kind) []observe.Event {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(n.events), func(e observe.Event) bool { return e.Kind != kind })
}

// ends are the replacements so far.
func (n *node) ends() []replaced {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.replaced)
}

// start starts the swarm, which succeeds.
func (n *node) start() *node {
	n.w.t.Helper()
	require.NoError(n.w.t, n.Start(context.Background()))
	return n
}

// heal mends the link, and probes until that is confirmed: the connections that were
// there before may still have to be found broken.
func (n *node) heal() {
	n.w.t.Helper()
	n.Mend()
	for range 3 {
		if n.ProbeNow(context.Background()) == nil {
			return
		}
	}
	n.w.t.Fatal("no probe is confirmed")
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

// call runs a script as a node would that the test has no client for.
func (w *world) call(script string, args ...string) scriptkit.Reply {
	w.t.Helper()
	r, err := w.run.Run(context.Background(), line.Library().Script(script), scriptkit.Once,
		[]string{stateKey, probesKey}, args)
	require.NoError(w.t, err)
	return r
}

const limitMS, memoryMS = "15000", "86400000"

func (w *world) probe(node string, run int) string {
	w.t.Helper()
	r := w.call("swarm_probe", node, strconv.Itoa(run), "l", limitMS, memoryMS)
	return r.Status()
}

func (w *world) condemn(node string) (status string, number int64) {
	w.t.Helper()
	r := w.call("swarm_condemn", node, memoryMS)
	if r.Len() == 1 {
		return r.Status(), 0
	}
	return r.Status(), r.Int(1)
}

func (w *world) leave(node string, run, stays int) string {
	w.t.Helper()
	r := w.call("swarm_leave", node, strconv.Itoa(run), strconv.Itoa(stays), memoryMS)
	return r.Status()
}

// do runs a command on the server.
func (w *world) do(words ...string) rueidis.RedisResult {
	w.t.Helper()
	r := w.redis.Do(context.Background(), w.redis.B().Arbitrary(words...).Build())
	if err := r.Error(); !rueidis.IsRedisNil(err) {
		require.NoError(w.t, err)
	}
	return r
}

func (w *world) keys() []string {
	w.t.Helper()
	keys, err := w.do("KEYS", "*").AsStrSlice()
	require.NoError(w.t, err)
	slices.Sort(keys)
	return keys
}

// members are the members of the probes, in order.
func (w *world) members() []string {
	w.t.Helper()
	members, err := w.do("ZRANGE", probesKey, "0", "-1").AsStrSlice()
	require.NoError(w.t, err)
	return members
}

// expiry is when the keys expire, which must be one instant, as a moment of the test.
func (w *world) expiry() time.Duration {
	w.t.Helper()
	at, err := w.do("PEXPIRETIME", stateKey).AsInt64()
	require.NoError(w.t, err)
	probes, err := w.do("PEXPIRETIME", probesKey).AsInt64()
	require.NoError(w.t, err)
	if probes != -2 {
		require.Equal(w.t, at, probes, "the keys expire at the same instant")
	}
	return time.UnixMilli(at).Sub(w.began)
}

var errMine = errors.New("my own reason")
