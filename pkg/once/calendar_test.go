package once_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	_ "time/tzdata"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/amount"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/once"
)

// moments are those of a Config in a span of time, by the clock on the wall.
func moments(t *testing.T, cfg once.Config, zone, from, to string) (all []string) {
	t.Helper()
	l, err := time.LoadLocation(zone)
	require.NoError(t, err)
	require.NoError(t, cfg.Validate())
	at, end := testkit.Must(time.ParseInLocation(time.DateOnly, from, l)).In(t), testkit.Must(time.ParseInLocation(time.DateOnly, to, l)).In(t)
	for at = cfg.Schedule.Next(at.Add(-1)); at.Before(end); at = cfg.Schedule.Next(at) {
		all = append(all, at.In(l).Format("01-02 15:04 MST"))
	}
	return all
}

func TestWhenADayHasATimeTwiceOrNot(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		cfg            func(zone string) once.Config
		zone, from, to string
		want           []string
	}{
		{dailyAt("02:30"), "Europe/Berlin", "2026-03-28", "2026-03-31", []string{"03-28 02:30 CET", "03-29 03:00 CEST", "03-30 02:30 CEST"}},
		{dailyAt("02:30"), "Europe/Berlin", "2026-10-24", "2026-10-27", []string{"10-24 02:30 CEST", "10-25 02:30 CEST", "10-26 02:30 CET"}},
		{dailyAt("02:00"), "Europe/Berlin", "2026-10-25", "2026-10-26", []string{"10-25 02:00 CEST"}},
		{dailyAt("03:00"), "Europe/Berlin", "2026-10-25", "2026-10-26", []string{"10-25 03:00 CET"}},
		// There midnight did not exist, and the hour before midnight came twice.
		{dailyAt("00:30"), "America/Sao_Paulo", "2018-11-03", "2018-11-06", []string{"11-03 00:30 -03", "11-04 01:00 -02", "11-05 00:30 -02"}},
		{dailyAt("23:30"), "America/Sao_Paulo", "2018-02-17", "2018-02-19", []string{"02-17 23:30 -02", "02-18 23:30 -03"}},
		// There the clocks go by half an hour.
		{dailyAt("01:45"), "Australia/Lord_Howe", "2026-04-05", "2026-04-06", []string{"04-05 01:45 +11"}},
		{dailyAt("02:15"), "Australia/Lord_Howe", "2026-10-04", "2026-10-05", []string{"10-04 02:30 +11"}},
		// There a day was left out.
		{dailyAt("12:00"), "Pacific/Apia", "2011-12-29", "2012-01-01", []string{"12-29 12:00 -10", "12-31 00:00 +14", "12-31 12:00 +14"}},
		{
			func(zone string) once.Config { return once.Weekly(time.Sunday, "02:30", zone) }, "Europe/Berlin", "2026-03-20", "2026-04-06",
			[]string{"03-22 02:30 CET", "03-29 03:00 CEST", "04-05 02:30 CEST"},
		},
		{
			func(zone string) once.Config { return once.Monthly(31, "00:00", zone) }, "Asia/Kathmandu", "2028-01-01", "2028-06-01",
			[]string{"01-31 00:00 +0545", "02-29 00:00 +0545", "03-31 00:00 +0545", "04-30 00:00 +0545", "05-31 00:00 +0545"},
		},
	} {
		require.Equal(t, row.want, moments(t, row.cfg(row.zone), row.zone, row.from, row.to), row.zone)
	}
}

func dailyAt(at string) func(zone string) once.Config {
	return func(zone string) once.Config { return once.Daily(at, zone) }
}

func TestWhatCalendarsAndSchedulesAreRefused(t *testing.T) {
	t.Parallel()
	for field, all := range map[string][]once.Config{
		"at":   {once.Daily("", ""), once.Daily("24:00", ""), once.Daily("02:00:30", ""), once.Weekly(time.Monday, "2 am", "")},
		"zone": {once.Daily("02:00", "Europe/Bonn"), once.Daily("02:00", "Local"), once.Monthly(1, "02:00", "../etc")},
		"day":  {once.Weekly(7, "02:00", ""), once.Weekly(-1, "02:00", ""), once.Monthly(0, "02:00", ""), once.Monthly(32, "02:00", "")},
		"Schedule": {
			{Schedule: once.Daily("02:00", "").Schedule, Every: hour},
			{Schedule: once.Daily("02:00", "").Schedule, Offset: hour},
			{Schedule: schedule(func(time.Time) time.Time { return time.Time{} })},
			{Schedule: schedule(func(t time.Time) time.Time { return t.Add(hour) })}, // "@every 1h"
			{Schedule: schedule(func(t time.Time) time.Time { return t })},
			{Schedule: schedule(func(t time.Time) time.Time { return t.Add(ms).Truncate(ms) })},
			{Schedule: list(time.Now().Add(-20 * 365 * 24 * hour))},
		},
		"Attempts": {{Schedule: once.Daily("02:00", "").Schedule, Attempts: -1}},
	} {
		for _, cfg := range all {
			requireField(t, field, cfg.Validate(), cfg)
		}
	}
}

// schedule is a Schedule that is a function, list one of some moments.
type schedule func(t time.Time) time.Time

func (s schedule) Next(t time.Time) time.Time { return s(t) }

func list(moments ...time.Time) schedule {
	return func(t time.Time) time.Time {
		for _, m := range moments {
			if m.After(t) {
				return m
			}
		}
		return time.Time{}
	}
}

// The five zones change their clocks at other times of the day, by other amounts, or never. Two machines whose clocks are
// minutes apart from the server's have a process start at each moment of their own clock, as cron does. make nightly has them run
// on all days, make test within three days of a change.
func TestEachDayOfAYearIsDoneOnce(t *testing.T) {
	const days = 366
	for _, zone := range []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo", "Asia/Kathmandu"} {
		t.Run(zone, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { // from 2000 on, a leap year, in which all but Kathmandu changed their clocks
				y := &year{t: t, first: time.Now().AddDate(0, 0, 1), done: map[string]int{}}
				server := testkit.Must(embedded.Start()).In(t)
				defer server.Close()
				y.redis = testkit.Must(server.Client(link.RarePings, link.Slim)).In(t)
				defer y.redis.Close()
				times := []string{"00:30", "02:00", "02:30", "03:00"}
				for _, at := range times {
					for _, ahead := range []time.Duration{-7 * time.Minute, 7 * time.Minute} {
						y.firing.Go(func() { y.fires(zone, at, ahead, days) })
					}
				}
				y.firing.Wait()
				require.Equal(t, days*len(times), y.days/2)
				for day, times := range y.done {
					require.Equal(t, 1, times, day)
				}
				if zone != "Asia/Kathmandu" || amount.Times() > 1 {
					require.NotEmpty(t, y.done)
				}
			})
		})
	}
}

// year is one in which jobs fire.
type year struct {
	t      *testing.T
	redis  rueidis.Client
	first  time.Time
	firing sync.WaitGroup
	mu     sync.Mutex
	done   map[string]int // guarded by mu: how often, by the job and its date
	days   int            // guarded by mu: how many there were
}

// fires has a machine fire on so many days, by a clock that is ahead of the server's.
func (y *year) fires(zone, at string, ahead time.Duration, days int) {
	cfg, last := once.Daily(at, zone), once.Period{}
	for moment := cfg.Schedule.Next(y.first); moment.Before(y.first.AddDate(0, 0, days)); moment = cfg.Schedule.Next(moment) {
		period := once.PeriodAt(cfg, moment.Add(-ahead))
		require.Equal(y.t, once.PeriodAt(cfg, moment), period, "what either machine finds")
		if !last.End.IsZero() {
			require.Equal(y.t, last.End, period.Start)
		}
		last = period
		y.mu.Lock()
		y.days++
		y.mu.Unlock()
		_, before := moment.AddDate(0, 0, -3).Zone()
		if _, after := moment.AddDate(0, 0, 3).Zone(); before == after && amount.Times() == 1 {
			continue
		}
		y.mu.Lock()
		y.done[at+moment.Format(" 2006-01-02")] += 0
		y.mu.Unlock()
		time.Sleep(time.Until(moment.Add(-ahead)))
		n := testkit.Must(node.New(y.redis, node.Config{Observer: observe.Func(func(e observe.Event) {
			if e.Kind.Level() >= observe.Missed.Level() {
				y.t.Errorf("%s at %s: %+v", at, moment, e)
			}
		})})).In(y.t)
		if _, err := once.New(n, at, cfg).Do(context.Background(), func(context.Context, *once.Run) error {
			y.mu.Lock()
			defer y.mu.Unlock()
			y.done[at+moment.Format(" 2006-01-02")]++
			return nil
		}); err != nil {
			y.t.Errorf("%s at %s: %v", at, moment, err)
		}
		if err := n.Close(context.Background()); err != nil {
			y.t.Error(err)
		}
	}
}
