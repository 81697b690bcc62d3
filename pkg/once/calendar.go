package once

import (
	"time"

	"github.com/berth-go/berth"
)

// Daily returns the Config of a job that fires each day at a time of day, such as "02:00", in a time zone, such as
// "Europe/Berlin"; "" means UTC. If clocks go back and the time comes twice, the job fires at the first; if clocks go
// forward and skip the time, the job fires at the moment of the change. So each day has one moment, and periods last 23 to
// 25 hours.
//
// Job.Run begins at the moment. Do and Begin use the period around the moment, half a day before and after, as with Around.
// For a bad time or zone, each call of the job returns an error. Time zones come from the machine; import time/tzdata to
// have them everywhere.
func Daily(at, zone string) Config {
	return days(at, zone, nil, func(y int, m time.Month, d, i int) time.Time { return date(y, m, d+i) })
}

// Weekly is like Daily, on one day of the week.
func Weekly(day time.Weekday, at, zone string) Config {
	var err error
	if day < time.Sunday || day > time.Saturday {
		err = berth.Invalid("day", "%d is no day of the week", day)
	}
	return days(at, zone, err, func(y int, m time.Month, d, i int) time.Time {
		return date(y, m, d+int(day-date(y, m, d).Weekday())+7*i)
	})
}

// Monthly is like Daily, on one day of the month, from 1 to 31. In a shorter month the job fires on the
// last day.
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
	err  error                                         // why the calendar is unusable
}

func days(at, zone string, err error, day func(y int, m time.Month, d, i int) time.Time) Config {
	c := &calendar{zone: time.UTC, day: day, err: err}
	if clock, bad := time.Parse("15:04", at); bad != nil {
		c.err = berth.Invalid("at", "%q is no time of day such as 02:00", at)
	} else {
		c.at = clock.Sub(clock.Truncate(24 * time.Hour))
	}
	if l, bad := time.LoadLocation(zone); bad != nil || zone == "Local" { // Local differs between machines
		c.err = berth.Invalid("zone", "%q is no time zone that is known here", zone)
	} else {
		c.zone = l
	}
	return Config{Schedule: c}
}

// date returns the midnight of a date's local clock, expressed in UTC.
func date(y int, m time.Month, d int) time.Time { return time.Date(y, m, d, 0, 0, 0, 0, time.UTC) }

func (c *calendar) Next(t time.Time) time.Time {
	y, m, d := t.In(c.zone).Date()
	for i := -1; ; i++ {
		if moment := c.moment(c.day(y, m, d, i).Add(c.at)); moment.After(t) {
			return moment
		}
	}
}

// moment returns the first moment at which the local clock shows wall, which is expressed in UTC, or later.
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
