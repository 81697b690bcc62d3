package pool

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/internal/view"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/keyspace"
)

// summary is a pool in one line; damaged are those of its resources that were seen to be.
func summary(n berth.Name, damaged int) string {
	says := fmt.Sprintf("%s: %s, %d free, %d leased, %d resting", text.Plain(n.Name), view.Count(n.Capacity, "resource"),
		view.Free(&n), n.Held, cmp.Or(n.Pool, &berth.PoolInfo{}).Resting)
	if damaged > 0 {
		says += fmt.Sprintf(", %d damaged", damaged)
	}
	if n.Holders != n.Held {
		says += fmt.Sprintf(", %d holders", n.Holders)
	}
	return says + fmt.Sprintf(", waiting %d", n.Live())
}

// rowsOf is a row for each of the resources.
func rowsOf(name string, all []allocator.ResourceInfo) (rows []view.Resource) {
	for _, r := range all {
		rows = append(rows, view.Resource{
			Key: r.Resource, State: string(r.State), Holders: view.ClaimsOf(keyspace.Pool, name, r.Holders), Most: r.MaxSharers,
			Left: r.Left, Stays: r.Expiry, Leaving: r.Leaving, Reason: r.Reason,
		})
	}
	return rows
}

// lease is a resource with one of those who hold it.
type lease struct {
	of *view.Resource
	by *view.Claim
}

var (
	staying = view.ResourceColumns.Pick("RESOURCE", "STAYS", "SHARERS")
	rests   = view.ResourceColumns.Pick("RESOURCE", "STAYS", "SHARERS", "LEFT", "REASON")
	leases  = slices.Concat(
		view.Part(staying, func(l *lease) *view.Resource { return l.of }), view.Part(app.Held, func(l *lease) *view.Claim { return l.by }))
)

// printLists shows what is set of a pool, and what there is of it.
func printLists(a *app.App, d app.ShowDocument, most int) error {
	if text := settingsText(d.Settings); text != "" {
		by := "by processes"
		if d.Settings.ByOperator {
			by = "by an operator"
		}
		fmt.Fprintf(a.Out, "set %s: %s\n", by, text)
	}
	var leased []lease
	in := map[string][]view.Resource{}
	for _, r := range rowsOf(d.Name.Name, d.Resources) {
		in[r.State] = append(in[r.State], r)
		for i := range r.Holders {
			leased = append(leased, lease{&r, &r.Holders[i]})
		}
	}
	return cmp.Or(app.Titled(a, "Leased to", leases, leased, most), app.Titled(a, "Resting", rests, in["resting"], most),
		app.Titled(a, "Damaged", staying, in["damaged"], most), app.Titled(a, "Free", staying, in["free"], most),
		a.PrintClaims(keyspace.Pool, d.Name.Name, nil, d.Waiters, most))
}

func printChange(a *app.App, name, verb string, sent int, change allocator.Change) error {
	var says string
	switch verb {
	case "added":
		says = fmt.Sprintf("%d added, %d kept", change.Added, change.Kept)
	case "removed":
		says = fmt.Sprintf("%d removed", change.Removed)
		if missing := sent - change.Removed; missing > 0 {
			says += fmt.Sprintf(", %d not in the pool", missing)
		}
	default:
		says = fmt.Sprintf("%d added, %d kept, %d removed", change.Added, change.Kept, change.Removed)
	}
	return app.Told(a, name, change, text.Plain(name)+": "+says)
}

// printRest says what became of a rest; what the resource is, was read after it.
func printRest(a *app.App, name string, d time.Duration, info allocator.ResourceInfo) error {
	longer := d > 0 && info.State == allocator.Resting && info.Left > d
	if longer {
		d = info.Left
	}
	says := "rests for " + text.Human(d)
	switch d {
	case 0:
		says = "rests no more, it is " + string(info.State)
	case berth.Forever:
		says = "rests until somebody ends that"
	}
	if longer {
		says += ", which was asked for before; --exactly shortens it"
	}
	if d != 0 && info.State == allocator.Leased {
		says = "is leased, and " + says + " when it comes back"
	}
	return app.Told(a, name, info, text.Plain(name)+": "+view.Key(info.Resource)+" "+says)
}

// nameOf is what was counted, as a reading of the pool has it.
func nameOf(name string, s allocator.Inspection) berth.Name {
	return berth.Name{
		Kind: keyspace.Pool, Name: name, Capacity: s.Resources, Held: s.Leased, Holders: s.Holders, Waiting: s.Waiting,
		Pool: &berth.PoolInfo{Free: s.Free, Resting: s.Resting},
	}
}

func printInspection(a *app.App, name string, found allocator.Inspection) error {
	says := summary(nameOf(name, found), 0) + ", " + view.Count(found.Bindings, "binding")
	if found.Moving {
		says += "\nIt changed meanwhile: these counts are not those of one moment."
	}
	for _, problem := range slices.Sorted(slices.Values(found.Problems)) {
		says += "\nproblem: " + text.Plain(problem)
	}
	if len(found.Problems) == 0 {
		says += "\nThe pool is whole."
	}
	return app.Told(a, name, found, says)
}
