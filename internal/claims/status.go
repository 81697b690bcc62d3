package claims

// The statuses of the scripts that all lines share, and of those whose reply
// is read here; a test compares them with the headers.
const (
	statusIncompatible = "incompatible"
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
	statusPage         = "page"
	statusStats        = "stats"
)

// toldReleased is the word of a tombstone that a force call left.
const toldReleased = "released"
