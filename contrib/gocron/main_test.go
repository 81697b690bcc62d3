package berthgocron_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berth-go/berth/pkg/berthtest"
	"github.com/berth-go/berth/pkg/node"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a server of Redis in virtual time.
type world struct {
	t      *testing.T
	server *berthtest.Server
	mu     sync.Mutex // guards what the jobs of a test note
}

// inWorld runs a test in virtual time, from 2000-01-01 00:31 UTC on, a Saturday.
func inWorld(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		time.Sleep(31 * time.Minute)
		test(t, &world{t: t, server: berthtest.New(t)})
	})
}

// node is that of another process.
func (w *world) node() *node.Node {
	w.t.Helper()
	return w.server.Node(node.Config{})
}

// replica starts a scheduler whose clock is ahead of the server's by so much. It
// ends with the test, before what was made earlier.
func (w *world) replica(ahead time.Duration, opts ...gocron.SchedulerOption) gocron.Scheduler {
	w.t.Helper()
	s, err := gocron.NewScheduler(append(opts,
		gocron.WithClock(clock{clockwork.NewRealClock(), ahead}), gocron.WithLocation(time.UTC))...)
	require.NoError(w.t, err)
	w.t.Cleanup(func() { require.NoError(w.t, s.Shutdown()) })
	s.Start()
	return s
}

// clock is one that is ahead of the others. Its durations are theirs.
type clock struct {
	clockwork.Clock
	ahead time.Duration
}

func (c clock) Now() time.Time                  { return c.Clock.Now().Add(c.ahead) }
func (c clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }
func (c clock) Until(t time.Time) time.Duration { return t.Sub(c.Now()) }
