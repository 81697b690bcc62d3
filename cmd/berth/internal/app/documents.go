package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/view"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/once"
)

// ShowDocument is what is printed of one name: how it stands, and what there is of it.
type ShowDocument struct {
	berth.Name
	Settings  allocator.Settings       `json:"settings,omitzero"`  // of a pool of which any are set
	HeldBy    []berth.Holder           `json:"heldBy,omitzero"`    // of semaphores and locks
	Resources []allocator.ResourceInfo `json:"resources,omitzero"` // of a pool
	Waiters   []berth.Waiter           `json:"waiters"`
	Once      *once.Last               `json:"once,omitzero"` // where runs are known
	GoesOn    bool                     `json:"goesOn,omitzero"`
	Problems  []error                  `json:"problems,omitzero"` // of what is left out
}

// ReadClaims reads who holds the name and who waits for it. What is left out is in its error.
func (d *ShowDocument) ReadClaims(ctx context.Context, read *inspect.Reader) error {
	holders, failed := AllHolders(ctx, read, d.Kind, d.Name.Name)
	waiters, err := AllWaiters(ctx, read, d.Kind, d.Name.Name)
	d.HeldBy, d.Waiters, d.Problems = holders.Items, waiters.Items, append(holders.Problems, waiters.Problems...)
	return errors.Join(failed, err)
}

// PrintShown prints a name: as JSON, of each of its lists the first entries, 0 is all; or what it says in a line, that it is
// paused, and what there is of it.
func PrintShown(a *App, d ShowDocument, says string, most int, lists func() error) error {
	if a.JSON {
		d.HeldBy, _ = First(d.HeldBy, most)
		d.Resources, _ = First(d.Resources, most)
		d.Waiters, _ = First(d.Waiters, most)
		return PrintJSON(a, "", d)
	}
	fmt.Fprintln(a.Out, says)
	if d.Pause != nil {
		fmt.Fprintln(a.Out, view.Paused(d.Pause))
	}
	return lists()
}

// Documents are what the commands of this package print with --json, by command.
func Documents() map[string]any {
	all := map[string]any{
		"check": Document[checkDocument]{}, "drain": Document[drainDocument]{}, "drain --list": Document[inspect.Page[view.Drain]]{}, "version": Document[versionDocument]{},
		"pause": Document[pauseDocument]{}, "unpause": Document[pauseDocument]{},
		"ps": Document[inspect.Page[inspect.Claim]]{}, "explain": Document[inspect.Cycles]{},
	}
	for _, kind := range []keyspace.Kind{keyspace.Sem, keyspace.Lock, keyspace.Pool} {
		for command, document := range map[string]any{
			"want": Document[targetDocument]{}, "release": Document[targetDocument]{}, "sweep": Document[sweepDocument]{},
			"explain": Document[explainDocument]{}, "ls": Document[inspect.Page[berth.Name]]{}, "show": Document[ShowDocument]{},
			"pause": Named[pauseDocument]{}, "unpause": Named[pauseDocument]{},
		} {
			all[string(kind)+" "+command] = document
		}
	}
	return all
}
