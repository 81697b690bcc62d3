package view

import (
	"fmt"
	"strings"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
)

// Resource is a resource of a pool as a row.
type Resource struct {
	Key     string
	State   string        // free, leased, resting, damaged or absent
	Holders []Claim       // as far as they were read; of others the ID alone
	Most    int           // how many may hold it at once
	Left    time.Duration // of its rest
	Then    time.Duration // for how long it rests when it comes back
	Stays   time.Duration // in the pool; 0 for good
	Leaving bool          // it leaves when it comes back
	Reason  string        // why it rests
}

// Resources is a row for each of the resources of a pool. holds are those that were read of it.
func Resources(name string, all []inspect.Resource, holds []inspect.Hold) []Resource {
	by := map[string]Claim{}
	for _, c := range ClaimsOf(keyspace.Pool, name, holds) {
		by[c.ID()] = c
	}
	return rows(all, func(r *inspect.Resource) Resource {
		made := Resource{
			Key: r.Key, State: "free", Most: max(r.Max, 1), Left: r.Rests, Then: r.RestsThen, Leaving: r.Leaving, Reason: r.Reason,
			Holders: rows(r.Claims, func(id *string) Claim {
				if c, read := by[*id]; read {
					return c
				}
				return Claim{Claim: inspect.Claim{Kind: keyspace.Pool, Name: name, Hold: &berth.Holder{ID: *id}}}
			}),
		}
		switch {
		case r.Damaged:
			made.State, made.Most = "damaged", 0
		case r.Absent:
			made.State, made.Most = "absent", 0
		case len(r.Claims) > 0:
			made.State, made.Left = "leased", 0
		case r.Rests != 0:
			made.State = "resting"
		}
		return made
	})
}

// ResourceColumns are the columns of a resource.
var ResourceColumns = Columns[Resource]{
	{Head: "RESOURCE", Share: 3, Cell: func(r *Resource) Cell { return says(Key(r.Key)) }},
	{Head: "STATE", Width: 19, Cell: func(r *Resource) Cell {
		c := Cell{{Says: r.State, Look: map[string]Look{"damaged": Bad, "absent": Bad, "leased": Good, "resting": Busy}[r.State]}}
		switch {
		case r.State == "free" && r.Leaving:
			return Cell{{Says: "leaving", Look: Busy}}
		case r.State == "free":
			c[0].Look = Quiet
		case r.Leaving:
			c = append(c, Piece{Says: "leaves then", Look: Busy})
		case r.State == "leased" && r.Then != 0:
			c = append(c, Piece{Says: "rests then", Look: Busy})
		}
		return c
	}},
	{Head: "STAYS", Cell: func(r *Resource) Cell {
		switch {
		case r.Leaving:
			return says("leaves")
		case r.Stays == 0:
			return nil
		}
		return left(r.Stays)
	}},
	{Head: "SHARERS", Maybe: true, Cell: func(r *Resource) Cell {
		if r.Most < 2 {
			return nil
		}
		return says(fmt.Sprintf("%d of %d", len(r.Holders), r.Most))
	}},
	{Head: "HELD BY", Share: 3, Cell: func(r *Resource) (c Cell) {
		for _, h := range r.Holders {
			c = append(c, Piece{Says: Who(h.Label(), h.Owner(), h.ID()), To: Place{"claim", h.Kind, h.Name, h.ID()}})
		}
		return c
	}},
	{Head: "LEFT", Width: 12, Right: true, Cell: func(r *Resource) Cell {
		switch {
		case r.Left != 0:
			return left(r.Left)
		case r.Then != 0:
			return says(text.Human(r.Then) + " then")
		}
		return nil
	}},
	{Head: "REASON", Share: 3, Cell: func(r *Resource) Cell { return says(text.Plain(r.Reason)) }},
}

// Bindings are the columns of a binding.
var Bindings = Columns[berth.Binding]{
	{Head: "BINDING", Cell: func(b *berth.Binding) Cell { return says(Key(b.Name)) }},
	{Head: "RESOURCE", Cell: func(b *berth.Binding) Cell { return says(Key(b.Resource)) }},
	{Head: "LEFT", Cell: func(b *berth.Binding) Cell { return left(b.Left) }},
}

// Says explains a resource in sentences.
func (r *Resource) Says() string {
	var says []string
	name := "Resource " + text.Word(r.Key)
	switch {
	case r.State == "damaged":
		says = append(says, name+" is damaged: what is stored of it cannot be read.")
	case r.State == "absent":
		says = append(says, name+" is not in the pool.")
	case r.State == "leased":
		says = append(says, fmt.Sprintf("%s is leased to %s, of at most %d at once.", name, Count(len(r.Holders), "claim"), r.Most))
	case r.Left == berth.Forever:
		says = append(says, name+" rests until somebody ends that.")
	case r.Left > 0:
		says = append(says, name+" rests for "+text.Human(r.Left)+" more.")
	default:
		says = append(says, name+" is free.")
	}
	if r.Then == berth.Forever {
		says = append(says, "It then rests until somebody ends that.")
	} else if r.Then > 0 {
		says = append(says, "It then rests for "+text.Human(r.Then)+".")
	}
	if r.Reason != "" {
		says = append(says, "The reason: "+text.Excerpt(r.Reason)+".")
	}
	if r.Leaving {
		says = append(says, "It leaves the pool when it is given back.")
	}
	return strings.Join(says, " ")
}

// Count is a number of things.
func Count(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprint(n, " ", thing)
}
