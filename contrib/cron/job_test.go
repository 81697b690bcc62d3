package berthcron_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robfig/cron/v3"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	berthcron "github.com/berth-go/berth/contrib/cron"
	"github.com/berth-go/berth/pkg/berthtest"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/once"
)

// hourly is the Config of most tests, waiting that with which a replica waits, single that of one attempt.
var (
	hourly  = once.Around(time.Hour, 0)
	waiting = once.Config{Every: hourly.Every, Offset: hourly.Offset, Wait: true}
	single  = once.Config{Every: hourly.Every, Offset: hourly.Offset, Attempts: 1}
)

// job is one of a new process that notes its period.
func (w *world) job(cfg once.Config) cron.Job {
	w.t.Helper()
	return berthcron.Job(w.once(cfg), cron.DiscardLogger, func(_ context.Context, run *once.Run) error {
		w.note(run.Period().String())
		return nil
	})
}

func TestAShortJobRunsInOneProcess(t *testing.T) {
	for _, row := range []struct {
		spec    string
		cfg     once.Config
		periods []string
	}{
		{"0 * * * *", hourly, []string{"2000-01-01T00:30:00Z", "2000-01-01T01:30:00Z"}},
		{"@hourly", waiting, []string{"2000-01-01T00:30:00Z", "2000-01-01T01:30:00Z"}},
		{"45 * * * *", once.Around(time.Hour, 45*time.Minute), []string{"2000-01-01T00:15:00Z", "2000-01-01T01:15:00Z"}},
		{"0 2 * * *", once.Around(24*time.Hour, 2*time.Hour), []string{"1999-12-31T14:00:00Z"}},
		{"0 2 * * *", once.Around(24*time.Hour, -22*time.Hour), []string{"1999-12-31T14:00:00Z"}},
		{"50 0,1 * * 6", once.Around(time.Minute, 0), []string{"2000-01-01T00:49:30Z", "2000-01-01T01:49:30Z"}},
	} {
		t.Run(row.spec, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				// The clocks are apart, on both sides of the server's.
				for _, behind := range []time.Duration{11 * time.Second, 0, -10 * time.Second} {
					w.replica(behind, row.spec, w.job(row.cfg))
				}
				time.Sleep(90 * time.Minute)
				require.Equal(t, row.periods, w.noted())
				schedule, err := cron.ParseStandard(row.spec)
				require.NoError(t, err)
				for _, period := range row.periods { // doc.go says where in its period a firing is
					start, err := time.Parse(time.RFC3339, period)
					require.NoError(t, err)
					firing := start.Add(row.cfg.Every / 2)
					require.Equal(t, firing, schedule.Next(firing.Add(-time.Second)))
				}
			})
		})
	}
}

func TestAJobThatStillRunsElsewhereIsSkipped(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for _, behind := range []time.Duration{0, 2 * time.Second} {
			wrapper := berthcron.Wrapper(w.once(once.Around(time.Minute, 0)), nil)
			w.replica(behind, "* * * * *", wrapper(cron.FuncJob(func() {
				w.note("begins")
				time.Sleep(90 * time.Second)
				w.note("ends")
			})))
		}
		time.Sleep(3*time.Minute + 50*time.Second)
		require.Equal(t, []string{"begins", "ends", "begins", "ends"}, w.noted())
	})
}

func TestALoggerIsToldOfSkipsAndErrors(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		failure := error(nil)
		job := berthcron.Job(w.once(single), logger{w}, func(context.Context, *once.Run) error { return failure })
		job.Run()
		require.Empty(t, w.noted())
		berthcron.Job(w.once(single), logger{w}, func(context.Context, *once.Run) error { return nil }).Run()
		time.Sleep(time.Hour)
		failure = errors.New("broken")
		job.Run()
		job.Run()
		require.Equal(t, []string{
			"skip name digest period 2000-01-01T00:30:00Z status done\n",
			"job broken name digest\n",
			"job berth: attempts of the period used up: 1 of 1 for 2000-01-01T01:30:00Z of \"digest\": broken name digest\n",
		}, w.noted())
	})
}

func TestAPanicIsAFailureAndGoesOn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		job := w.once(hourly)
		wrapper := berthcron.Wrapper(job, nil)
		require.PanicsWithValue(t, "at the disco", wrapper(cron.FuncJob(func() { panic("at the disco") })).Run)
		last, err := job.Last(t.Context())
		require.NoError(t, err)
		require.Equal(t, once.Failed, last.Run.Outcome)
	})
}

func TestTheLoggerIsToldAtEachFiringOfWhatCannotBe(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		none := func(context.Context, *once.Run) error { return nil }
		berthcron.Job(nil, logger{w}, none).Run()
		berthcron.Wrapper(nil, logger{w})(cron.FuncJob(func() {})).Run()
		berthcron.Job(w.once(hourly), logger{w}, nil).Run()
		job := berthcron.Job(w.once(once.Config{}), logger{w}, none)
		job.Run()
		job.Run()
		every := "job berth: invalid Every: it must be given: how long a period is name digest\n"
		require.Equal(t, []string{
			"job berth: invalid job: a once.Job is needed\n", "job berth: invalid job: a once.Job is needed\n",
			"job berth: invalid f: there is no function to run name digest\n", every, every,
		}, w.noted())
	})
}

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
