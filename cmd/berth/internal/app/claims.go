package app

import (
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/text"
)

// PrintClaims shows who holds and who waits; weights only semaphores have.
func (a *App) PrintClaims(holders []berth.Holder, waiters []berth.Waiter, weights bool, most int) error {
	if len(holders) > 0 {
		fmt.Fprintln(a.Out, "\nHeld by")
		if err := holderTable(a.Out, holders, weights, most); err != nil {
			return err
		}
	}
	if len(waiters) > 0 {
		fmt.Fprintln(a.Out, "\nWaiting in line")
		return WaiterTable(a.Out, waiters, weights, most)
	}
	return nil
}

func holderTable(out io.Writer, holders []berth.Holder, weights bool, most int) error {
	rows := make([][]string, 0, len(holders))
	for _, h := range holders {
		rows = append(rows, HolderRow(h, weights))
	}
	return Limited(out, HolderHeading(weights), rows, most)
}

// HolderHeading is the heading of rows of holders.
func HolderHeading(weights bool) []string {
	return weighed(weights, []string{"FENCE", "WEIGHT", "HELD", "LEASE", "LEFT", "OWNER", "LABEL", "CLAIM"})
}

// HolderRow is a holder in a table.
func HolderRow(h berth.Holder, weights bool) []string {
	lease := text.Human(h.Lease)
	switch {
	case h.Detached:
		lease += " detached"
	case h.NoRenew:
		lease += " fixed"
	}
	if h.MaxHold != 0 {
		lease += ", at most " + text.Human(h.MaxHold)
	}
	if h.Wanted != 0 {
		lease += ", wanted " + text.Human(h.Wanted) + " ago"
	}
	return weighed(weights, []string{
		strconv.FormatInt(h.Fence, 10), strconv.Itoa(h.Weight), text.Human(h.Held), lease, text.Human(h.Left),
		text.Plain(h.Owner), text.Plain(h.Label), text.Plain(h.ID),
	})
}

// WaiterTable prints who waits, in a table. Where a claim waits for one resource, two columns
// more say which one, and how long it takes no other.
func WaiterTable(out io.Writer, waiters []berth.Waiter, weights bool, most int) error {
	heading := weighed(weights, []string{"AHEAD", "WEIGHT", "PRIORITY", "WAITED", "ALIVE", "OWNER", "LABEL", "CLAIM"})
	lanes := slices.ContainsFunc(waiters, func(w berth.Waiter) bool { return w.Resource != "" })
	if lanes {
		heading = append([]string{"RESOURCE", "ONLY"}, heading...)
	}
	rows := make([][]string, 0, len(waiters))
	for _, w := range waiters {
		row := weighed(weights, []string{
			strconv.Itoa(w.Ahead), strconv.Itoa(w.Weight), strconv.Itoa(w.Priority), text.Human(w.Waited), text.Human(w.Alive),
			text.Plain(w.Owner), text.Plain(w.Label), text.Plain(w.ID),
		})
		switch {
		case lanes && w.Resource != "":
			row = append([]string{Key(w.Resource), text.Human(w.BindWait)}, row...)
		case lanes:
			row = append([]string{"-", "-"}, row...)
		}
		rows = append(rows, row)
	}
	return Limited(out, heading, rows, most)
}

// weighed leaves the weight, the second cell, out of a row that is to have none.
func weighed(weights bool, row []string) []string {
	if weights {
		return row
	}
	return slices.Delete(row, 1, 2)
}
