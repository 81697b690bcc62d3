package berthcron_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robfig/cron/v3"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berth-go/berth/pkg/berthtest"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/once"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const digest = "digest"

// world is a server of Redis in virtual time, and what the jobs of a test have noted.
type world struct {
	t      *testing.T
	server *berthtest.Server

	mu  sync.Mutex
	ran []string // guarded by mu
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

// once is the job of another process.
func (w *world) once(cfg once.Config) *once.Job {
	w.t.Helper()
	return once.New(w.server.Node(node.Config{}), digest, cfg)
}

// replica has a job fire as spec says, by a clock that is behind the server's by so much. It ends
// with the test.
func (w *world) replica(behind time.Duration, spec string, job cron.Job) {
	w.t.Helper()
	schedule, err := cron.ParseStandard(spec)
	require.NoError(w.t, err)
	c := cron.New(cron.WithLocation(time.UTC), cron.WithLogger(cron.DiscardLogger))
	c.Schedule(late{schedule, behind}, job)
	c.Start()
	w.t.Cleanup(func() { <-c.Stop().Done() })
}

// late is a schedule by a clock that is behind.
type late struct {
	cron.Schedule
	by time.Duration
}

func (l late) Next(t time.Time) time.Time { return l.Schedule.Next(t.Add(-l.by)).Add(l.by) }

// note keeps what a job has done.
func (w *world) note(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ran = append(w.ran, what)
}

// noted is what was noted, in its order.
func (w *world) noted() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ran
}

// logger notes what it is told.
type logger struct{ w *world }

func (l logger) Info(message string, pairs ...any) {
	l.w.note(fmt.Sprintln(append([]any{message}, pairs...)...))
}

func (l logger) Error(err error, message string, pairs ...any) {
	l.w.note(fmt.Sprintln(append([]any{message, err}, pairs...)...))
}
