package berthcron_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	_ "time/tzdata"

	"github.com/redis/rueidis"
	"github.com/robfig/cron/v3"
	"github.com/stretchr/testify/require"

	berthcron "github.com/berth-go/berth/contrib/cron"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/once"
)

// The clocks of three replicas are apart by as much as said, on both sides of the server's, and each fires as its own clock says.
func TestEachFiringOfAScheduleRunsOnce(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	for _, row := range []struct {
		spec  string
		apart time.Duration
	}{
		{"* * * * * *", 300 * time.Millisecond},
		{"*/7 * * * * *", 400 * time.Millisecond},
		{"0,1,30 * * * * *", 400 * time.Millisecond},
		{"15 * * * * *", 20 * time.Second},
		{"@every 90s", 20 * time.Second},
		{"@every 5h", 7 * time.Minute},
		{"0 * * * *", 7 * time.Minute},
		{"*/20 * * * *", 7 * time.Minute},
		{"7,23,51 * * * *", 7 * time.Minute},
		{"30 2 * * *", 7 * time.Minute}, // in Berlin
		{"0 0 * * *", 7 * time.Minute},
		{"0 9-17 * * 1-5", 7 * time.Minute},
		{"0 2 * * 1", 7 * time.Minute},
		{"0 2 * * MON,THU", 7 * time.Minute},
		{"0 0 1 * *", 7 * time.Minute},
		{"0 12 31 * *", 7 * time.Minute},
		{"0 0 1 JAN,JUN *", 7 * time.Minute},
		{"@weekly", 7 * time.Minute},
		{"@monthly", 7 * time.Minute},
		{"CRON_TZ=America/New_York 30 1 * * *", 7 * time.Minute},
		{"CRON_TZ=Asia/Kathmandu 30 0 * * *", 7 * time.Minute},
		{"CRON_TZ=America/Sao_Paulo 0 0 * * 0", 7 * time.Minute},
	} {
		t.Run(row.spec, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(24 * 84 * time.Hour) // 2000-03-25, the day before a change of the clocks in Berlin
				server, err := embedded.Start()
				require.NoError(t, err)
				defer server.Close()
				f := &firings{t: t, done: map[time.Time]int{}}
				f.redis, err = server.Client(link.RarePings, link.Slim)
				require.NoError(t, err)
				defer f.redis.Close()
				schedule, err := cron.NewParser(cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor).Parse(row.spec)
				require.NoError(t, err)
				const times = 10
				for _, ahead := range []time.Duration{-row.apart, 0, row.apart} {
					f.replicas.Go(func() { f.replica(row.spec, schedule, berlin, ahead, times) })
				}
				f.replicas.Wait()
				if _, phases := schedule.(cron.ConstantDelaySchedule); phases { // the first and the last replica are a period apart
					require.InDelta(t, times, len(f.done), 1)
				} else {
					require.Len(t, f.done, times)
				}
				for moment, runs := range f.done {
					require.Equal(t, 1, runs, moment)
				}
			})
		})
	}
}

// firings are those of three replicas.
type firings struct {
	t        *testing.T
	redis    rueidis.Client
	replicas sync.WaitGroup
	mu       sync.Mutex
	done     map[time.Time]int // guarded by mu: how often, by the start of the period
}

// replica fires so often by a clock that is ahead of the server's. It has a node only while it fires, since nodes that look at the
// server every 5 s make months long.
func (f *firings) replica(spec string, schedule cron.Schedule, location *time.Location, ahead time.Duration, times int) {
	moment := time.Now().In(location)
	for range times {
		moment = schedule.Next(moment)
		time.Sleep(time.Until(moment.Add(-ahead)))
		n, err := node.New(f.redis, node.Config{})
		require.NoError(f.t, err)
		job := once.New(n, spec, berthcron.Around(schedule, location))
		berthcron.Job(job, failing{f.t}, func(_ context.Context, run *once.Run) error {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.done[run.Period().Start]++
			if run.Period().Start.After(time.Now()) || run.Period().End.Before(time.Now()) {
				f.t.Errorf("%s is not within %s", time.Now(), run.Period())
			}
			return nil
		}).Run()
		require.NoError(f.t, n.Close(context.Background()))
	}
}

// failing is a logger that wants to hear of nothing but firings that another replica has run.
type failing struct{ t *testing.T }

func (failing) Info(string, ...any) {}

func (l failing) Error(err error, message string, pairs ...any) { l.t.Error(err, message, pairs) }

// Hourly firings, which somebody gave periods of two hours.
func TestTwoFiringsInOnePeriodAreTold(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var told []observe.Event
		n := w.server.Node(node.Config{Observer: observe.Func(func(e observe.Event) {
			if e.Kind == observe.FiredTwice {
				told = append(told, e)
			}
		})})
		job := once.New(n, digest, once.Around(2*time.Hour, 0))
		w.replica(0, "0 * * * *", berthcron.Job(job, logger{w}, func(context.Context, *once.Run) error { return nil }))
		time.Sleep(150 * time.Minute)
		require.Equal(t, []string{
			"job berth: two firings fall into one period, and the second one is skipped name digest period 2000-01-01T01:00:00Z\n",
		}, w.noted())
		require.Len(t, told, 1)
		require.Equal(t, "2000-01-01T01:00:00Z", told[0].Detail)
	})
}

func TestWhatAroundCannotBeEachFiringSays(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		job := func(s cron.Schedule) cron.Job {
			return berthcron.Job(w.once(berthcron.Around(s, nil)), logger{w}, func(context.Context, *once.Run) error { return nil })
		}
		never, err := cron.ParseStandard("0 0 31 2 *")
		require.NoError(t, err)
		job(never).Run()
		job(nil).Run()
		require.Equal(t, []string{
			"job berth: invalid Schedule: it has no moment name digest\n",
			"job berth: invalid Every: it must be given: how long a period is name digest\n",
		}, w.noted())
	})
}
