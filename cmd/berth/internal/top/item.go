package top

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/pkg/inspect"
)

// item is a row of a name: a heading, or one of the others.
type item struct {
	heading  string
	hold     *inspect.Hold
	wait     *inspect.Wait
	resource *inspect.Resource
	asked    *inspect.AskedClaim // a claim that was asked for, of which no record was read
}

func keyOfClaim(id string) string      { return "claim " + id }
func keyOfResource(name string) string { return "resource " + name }

// items are the rows of a name, none if it cannot be read: who holds, the longest first, who waits, in line, and the resources.
func items(l *inspect.Look, claim string) []entry[item] {
	if l.Err != nil {
		return nil
	}
	var all []entry[item]
	head := func(heading string) {
		all = append(all, entry[item]{key: heading, value: item{heading: heading}, head: true})
	}
	head(heading("Held by", "Nobody holds it", len(l.Holds), l.HoldsLeft, "claim"))
	holds := slices.Clone(l.Holds)
	slices.SortStableFunc(holds, func(a, b inspect.Hold) int {
		return cmp.Or(a.Granted.Compare(b.Granted), cmp.Compare(a.Fence, b.Fence))
	})
	found := claim == ""
	for i := range holds {
		found = found || holds[i].ID == claim
		all = append(all, entry[item]{key: keyOfClaim(holds[i].ID), value: item{hold: &holds[i]}})
	}
	head(heading("In line", "Nobody waits", len(l.Waits), l.WaitsLeft, "claim"))
	for i := range l.Waits {
		found = found || l.Waits[i].ID == claim
		all = append(all, entry[item]{key: keyOfClaim(l.Waits[i].ID), value: item{wait: &l.Waits[i]}})
	}
	if asked, ok := l.Asked[claim]; ok && !found {
		head("The claim that you came from")
		row := item{hold: asked.Hold, wait: asked.Wait}
		if row.hold == nil && row.wait == nil {
			row.asked = &asked
		}
		all = append(all, entry[item]{key: keyOfClaim(claim), value: row, gone: ended(&asked.Explanation)})
	}
	if len(l.Resources) > 0 {
		head("Resources that are held, waited for, at rest or leaving")
		for i := range l.Resources {
			all = append(all, entry[item]{key: keyOfResource(l.Resources[i].Key), value: item{resource: &l.Resources[i]}})
		}
	}
	return all
}

// ended reports whether an explanation is of a claim that is not there any more.
func ended(e *inspect.Explanation) bool {
	return slices.ContainsFunc(e.Reasons, func(r inspect.Reason) bool {
		return slices.Contains([]inspect.Code{inspect.Unknown, inspect.Absent, inspect.Gone}, r.Code)
	})
}

func heading(some, none string, n, left int, what string) string {
	switch {
	case n == 0 && left == 0:
		return none
	case left > 0:
		return fmt.Sprintf("%s %s, and %d more that were not read", some, count(n, what), left)
	}
	return some + " " + count(n, what)
}

// itemColumns are those of claims and resources.
var itemColumns = []column{
	{head: "DOES", width: 5},
	{head: "FOR", width: 6, right: true},
	{head: "LEFT", width: 7, right: true},
	{head: "LABEL", share: 3},
	{head: "OWNER", share: 2, from: 56},
	{head: "RESOURCE", share: 3, from: 48},
	{head: "WEIGHT", width: 6, right: true, from: 100},
	{head: "PROCESS", width: 11, from: 72},
	{head: "FENCE", width: 16, right: true, from: 150},
	{head: "CLAIM", share: 5, from: 100},
}

// cells are those of a row.
func (i item) cells() []string {
	switch {
	case i.hold != nil:
		h := i.hold
		return []string{
			"holds", span(h.Held), span(h.Left), text.Plain(h.Label), text.Plain(h.Owner), resource(h.Resource), fmt.Sprint(h.Weight),
			stands(h), fmt.Sprint(h.Fence), text.Plain(h.ID),
		}
	case i.wait != nil:
		w := i.wait
		says := "waits"
		if w.Alive <= 0 {
			says = "silent"
		}
		return []string{
			"waits", span(w.Waited), span(w.Alive), text.Plain(w.Label), text.Plain(w.Owner), resource(w.Resource), fmt.Sprint(w.Weight),
			says, "-", text.Plain(w.ID),
		}
	case i.resource != nil:
		r := i.resource
		return []string{i.doesOfResource(), "-", restOf(r), text.Plain(r.Reason), "-", resource(r.Key), "-", "-", "-", text.Plain(strings.Join(r.Claims, " "))}
	}
	cells := slices.Repeat([]string{"-"}, len(itemColumns))
	if i.asked != nil {
		cells[len(cells)-1], cells[3] = text.Plain(i.asked.Claim), text.Plain(i.asked.Claim)
	}
	return cells
}

// goneCells are those of a row that is not there any more: nothing is left of it, and no process stands behind it.
func (i item) goneCells() []string {
	cells := i.cells()
	for at, column := range itemColumns {
		if column.head == "LEFT" || column.head == "PROCESS" {
			cells[at] = "-"
		}
	}
	cells[0] = "ended"
	return cells
}

func resource(key string) string {
	if key == "" {
		return "-"
	}
	return app.Key(key)
}

// stands is how the process of a hold stands, in a word.
func stands(h *inspect.Hold) string {
	if h.Wanted > 0 {
		return "wanted"
	}
	return string(h.Process)
}

func (i item) doesOfResource() string {
	switch r := i.resource; {
	case r.Damaged:
		return "broken"
	case r.Absent:
		return "absent"
	case len(r.Claims) > 0:
		return "held"
	case r.Rests > 0:
		return "rests"
	case r.Leaving:
		return "leaves"
	}
	return "free"
}

func restOf(r *inspect.Resource) string {
	if d := max(r.Rests, r.RestsThen); d > 0 {
		return span(d)
	}
	return "-"
}

// says explains a row in words.
func (i item) says(at time.Time) string {
	switch {
	case i.hold != nil:
		return saysHold(i.hold, at)
	case i.wait != nil:
		return i.wait.Explanation.String()
	case i.resource != nil:
		return saysResource(i.resource)
	case i.asked != nil:
		return i.asked.String()
	}
	return ""
}

// processes say how the process of a hold stands.
var processes = map[inspect.Process]string{
	inspect.Renewing:    "its process renews it",
	inspect.Overdue:     "its process should have renewed by now: it is dead, stopped or cut off",
	inspect.Unconfirmed: "its process has made no call since the grant",
	inspect.Fixed:       "nobody renews it: its lease is fixed",
	inspect.Endless:     "it has no end: it goes on until somebody releases it",
	inspect.Detached:    "nobody renews it until somebody resumes it",
	inspect.Entry:       "the outermost entry of its owner renews for it",
	inspect.Condemned:   "the swarm has declared its process dead",
}

func saysHold(h *inspect.Hold, at time.Time) string {
	what := "it"
	if h.Resource != "" {
		what = text.Word(h.Resource)
	}
	says := fmt.Sprintf("%s has held %s for %s, since %s UTC; %s", text.Word(cmp.Or(h.Label, h.Owner, h.ID)), what, text.Human(h.Held),
		moment(h.Granted, at), cmp.Or(processes[h.Process], text.Word(string(h.Process))))
	if !h.Heard.At.IsZero() {
		says += ", and was heard of " + text.Human(at.Sub(h.Heard.At)) + " ago"
	}
	says += "."
	if h.Left != berth.Forever {
		says += " It ends in " + text.Human(h.Left) + " unless it is renewed."
	}
	if h.MaxHold > 0 {
		says += " It lasts " + text.Human(h.MaxHold) + " at the most."
	}
	if h.Wanted > 0 {
		says += " It was asked to give back " + text.Human(h.Wanted) + " ago."
	}
	return says
}

func saysResource(r *inspect.Resource) string {
	says := []string{}
	name := "Resource " + text.Word(r.Key)
	switch {
	case r.Damaged:
		says = append(says, name+" is damaged: what is stored of it cannot be read.")
	case r.Absent:
		says = append(says, name+" is not in the pool.")
	case len(r.Claims) > 0:
		says = append(says, fmt.Sprintf("%s is held by %s, of at most %d at once.", name, count(len(r.Claims), "claim"), max(r.Max, 1)))
	case r.Rests == berth.Forever:
		says = append(says, name+" rests until somebody ends that.")
	case r.Rests > 0:
		says = append(says, name+" rests for "+text.Human(r.Rests)+" more.")
	default:
		says = append(says, name+" is free.")
	}
	if r.RestsThen == berth.Forever {
		says = append(says, "It then rests until somebody ends that.")
	} else if r.RestsThen > 0 {
		says = append(says, "It then rests for "+text.Human(r.RestsThen)+".")
	}
	if r.Reason != "" {
		says = append(says, "The reason: "+text.Excerpt(r.Reason)+".")
	}
	if r.Leaving {
		says = append(says, "It leaves the pool when it is given back.")
	}
	return strings.Join(says, " ")
}

// fields are all that is known of a claim, in lines. Of one that is gone its lease and its place in line are left out.
func (i item) fields(gone bool) []string {
	var lines []string
	add := func(name, value string) {
		if value != "" && value != "-" {
			lines = append(lines, fmt.Sprintf("%-9s %s", name, value))
		}
	}
	var meta map[string]string
	switch {
	case i.hold != nil:
		h := i.hold
		add("claim", text.Plain(h.ID))
		add("node", text.Plain(h.Node))
		add("label", text.Plain(h.Label))
		add("owner", text.Plain(h.Owner))
		add("resource", resource(h.Resource))
		add("weight", fmt.Sprint(h.Weight))
		add("fence", fmt.Sprint(h.Fence))
		if !gone {
			add("lease", text.Human(h.Lease))
		}
		meta = h.Meta
	case i.wait != nil:
		w := i.wait
		add("claim", text.Plain(w.ID))
		add("node", text.Plain(w.Node))
		add("label", text.Plain(w.Label))
		add("owner", text.Plain(w.Owner))
		add("resource", resource(w.Resource))
		add("weight", fmt.Sprint(w.Weight))
		add("priority", fmt.Sprint(w.Priority))
		if !gone {
			add("ahead", fmt.Sprint(w.Ahead))
		}
		meta = w.Meta
	case i.resource != nil:
		add("resource", app.Key(i.resource.Key))
		for _, claim := range i.resource.Claims {
			add("claim", text.Plain(claim))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(meta)) {
		add("meta", text.Plain(key)+"="+text.Plain(meta[key]))
	}
	return lines
}
