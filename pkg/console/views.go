package console

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/internal/view"
	"github.com/berth-go/berth/internal/watch"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
)

// overview is what the first page shows.
type overview struct {
	Names    []nameRow
	Kind     keyspace.Kind // "" for all
	More     bool          // there are more than are shown
	Partial  bool
	Problems []string
	Replica  bool
}

// rowsMost is how many rows of a list are shown.
const rowsMost = 200

// first are the rows that are shown of a list, and how many more there are.
func first[T any](all []T) (shown []T, more int) {
	n := min(len(all), rowsMost)
	return all[:n:n], len(all) - n
}

// nameRow is a name as a row.
type nameRow struct {
	berth.Name
	State    state
	LongWait time.Time // since when the one of the first in line waits that waits longest; zero for nobody who lives
	Who      string    // who holds longest
	Overdue  bool      // and should have renewed by now
}

// state is a word for how something stands, and how it looks.
type state struct {
	Word string
	Look string // "good", "busy", "bad", "quiet"
}

func overviewOf(p inspect.Page[berth.Name], kind keyspace.Kind) overview {
	o := overview{Kind: kind, Partial: p.Partial, Replica: p.Replica}
	for _, n := range p.Items {
		switch {
		case kind != "" && n.Kind != kind:
		case len(o.Names) == rowsMost:
			o.More = true
		default:
			o.Names = append(o.Names, rowOf(n))
		}
	}
	o.Problems = problemsOf(p.Problems)
	return o
}

// InUse says that some rows are of names for which nobody waits.
func (o overview) InUse() bool {
	return slices.ContainsFunc(o.Names, func(r nameRow) bool { return r.Waiting == 0 })
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

func (o overview) readAt() (all []time.Time) {
	for i := range o.Names {
		all = append(all, o.Names[i].At)
	}
	return all
}

func rowOf(n berth.Name) nameRow {
	r := nameRow{Name: n, State: stateOf(&n)}
	if w := view.Waits(&n); w != nil {
		r.LongWait = w.Since
	}
	if h := n.Longest; h != nil {
		r.Who = whoOf(h.Owner, h.Label, h.ID)
		r.Overdue = overdue(h, h.Lease) && (n.Kind != keyspace.Lock || n.Holders == 1)
	}
	return r
}

// overdue says whether a hold has not been renewed for more than three fifths of the time within which its process
// should be heard of three times. Its lease is its own or, of the entries of a lock, which share a deadline, the shortest. A
// grant that its process has not confirmed yet has less than that lease.
func overdue(h *berth.Holder, lease time.Duration) bool {
	pace := lease
	if h.WaitLease > 0 {
		pace = min(pace, h.WaitLease)
	}
	return !h.NoRenew && !h.Detached && h.Lease != berth.Forever && h.MaxHold == 0 && min(lease-h.Left, h.Held) > pace*3/5
}

// whoOf is how somebody is called in short.
func whoOf(owner, label, id string) string { return text.Plain(cmp.Or(owner, label, id)) }

// stateOf is how a name stands. How it looks says whether somebody waits.
func stateOf(n *berth.Name) state {
	s := state{view.NameState(n), "quiet"}
	switch {
	case n.Err != nil || n.Pause != nil || s.Word == "resting" && n.Waiting > 0:
		s.Look = "bad"
	case n.Waiting > 0 || s.Word == "resting" || s.Word == "over":
		s.Look = "busy"
	case n.Held > 0:
		s.Look = "good"
	}
	return s
}

// name is what the page of a name, and that of a claim, show.
type name struct {
	watch.Name
	State state
	Claim string // that the page is about, "" for the name
	Hold  *inspect.Hold
	Wait  *inspect.Wait
	Why   *inspect.Explanation // of that claim
	Chart chart
	Lanes timeline
	// How many more there are than are shown.
	MoreResources, MoreDamaged int

	holders map[string]inspect.Hold
}

func nameOf(n watch.Name, claim string) *name {
	v := &name{Name: n, State: stateOf(&n.Name), Claim: claim, holders: map[string]inspect.Hold{}}
	v.Resources, v.MoreResources = first(n.Resources)
	v.Damaged, v.MoreDamaged = first(n.Damaged)
	for _, h := range n.Holds {
		v.holders[h.ID] = h
	}
	if asked, ok := n.Asked[claim]; ok {
		v.Why, v.Hold, v.Wait = &asked.Explanation, asked.Hold, asked.Wait
	}
	if claim == "" {
		v.Chart, v.Lanes = chartOf(&n), timelineOf(&n)
	}
	return v
}

// There says whether the claim that the page is about is there.
func (v *name) There() bool {
	gone := []inspect.Code{inspect.Incompatible, inspect.Foreign, inspect.Unknown, inspect.Gone, inspect.Absent}
	return v.Why != nil && !slices.ContainsFunc(v.Why.Reasons, func(r inspect.Reason) bool { return slices.Contains(gone, r.Code) })
}

// ResourceState is how a resource stands.
func (v *name) ResourceState(r inspect.Resource) state {
	switch {
	case r.Damaged:
		return state{"damaged", "bad"}
	case r.Absent:
		return state{"not in the pool", "bad"}
	case len(r.Claims) > 0 && r.Leaving:
		return state{"leased, leaves then", "busy"}
	case len(r.Claims) > 0 && r.RestsThen != 0:
		return state{"leased, rests then", "busy"}
	case len(r.Claims) > 0:
		return state{"leased", "good"}
	case r.Rests != 0:
		return state{"rests", "busy"}
	case r.Leaving:
		return state{"leaving", "busy"}
	}
	return state{"free", "quiet"}
}

// HolderOf is who holds by a claim, as far as it was read.
func (v *name) HolderOf(claim string) string {
	if h, ok := v.holders[claim]; ok {
		return whoOf(h.Owner, h.Label, h.ID)
	}
	return text.Plain(claim)
}

// ProcessState is how a holder's process stands.
func (v *name) ProcessState(p inspect.Process) state {
	looks := map[inspect.Process]string{
		inspect.Renewing: "good", inspect.Overdue: "bad", inspect.Condemned: "bad", inspect.Unconfirmed: "busy", inspect.Detached: "busy",
	}
	return state{string(p), cmp.Or(looks[p], "quiet")}
}

// WaitState is how a waiting claim stands.
func (v *name) WaitState(w inspect.Wait) state {
	if w.Alive <= 0 {
		return state{"dead", "bad"}
	}
	return state{"waits", "busy"}
}

// LongWait is since when the one in line waits that waits longest, and lives.
func (v *name) LongWait() (longest time.Time) {
	for _, w := range v.Waits {
		if w.Alive > 0 && (longest.IsZero() || w.Since.Before(longest)) {
			longest = w.Since
		}
	}
	return longest
}

// Pairs are metadata in the order of their keys.
func (v *name) Pairs(meta map[string]string) (pairs [][2]string) { return pairsOf(meta) }

func pairsOf(meta map[string]string) (pairs [][2]string) {
	for key, value := range meta {
		pairs = append(pairs, [2]string{text.Plain(key), text.Plain(value)})
	}
	slices.SortFunc(pairs, func(a, b [2]string) int { return cmp.Compare(a[0], b[0]) })
	return pairs
}

// RestsLeft is a rest as a span: since when is not stored.
func (v *name) RestsLeft(r inspect.Resource) time.Duration {
	if len(r.Claims) > 0 && r.RestsThen != 0 {
		return 0
	}
	return r.Rests
}

// Left is what a hold has left.
func (v *name) Left(h inspect.Hold) time.Duration {
	if h.Lease == berth.Forever {
		return berth.Forever
	}
	return h.Left
}
