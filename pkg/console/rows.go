package console

import (
	"slices"
	"strings"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/view"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
)

// line is a row of a table, or what tiles show.
type line struct {
	ID    string
	Cells []cell
}

// cell is one of a row.
type cell struct {
	Head   string
	Right  bool
	Pieces view.Cell // all of them say something
	Now    time.Time // when what they say was so
}

// table is one for somebody who looks.
type table struct {
	scene
	Lines []line
}

// Table are rows for who looks.
func (s scene) Table(all []line) table { return table{s, all} }

// linesOf is a row for each. about is what tells a row from the others.
func linesOf[T any](now time.Time, columns view.Columns[T], all []T, about func(*T) []any) []line {
	shown, rows := columns.Cells(all)
	lines := make([]line, len(all))
	for i := range all {
		lines[i].ID = row(about(&all[i])...)
		for j, pieces := range rows[i] {
			head := shown[j].Head[:1] + strings.ToLower(shown[j].Head[1:])
			pieces = slices.DeleteFunc(pieces, func(p view.Piece) bool { return p.Says == "" })
			lines[i].Cells = append(lines[i].Cells, cell{head, shown[j].Right, pieces, now})
		}
	}
	return lines
}

// nameColumns are those of a name, with why it cannot be read, and when it was.
var nameColumns = append(slices.Clip(view.Names),
	view.Column[berth.Name]{Head: "PROBLEM", Maybe: true, Cell: func(n *berth.Name) view.Cell { return view.Cell{{Says: problem(n.Err)}} }},
	view.Column[berth.Name]{Head: "READ", Right: true, Cell: func(n *berth.Name) (c view.Cell) {
		if !n.At.IsZero() { // as a name that cannot be read has
			c = view.Cell{{Says: "read", Since: n.At}}
		}
		return c
	}},
)

func nameLines(now time.Time, all []berth.Name, heads ...string) []line {
	return linesOf(now, nameColumns.Pick(heads...), all, func(n *berth.Name) []any { return []any{n.Kind, n.Name} })
}

// claimColumns are those of a claim, with what may be done to it.
var claimColumns = append(slices.Clip(view.Claims), view.Column[view.Claim]{Head: "ACTION", Cell: func(c *view.Claim) view.Cell {
	of := view.Place{Of: "release", Kind: c.Kind, Name: c.Name, ID: c.ID()}
	cell := view.Cell{{Says: "Release", To: of}}
	if of.Of = "want"; c.Hold != nil {
		cell = append(cell, view.Piece{Says: "Ask back", To: of})
	}
	return cell
}})

// claimLines have a row for a hold that is another than for the wait before it: both may be there.
func claimLines(now time.Time, all []view.Claim, heads ...string) []line {
	return linesOf(now, claimColumns.Pick(heads...), all, func(c *view.Claim) []any { return []any{c.Kind, c.Name, c.ID(), c.Hold != nil} })
}

// resourceLines are the resources of a pool, with what may be done to each.
func resourceLines(now time.Time, pool string, all []inspect.Resource, holds []inspect.Hold) []line {
	columns := append(view.ResourceColumns.Pick("RESOURCE", "STATE", "SHARERS", "HELD BY", "LEFT", "REASON"),
		view.Column[view.Resource]{Head: "ACTION", Cell: func(r *view.Resource) view.Cell {
			says, of := "Rest", "rest"
			if r.Left != 0 || r.Then != 0 {
				says, of = "End rest", "end"
			}
			return view.Cell{{Says: says, To: view.Place{Of: of, Kind: keyspace.Pool, Name: pool, ID: r.Key}}}
		}})
	return linesOf(now, columns, view.Resources(pool, all, holds), func(r *view.Resource) []any { return []any{"resource", r.Key} })
}
