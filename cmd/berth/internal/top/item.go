package top

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/berth-go/berth/internal/view"
	"github.com/berth-go/berth/pkg/inspect"
)

// item is a row of a name: a heading, a claim or a resource.
type item struct {
	heading  string
	claim    *view.Claim
	resource *view.Resource
	asked    string // the claim that was asked for, if no record of it was read
}

func keyOfClaim(id string) string { return "claim " + id }

// ofResources is the heading of the resources.
const ofResources = "Resources that are leased, waited for, resting or leaving"

// items returns the rows of a name, none if it cannot be read: the holders, the longest first, the waiters in line, and the
// resources.
func items(l *inspect.Look, claim string) (all []entry[item]) {
	if l.Err != nil {
		return nil
	}
	head := func(heading string) {
		all = append(all, entry[item]{key: heading, value: item{heading: heading}, head: true})
	}
	found := claim == ""
	add := func(claims []view.Claim) {
		for _, c := range claims {
			found = found || c.ID() == claim
			all = append(all, entry[item]{key: keyOfClaim(c.ID()), value: item{claim: &c}})
		}
	}
	head(heading("Held by", "Nobody holds it", len(l.Holds), l.HoldsLeft))
	holds := view.ClaimsOf(l.Kind, l.Name.Name, l.Holds)
	slices.SortStableFunc(holds, func(a, b view.Claim) int { return view.Oldest(a.Claim, b.Claim) })
	add(holds)
	head(heading("In line", "Nobody waits", len(l.Waits), l.WaitsLeft))
	add(view.ClaimsOf(l.Kind, l.Name.Name, l.Waits))
	read := l.Holds
	if asked, ok := l.Asked[claim]; ok && !found {
		head("The claim that you came from")
		switch {
		case asked.Hold != nil:
			read = append(slices.Clip(read), *asked.Hold)
			add(view.ClaimsOf(l.Kind, l.Name.Name, read[len(l.Holds):]))
		case asked.Wait != nil:
			add(view.ClaimsOf(l.Kind, l.Name.Name, []inspect.Wait{*asked.Wait}))
		default:
			all = append(all, entry[item]{key: keyOfClaim(claim), value: item{claim: &view.Claim{Why: asked.String()}, asked: claim}})
		}
		all[len(all)-1].gone = ended(&asked.Explanation)
	}
	if len(l.Resources) > 0 {
		head(ofResources)
	}
	for _, r := range view.Resources(l.Name.Name, l.Resources, read) {
		all = append(all, entry[item]{key: "resource " + r.Key, value: item{resource: &r}})
	}
	return all
}

// ended reports whether an explanation is of a claim that no longer exists.
func ended(e *inspect.Explanation) bool {
	return slices.ContainsFunc(e.Reasons, func(r inspect.Reason) bool {
		return slices.Contains([]inspect.Code{inspect.Unknown, inspect.Absent, inspect.Gone}, r.Code)
	})
}

func heading(some, none string, n, left int) string {
	switch {
	case n == 0 && left == 0:
		return none
	case left > 0:
		return fmt.Sprintf("%s %s, and %d more that were not read", some, view.Count(n, "claim"), left)
	}
	return some + " " + view.Count(n, "claim")
}

// says explains a row in words.
func (i item) says(at time.Time) string {
	if i.resource != nil {
		return i.resource.Says()
	}
	return i.claim.Says(at)
}

// fields are all that is known of a row, in lines.
func fields(e entry[item]) []string {
	if r := e.value.resource; r != nil {
		return fieldsOf(view.ResourceColumns.Pick("RESOURCE", "SHARERS", "HELD BY"), r, e.gone)
	}
	columns := view.Claims.Pick("CLAIM", "NODE", "LABEL", "OWNER", "RESOURCE", "WEIGHT", "FENCE", "LEASE", "PRIORITY", "AHEAD", "METADATA")
	return fieldsOf(columns, e.value.claim, e.gone)
}

func fieldsOf[T any](columns view.Columns[T], row *T, gone bool) (lines []string) {
	for _, c := range columns {
		for _, p := range c.Cell(row) {
			if p.Says != "" && p.Says != "-" && (!gone || past[c.Head] == "") {
				lines = append(lines, fmt.Sprintf("%-9s %s", strings.ToLower(c.Head), p.Says))
			}
		}
	}
	return lines
}
