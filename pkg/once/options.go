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

// Config says what the periods of a job are, and how a call goes about one. All processes give a name the
// same Every and Offset or Schedule, and the same Attempts: each goes by its own.
type Config struct {
	// Every is how long a period is: whole milliseconds, from 20 ms to 8784 h, a leap year. It or Schedule must
	// be given. Make it much longer than a call to the server takes.
	Every time.Duration
	// Offset moves the periods: each starts at a multiple of Every after 1970-01-01 00:00 UTC, plus
	// Offset. Days begin at midnight UTC, weeks on a Thursday. Whole milliseconds, from 0 to below
	// Every. Default 0.
	Offset time.Duration
	// Schedule has the periods lie around its moments, in place of Every and Offset. Daily, Weekly and Monthly return one.
	Schedule Schedule
	// Attempts is how often a period is begun at most, by all processes together: 1 to 1,000,000. A
	// run whose process died counts; one that its own process stopped does not. Default 3.
	Attempts int
	// RetryAfter is how long nobody begins again after this call's run has failed, while attempts are
	// left: whole milliseconds, at most 8784 h. After a death, and after a stop, the next may begin at
	// once. Default with Wait, and of Run, a tenth of a period, at most 1 min; else none.
	RetryAfter time.Duration
	// Wait has a call stand in line while somebody else runs the period, up to the end of the
	// period. So it returns when the period is done, or takes over when that run has failed or its
	// process has died. Run always waits. Default false.
	Wait bool

	// Lease is how long the lock of a run is held without being renewed: within it the next one takes over after a death. Whole
	// milliseconds, at least 20 ms; it must end. Default that of locks, 5 s.
	Lease time.Duration
	// NoRenew leaves the renewing to the caller: a run ends with its lease unless its Hold is renewed. Default false.
	NoRenew bool
	// MaxHold bounds how long one run may take: whole milliseconds, at least 20 ms, or berth.Forever. Default no bound.
	MaxHold time.Duration
	// Priority moves the call ahead of lower ones in line: -128 to 127. Default 0.
	Priority int
	// WantAfter is how long a call that waits, once it stands first, waits until it asks whoever runs to finish: see
	// qlock.LockOptions. Default never.
	WantAfter time.Duration
	// Meta is stored with the lock of a run and shown in listings: up to 16 KiB. Default none.
	Meta map[string]string
	// Attrs goes to the Logger and the Observer with every event of the lock. Default none.
	Attrs map[string]any
}

// lock are the options of the lock of each call, beside its lease.
func (c *Config) lock() qlock.LockOptions {
	return qlock.LockOptions{
		NoRenew: c.NoRenew, MaxHold: c.MaxHold, Priority: c.Priority, WantAfter: c.WantAfter, Meta: c.Meta, Attrs: c.Attrs,
	}
}

// Around returns the Config whose periods have their middle at the moments at + k * every after
// 1970-01-01 00:00 UTC. It is for schedulers that fire at such moments: a firing that comes up to half
// of every too early or too late still meets its own period. For Job.Run, which fires by itself, use Offset. at may be of any size and sign. Where every
// or at cannot be, Validate of the Config says so of Every or Offset.
func Around(every, at time.Duration) Config {
	if every <= 0 {
		return Config{Every: every}
	}
	half := (every / 2).Truncate(time.Millisecond)
	return Config{Every: every, Offset: ((at%every+half)%every + every) % every}
}

// Validate returns a *berth.ConfigError for the first value that cannot be, as each call of a Job does.
func (c Config) Validate() error {
	c = c.complete()
	return cmp.Or(c.validatePeriods(), c.validateRuns(), c.validateLock())
}

// validateLock looks at the options of the lock.
func (c *Config) validateLock() error {
	if c.Lease == berth.Forever {
		return berth.Invalid("Lease", "it must end: a process that died would hold its name for good")
	}
	return settings.Claim{Priority: c.Priority, Lease: c.Lease, MaxHold: c.MaxHold, WantAfter: c.WantAfter, Meta: c.Meta}.Validate()
}

// complete fills what is zero.
func (c Config) complete() Config {
	if c.Attempts == 0 {
		c.Attempts = defaultAttempts
	}
	if c.RetryAfter == 0 && c.Wait {
		c.RetryAfter = min(c.Every/10, time.Minute).Truncate(time.Millisecond)
	}
	return c
}

// validatePeriods looks at what says what a period is.
func (c *Config) validatePeriods() error {
	days, _ := c.Schedule.(*calendar)
	switch {
	case days != nil && days.err != nil:
		return days.err
	case c.Schedule != nil && (c.Every != 0 || c.Offset != 0):
		return berth.Invalid("Schedule", "it is given beside Every or Offset")
	case c.Schedule != nil:
		_, err := c.at(time.Now()) //nolint:forbidigo // whether there is a period; a call goes by the server's clock
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

// validateRuns looks at how often a period is begun.
func (c *Config) validateRuns() error {
	switch {
	case c.Attempts < 1 || c.Attempts > maxAttempts:
		return berth.Invalid("Attempts", "%d is not within 1 to %d", c.Attempts, maxAttempts)
	case c.RetryAfter > maxEvery:
		return berth.Invalid("RetryAfter", "%s is above %s", c.RetryAfter, maxEvery)
	}
	return settings.Duration("RetryAfter", c.RetryAfter)
}

// Period is a span of time by the server's clock. A moment belongs to it from Start on, up to but
// without End.
type Period struct {
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
}

// String is the start in UTC, in RFC 3339.
func (p Period) String() string { return p.Start.UTC().Format(time.RFC3339Nano) }

func (p Period) length() time.Duration { return p.End.Sub(p.Start) }

// overlaps says that what is done for p is done for other, a period of a call whose settings are c, as in scripts/once_begin.lua. With
// the same settings they are the same period. Else callers do not agree about the offset, or about the schedule or its zone:
// of periods around a moment each must reach the other's middle.
func (c *Config) overlaps(p, other Period) bool {
	if c.Schedule == nil {
		return p.Start.Before(other.End) && other.Start.Before(p.End) && p.length() == other.length()
	}
	return middle(other.Start, other.End).Before(p.End) && !middle(p.Start, p.End).Before(other.Start)
}

func period(start, end int64) Period {
	return Period{Start: time.UnixMilli(start).UTC(), End: time.UnixMilli(end).UTC()}
}
