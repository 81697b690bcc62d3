package berthgocron_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	_ "time/tzdata"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	berthgocron "github.com/berth-go/berth/contrib/gocron"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/once"
)

// watch starts a replica whose clock is ahead of the server's, with a Locker that watches it.
func (w *world) watch(n *node.Node, ahead time.Duration, location *time.Location, job gocron.JobDefinition, f func(*once.Run), opts ...gocron.JobOption) {
	w.t.Helper()
	l := berthgocron.NewLocker(n, once.Config{})
	s, err := gocron.NewScheduler(gocron.WithDistributedLocker(l), gocron.WithLocation(location),
		gocron.WithClock(clock{clockwork.NewRealClock(), ahead}))
	require.NoError(w.t, err)
	w.t.Cleanup(func() { require.NoError(w.t, s.Shutdown()) })
	l.Watch(s)
	_, err = s.NewJob(job, gocron.NewTask(func() { f(l.Current(digest)) }), append(opts, gocron.WithName(digest),
		gocron.WithEventListeners(gocron.AfterLockError(func(_ uuid.UUID, _ string, err error) {
			if !errors.Is(err, berthgocron.ErrSkipped) {
				w.t.Error(err)
			}
		})))...)
	require.NoError(w.t, err)
	s.Start()
}

func at(h, m, s uint) gocron.AtTimes { return gocron.NewAtTimes(gocron.NewAtTime(h, m, s)) }

// The clocks of three replicas are apart by as much as said, on both sides of the server's.
func TestAWatchedJobRunsOnceForEachFiring(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	cron := func(text string) func() gocron.JobDefinition { // a CronJob is of one scheduler
		return func() gocron.JobDefinition { return gocron.CronJob(text, false) }
	}
	seconds := func(text string) func() gocron.JobDefinition {
		return func() gocron.JobDefinition { return gocron.CronJob(text, true) }
	}
	plain := func(job gocron.JobDefinition) func() gocron.JobDefinition {
		return func() gocron.JobDefinition { return job }
	}
	const far = 7 * time.Minute
	start := time.Date(2000, 3, 25, 0, 0, 0, 0, time.UTC) // a Saturday, the day before a change of the clocks in Berlin
	startAt := func(after time.Duration) []gocron.JobOption {
		return []gocron.JobOption{gocron.WithStartAt(gocron.WithStartDateTime(start.Add(after)))}
	}
	for name, row := range map[string]struct {
		job                func() gocron.JobDefinition
		apart, from, lasts time.Duration
		runs               int
		opts               []gocron.JobOption
	}{
		"each second":            {seconds("* * * * * *"), 300 * time.Millisecond, 0, 20 * time.Second, 21, nil},
		"each seven seconds":     {seconds("*/7 * * * * *"), time.Second, 0, 63 * time.Second, 10, nil},
		"three a minute":         {seconds("0,1,30 * * * * *"), 400 * time.Millisecond, 0, 2 * time.Minute, 7, nil},
		"each minute":            {cron("* * * * *"), 20 * time.Second, 0, 10 * time.Minute, 11, nil},
		"each 20 minutes":        {cron("*/20 * * * *"), far, 0, 2 * time.Hour, 7, nil},
		"each hour":              {cron("@hourly"), far, 0, 5 * time.Hour, 6, nil},
		"uneven":                 {cron("7,23,51 * * * *"), far, 0, 3 * time.Hour, 10, nil},
		"@every":                 {cron("@every 10m"), time.Minute, 0, time.Hour, 6, startAt(10 * time.Minute)},
		"a distance":             {plain(gocron.DurationJob(10 * time.Minute)), time.Minute, 0, time.Hour, 6, startAt(5 * time.Minute)},
		"each night, by cron":    {cron("30 1 * * *"), far, 24 * time.Hour, time.Hour, 1, nil},
		"twice, by cron":         {cron("30 2 * * *"), far, 218 * 24 * time.Hour, 3 * time.Hour, 1, nil}, // the clocks go back
		"each night in New York": {cron("CRON_TZ=America/New_York 0 0 * * *"), far, 28 * time.Hour, 2 * time.Hour, 1, nil},
		"each night":             {plain(gocron.DailyJob(1, at(1, 30, 0))), far, 24 * time.Hour, time.Hour, 1, nil},
		"in the gap":             {plain(gocron.DailyJob(1, at(2, 30, 0))), far, 24 * time.Hour, 3 * time.Hour, 1, nil},
		"twice a day":            {plain(gocron.DailyJob(1, gocron.NewAtTimes(gocron.NewAtTime(6, 0, 0), gocron.NewAtTime(8, 0, 0)))), far, 4 * time.Hour, 4 * time.Hour, 2, nil},
		"each Saturday":          {plain(gocron.WeeklyJob(1, gocron.NewWeekdays(time.Saturday), at(3, 0, 0))), far, time.Hour, 2 * time.Hour, 1, nil},
		"each Sunday":            {plain(gocron.WeeklyJob(1, gocron.NewWeekdays(time.Saturday, time.Sunday), at(3, 0, 0))), far, 24 * time.Hour, 2 * time.Hour, 1, nil},
		"on workdays, by cron":   {cron("0 9 * * 1-5"), far, 54 * time.Hour, 2 * time.Hour, 1, nil},
		"each month":             {plain(gocron.MonthlyJob(1, gocron.NewDaysOfTheMonth(25), at(3, 0, 0))), far, time.Hour, 2 * time.Hour, 1, nil},
		"from the month's end":   {plain(gocron.MonthlyJob(1, gocron.NewDaysOfTheMonth(-7), at(3, 0, 0))), far, time.Hour, 2 * time.Hour, 1, nil},
		"by month, by cron":      {cron("0 3 25 3 *"), far, time.Hour, 2 * time.Hour, 1, nil},
		"two moments":            {plain(gocron.OneTimeJob(gocron.OneTimeJobStartDateTimes(start.Add(time.Hour), start.Add(3*time.Hour)))), far, 0, 4 * time.Hour, 2, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(time.Until(start.Add(row.from)))
				w := &world{t: t}
				server, err := embedded.Start()
				require.NoError(t, err)
				t.Cleanup(server.Close)
				redis, err := server.Client(link.RarePings, link.Slim)
				require.NoError(t, err)
				t.Cleanup(redis.Close)
				var mu sync.Mutex
				runs := map[time.Time]int{} // guarded by mu
				for _, ahead := range []time.Duration{-row.apart, 0, row.apart} {
					n, err := node.New(redis, node.Config{Observer: observe.Func(func(e observe.Event) {
						if e.Kind.Level() >= observe.Missed.Level() {
							t.Errorf("%+v", e)
						}
					})})
					require.NoError(t, err)
					t.Cleanup(func() { require.NoError(t, n.Close(t.Context())) })
					w.watch(n, ahead, berlin, row.job(), func(run *once.Run) {
						mu.Lock()
						defer mu.Unlock()
						runs[run.Period().Start]++
					}, row.opts...)
				}
				time.Sleep(row.lasts)
				synctest.Wait()
				mu.Lock()
				defer mu.Unlock()
				require.Equal(t, row.runs, len(runs)) //nolint:testifylint // Len prints all of them
				for period, n := range runs {
					require.Equal(t, 1, n, period)
				}
			})
		})
	}
}

// The firings that are derived are those of gocron itself, also as clocks change.
func TestWhatIsDerivedAreTheFiringsOfGocron(t *testing.T) {
	for _, zone := range []string{"Europe/Berlin", "America/Sao_Paulo", "Australia/Lord_Howe"} {
		synctest.Test(t, func(t *testing.T) {
			location, err := time.LoadLocation(zone)
			require.NoError(t, err)
			s, err := gocron.NewScheduler(gocron.WithLocation(location))
			require.NoError(t, err)
			defer func() { require.NoError(t, s.Shutdown()) }()
			s.Start()
			for i, job := range []gocron.JobDefinition{
				gocron.CronJob("30 1 * * *", false), gocron.CronJob("30 2 * * *", false), gocron.CronJob("0 */2 * * *", false), gocron.CronJob("30 23 * * *", false),
				gocron.DailyJob(1, gocron.NewAtTimes(gocron.NewAtTime(0, 30, 0), gocron.NewAtTime(2, 30, 0))),
				gocron.WeeklyJob(1, gocron.NewWeekdays(time.Sunday, time.Tuesday), at(2, 0, 0)), gocron.MonthlyJob(1, gocron.NewDaysOfTheMonth(31, -2), at(2, 30, 1)),
			} {
				name := fmt.Sprint(i)
				j, err := s.NewJob(job, gocron.NewTask(func() {}), gocron.WithName(name))
				require.NoError(t, err)
				cfg, err := berthgocron.Derived(s, name)
				require.NoError(t, err)
				runs, err := j.NextRuns(800)
				require.NoError(t, err)
				for i := range runs[1:] {
					if runs[i+1].IsZero() {
						break // gocron ends a job of some kinds where a day has no midnight
					}
					require.Equal(t, runs[i+1].UTC(), cfg.Schedule.Next(runs[i]).UTC(), "%s %v %s", zone, job, runs[i])
				}
			}
		})
	}
}

func TestAJobWhoseFiringsDifferBetweenReplicasIsRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		l := berthgocron.NewLocker(w.node(), once.Config{})
		_, err := l.Lock(t.Context(), digest)
		require.ErrorIs(t, err, berth.ErrInvalidConfig, "nothing is watched")
		s := w.replica(0)
		l.Watch(s)
		for name, job := range map[string]gocron.JobDefinition{
			"random":   gocron.DurationRandomJob(time.Minute, time.Hour),
			"interval": gocron.DailyJob(2, at(1, 0, 0)),
			"own":      gocron.CronJob("0 * * * *", false),
			"too fast": gocron.DurationJob(time.Millisecond),
		} {
			opts := []gocron.JobOption{gocron.WithName(name)}
			if name == "own" {
				opts = append(opts, gocron.WithCronImplementation(own{gocron.NewDefaultCron(false)}))
			}
			_, err := s.NewJob(job, gocron.NewTask(func() {}), opts...)
			require.NoError(t, err)
			_, err = l.Lock(t.Context(), name)
			require.ErrorIs(t, err, berth.ErrInvalidConfig, name)
		}
		for range 2 {
			w.job(s, "0 * * * *", func() {})
		}
		_, err = l.Lock(t.Context(), digest)
		require.ErrorContains(t, err, "2 jobs of the name")
		_, err = l.Lock(t.Context(), "unknown")
		require.ErrorContains(t, err, "0 jobs of the name")
	})
}

// own fires half an hour late.
type own struct{ gocron.Cron }

func (o own) Next(t time.Time) time.Time { return o.Cron.Next(t).Add(30 * time.Minute) }

func TestAJobThatGetsAnotherScheduleGetsItsPeriods(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		l := berthgocron.NewLocker(w.node(), once.Config{})
		s := w.replica(0)
		l.Watch(s)
		lock := func() once.Period {
			held, err := l.Lock(t.Context(), digest)
			require.NoError(t, err)
			defer func() { require.NoError(t, held.Unlock(t.Context())) }()
			return l.Current(digest).Period()
		}
		job, err := s.NewJob(gocron.CronJob("0 * * * *", false), gocron.NewTask(func() {}), gocron.WithName(digest))
		require.NoError(t, err)
		require.Equal(t, "2000-01-01T00:30:00Z", lock().String())
		_, err = s.Update(job.ID(), gocron.CronJob("*/10 * * * *", false), gocron.NewTask(func() {}), gocron.WithName(digest))
		require.NoError(t, err)
		time.Sleep(50 * time.Minute)
		require.Equal(t, "2000-01-01T01:15:00Z", lock().String())
	})
}

// Hourly firings, which somebody gave periods of two hours.
func TestTwoFiringsInOnePeriodAreTold(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var told []observe.Event
		l := berthgocron.NewLocker(w.server.Node(node.Config{Observer: observe.Func(func(e observe.Event) {
			if e.Kind == observe.FiredTwice {
				told = append(told, e)
			}
		})}), once.Around(2*time.Hour, 0))
		for _, skipped := range []string{"", "berth: the job is skipped: \"digest\" of 1999-12-31T23:00:00Z: fired_twice"} {
			lock, err := l.Lock(t.Context(), digest)
			if skipped != "" {
				require.EqualError(t, err, skipped)
				continue
			}
			require.NoError(t, err)
			require.NoError(t, lock.Unlock(t.Context()))
		}
		require.Len(t, told, 1)
	})
}
