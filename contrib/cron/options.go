package berthcron

import (
	"time"

	"github.com/robfig/cron/v3"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/once"
)

// Options say when a job fires, and what becomes of a run that failed. All replicas give the same.
type Options struct {
	// Every is the step between two firings: whole milliseconds, at least 20 ms. It must be given.
	Every time.Duration
	// At is when the job fires, as the distance from a multiple of Every after 1970-01-01 00:00
	// UTC: for a day, the time of day in UTC. Whole milliseconds, from 0 to below Every. Default
	// 0: on the hour, at midnight.
	At time.Duration
	// Attempts is how often a period is begun at most, by all replicas together. A run whose process died
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
	switch {
	case o.Every < 20*time.Millisecond || o.Every%time.Millisecond != 0:
		return once.Options{}, berth.Invalid("Every", "%s is no whole number of milliseconds from 20ms on", o.Every)
	case o.At < 0 || o.At >= o.Every || o.At%time.Millisecond != 0:
		return once.Options{}, berth.Invalid("At", "%s is no whole number of milliseconds from 0 to below Every", o.At)
	}
	if o.RetryAfter == 0 && o.Wait {
		o.RetryAfter = min(o.Every/10, time.Minute).Truncate(time.Millisecond)
	}
	half := (o.Every / 2).Truncate(time.Millisecond)
	return once.Options{
		Every: o.Every, Offset: (o.At + half) % o.Every,
		Attempts: o.Attempts, RetryAfter: o.RetryAfter, Wait: o.Wait,
	}, nil
}
