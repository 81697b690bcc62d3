package integration

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/semaphore"
	"github.com/berth-go/berth/test/harness"
)

const patience = testkit.Patience

// calls is how long an attempt of a call may take, and the removal of a claim that has left: with heard, no
// pause of the machine fails one.
const calls = 30 * time.Second

const safe = testkit.Safe

// world is a namespace of its own on a server.
type world struct {
	testkit.Patient
	server   *harness.Server
	admin    rueidis.Client
	ns       string
	space    keyspace.Space
	kind     keyspace.Kind // whose keys are looked at
	capacity int           // of semaphores that are used; 0: 1
}

func newWorld(t *testing.T, server *harness.Server) *world {
	t.Helper()
	w := &world{Patient: testkit.RealTime(t), server: server, admin: server.Client(t), ns: harness.Namespace(t), kind: keyspace.Sem}
	var err error
	w.space, err = keyspace.New(w.ns)
	require.NoError(t, err)
	return w
}

// reader reads what the processes do, as a user.
func (w *world) reader() testkit.Reader { return w.Reader(w.admin, w.ns) }

// shared is a world on the server that tests share.
func shared(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	return newWorld(t, harness.Shared(t))
}

// private is a world on a server for this test alone.
func private(t *testing.T, args ...string) *world {
	t.Helper()
	t.Parallel()
	return newWorld(t, harness.Start(t, args...))
}

// node returns a node on a connection of its own, closed when the test ends.
func (w *world) node(cfg node.Config, edits ...func(*rueidis.ClientOption)) *node.Node {
	w.Helper()
	return w.nodeOn(w.server.Client(w.T, edits...), cfg)
}

// nodeOn is node on a given connection. What the test says nothing of is such that no
// pause of the machine matters.
func (w *world) nodeOn(redis rueidis.Client, cfg node.Config) *node.Node {
	w.Helper()
	cfg.Namespace = w.ns
	cfg.Lease, cfg.CallTimeout = cmp.Or(cfg.Lease, time.Minute), cmp.Or(cfg.CallTimeout, calls)
	cfg.CleanupTimeout, cfg.Retry = cmp.Or(cfg.CleanupTimeout, calls), cmp.Or(cfg.Retry, heard)
	n, err := node.New(redis, cfg)
	require.NoError(w, err)
	w.closed(n.Close)
	return n
}

// closed has a node closed when the test ends.
func (w *world) closed(by func(context.Context) error) {
	w.Cleanup(func() {
		if err := by(w.Within(patience)); err != nil && !w.Failed() {
			w.Logf("closing a node: %v", err)
		}
	})
}

// sem is a semaphore of a node.
func (w *world) sem(n *node.Node, name string, capacity int) *semaphore.Semaphore {
	return semaphore.New(n, name, capacity, semaphore.Config{})
}

// take acquires, and fails the test if that takes too long.
func (w *world) take(s *semaphore.Semaphore, opts *semaphore.AcquireOptions) *semaphore.Permit {
	w.Helper()
	p, err := s.Acquire(w.Within(patience), opts)
	require.NoError(w, err)
	return p
}

// taking is an acquire on its way.
type taking = testkit.Call[*semaphore.Permit]

// queue begins an acquire, and returns when so many wait on the server.
func (w *world) queue(s *semaphore.Semaphore, opts *semaphore.AcquireOptions, waiting int) *taking {
	w.Helper()
	q := w.begin(s, opts)
	w.awaitInLine(s.Name(), waiting, q.Over)
	return q
}

// awaitInLine waits until so many wait for a name. A wait that is over before
// never stands in line: what it was to wait for had ended too soon.
func (w *world) awaitInLine(name string, waiting int, over func() bool) {
	w.Helper()
	w.Await("the claim stands in line", func() bool {
		ended := over() // before the look: who waits then may end after
		if w.look(name).waiting() >= waiting {
			return true
		}
		require.False(w, ended, "the wait for %q is over, but was to be one of %d", name, waiting)
		return false
	})
}

// begin begins an acquire.
func (w *world) begin(s *semaphore.Semaphore, opts *semaphore.AcquireOptions) *taking {
	return testkit.Begin(w.Within(2*patience), func(ctx context.Context) (*semaphore.Permit, error) { return s.Acquire(ctx, opts) })
}

// do runs a command, whose answer must not be an error. It is sent again where a
// connection breaks: some tests break them all.
func (w *world) do(words ...string) (result rueidis.RedisResult) {
	w.Helper()
	w.Await(words[0]+" is answered", func() bool {
		result = w.admin.Do(w.Within(patience), w.admin.B().Arbitrary(words...).Build())
		_, answered := rueidis.IsRedisErr(result.Error())
		return result.Error() == nil || rueidis.IsRedisNil(result.Error()) || answered
	})
	if err := result.Error(); !rueidis.IsRedisNil(err) {
		require.NoError(w, err, words)
	}
	return result
}

// info is one field of INFO.
func (w *world) info(section, field string) string {
	w.Helper()
	text, err := w.do("INFO", section).ToString()
	require.NoError(w, err)
	for line := range strings.Lines(text) {
		if key, value, _ := strings.Cut(strings.TrimSpace(line), ":"); key == field {
			return value
		}
	}
	return ""
}

// runs counts the scripts that a private server has run, without the looks.
func (w *world) runs() int {
	w.Helper()
	return w.ran("evalsha") + w.ran("eval")
}

// ran counts how often a private server has run a command, by scripts too.
func (w *world) ran(command string) int {
	w.Helper()
	calls, _, _ := strings.Cut(strings.TrimPrefix(w.info("commandstats", "cmdstat_"+command), "calls="), ",")
	if calls == "" {
		return 0
	}
	n, err := strconv.Atoi(calls)
	require.NoError(w, err)
	return n
}

// number is a number of INFO.
func (w *world) number(section, field string) int {
	w.Helper()
	n, err := strconv.Atoi(w.info(section, field))
	require.NoError(w, err)
	return n
}

// now is the server's time in milliseconds.
func (w *world) now() int64 {
	w.Helper()
	t, err := w.do("TIME").AsIntSlice()
	require.NoError(w, err)
	return t[0]*1000 + t[1]/1000
}
