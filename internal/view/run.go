package view

import (
	"cmp"
	"fmt"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/once"
)

// Run says what is known of a run; goesOn is of one that has begun.
func Run(i *once.Info, goesOn bool) string {
	if i == nil {
		return "none is known"
	}
	missed := ""
	if i.Missed > 0 {
		missed = fmt.Sprintf("; before it %s went by without a success", Count(i.Missed, "period"))
	}
	return fmt.Sprintf("attempt %d for the period from %s to %s, by %s, begun at %s, %s%s", i.Attempt,
		i.Period, once.Period{Start: i.Period.End}, text.Word(i.Label), i.Begun.UTC().Format(time.RFC3339Nano), became(i, goesOn), missed)
}

// became is how a run ended, if it has.
func became(i *once.Info, goesOn bool) string {
	says := text.Word(string(i.Outcome))
	switch {
	case i.Outcome == once.Begun && goesOn:
		return "goes on"
	case i.Outcome == once.Begun:
		return "has not ended, and its lock is gone: its process has died, or has lost the lock"
	case i.Outcome == once.Stopped:
		says = "stopped by its own process"
	}
	says += " after " + text.Human(i.Took())
	if i.Error != "" {
		says += ": " + text.Quoted(i.Error)
	}
	return says
}

// Runs are the columns of a name of package once. BEGAN and TOOK are of the run that began last.
var Runs = Columns[berth.Name]{
	{Head: "NAME", Share: 3, Cell: func(n *berth.Name) Cell {
		return Cell{{Says: text.Plain(n.Name), To: Place{Of: "name", Kind: keyspace.Lock, Name: n.Name}}}
	}},
	{Head: "STATE", Width: 9, Cell: func(n *berth.Name) Cell { return Cell{RunsState(n)} }},
	{Head: "BEGAN", Width: 6, Right: true, Cell: ofRuns(func(n *berth.Name) Cell { return lasted(n.At.Sub(n.Runs.Begun), n.Runs.Begun) })},
	{Head: "TOOK", Width: 6, Right: true, Cell: ofRuns(func(n *berth.Name) Cell {
		if n.Runs.Ended.IsZero() {
			return nil
		}
		return says(text.Human(max(n.Runs.Ended.Sub(n.Runs.Begun), 0)))
	})},
	{Head: "SUCCESS", Width: 7, Right: true, Cell: ofRuns(func(n *berth.Name) Cell { return lasted(n.At.Sub(n.Runs.Success), n.Runs.Success) })},
	{Head: "EVERY", Width: 6, Right: true, Cell: ofRuns(func(n *berth.Name) Cell { return says(text.Human(n.Runs.Every)) })},
	{Head: "DUE", Width: 12, Right: true, Cell: ofRuns(func(n *berth.Name) Cell {
		if n.Runs.Due.IsZero() {
			return nil
		}
		if late := n.At.Sub(n.Runs.Due); late >= 0 {
			return Cell{{Says: "overdue", Look: Bad}, lasted(late, n.Runs.Due)[0]}
		}
		return left(n.Runs.Due.Sub(n.At))
	})},
	{Head: "LABEL", Share: 3, Cell: ofRuns(func(n *berth.Name) Cell { return to("label", n.Runs.Label, n.Runs.Label) })},
}

func ofRuns(cell func(*berth.Name) Cell) func(*berth.Name) Cell {
	return func(n *berth.Name) Cell {
		if n.Runs == nil {
			return nil
		}
		return cell(n)
	}
}

// RunsState is what has become of the run that began last.
func RunsState(n *berth.Name) Piece {
	switch {
	case n.Runs == nil:
		return Piece{Says: NameState(n), Look: Bad}
	case n.Runs.Outcome == string(once.Begun) && n.Runs.GoesOn:
		return Piece{Says: "goes on", Look: Busy}
	case n.Runs.Outcome == string(once.Begun):
		return Piece{Says: "died", Look: Bad} // or it has lost its lock
	case n.Runs.Outcome == string(once.Failed):
		return Piece{Says: "failed", Look: Bad}
	case n.Runs.Outcome == "":
		return Piece{Says: "not known", Look: Quiet}
	}
	return Piece{Says: text.Word(n.Runs.Outcome), Look: map[once.Outcome]Look{once.Succeeded: Good, once.Stopped: Busy}[once.Outcome(n.Runs.Outcome)]}
}

// Soonest has the names come first that are due first.
func Soonest(a, b berth.Name) int {
	due := func(n *berth.Name) time.Time {
		if n.Runs == nil {
			return time.Time{}
		}
		return n.Runs.Due
	}
	return cmp.Or(due(&a).Compare(due(&b)), cmp.Compare(a.Name, b.Name))
}
