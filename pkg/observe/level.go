package observe

import (
	"log/slog"
	"slices"
)

// Kinds returns all kinds, in the order of their constants. The slice is the
// caller's.
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
//   - error: what is held will be lost unless somebody does something;
//   - warn: something needs a look, and may not have reached any caller;
//   - info: it is rare, and what a caller was told or an operator has done;
//   - debug: it belongs to the ordinary course, and may come very often.
//
// A kind that is not known has level info, so that it is not overlooked.
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

// EndsAcquire reports whether an event of this kind ends an acquire. Each claim that was
// sent has exactly one such event.
func (k Kind) EndsAcquire() bool {
	switch k {
	case Granted, Reentered, Refused, TimedOut, Cancelled, AttemptsUsedUp, Deadlock, Failed:
		return true
	default:
		return false
	}
}
