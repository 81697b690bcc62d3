package console

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"time"

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
	State    berth.Level   // likewise
	Levels   []level       // that an operator looks for
	Unread   int           // names that were not looked at
	InUse    bool          // some are names for which nobody waits
	More     bool          // there are more than are shown
	Problems []string
	Replica  bool
	Drains   []drain
	names    []berth.Name
}

// drain is one that is in force.
type drain struct {
	berth.DrainTarget
	Says, Command string
}

// with is the overview with the drains of a namespace.
func (o overview) with(d watch.Drains, namespace string) overview {
	for i := range d.Items {
		one := &d.Items[i]
		o.Drains = append(o.Drains, drain{one.DrainTarget, view.DrainSays(one, d.At), view.Undrain(one.DrainTarget, view.In(namespace)...)})
	}
	if o.Problems = append(o.Problems, problemsOf(d.Problems)...); d.Err != nil {
		o.Problems = append(o.Problems, problem(d.Err))
	}
	return o
}

// level is how many names are so bad.
type level struct {
	Level berth.Level
	Count int
}

// rowsMost is how many rows of a list are shown.
const rowsMost = 200

// first are the rows that are shown of a list, and how many more there are.
func first[T any](all []T) (shown []T, more int) {
	n := min(len(all), rowsMost)
	return all[:n:n], len(all) - n
}

func overviewOf(p inspect.Page[berth.Name], kind keyspace.Kind, state berth.Level) overview {
	o := overview{Kind: kind, State: state, Unread: p.Unread, Replica: p.Replica, Problems: problemsOf(p.Problems)}
	names := slices.DeleteFunc(slices.Clone(p.Items), func(n berth.Name) bool { return kind != "" && n.Kind != kind })
	for _, of := range []berth.Level{berth.LevelStuck, berth.LevelOverdue, berth.LevelMeant} {
		n := len(names) - len(slices.DeleteFunc(slices.Clone(names), func(n berth.Name) bool { return n.Trouble.Level == of }))
		if kind == "" && of == berth.LevelStuck {
			n = max(n, p.Stuck) // also those without a row
		}
		if n > 0 || of == berth.LevelStuck {
			o.Levels = append(o.Levels, level{of, n})
		}
	}
	more := 0
	o.names, more = first(slices.DeleteFunc(names, func(n berth.Name) bool { return state != "" && n.Trouble.Level != state }))
	o.More, o.InUse = more > 0 || p.Partial, slices.ContainsFunc(o.names, func(n berth.Name) bool { return n.Live() == 0 })
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
	Mends []view.Mending       // of that, too
	Chart chart
	Lanes timeline
	// The tables of a name, and that of a claim.
	Items, Blockers []line
	Holders, Line   part
	// How many more there are than are shown.
	MoreResources, MoreDamaged int
}

// part is one of a table that is long on a telephone.
type part struct {
	Table            []line
	First, Last      int    // the rows that it has, from 1
	Previous, Behind string // the addresses of the parts around it, "" for none
}

// partMost is how many rows a part has.
const partMost = 25

// partOf is the part of a table of the page of a name that is asked for by its number, or the nearest.
func partOf(now time.Time, all []view.Claim, of string, q url.Values, heads ...string) (p part) {
	n, _ := strconv.Atoi(q.Get(of))
	n = min(max(n, 1), max(1, (len(all)+partMost-1)/partMost))
	address := func(n int) string {
		other := maps.Clone(q)
		other.Set(of, strconv.Itoa(n))
		return "name?" + other.Encode() + "#h-" + of
	}
	p.First, p.Last = (n-1)*partMost+1, min(n*partMost, len(all))
	if n > 1 {
		p.Previous = address(n - 1)
	}
	if p.Last < len(all) {
		p.Behind = address(n + 1)
	}
	p.Table = claimLines(now, all[p.First-1:p.Last], heads...)
	return p
}

func nameOf(n watch.Name, claim string, q url.Values) *name {
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
		if !v.in(claim) {
			v.Cycle = nil
		}
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
	v.Holders = partOf(n.At, view.ClaimsOf(n.Kind, of, n.Holds), "holders", q, "CLAIM", "OWNER", "LABEL", "NODE", "RESOURCE", "WEIGHT", "FOR", "LEFT",
		"PROCESS", "HEARD", "METADATA", "ACTION")
	v.Line = partOf(n.At, view.ClaimsOf(n.Kind, of, n.Waits), "line", q, "CLAIM", "AHEAD", "DOES", "OWNER", "LABEL", "NODE", "RESOURCE", "WEIGHT",
		"PRIORITY", "FOR", "WHY", "METADATA", "ACTION")
	return v
}

// There reports whether the claim of the page exists.
func (v *name) There() bool {
	gone := []inspect.Code{inspect.Incompatible, inspect.Foreign, inspect.Unknown, inspect.Gone, inspect.Absent}
	return v.Why != nil && !slices.ContainsFunc(v.Why.Reasons, func(r inspect.Reason) bool { return slices.Contains(gone, r.Code) })
}

// in reports whether a claim is in the cycle that the name is in.
func (v *name) in(claim string) bool {
	is := func(c inspect.Claim) bool { return c.ID() == claim }
	return v.Cycle != nil && slices.ContainsFunc(v.Cycle.Links, func(l inspect.Link) bool { return is(l.Wait) || slices.ContainsFunc(l.Holds, is) })
}

// Searched is when the cycle was found.
func (v *name) Searched() time.Time {
	w := v.Cycle.Links[0].Wait
	return w.Since().Add(w.For())
}

// mends are the commands of an explanation, none of nil.
func (c *Console) mends(e *inspect.Explanation) []view.Mending {
	return view.Mends(cmp.Or(e, &inspect.Explanation{}).Mend, view.In(c.cfg.Namespace)...)
}
