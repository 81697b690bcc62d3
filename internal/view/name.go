package view

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
)

// Names are the columns of a name. FOR, OWNER, LABEL, LEFT and SINCE are of who holds longest.
var Names = Columns[berth.Name]{
	{Head: "KIND", Width: 4, Cell: func(n *berth.Name) Cell { return says(string(n.Kind)) }},
	{Head: "NAME", Share: 3, Cell: func(n *berth.Name) Cell {
		return Cell{{Says: text.Plain(n.Name), To: Place{Of: "name", Kind: n.Kind, Name: n.Name}}}
	}},
	{Head: "STATE", Width: 19, Cell: func(n *berth.Name) Cell {
		return Cell{{Says: NameState(n), Look: NameLook(n)}}
	}},
	{Head: "HELD", Width: 7, Right: true, Cell: func(n *berth.Name) Cell {
		if n.Err != nil {
			return says("?")
		}
		return says(fmt.Sprintf("%d/%d", n.Held, n.Capacity))
	}},
	{Head: "CAPACITY", Right: true, Cell: func(n *berth.Name) Cell { return number(n.Capacity) }},
	{Head: "FREE", Right: true, Cell: func(n *berth.Name) Cell { return number(Free(n)) }},
	{Head: "RESTING", Right: true, Cell: func(n *berth.Name) Cell { return number(pool(n).Resting) }},
	{Head: "LEAVING", Right: true, Maybe: true, Cell: func(n *berth.Name) Cell {
		if pool(n).Leaving == 0 {
			return nil
		}
		return number(n.Pool.Leaving)
	}},
	{Head: "HOLDERS", Right: true, Cell: func(n *berth.Name) Cell { return number(n.Holders) }},
	{Head: "WAITING", Width: 7, Right: true, Cell: func(n *berth.Name) Cell {
		if n.Dead > 0 && len(n.First) < n.Waiting && n.Live() > 0 {
			return says(fmt.Sprintf("<=%d", n.Live())) // others may be dead, too
		}
		return number(n.Live())
	}},
	{Head: "WAITED", Width: 6, Right: true, Cell: func(n *berth.Name) Cell {
		w := Waits(n)
		switch {
		case w != nil:
			return lasted(w.Waited, w.Since)
		case n.Live() > 0 && len(n.First) == 0:
			return says("?") // it was not read
		}
		return nil
	}},
	{Head: "HELD BY", Share: 3, Cell: holder(func(n *berth.Name, h *berth.Holder) Cell {
		c := Cell{{Says: Who(h.Label, h.Owner, h.ID), To: Place{Of: "claim", Kind: n.Kind, Name: n.Name, ID: h.ID}}}
		if !n.Replica && (n.Kind != keyspace.Lock || n.Holders == 1) && inspect.Standing(h, h.Lease) == inspect.Overdue {
			c = append(c, Piece{Says: string(inspect.Overdue), Look: Bad})
		}
		return c
	})},
	{Head: "FOR", Width: 6, Right: true, Cell: holder(func(n *berth.Name, h *berth.Holder) Cell { return lasted(n.Oldest, h.Granted) })},
	{Head: "SINCE, UTC", Width: 12, Cell: holder(func(n *berth.Name, h *berth.Holder) Cell { return says(Moment(h.Granted, n.At)) })},
	{Head: "OWNER", Share: 2, Cell: holder(func(_ *berth.Name, h *berth.Holder) Cell { return to("owner", h.Owner, h.Owner) })},
	{Head: "LABEL", Share: 3, Cell: holder(func(_ *berth.Name, h *berth.Holder) Cell { return to("label", h.Label, h.Label) })},
	{Head: "LEFT", Width: 7, Right: true, Cell: func(n *berth.Name) Cell {
		if n.Lock == nil {
			return nil
		}
		return left(n.Lock.Left)
	}},
	{Head: "FENCE", Right: true, Cell: func(n *berth.Name) Cell { return number(n.Fence) }},
	{Head: "PAUSED", Right: true, Maybe: true, Cell: func(n *berth.Name) Cell {
		if n.Pause == nil {
			return nil
		}
		return left(n.Pause.Left)
	}},
}

func holder(cell func(*berth.Name, *berth.Holder) Cell) func(*berth.Name) Cell {
	return func(n *berth.Name) Cell {
		if n.Longest == nil {
			return nil
		}
		return cell(n, n.Longest)
	}
}

// pool is what is counted of a pool, also of one that is not there.
func pool(n *berth.Name) *berth.PoolInfo { return cmp.Or(n.Pool, &berth.PoolInfo{}) }

// Free is how much of the capacity is free.
func Free(n *berth.Name) int {
	if n.Kind == keyspace.Pool {
		return pool(n).Free
	}
	return max(0, n.Capacity-n.Held)
}

// NameLook is how the word for a name's state looks.
func NameLook(n *berth.Name) Look {
	switch {
	case n.Trouble.Level == berth.LevelStuck || n.Trouble.Level == berth.LevelOverdue || n.Err != nil:
		return Bad
	case n.Trouble.Level == berth.LevelMeant || n.Live() > 0:
		return Busy
	case n.Held > 0:
		return Good
	}
	return Quiet
}

// stuck are the words for why a name is stuck.
var stuck = map[inspect.Code]string{
	inspect.InCycle: "cycle", inspect.DeadHold: "dead holder", inspect.LeftBehind: "left behind", inspect.TooHeavy: "never fits",
	inspect.NothingBack: "nothing back", inspect.OneDamaged: "damaged", inspect.OneAbsent: "absent", inspect.Incompatible: "newer form",
	inspect.Foreign: "not Berth's",
}

// NameState is how a name stands, in a few words: how bad that is, where it is, and why.
func NameState(n *berth.Name) string {
	free, why := Free(n), inspect.Code(n.Trouble.Why)
	switch {
	case n.Trouble.Level == berth.LevelStuck:
		return "stuck: " + cmp.Or(stuck[why], string(why))
	case n.Trouble.Level == berth.LevelOverdue:
		return "overdue"
	case errors.Is(n.Err, berth.ErrIncompatible):
		return "newer form"
	case n.Err != nil:
		return "damaged"
	case n.Pause != nil:
		return "paused"
	case n.Trouble.Level == berth.LevelMeant && why == inspect.Asked:
		return "wanted"
	case n.Trouble.Level == berth.LevelMeant && why == inspect.LeftBehind:
		return "detached"
	case n.Trouble.Possible:
		return "cycle?"
	case n.Capacity == 0 && n.Kind == keyspace.Pool:
		return "empty"
	case n.Capacity == 0:
		return "gone"
	case n.Kind == keyspace.Sem && free > 0 && heavier(n, free):
		return "too few"
	case free > 0:
		return "free"
	case n.Pool != nil && n.Held == 0 && n.Pool.Resting > 0:
		return "resting"
	case n.Held > n.Capacity:
		return "over"
	case n.Kind == keyspace.Lock:
		return "held"
	}
	return "full"
}

// heavier says whether the first in line that lives asks for more than is free.
func heavier(n *berth.Name, free int) bool {
	i := slices.IndexFunc(n.First, func(w berth.Waiter) bool { return w.Alive > 0 })
	return i >= 0 && n.First[i].Weight > free
}

// Waits is the one of those first in line that has waited longest, and lives; nil for none.
func Waits(n *berth.Name) (longest *berth.Waiter) {
	for i := range n.First {
		if w := &n.First[i]; w.Alive > 0 && (longest == nil || w.Waited > longest.Waited) {
			longest = w
		}
	}
	return longest
}

// Waited is how long that one has waited, 0 for nobody.
func Waited(n *berth.Name) time.Duration { return cmp.Or(Waits(n), &berth.Waiter{}).Waited }

// Paused says in a sentence's end that a name is paused; "" for one that is not.
func Paused(p *berth.Pause) string {
	if p == nil {
		return ""
	}
	says := "paused for " + text.Human(p.Left) + " more"
	if p.Reason != "" {
		says += ": " + text.Excerpt(p.Reason)
	}
	return says
}
