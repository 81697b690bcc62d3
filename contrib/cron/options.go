package berthcron

import (
	"time"

	"github.com/robfig/cron/v3"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/once"
)

// Options say when a job fires, and what becomes of a run that failed. All replicas give the same.
type Options struct {
	// Every is the step between two firings: whole milliseconds, from 20 ms to 8784 h. It must be given.
	Every time.Duration
	// At is when the job fires, as the distance from a multiple of Every after 1970-01-01 00:00
	// UTC: for a day, the time of day in UTC. Whole milliseconds; below 0 it is before midnight.
	// Default 0: on the hour, at midnight.
	At time.Duration
	// Attempts is how often a period is begun at most, by all replicas together: 1 to 1,000,000. A run whose process died
	// counts; one that was stopped by Close of the client does not. Default 3.
	Attempts int
	// RetryAfter is how long no replica begins again after a run has failed: whole milliseconds. Default
	// none; with Wait a tenth of Every, at most 1 min.
	RetryAfter time.Duration
	// Wait has a replica wait while another one runs the job, up to the end of the period. It takes over if
	// that run fails, or its process dies. Default false: the replica skips this firing.
	Wait bool
	// Logger is told of errors, and at level info of firings that were skipped. Default
	// cron.DefaultLogger, which writes errors alone.
	Logger cron.Logger
}

// once returns the options of package once: each firing is in the middle of its period.
func (o Options) once() (once.Options, error) {
	if o.At%time.Millisecond != 0 {
		return once.Options{}, berth.Invalid("At", "%s is no whole number of milliseconds", o.At)
	}
	opts := once.Around(o.Every, o.At)
	opts.Attempts, opts.RetryAfter, opts.Wait = o.Attempts, o.RetryAfter, o.Wait
	if o.RetryAfter == 0 && o.Wait {
		opts.RetryAfter = min(o.Every/10, time.Minute).Truncate(time.Millisecond)
	}
	return opts, opts.Validate()
}
