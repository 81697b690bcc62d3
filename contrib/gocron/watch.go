package berthgocron

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/once"
)

// Watch makes the Locker find each job in the scheduler and derive the periods from the job's own schedule. A period
// reaches halfway to the firing before and to the firing after, by the server's clock, so that replicas on both sides of a
// firing find the same period. Watch is for a Locker whose Config sets neither Every nor Schedule. Call Watch before the
// scheduler starts, in all replicas; two schedulers need two Lockers.
//
// A DurationJob, and a CronJob of "@every", fires at intervals from its start. If the start is a whole second, as with
// gocron.WithStartAt, the periods surround these firings; give all replicas the same start. Otherwise the periods have the
// length of the interval, and the first replica that asks runs in each period.
//
// Lock refuses, with a *berth.ConfigError, a job whose firings differ between replicas or are unknown: a DurationRandomJob,
// an interval of several days, weeks or months, your own Cron implementation, and two jobs of one name.
func (l *Locker) Watch(scheduler gocron.Scheduler) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.scheduler = scheduler
}

// derived returns the periods of a job of the scheduler.
func derived(ctx context.Context, scheduler gocron.Scheduler, name string) (once.Config, gocron.JobSchedule, error) {
	found := make(chan []gocron.Job, 1)
	go func() { found <- scheduler.Jobs() }() // a scheduler that stops waits for this call, and does not answer before
	var jobs []gocron.Job
	select {
	case jobs = <-found:
	case <-ctx.Done():
		return once.Config{}, nil, context.Cause(ctx)
	}
	jobs = slices.DeleteFunc(jobs, func(j gocron.Job) bool { return j.Name() != name })
	if len(jobs) != 1 {
		return once.Config{}, nil, berth.Invalid("name", "the scheduler has %d jobs of the name %q: give each a name of its own", len(jobs), name)
	}
	runs, err := jobs[0].NextRuns(3)
	if err == nil && len(runs) == 0 {
		err = errNoRun
	}
	if err != nil {
		return once.Config{}, nil, fmt.Errorf("berth: gocron does not say when %q runs: %w", name, err)
	}
	cfg, err := periods(jobs[0].Schedule(), runs[0])
	if err != nil {
		return cfg, nil, err
	}
	for _, run := range runs {
		if s := cfg.Schedule; s != nil && !run.IsZero() && !s.Next(run.Add(-1)).Equal(run) {
			return cfg, nil, berth.Invalid("Schedule", "the job %q runs at %s, which its schedule does not say: give the Locker Every or Schedule", name, run)
		}
	}
	return cfg, jobs[0].Schedule(), nil
}

var errNoRun = errors.New("it has no next run")

// periods returns the periods of a schedule with one known firing, which shows the location of the
// scheduler.
func periods(schedule gocron.JobSchedule, run time.Time) (once.Config, error) {
	var interval uint
	days := calendar{zone: run.Location()}
	switch s := schedule.(type) {
	case gocron.DurationJobSchedule:
		return every(s.Duration, run), nil
	case gocron.CronJobSchedule:
		if text, ok := strings.CutPrefix(s.Crontab, "@every "); ok {
			d, err := time.ParseDuration(text)
			return every(d, run), err
		}
		c := gocron.NewDefaultCron(true) // five fields mean the same as without seconds
		err := c.IsValid(s.Crontab, run.Location(), run)
		return once.Config{Schedule: crontab{c, run.Location()}}, err
	case gocron.OneTimeJobSchedule:
		return once.Config{Schedule: moments(s.StartAt)}, nil
	case gocron.DailyJobSchedule:
		interval, days.at, days.on = s.Interval, s.AtTimes, func(time.Time) bool { return true }
	case gocron.WeeklyJobSchedule:
		interval, days.at, days.on = s.Interval, s.AtTimes, func(day time.Time) bool { return slices.Contains(s.DaysOfWeek, day.Weekday()) }
	case gocron.MonthlyJobSchedule:
		interval, days.at, days.on = s.Interval, s.AtTimes, func(day time.Time) bool {
			last := time.Date(day.Year(), day.Month()+1, 0, 0, 0, 0, 0, time.UTC).Day()
			return slices.Contains(s.Days, day.Day()) || slices.Contains(s.DaysFromEnd, day.Day()-last-1)
		}
	default:
		return once.Config{}, berth.Invalid("Schedule", "no period can be derived from a %T: give the Locker Every or Schedule", schedule)
	}
	if interval != 1 {
		return once.Config{}, berth.Invalid("Schedule", "an interval of %d is counted from the start of each process: give the Locker Every or Schedule", interval)
	}
	return once.Config{Schedule: &days}, nil
}

// every returns the periods of a job that fires at intervals.
func every(d time.Duration, run time.Time) once.Config {
	if !run.Equal(run.Truncate(time.Second)) {
		run = time.Unix(0, 0)
	}
	return once.Around(d, time.Duration(run.UnixNano()%int64(max(d, 1))))
}

// crontab are the firings of a CronJob.
type crontab struct {
	gocron.Cron
	location *time.Location
}

// Next returns cron's next firing, except that of a time which the local clock shows twice gocron leaves out the second.
func (c crontab) Next(t time.Time) time.Time {
	next := c.Cron.Next(t.In(c.location))
	start, _ := next.ZoneBounds()
	if next.IsZero() || start.IsZero() {
		return next
	}
	_, now := next.Zone()
	_, then := start.Add(-1).Zone()
	first := next.Add(time.Duration(now-then) * time.Second) // when the clock showed it before, if it did
	if then > now && first.Before(start) && c.Cron.Next(first).Equal(next) && c.Cron.Next(first.Add(-1)).Equal(first) {
		return c.Cron.Next(next)
	}
	return next
}

// moments are the firings of a OneTimeJob, in order.
type moments []time.Time

func (m moments) Next(t time.Time) time.Time {
	for _, moment := range m {
		if moment.After(t) {
			return moment
		}
	}
	return time.Time{}
}

// calendar are the firings at some times of some days.
type calendar struct {
	zone *time.Location
	at   []time.Time          // of which the hour, minute and second count
	on   func(time.Time) bool // at midnight UTC of a date
}

// Next searches from the day before on, since the clocks may have gone back.
func (c *calendar) Next(t time.Time) (next time.Time) {
	y, m, d := t.In(c.zone).Date()
	for i := -1; next.IsZero() && i < 5*366; i++ {
		day := time.Date(y, m, d+i, 0, 0, 0, 0, time.UTC)
		if !c.on(day) {
			continue
		}
		for _, at := range c.at {
			moment := time.Date(day.Year(), day.Month(), day.Day(), at.Hour(), at.Minute(), at.Second(), 0, c.zone)
			if moment.After(t) && (next.IsZero() || moment.Before(next)) {
				next = moment
			}
		}
	}
	return next
}
