package line

// The statuses of the scripts that this package runs; a test compares them with the headers.
// fenceDigits is how long the text of a fence is; that of a ticket is shorter.
const fenceDigits = 16

const (
	statusIncompatible = "incompatible"
	statusGranted      = "granted"
	statusReentered    = "reentered"
	statusQueued       = "queued"
	statusFull         = "full"
	statusHeld         = "held"
	statusAhead        = "ahead"
	statusPaused       = "paused"
	statusUnpaused     = "unpaused"
	statusKept         = "kept"
	statusIdle         = "idle"
	statusSet          = "set"
	statusStale        = "stale"
	statusResting      = "resting"
	statusAbsent       = "absent"
	statusTooHeavy     = "too_heavy"
	statusDiffers      = "differs"
	statusLimited      = "limited"
	statusCrowded      = "crowded"
	statusDeadlock     = "deadlock"
	statusGone         = "gone"
	statusForeign      = "foreign"
	statusReleased     = "released"
	statusCancelled    = "cancelled"
	statusExpired      = "expired"
	statusNotHeld      = "not_held"
	statusOther        = "other"
	statusTaken        = "taken"
	statusWanted       = "wanted"
	statusWaits        = "waits"
	statusRenewed      = "renewed"
	statusRestored     = "restored"
	statusSwept        = "swept"
	statusResumed      = "resumed"
	statusAttached     = "attached"
	statusNotWaiting   = "not_waiting"
)

// toldReleased is the word of a tombstone that a force call left.
const toldReleased = "released"
