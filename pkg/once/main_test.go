package once_test

import (
	"cmp"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berth-go/berth/internal/testkit"
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

// world is a server in virtual time, and clients of it.
type world struct{ *testkit.World }

// inWorld runs a test in virtual time. What the test leaves running fails it.
func inWorld(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	testkit.In(t, digest, "berth:lock:{digest}:state", "berth:lock:{digest}:line", func(t *testing.T, w *testkit.World) { test(t, &world{w}) })
}

// node is a client on a link of its own, as in a process of its own.
type node struct {
	*once.Client
	*testkit.Process
	w *world
}

// node starts a client. Its lease is that of the tests unless cfg says so.
func (w *world) node(cfg ...qlock.Config) *node {
	w.T.Helper()
	n := &node{Process: w.Process(), w: w}
	var c qlock.Config
	if len(cfg) > 0 {
		c = cfg[0]
	}
	c.Lease, c.Observer = cmp.Or(c.Lease, lease), n.Observer(c.Observer)
	var err error
	n.Client, err = once.New(n.Redis, c)
	require.NoError(w.T, err)
	n.Closes(n.Client.Close)
	return n
}

// do runs f in the period of an hour, and returns what came of it.
func (n *node) do(f func() error) (once.Result, error) {
	return n.Do(context.Background(), digest, once.Options{Every: hour}, func(context.Context, *once.Run) error { return f() })
}
