package once

import (
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/settings"
)

const (
	defaultAttempts = 3
	maxAttempts     = 1_000_000
	maxEvery        = 8784 * time.Hour // a leap year
)

// Options say what the periods are, and how a call goes about one. All callers of a name give the
// same Every, Offset and Attempts; each call goes by its own.
type Options struct {
	// Every is how long a period is: whole milliseconds, from 20 ms to 8784 h, a leap year. It must
	// be given. Make it much longer than a call to the server takes.
	Every time.Duration
	// Offset moves the periods: each starts at a multiple of Every after 1970-01-01 00:00 UTC, plus
	// Offset. Days begin at midnight UTC, weeks on a Thursday. Whole milliseconds, from 0 to below
	// Every. Default 0.
	Offset time.Duration
	// Attempts is how often a period is begun at most, by all processes together: 1 to 1,000,000. A
	// run whose process died counts; one that its own process stopped does not. Default 3.
	Attempts int
	// RetryAfter is how long nobody begins again after this call's run has failed, while attempts are
	// left: whole milliseconds, at most 8784 h. After a death, and after a stop, the next may begin at
	// once. Default a tenth of Every, at most 1 min, for a call that waits, as Run always does; else none.
	RetryAfter time.Duration
	// Wait has a call stand in line while somebody else runs the period, up to the end of the
	// period. So it returns when the period is done, or takes over when that run has failed or its
	// process has died. Run always waits. Default false.
	Wait bool
}

// Around returns the Options whose periods have their middle at the moments at + k * every after
// 1970-01-01 00:00 UTC. It is for schedulers that fire at such moments: a firing that comes up to half
// of every too early or too late still meets its own period. at may be of any size and sign. Where every
// or at cannot be, Validate of the Options says so of Every or Offset.
func Around(every, at time.Duration) Options {
	if every <= 0 {
		return Options{Every: every}
	}
	half := (every / 2).Truncate(time.Millisecond)
	return Options{Every: every, Offset: ((at%every+half)%every + every) % every}
}

// Validate returns a *berth.ConfigError for the first value that cannot be, as Do does.
func (o Options) Validate() error {
	_, err := o.complete()
	return err
}

// complete fills what is zero, and returns a *berth.ConfigError for the first value that cannot be.
func (o Options) complete() (Options, error) {
	if o.Attempts == 0 {
		o.Attempts = defaultAttempts
	}
	if o.RetryAfter == 0 && o.Wait {
		o.RetryAfter = min(o.Every/10, time.Minute).Truncate(time.Millisecond)
	}
	return o, o.validate()
}

func (o Options) validate() error {
	switch {
	case o.Every == 0:
		return berth.Invalid("Every", "it must be given: how long a period is")
	case o.Every > maxEvery:
		return berth.Invalid("Every", "%s is above %s", o.Every, maxEvery)
	}
	if err := settings.Duration("Every", o.Every); err != nil {
		return err
	}
	if err := settings.Duration("Offset", o.Offset); err != nil {
		return err
	}
	switch {
	case o.Every < settings.MinLease:
		return berth.Invalid("Every", "%s is below %s", o.Every, settings.MinLease)
	case o.Offset >= o.Every:
		return berth.Invalid("Offset", "%s is not below Every, %s", o.Offset, o.Every)
	case o.Attempts < 1 || o.Attempts > maxAttempts:
		return berth.Invalid("Attempts", "%d is not within 1 to %d", o.Attempts, maxAttempts)
	case o.RetryAfter > maxEvery:
		return berth.Invalid("RetryAfter", "%s is above %s", o.RetryAfter, maxEvery)
	}
	return settings.Duration("RetryAfter", o.RetryAfter)
}

// Period is a span of time by the server's clock. A moment belongs to it from Start on, up to but
// without End.
type Period struct{ Start, End time.Time }

// String is the start in UTC, in RFC 3339.
func (p Period) String() string { return p.Start.UTC().Format(time.RFC3339Nano) }

// overlaps says that two periods of one length have a moment in common: they are the same one, or
// callers do not agree about the offset.
func (p Period) overlaps(other Period) bool {
	return p.Start.Before(other.End) && other.Start.Before(p.End) && p.End.Sub(p.Start) == other.End.Sub(other.Start)
}

// at is the period of a moment of the server (ms).
func (o Options) at(now int64) Period {
	every, offset := o.Every.Milliseconds(), o.Offset.Milliseconds()
	return period(now-(now-offset)%every, now-(now-offset)%every+every)
}

func period(start, end int64) Period {
	return Period{Start: time.UnixMilli(start).UTC(), End: time.UnixMilli(end).UTC()}
}
