package observe

import (
	"log/slog"
	"slices"
)

// Kinds returns all kinds, in the order of their constants, in a new slice.
func Kinds() []Kind {
	return slices.Concat(
		[]Kind{Queued, Granted, Refused, TimedOut, Cancelled, Failed, Restored, Unavailable, CleanupFailed},
		[]Kind{HeldLong, Detached, Resumed, Wanted, Released, ReleasedByOther, Lost, Expired, RenewRefused, ReleaseFailed, ReleasedAgain},
		[]Kind{ForceReleased, WantedBack, Paused, Unpaused, Swept, Heartbeat, Repeated, ConnectionsBroken, Deaf, Draining, NoticeFailed, Panicked, Subscribed},
		[]Kind{CapacityDiffers, Resized},
		[]Kind{AttemptsUsedUp, Deadlock, Requeued, Reentered, ReentryEnded, Extended},
		[]Kind{ProbeFailed, Condemned, Flushed, NodeReplaced},
		[]Kind{SettingsDiffer},
		[]Kind{Rested, SettingsChanged, Swapped, OpenFailed, CloseFailed, Refreshed, RefreshFailed, HealthProgress, HealthChecked, Damaged, Unhealthy},
		[]Kind{Ran, RunFailed, RunStopped, NotBegun, Missed, FiredTwice},
		[]Kind{TermBegan, TermEnded},
		[]Kind{Acted},
	)
}

// Level returns the level of a kind's log line:
//
//   - error: a hold will be lost unless somebody acts;
//   - warn: somebody should look at this, and perhaps no caller has been told;
//   - info: rare, and either told to a caller or done by an operator;
//   - debug: part of normal operation, and possibly very frequent.
//
// An unknown kind has level info, so that it is not overlooked.
func (k Kind) Level() slog.Level {
	switch k {
	case RenewRefused:
		return slog.LevelError
	case Failed, Unavailable, ConnectionsBroken, Deaf, CleanupFailed, HeldLong, Lost, ReleaseFailed, CapacityDiffers, SettingsDiffer,
		ProbeFailed, NodeReplaced, OpenFailed, CloseFailed, RefreshFailed, Damaged, NoticeFailed, Panicked, RunFailed, NotBegun, Missed, FiredTwice:
		return slog.LevelWarn
	case Queued, Granted, Refused, Cancelled, Detached, Resumed, Released, Swept, Heartbeat, Repeated,
		Subscribed, Reentered, ReentryEnded, Extended, Rested, Swapped, Refreshed,
		HealthProgress, HealthChecked, Ran:
		return slog.LevelDebug
	default:
		return slog.LevelInfo
	}
}

// EndsAcquire reports whether an event of this kind ends an acquire. Each claim that was sent
// to the server has exactly one such event.
func (k Kind) EndsAcquire() bool {
	switch k {
	case Granted, Reentered, Refused, TimedOut, Cancelled, AttemptsUsedUp, Deadlock, Failed:
		return true
	default:
		return false
	}
}
