package view

import (
	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
)

// Elections are the columns of an election: FENCE, FOR, LEFT and what follows are of who leads.
var Elections = Columns[inspect.Election]{
	{Head: "NAME", Share: 3, Cell: func(e *inspect.Election) Cell {
		return Cell{{Says: text.Plain(e.Name), To: Place{Of: "name", Kind: keyspace.Lock, Name: e.Name}}}
	}},
	{Head: "STATE", Width: 9, Cell: func(e *inspect.Election) Cell {
		switch {
		case e.Leader == nil:
			return Cell{{Says: "no leader", Look: Busy}}
		case looks[e.Process] == Bad:
			return Cell{{Says: "led", Look: Busy}, {Says: string(e.Process), Look: Bad}}
		}
		return Cell{{Says: "led", Look: Good}}
	}},
	{Head: "LEADER", Share: 3, Cell: leader(func(name string, h *berth.Holder) Cell {
		return Cell{{Says: Who(h.Label, h.Owner, h.ID), To: Place{Of: "claim", Kind: keyspace.Lock, Name: name, ID: h.ID}}}
	})},
	{Head: "FOR", Width: 6, Right: true, Cell: leader(func(_ string, h *berth.Holder) Cell { return lasted(h.Held, h.Granted) })},
	{Head: "LEFT", Width: 7, Right: true, Cell: leader(func(_ string, h *berth.Holder) Cell { return left(h.Left) })},
	{Head: "FENCE", Width: 16, Right: true, Cell: leader(func(_ string, h *berth.Holder) Cell { return number(h.Fence) })},
	{Head: "CANDIDATES", Width: 10, Right: true, Cell: func(e *inspect.Election) Cell { return number(e.Candidates) }},
	{Head: "NODE", Share: 3, Cell: leader(func(_ string, h *berth.Holder) Cell { return to("node", h.Node, h.Node) })},
}

func leader(cell func(name string, h *berth.Holder) Cell) func(*inspect.Election) Cell {
	return func(e *inspect.Election) Cell {
		if e.Leader == nil {
			return nil
		}
		return cell(e.Name, e.Leader)
	}
}
