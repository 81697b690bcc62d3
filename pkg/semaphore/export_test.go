package semaphore

import (
	"slices"

	"github.com/berth-go/berth/pkg/scriptkit"
)

// Library is what the client runs its scripts from.
func Library() *scriptkit.Library { return library() }

// Statuses are the status words that this package knows, sorted.
func Statuses() []string {
	words := []string{
		statusGranted, statusQueued, statusFull, statusAhead, statusTooHeavy, statusDiffers, statusGone,
		statusForeign, statusIncompatible, statusReleased, statusCancelled, statusExpired, statusNotHeld,
		statusTaken, statusRenewed, statusRestored, statusSwept, statusResized, statusResumed,
		statusAttached, statusPage,
	}
	slices.Sort(words)
	return words
}

// Ticket is when the permit's claim came.
func (p *Permit) Ticket() int64 { return p.hold.Ticket() }
