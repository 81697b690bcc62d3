package swarm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/clock"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/keyspace"
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
	*testkit.World
	line *fakeLine
}

// inWorld runs a test in virtual time. What the test leaves running fails it.
func inWorld(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	testkit.In(t, "nodes", stateKey, probesKey, func(t *testing.T, w *testkit.World) { test(t, &world{w, newLine()}) })
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
	*testkit.Process
	w *world

	mu       sync.Mutex
	id       string     // guarded by mu
	ids      int        // guarded by mu
	replaced []replaced // guarded by mu
	closing  bool       // guarded by mu
}

// node makes a client whose swarm is not started. It never flushes by itself unless
// change says otherwise.
func (w *world) node(id string, change ...func(*Config)) *node {
	w.T.Helper()
	n := &node{Process: w.Process(), w: w, id: id}
	space, err := keyspace.New("berth")
	require.NoError(w.T, err)
	cfg := Config{
		Runner: scriptkit.NewRunner(n.Redis, scriptkit.Options{Retry: berth.Retry{Jitter: -1}}), Space: space,
		Label: "label of " + id, FlushEvery: -1, Clock: clock.New(), Line: w.line,
		Node: n.current, Replace: n.replace, Observe: n.Observer(nil).Observe, Rand: func() float64 { return 0.5 },
	}
	for _, f := range change {
		f(&cfg)
	}
	n.Swarm, err = New(cfg)
	require.NoError(w.T, err)
	w.T.Cleanup(func() {
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
	n.replaced = append(n.replaced, replaced{n.w.Now(), n.id, reason})
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

// ends are the replacements so far.
func (n *node) ends() []replaced {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.replaced)
}

// start starts the swarm, which succeeds.
func (n *node) start() *node {
	n.w.T.Helper()
	require.NoError(n.w.T, n.Start(context.Background()))
	return n
}

// heal mends the link, and probes until that is confirmed: the connections that were
// there before may still have to be found broken.
func (n *node) heal() {
	n.w.T.Helper()
	n.Mend()
	for range 3 {
		if n.ProbeNow(context.Background()) == nil {
			return
		}
	}
	n.w.T.Fatal("no probe is confirmed")
}

const limitMS, memoryMS = "15000", "86400000"

func (w *world) probe(node string, run int) string {
	w.T.Helper()
	r := w.Call("swarm_probe", node, strconv.Itoa(run), "l", limitMS, memoryMS)
	return r.Status()
}

func (w *world) condemn(node string) (status string, number int64) {
	w.T.Helper()
	r := w.Call("swarm_condemn", node, memoryMS)
	if r.Len() == 1 {
		return r.Status(), 0
	}
	return r.Status(), r.Int(1)
}

func (w *world) leave(node string, run, stays int) string {
	w.T.Helper()
	r := w.Call("swarm_leave", node, strconv.Itoa(run), strconv.Itoa(stays), memoryMS)
	return r.Status()
}

// members are the members of the probes, in order.
func (w *world) members() []string {
	w.T.Helper()
	members, err := w.Do("ZRANGE", probesKey, "0", "-1").AsStrSlice()
	require.NoError(w.T, err)
	return members
}

var errMine = errors.New("my own reason")
