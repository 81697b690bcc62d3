package once_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/once"
	"github.com/berth-go/berth/pkg/qlock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	ms            = time.Millisecond
	lease, margin = testkit.Lease, testkit.Margin
	// digest is the name of these tests, record the Redis key of what is known of its runs.
	digest = "digest"
	record = "berth:once:{digest}:state"
	hour   = time.Hour
)

// world is a server in virtual time, and processes on it.
type world struct{ *testkit.World }

// inWorld runs a test in virtual time. What the test leaves running fails it.
func inWorld(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	testkit.In(t, digest, "berth:lock:{digest}:state", "berth:lock:{digest}:line", func(t *testing.T, w *testkit.World) { test(t, &world{w}) })
}

// inWorldOf runs one row of a table in a world of its own.
func inWorldOf(t *testing.T, row string, test func(t *testing.T, w *world)) {
	t.Helper()
	t.Run(row, func(t *testing.T) { inWorld(t, test) })
}

// process is a node on a link of its own, as in a process of its own.
type process struct {
	*node.Node
	*testkit.Process
	w    *world
	jobs sync.Map // by what each was made with
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

// job is the job of the tests' name, the same one for the same cfg.
func (n *process) job(cfg once.Config) *once.Job { return n.named(digest, cfg) }

// named is the job of a name. Its lease is that of the tests unless cfg says so.
func (n *process) named(name string, cfg once.Config) *once.Job {
	cfg.Lease = cmp.Or(cfg.Lease, lease)
	job, _ := n.jobs.LoadOrStore(fmt.Sprint(name, cfg), once.New(n.Node, name, cfg))
	return job.(*once.Job)
}

var errMine = errors.New("my own reason")

// hourly is the Config of most tests.
var hourly = once.Config{Every: hour}

// waiting has the calls of a job wait.
func waiting(cfg once.Config) once.Config {
	cfg.Wait = true
	return cfg
}

// outcome is a call that has returned.
type outcome struct {
	once.Result
	err error
}

// call is a Do on its way.
type call = testkit.Wait[outcome]

// start does in the background, and lets everything settle.
func (n *process) start(ctx context.Context, cfg once.Config, f once.Func) *call {
	n.w.T.Helper()
	return testkit.Queue(ctx, n.w.World, func(ctx context.Context) (outcome, error) {
		r, err := n.job(cfg).Do(ctx, f)
		return outcome{r, err}, nil
	})
}

// takes is an f that takes a time, whatever its context says, and returns err.
func takes(d time.Duration, err error) once.Func {
	return func(context.Context, *once.Run) error {
		time.Sleep(d)
		return err
	}
}

// never is an f that must not run.
func never(t *testing.T) once.Func {
	t.Helper()
	return func(context.Context, *once.Run) error {
		t.Error("it ran")
		return nil
	}
}

// ran does, and requires that f ran, with that error.
func (n *process) ran(cfg once.Config, want error) once.Result {
	n.w.T.Helper()
	r, err := n.job(cfg).Do(context.Background(), takes(ms, want))
	require.ErrorIs(n.w.T, err, want)
	require.Equal(n.w.T, once.Ran, r.Status)
	return r
}

// finds does, and requires a status without a run.
func (n *process) finds(cfg once.Config, want once.Status) once.Result {
	n.w.T.Helper()
	r, _ := n.fails(cfg, nil)
	require.Equal(n.w.T, want, r.Status)
	return r
}

// fails does, and requires that error without a run.
func (n *process) fails(cfg once.Config, want error) (once.Result, error) {
	n.w.T.Helper()
	r, err := n.job(cfg).Do(context.Background(), never(n.w.T))
	require.ErrorIs(n.w.T, err, want)
	return r, err
}

// begins begins a run, which somebody else ends.
func (n *process) begins(cfg once.Config) (*once.Run, once.Result) {
	n.w.T.Helper()
	run, r, err := n.job(cfg).Begin(context.Background())
	require.NoError(n.w.T, err)
	return run, r
}

// last is what is known of the runs.
func (n *process) last() once.Last {
	n.w.T.Helper()
	last, err := n.job(hourly).Last(context.Background())
	require.NoError(n.w.T, err)
	return last
}

// locks are those that runs stand on, of another process.
func (w *world) locks() *qlock.Locks {
	w.T.Helper()
	return qlock.New(w.node().Node, qlock.Config{})
}

// slow lets a script take a time to reach the server.
func slow(script string, takes time.Duration) func(link.Command) link.Fate {
	return on(script, link.Pass, func() { time.Sleep(takes) })
}

// on has something done before a script reaches the server, which then has a fate.
func on(script string, fate link.Fate, do func()) func(link.Command) link.Fate {
	return func(c link.Command) link.Fate {
		if c.Name != script {
			return link.Pass
		}
		do()
		return fate
	}
}

// kept is all that the server keeps of the runs.
func (w *world) kept() map[string]string {
	w.T.Helper()
	fields, err := w.Do("HGETALL", record).AsStrMap()
	require.NoError(w.T, err)
	return fields
}
