package once

import (
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/settings"
)

// Schedule defines the moments at which a job fires. Next returns the first moment after t, which is in UTC, or the zero
// time for none. The result must depend only on t, and must be the same in all processes. A cron.Schedule of robfig/cron is
// a Schedule if its text names a time zone, except "@every".
//
// Each moment has a period, which reaches halfway to the moment before and halfway to the moment after. So a process whose
// clock is ahead of the server's or behind it still fires in the right period, and each period has one moment. The periods
// of the first and the last moment are equally long on both sides.
type Schedule interface {
	Next(t time.Time) time.Time
}

// span is a period with derived times. Neighboring periods may have other lengths, so no length is used.
type span struct {
	period Period
	moment time.Time // with a Schedule, when the job fires; else the start
	due    time.Time // when the next period ends
	keep   time.Time // when the period after the next ends
}

// at returns the period of a time of the server's clock.
func (c *Config) at(now time.Time) (span, error) {
	if c.Schedule != nil {
		return around(c.Schedule, now.UTC())
	}
	start := now.Add(-time.Duration((now.UnixMilli()-c.Offset.Milliseconds())%c.Every.Milliseconds()) * time.Millisecond).UTC()
	after := func(periods time.Duration) time.Time { return start.Add(periods * c.Every) }
	return span{Period{start, after(1)}, start, after(2), after(3)}, nil
}

// around returns the period of a Schedule that contains now.
func around(s Schedule, now time.Time) (span, error) {
	moment := s.Next(now)
	if !moment.IsZero() && !s.Next(moment.Add(-time.Millisecond)).Equal(moment) {
		return span{}, berth.Invalid("Schedule", "its moments depend on when it is asked: give Every")
	}
	if last := before(s, now); !last.IsZero() && (moment.IsZero() || now.Before(middle(last, moment))) {
		moment = last
	}
	if moment.IsZero() {
		return span{}, berth.Invalid("Schedule", "it has no moment")
	}
	m := [5]time.Time{before(s, moment.Add(-time.Millisecond)), moment}
	gap := moment.Sub(m[0])
	if m[0].IsZero() {
		if gap = maxEvery; !s.Next(moment).IsZero() {
			gap = s.Next(moment).Sub(moment)
		}
		m[0] = moment.Add(-gap)
	}
	for i := 2; i < len(m); i++ {
		if m[i] = s.Next(m[i-1]); m[i].IsZero() {
			m[i] = m[i-1].Add(gap)
		}
		gap = m[i].Sub(m[i-1])
	}
	found := span{Period{middle(m[0], m[1]), middle(m[1], m[2])}, moment.UTC(), middle(m[2], m[3]), middle(m[3], m[4])}
	switch {
	case found.period.length() < settings.MinLease:
		return span{}, berth.Invalid("Schedule", "a period of %s is below %s", found.period.length(), settings.MinLease)
	case now.Before(found.period.Start) || !now.Before(found.period.End):
		return span{}, berth.Invalid("Schedule", "it has no moment near %s", now.Format(time.RFC3339))
	}
	return found, nil
}

// middle returns the time halfway between two moments, in whole milliseconds.
func middle(a, b time.Time) time.Time { return a.Add(b.Sub(a) / 2).Truncate(time.Millisecond).UTC() }

// before returns the last moment up to t, zero for none in 20 years.
func before(s Schedule, t time.Time) time.Time {
	upTo := func(m time.Time) bool { return !m.IsZero() && !m.After(t) }
	none, last := t, time.Time{} // no moment lies after none
	for back := time.Second; last.IsZero(); back *= 2 {
		if back > 20*maxEvery {
			return last
		}
		if m := s.Next(t.Add(-back)); upTo(m) {
			last = m
		} else {
			none = t.Add(-back)
		}
	}
	for { // the distance halves, so that a moment each second costs no more than one a year
		next := s.Next(last)
		if !upTo(next) || !next.After(last) {
			return last
		}
		last = next
		half := last.Add(none.Sub(last) / 2)
		if m := s.Next(half); upTo(m) {
			last = m
		} else {
			none = half
		}
	}
}

// between returns how many periods lie between two periods, at most mostMissed.
func (c *Config) between(end, start time.Time) (count int64) {
	if c.Schedule == nil {
		return int64(max(start.Sub(end), 0) / c.Every)
	}
	for m := c.Schedule.Next(end.Add(-1)); !m.IsZero() && m.Before(start) && count < mostMissed; m = c.Schedule.Next(m) {
		count++
	}
	return count
}

// mostMissed limits a count between stored times, which may be arbitrary.
const mostMissed = 10_000
