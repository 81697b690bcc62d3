package console

import (
	"fmt"
	"slices"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/view"
	"github.com/berth-go/berth/internal/watch"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
)

// overview is what the first page shows.
type overview struct {
	Table    []line
	Kind     keyspace.Kind // "" for all
	InUse    bool          // some are names for which nobody waits
	More     bool          // there are more than are shown
	Problems []string
	Replica  bool
	names    []berth.Name
}

// rowsMost is how many rows of a list are shown.
const rowsMost = 200

// first are the rows that are shown of a list, and how many more there are.
func first[T any](all []T) (shown []T, more int) {
	n := min(len(all), rowsMost)
	return all[:n:n], len(all) - n
}

func overviewOf(p inspect.Page[berth.Name], kind keyspace.Kind) overview {
	o := overview{Kind: kind, Replica: p.Replica, Problems: problemsOf(p.Problems)}
	more := 0
	o.names, more = first(slices.DeleteFunc(slices.Clone(p.Items), func(n berth.Name) bool { return kind != "" && n.Kind != kind }))
	o.More, o.InUse = more > 0 || p.Partial, slices.ContainsFunc(o.names, func(n berth.Name) bool { return n.Waiting == 0 })
	o.Table = nameLines(p.At, o.names, "NAME", "KIND", "STATE", "PROBLEM", "HELD", "WAITING", "WAITED", "HELD BY", "FOR", "READ")
	return o
}

func problemsOf(errs []error) (all []string) {
	shown, more := first(errs)
	for _, err := range shown {
		all = append(all, problem(err))
	}
	if more > 0 {
		all = append(all, fmt.Sprintf("%d more", more))
	}
	return all
}

// name is what the page of a name, and that of a claim, show.
type name struct {
	watch.Name
	Claim string               // that the page is about, "" for the name
	Why   *inspect.Explanation // of that claim
	Tiles []line               // of what the page is about: one or, of a claim that is gone, none
	Chart chart
	Lanes timeline
	// The tables of a name, and that of a claim.
	Items, Holders, Line, Blockers []line
	// How many more there are than are shown.
	MoreResources, MoreDamaged int
}

func nameOf(n watch.Name, claim string) *name {
	v := &name{Name: n, Claim: claim}
	of := n.Name.Name
	if asked, ok := n.Asked[claim]; ok {
		v.Why = &asked.Explanation
		var found []view.Claim
		if asked.Hold != nil {
			found = view.ClaimsOf(n.Kind, of, []inspect.Hold{*asked.Hold})
		} else if asked.Wait != nil {
			found = view.ClaimsOf(n.Kind, of, []inspect.Wait{*asked.Wait})
		}
		v.Tiles = claimLines(n.At, found, "DOES", "PROCESS", "FOR", "LEFT", "HEARD", "AHEAD", "PRIORITY", "WEIGHT", "FENCE", "RESOURCE", "LEASE",
			"OWNER", "LABEL", "NODE", "METADATA")
		v.Blockers = claimLines(n.At, view.Listed(asked.Blockers), "CLAIM", "DOES", "OWNER", "LABEL", "NODE", "FOR", "LEFT", "PROCESS")
	}
	if claim != "" {
		return v
	}
	v.Chart, v.Lanes = chartOf(&n), timelineOf(&n)
	tiles := []string{"STATE"}
	if n.Err == nil {
		tiles = append(tiles, "HELD", "HOLDERS", "WAITING", "WAITED", "FENCE")
	}
	if n.Pool != nil {
		tiles = append(tiles, "FREE", "RESTING", "LEAVING")
	}
	whole := n.Name
	whole.First = nil
	for _, w := range n.Waits { // more than the first of each lane
		whole.First = append(whole.First, w.Waiter)
	}
	v.Tiles = nameLines(n.At, []berth.Name{whole}, tiles...)
	v.Damaged, v.MoreDamaged = first(n.Damaged)
	v.Resources, v.MoreResources = first(n.Resources)
	v.Items = resourceLines(n.At, of, v.Resources, n.Holds)
	v.Holders = claimLines(n.At, view.ClaimsOf(n.Kind, of, n.Holds), "CLAIM", "OWNER", "LABEL", "NODE", "RESOURCE", "WEIGHT", "FOR", "LEFT",
		"PROCESS", "HEARD", "METADATA", "ACTION")
	v.Line = claimLines(n.At, view.ClaimsOf(n.Kind, of, n.Waits), "CLAIM", "AHEAD", "DOES", "OWNER", "LABEL", "NODE", "RESOURCE", "WEIGHT",
		"PRIORITY", "FOR", "WHY", "METADATA", "ACTION")
	return v
}

// There says whether the claim that the page is about is there.
func (v *name) There() bool {
	gone := []inspect.Code{inspect.Incompatible, inspect.Foreign, inspect.Unknown, inspect.Gone, inspect.Absent}
	return v.Why != nil && !slices.ContainsFunc(v.Why.Reasons, func(r inspect.Reason) bool { return slices.Contains(gone, r.Code) })
}
