package line

// The statuses of the scripts that this package runs; a test compares them with the headers.
const (
	statusIncompatible = "incompatible"
	statusGranted      = "granted"
	statusReentered    = "reentered"
	statusQueued       = "queued"
	statusFull         = "full"
	statusHeld         = "held"
	statusAhead        = "ahead"
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
	statusTaken        = "taken"
	statusRenewed      = "renewed"
	statusRestored     = "restored"
	statusSwept        = "swept"
	statusResumed      = "resumed"
	statusAttached     = "attached"
	statusNotWaiting   = "not_waiting"
	statusPage         = "page"
	statusStats        = "stats"
	statusRevision     = "revision"
)

// toldReleased is the word of a tombstone that a force call left.
const toldReleased = "released"
