package once

import (
	"time"

	"github.com/berth-go/berth"
)

// Daily returns the Config of a job that fires each day at a time of day, as "02:00", in a time zone, as "Europe/Berlin"; "" is UTC.
// A day that has the time twice, as the clocks go back, fires at the first; a day that does not have it, as they go forward, fires
// at the moment of the change. So there is one moment a day, and days last 23 to 25 hours.
//
// Job.Run begins at the moment. Do and Begin go by the period around it, as with Around: half a day before and after. Where the
// time or the zone cannot be, each call of the job says so. A program has the zones from its machine; import time/tzdata to have
// them anywhere.
func Daily(at, zone string) Config {
	return days(at, zone, nil, func(y int, m time.Month, d, i int) time.Time { return date(y, m, d+i) })
}

// Weekly is Daily on one day of the week.
func Weekly(day time.Weekday, at, zone string) Config {
	var err error
	if day < time.Sunday || day > time.Saturday {
		err = berth.Invalid("day", "%d is no day of the week", day)
	}
	return days(at, zone, err, func(y int, m time.Month, d, i int) time.Time {
		return date(y, m, d+int(day-date(y, m, d).Weekday())+7*i)
	})
}

// Monthly is Daily on one day of the month, from 1 to 31. Months that are shorter fire on their last day.
func Monthly(day int, at, zone string) Config {
	var err error
	if day < 1 || day > 31 {
		err = berth.Invalid("day", "%d is not within 1 to 31", day)
	}
	return days(at, zone, err, func(y int, m time.Month, _, i int) time.Time {
		return date(y, m+time.Month(i), min(day, date(y, m+time.Month(i)+1, 0).Day()))
	})
}

// calendar is a Schedule of one time on some days of a time zone.
type calendar struct {
	at   time.Duration // since midnight by the clock on the wall
	zone *time.Location
	day  func(y int, m time.Month, d, i int) time.Time // the i-th day that fires from about that date on, at midnight
	err  error                                         // why it cannot be
}

func days(at, zone string, err error, day func(y int, m time.Month, d, i int) time.Time) Config {
	c := &calendar{zone: time.UTC, day: day, err: err}
	if clock, bad := time.Parse("15:04", at); bad != nil {
		c.err = berth.Invalid("at", "%q is no time of day such as 02:00", at)
	} else {
		c.at = clock.Sub(clock.Truncate(24 * time.Hour))
	}
	if l, bad := time.LoadLocation(zone); bad != nil || zone == "Local" { // Local is another one on each machine
		c.err = berth.Invalid("zone", "%q is no time zone that is known here", zone)
	} else {
		c.zone = l
	}
	return Config{Schedule: c}
}

// date is the midnight with which a date begins on the wall, as if it were in UTC.
func date(y int, m time.Month, d int) time.Time { return time.Date(y, m, d, 0, 0, 0, 0, time.UTC) }

func (c *calendar) Next(t time.Time) time.Time {
	y, m, d := t.In(c.zone).Date()
	for i := -1; ; i++ {
		if moment := c.moment(c.day(y, m, d, i).Add(c.at)); moment.After(t) {
			return moment
		}
	}
}

// moment is the first one at which the clock on the wall shows a time or more, which is given as if it were in UTC.
func (c *calendar) moment(wall time.Time) time.Time {
	for t := wall.Add(-15 * time.Hour).In(c.zone); ; { // it is earlier there in any zone
		_, offset := t.Zone()
		shows := wall.Add(-time.Duration(offset) * time.Second).In(c.zone)
		if shows.Before(t) {
			shows = t // the clocks went forward over it
		}
		_, end := t.ZoneBounds()
		if end.IsZero() || shows.Before(end) {
			return shows
		}
		t = end
	}
}
