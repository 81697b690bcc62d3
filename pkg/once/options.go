package once

import (
	"cmp"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/settings"
	"github.com/berth-go/berth/pkg/qlock"
)

const (
	defaultAttempts = 3
	maxAttempts     = 1_000_000
	maxEvery        = 8784 * time.Hour // a leap year
)

// Config defines the periods of a job and how a call runs one. All processes must use the same Every and
// Offset, or the same Schedule, and the same Attempts for a name, because each process uses its own
// values.
type Config struct {
	// Every is the length of a period: whole milliseconds, from 20 ms to 8784 h, a leap year. Either Every or
	// Schedule is required. Make Every much longer than a call to the server takes.
	Every time.Duration
	// Offset moves the periods: each starts at a multiple of Every after 1970-01-01 00:00 UTC, plus
	// Offset. Days begin at midnight UTC, weeks on a Thursday. Whole milliseconds, from 0 to below
	// Every. Default 0.
	Offset time.Duration
	// Schedule defines periods around its moments, instead of Every and Offset. Daily, Weekly and Monthly return a Config
	// with a Schedule.
	Schedule Schedule
	// Attempts is how many runs of a period may begin, in all processes together: 1 to 1,000,000. A
	// run whose process died counts; a run that its own process stopped does not. Default 3.
	Attempts int
	// RetryAfter is the pause after a failed run of this call before another run may begin: whole
	// milliseconds, at most 8784 h. After a death or a stop the next run may begin at once. Default
	// with Wait, and for Run, a tenth of a period, at most 1 min; else no pause.
	RetryAfter time.Duration
	// Wait makes a call stand in line, up to the end of the period, while another call runs the
	// period. The call returns when the period is done, or takes over if that run has failed or
	// its process has died. Run always waits. Default false.
	Wait bool

	// Lease is how long the lock of a run is held without a renewal: after a death the next call takes over within this time.
	// Whole milliseconds, at least 20 ms, not berth.Forever. Default 5 s, as for locks.
	Lease time.Duration
	// NoRenew turns off automatic renewal: a run ends with its lease unless the caller renews its Hold. Default
	// false.
	NoRenew bool
	// MaxHold limits how long one run may take: whole milliseconds, at least 20 ms, or berth.Forever. Default no limit.
	MaxHold time.Duration
	// Priority puts the call ahead of all lower priorities in line: -128 to 127. Default 0.
	Priority int
	// WantAfter makes a call that has waited at the head of the line for this long ask the present run to finish;
	// see qlock.LockOptions. Default never.
	WantAfter time.Duration
	// Meta is stored with the lock of a run and shown in listings: up to 16 KiB. Default none.
	Meta map[string]string
	// Attrs is passed to the Logger and the Observer with every event of the lock. Default none.
	Attrs map[string]any
}

// lock returns the options of each call's lock, except the lease.
func (c *Config) lock() qlock.LockOptions {
	return qlock.LockOptions{
		NoRenew: c.NoRenew, MaxHold: c.MaxHold, Priority: c.Priority, WantAfter: c.WantAfter, Meta: c.Meta, Attrs: c.Attrs,
	}
}

// Around returns the Config whose periods have their middle at the moments at + k * every after 1970-01-01 00:00 UTC. Use
// Around for schedulers that fire at such moments: a firing up to half of every too early or too late still belongs to its
// own period. For Job.Run, which fires by itself, use Offset. Parameter at may have any size and sign. For a bad every or
// at, Validate of the Config returns an error of Every or Offset.
func Around(every, at time.Duration) Config {
	if every <= 0 {
		return Config{Every: every}
	}
	half := (every / 2).Truncate(time.Millisecond)
	return Config{Every: every, Offset: ((at%every+half)%every + every) % every}
}

// Validate returns a *berth.ConfigError for the first bad value, as each call of a Job does.
func (c Config) Validate() error {
	c = c.complete()
	return cmp.Or(c.validatePeriods(), c.validateRuns(), c.validateLock())
}

// validateLock checks the options of the lock.
func (c *Config) validateLock() error {
	if c.Lease == berth.Forever {
		return berth.Invalid("Lease", "it must end: a process that died would hold its name for good")
	}
	return settings.Claim{Priority: c.Priority, Lease: c.Lease, MaxHold: c.MaxHold, WantAfter: c.WantAfter, Meta: c.Meta}.Validate()
}

// complete fills zero fields with their defaults.
func (c Config) complete() Config {
	if c.Attempts == 0 {
		c.Attempts = defaultAttempts
	}
	if c.RetryAfter == 0 && c.Wait {
		c.RetryAfter = min(c.Every/10, time.Minute).Truncate(time.Millisecond)
	}
	return c
}

// validatePeriods checks the fields that define the periods.
func (c *Config) validatePeriods() error {
	days, _ := c.Schedule.(*calendar)
	switch {
	case days != nil && days.err != nil:
		return days.err
	case c.Schedule != nil && (c.Every != 0 || c.Offset != 0):
		return berth.Invalid("Schedule", "it is given beside Every or Offset")
	case c.Schedule != nil:
		_, err := c.at(time.Now()) //nolint:forbidigo // only whether there is a period; a call uses the server's clock
		return err
	case c.Every == 0:
		return berth.Invalid("Every", "it must be given: how long a period is")
	case c.Every > maxEvery:
		return berth.Invalid("Every", "%s is above %s", c.Every, maxEvery)
	}
	if err := settings.Duration("Every", c.Every); err != nil {
		return err
	}
	if err := settings.Duration("Offset", c.Offset); err != nil {
		return err
	}
	switch {
	case c.Every < settings.MinLease:
		return berth.Invalid("Every", "%s is below %s", c.Every, settings.MinLease)
	case c.Offset >= c.Every:
		return berth.Invalid("Offset", "%s is not below Every, %s", c.Offset, c.Every)
	}
	return nil
}

// validateRuns checks Attempts and RetryAfter.
func (c *Config) validateRuns() error {
	switch {
	case c.Attempts < 1 || c.Attempts > maxAttempts:
		return berth.Invalid("Attempts", "%d is not within 1 to %d", c.Attempts, maxAttempts)
	case c.RetryAfter > maxEvery:
		return berth.Invalid("RetryAfter", "%s is above %s", c.RetryAfter, maxEvery)
	}
	return settings.Duration("RetryAfter", c.RetryAfter)
}

// Period is a span of time by the server's clock, including Start and excluding End.
type Period struct {
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
}

// String returns the start in UTC, in RFC 3339.
func (p Period) String() string { return p.Start.UTC().Format(time.RFC3339Nano) }

func (p Period) length() time.Duration { return p.End.Sub(p.Start) }

// overlaps reports whether a success of p counts for other, a period of a call with settings c, as in
// scripts/once_begin.lua. With equal settings p and other must be the same period. Otherwise the settings differ in offset,
// schedule or time zone; two periods around moments must each reach the other's middle.
func (c *Config) overlaps(p, other Period) bool {
	if c.Schedule == nil {
		return p.Start.Before(other.End) && other.Start.Before(p.End) && p.length() == other.length()
	}
	return middle(other.Start, other.End).Before(p.End) && !middle(p.Start, p.End).Before(other.Start)
}

func period(start, end int64) Period {
	return Period{Start: time.UnixMilli(start).UTC(), End: time.UnixMilli(end).UTC()}
}
