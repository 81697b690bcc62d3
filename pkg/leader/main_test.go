package leader_test

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/leader"
	"github.com/berth-go/berth/pkg/node"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	ms            = time.Millisecond
	lease, margin = testkit.Lease, testkit.Margin
	// boss is what these tests elect.
	boss = "boss"
)

var errOwn = errors.New("my own reason")

// world is a server in virtual time, and processes on it.
type world struct{ *testkit.World }

// inWorld runs a test in virtual time. What the test leaves running fails it.
func inWorld(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	testkit.In(t, boss, "berth:lock:{boss}:state", "berth:lock:{boss}:line", func(t *testing.T, w *testkit.World) { test(t, &world{w}) })
}

// each runs a test in virtual time for each row of a table.
func each[R any](t *testing.T, rows map[string]R, test func(t *testing.T, w *world, row R)) {
	t.Helper()
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) { test(t, w, row) })
		})
	}
}

// process is a node on a link of its own, as in a process of its own.
type process struct {
	*node.Node
	*testkit.Process
	w *world
}

// node starts a process. Its lease is that of the tests unless cfg says so.
func (w *world) node(cfg ...node.Config) *process {
	w.T.Helper()
	n := &process{Process: w.Process(), w: w}
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

// election is one of the tests' name; nil for no options. Its lease is that of the tests unless cfg says so.
func (n *process) election(cfg *leader.Config) *leader.Election { return n.named(boss, cfg) }

func (n *process) named(name string, cfg *leader.Config) *leader.Election {
	var c leader.Config
	if cfg != nil {
		c = *cfg
	}
	c.Lease = cmp.Or(c.Lease, lease)
	return leader.New(n.Node, name, c)
}

// term is one run of f.
type term struct {
	ctx       context.Context
	fence     int64
	from      time.Duration
	ended, by time.Duration // when ctx ended, and when f returned; 0 for not yet
}

// candidate is a Run on its way.
type candidate struct {
	*testkit.Wait[struct{}]
	n *process
	e *leader.Election

	mu    sync.Mutex
	terms []*term // guarded by mu
}

// stand begins a Run, and lets everything settle. f is what f does, beside being recorded; nil to
// wait for the end of the context.
func (n *process) stand(cfg *leader.Config, f func(ctx context.Context) error) *candidate {
	return n.standOn(context.Background(), cfg, f)
}

func (n *process) standOn(ctx context.Context, cfg *leader.Config, f func(ctx context.Context) error) *candidate {
	n.w.T.Helper()
	c := &candidate{n: n, e: n.election(cfg)}
	if f == nil {
		f = func(ctx context.Context) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}
	}
	c.Wait = testkit.Queue(ctx, n.w.World, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, c.e.Run(ctx, func(ctx context.Context) error { return c.lead(ctx, f) })
	})
	n.w.T.Cleanup(func() {
		c.Cancel(nil)
		<-c.Done
	})
	return c
}

func (c *candidate) lead(ctx context.Context, f func(ctx context.Context) error) error {
	t := &term{ctx: ctx, from: c.n.w.Now(), fence: c.e.Fence(ctx)}
	c.mu.Lock()
	c.terms = append(c.terms, t)
	c.mu.Unlock()
	stop := context.AfterFunc(ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		t.ended = c.n.w.Now()
	})
	defer func() {
		stop()
		c.mu.Lock()
		defer c.mu.Unlock()
		t.by = c.n.w.Now()
	}()
	return f(ctx)
}

// all are the terms so far.
func (c *candidate) all() (terms []term) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.terms {
		terms = append(terms, *t)
	}
	return terms
}

// leads says whether f runs now, under a context that lives.
func (c *candidate) leads() bool {
	terms := c.all()
	return len(terms) > 0 && terms[len(terms)-1].by == 0 && terms[len(terms)-1].ctx.Err() == nil
}

// only is the one term so far.
func (c *candidate) only() term {
	c.n.w.T.Helper()
	terms := c.all()
	require.Len(c.n.w.T, terms, 1)
	return terms[0]
}

// returned is what Run has returned.
func (c *candidate) returned() error {
	c.n.w.T.Helper()
	synctest.Wait()
	require.True(c.n.w.T, c.Over(), "Run goes on")
	return c.Err
}

// waiting is how many stand in line.
func (w *world) waiting() int {
	w.T.Helper()
	return len(w.Waiters())
}

// want asks for leadership back, as an operator does.
func (w *world) want(op *process) {
	w.T.Helper()
	asked, err := op.Operator().Want(context.Background(), berth.Target{Kind: keyspace.Lock, Name: boss})
	require.NoError(w.T, err)
	require.Equal(w.T, 1, asked)
	synctest.Wait()
}
