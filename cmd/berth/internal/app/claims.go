package app

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/text"
)

// The JSON documents of claims, by the rules of those of semaphores.
type (
	// HolderDocument is who holds.
	HolderDocument struct {
		Claim     string            `json:"claim"`
		Node      string            `json:"node"`
		Label     string            `json:"label"`
		Owner     string            `json:"owner"`
		Weight    int               `json:"weight,omitempty"` // only semaphores have it
		Fence     int64             `json:"fence"`
		LeaseMs   *int64            `json:"leaseMs"`
		LeftMs    *int64            `json:"leftMs"`
		NoRenew   bool              `json:"noRenew"`
		MaxHoldMs int64             `json:"maxHoldMs"`
		Since     time.Time         `json:"since"`
		ForMs     int64             `json:"forMs"`
		WantedMs  int64             `json:"wantedMs,omitempty"` // since somebody wants it back
		Detached  bool              `json:"detached"`
		Meta      map[string]string `json:"meta"`
	}
	// WaiterDocument is who waits.
	WaiterDocument struct {
		Claim    string            `json:"claim"`
		Node     string            `json:"node"`
		Label    string            `json:"label"`
		Owner    string            `json:"owner"`
		Weight   int               `json:"weight,omitempty"` // only semaphores have it
		Priority int               `json:"priority"`
		Ahead    int               `json:"ahead"`
		Since    time.Time         `json:"since"`
		ForMs    int64             `json:"forMs"`
		LeftMs   int64             `json:"leftMs"`
		Meta     map[string]string `json:"meta"`
	}
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

// HolderDocuments is never nil, so that JSON has a list.
func HolderDocuments(holders []berth.Holder, weights bool) []HolderDocument {
	documents := make([]HolderDocument, len(holders))
	for i, h := range holders {
		documents[i] = HolderDocument{
			Claim: h.ID, Node: h.Node, Label: h.Label, Owner: h.Owner, Weight: h.Weight, Fence: h.Fence,
			LeaseMs: Millis(h.Lease), LeftMs: Millis(h.Left), NoRenew: h.NoRenew,
			MaxHoldMs: h.MaxHold.Milliseconds(), Since: h.Granted.UTC(), ForMs: h.Held.Milliseconds(),
			WantedMs: h.Wanted.Milliseconds(), Detached: h.Detached, Meta: meta(h.Meta),
		}
		if !weights {
			documents[i].Weight = 0
		}
	}
	return documents
}

// WaiterDocuments is never nil, so that JSON has a list.
func WaiterDocuments(waiters []berth.Waiter, weights bool) []WaiterDocument {
	documents := make([]WaiterDocument, len(waiters))
	for i, w := range waiters {
		documents[i] = WaiterDocument{
			Claim: w.ID, Node: w.Node, Label: w.Label, Owner: w.Owner, Weight: w.Weight, Priority: w.Priority,
			Ahead: w.Ahead, Since: w.Since.UTC(), ForMs: w.Waited.Milliseconds(),
			LeftMs: w.Alive.Milliseconds(), Meta: meta(w.Meta),
		}
		if !weights {
			documents[i].Weight = 0
		}
	}
	return documents
}

// meta is never null.
func meta(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}
