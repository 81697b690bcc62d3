package view

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
)

// Claim is a hold or a wait as a row.
type Claim struct {
	inspect.Claim
	Why string // why it waits, where that is known
}

// ClaimsOf is a row for each of those who hold a name, or wait for it. A listing knows less of them than a look.
func ClaimsOf[T berth.Holder | berth.Waiter | inspect.Hold | inspect.Wait](kind keyspace.Kind, name string, all []T) []Claim {
	return rows(all, func(of *T) Claim {
		c := Claim{Claim: inspect.Claim{Kind: kind, Name: name}}
		switch of := any(of).(type) {
		case *berth.Holder:
			c.Hold = of
		case *berth.Waiter:
			c.Wait = of
		case *inspect.Hold:
			c.Hold, c.Process, c.Heard = &of.Holder, of.Process, of.Heard
		case *inspect.Wait:
			c.Wait, c.Why = &of.Waiter, of.Explanation.String()
		}
		return c
	})
}

// Listed is a row for each claim.
func Listed(all []inspect.Claim) []Claim {
	return rows(all, func(c *inspect.Claim) Claim { return Claim{Claim: *c} })
}

func rows[T, R any](all []T, row func(*T) R) []R {
	made := make([]R, len(all))
	for i := range all {
		made[i] = row(&all[i])
	}
	return made
}

// Claims are the columns of a claim.
var Claims = Columns[Claim]{
	{Head: "KIND", Width: 4, Cell: func(c *Claim) Cell { return says(string(c.Kind)) }},
	{Head: "NAME", Share: 3, Cell: func(c *Claim) Cell {
		return Cell{{Says: text.Plain(c.Name), To: Place{Of: "name", Kind: c.Kind, Name: c.Name}}}
	}},
	{Head: "RESOURCE", Share: 3, Maybe: true, Cell: func(c *Claim) Cell { return says(Key(c.Resource())) }},
	{Head: "ONLY", Right: true, Maybe: true, Cell: wait(func(w *berth.Waiter) Cell {
		if w.BindWait == 0 {
			return nil
		}
		return left(w.BindWait)
	})},
	{Head: "DOES", Width: 6, Cell: func(c *Claim) Cell { return c.does() }},
	{Head: "AHEAD", Right: true, Cell: wait(func(w *berth.Waiter) Cell { return number(w.Ahead) })},
	{Head: "PRIORITY", Right: true, Cell: wait(func(w *berth.Waiter) Cell { return number(w.Priority) })},
	{Head: "FENCE", Width: 16, Right: true, Cell: hold(func(h *berth.Holder) Cell { return number(h.Fence) })},
	{Head: "WEIGHT", Width: 6, Right: true, Maybe: true, Cell: func(c *Claim) Cell {
		switch {
		case c.Kind != keyspace.Sem:
			return nil
		case c.Hold != nil:
			return number(c.Hold.Weight)
		case c.Wait != nil:
			return number(c.Wait.Weight)
		}
		return nil
	}},
	{Head: "FOR", Width: 6, Right: true, Cell: func(c *Claim) Cell { return lasted(c.For(), c.Since()) }},
	{Head: "LEASE", Cell: hold(lease)},
	{Head: "LEFT", Width: 7, Right: true, Cell: func(c *Claim) Cell { return left(c.Left()) }},
	{Head: "PROCESS", Width: 16, Cell: func(c *Claim) Cell { return c.process() }},
	{Head: "HEARD", Right: true, Cell: func(c *Claim) Cell {
		if c.Heard.At.IsZero() {
			return nil
		}
		cell := lasted(c.Since().Add(c.For()).Sub(c.Heard.At), c.Heard.At)
		if !c.Heard.Exact {
			cell = append(cell, Piece{Says: "or later"})
		}
		return cell
	}},
	{Head: "OWNER", Share: 2, Cell: func(c *Claim) Cell { return to("owner", c.Owner(), c.Owner()) }},
	{Head: "LABEL", Share: 3, Cell: func(c *Claim) Cell { return to("label", c.Label(), c.Label()) }},
	{Head: "NODE", Share: 3, Cell: func(c *Claim) Cell { return to("node", c.Node(), c.Node()) }},
	{Head: "CLAIM", Share: 5, Cell: func(c *Claim) Cell {
		return Cell{{Says: text.Plain(c.ID()), To: Place{"claim", c.Kind, c.Name, c.ID()}}}
	}},
	{Head: "METADATA", Maybe: true, Cell: func(c *Claim) (cell Cell) {
		meta := map[string]string{}
		if c.Hold != nil {
			meta = c.Hold.Meta
		} else if c.Wait != nil {
			meta = c.Wait.Meta
		}
		for _, key := range slices.Sorted(maps.Keys(meta)) {
			cell = append(cell, Piece{Says: text.Plain(key) + "=" + text.Plain(meta[key])})
		}
		return cell
	}},
	{Head: "WHY", Cell: func(c *Claim) Cell { return says(c.Why) }},
}

func wait(cell func(*berth.Waiter) Cell) func(*Claim) Cell {
	return func(c *Claim) Cell {
		if c.Wait == nil {
			return nil
		}
		return cell(c.Wait)
	}
}

func hold(cell func(*berth.Holder) Cell) func(*Claim) Cell {
	return func(c *Claim) Cell {
		if c.Hold == nil {
			return nil
		}
		return cell(c.Hold)
	}
}

// lease is how a hold is renewed, and what bounds it.
func lease(h *berth.Holder) Cell {
	c := says(text.Human(h.Lease))
	switch {
	case h.Detached:
		c[0].Says += " detached"
	case h.NoRenew:
		c[0].Says += " fixed"
	}
	if h.MaxHold != 0 {
		c = append(c, Piece{Says: "at most " + text.Human(h.MaxHold)})
	}
	if h.Wanted != 0 {
		c = append(c, Piece{Says: "wanted " + text.Human(h.Wanted) + " ago"})
	}
	return c
}

// does is whether a claim holds or waits, and what is not as it should be.
func (c *Claim) does() Cell {
	switch {
	case c.Hold != nil && looks[c.Process] == Bad:
		return Cell{{Says: "holds", Look: Busy}, {Says: string(c.Process), Look: Bad}}
	case c.Hold != nil:
		return Cell{{Says: "holds", Look: Good}}
	case c.Wait == nil:
		return nil
	case c.Wait.Alive <= 0:
		return Cell{{Says: "waits", Look: Busy}, {Says: "dead", Look: Bad}}
	case c.Paused > 0:
		return Cell{{Says: "waits", Look: Busy}, {Says: "paused", Look: Busy}}
	}
	return Cell{{Says: "waits", Look: Busy}}
}

var looks = map[inspect.Process]Look{
	inspect.Renewing: Good, inspect.Overdue: Bad, inspect.Condemned: Bad, inspect.Zombie: Bad,
	inspect.Unconfirmed: Busy, inspect.Detached: Busy,
}

// process is how the process of a claim stands.
func (c *Claim) process() (cell Cell) {
	switch {
	case c.Wait != nil && c.Wait.Alive <= 0:
		return Cell{{Says: "dead", Look: Bad}}
	case c.Process != "":
		cell = Cell{{Says: text.Plain(string(c.Process)), Look: cmp.Or(looks[c.Process], Quiet)}}
	}
	if c.Hold != nil && c.Hold.Wanted > 0 {
		cell = append(cell, Piece{Says: "wanted", Look: Busy})
	}
	return cell
}

// Suspicious says that nothing may be heard any more of a claim's process.
func (c *Claim) Suspicious() bool {
	return looks[c.Process] == Bad || c.Wait != nil && c.Wait.Alive <= 0
}

// Oldest has the claims that last longest come first.
func Oldest(a, b inspect.Claim) int {
	return cmp.Or(a.Since().Compare(b.Since()), cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID(), b.ID()))
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
	inspect.Zombie:      "its node counts as dead for the swarm: the next flush ends it",
}

// Says explains a claim in sentences, "" where there is nothing to say of it.
func (c *Claim) Says(now time.Time) string {
	if c.Hold == nil {
		return c.Why
	}
	h, what := c.Hold, "it"
	if h.Resource != "" {
		what = text.Word(h.Resource)
	}
	says := fmt.Sprintf("%s has held %s for %s, since %s UTC; %s", text.Word(cmp.Or(h.Label, h.Owner, h.ID)), what, text.Human(h.Held),
		Moment(h.Granted, now), cmp.Or(processes[c.Process], text.Word(string(c.Process))))
	if !c.Heard.At.IsZero() {
		says += ", and was heard of " + text.Human(now.Sub(c.Heard.At)) + " ago"
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

// Moment is a time of the server, with the date if that is not of its day.
func Moment(t, now time.Time) string {
	if t.IsZero() {
		return "-"
	}
	t, now = t.UTC(), now.UTC()
	if t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format("15:04:05")
	}
	return t.Format("Jan _2 15:04")
}
