package app

import (
	"cmp"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/view"
	"github.com/berth-go/berth/pkg/keyspace"
)

// Held and InLine are the columns of who holds, and of who waits. Only semaphores have weights. Where a claim waits for one
// resource, RESOURCE says for which one, and ONLY how long it takes no other.
var (
	Held   = view.Claims.Pick("FENCE", "WEIGHT", "FOR", "LEASE", "LEFT", "OWNER", "LABEL", "CLAIM")
	InLine = view.Claims.Pick("RESOURCE", "ONLY", "AHEAD", "WEIGHT", "PRIORITY", "FOR", "LEFT", "OWNER", "LABEL", "CLAIM")
)

// PrintClaims shows who holds a name and who waits for it.
func (a *App) PrintClaims(kind keyspace.Kind, name string, holders []berth.Holder, waiters []berth.Waiter, most int) error {
	return cmp.Or(Titled(a, "Held by", Held, view.ClaimsOf(kind, name, holders), most),
		Titled(a, "Waiting in line", InLine, view.ClaimsOf(kind, name, waiters), most))
}
