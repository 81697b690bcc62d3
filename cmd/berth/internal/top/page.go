package top

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/internal/watch"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
)

// The JSON documents, by the rules of those of semaphores.
type (
	topDocument struct {
		Namespace string         `json:"namespace"`
		At        time.Time      `json:"at"`
		Replica   bool           `json:"replica"`
		Partial   bool           `json:"partial"` // there is more that was not read
		Names     []nameDocument `json:"names"`
	}
	nameDocument struct {
		Kind     keyspace.Kind `json:"kind"`
		Name     string        `json:"name"`
		State    string        `json:"state"`
		Capacity int           `json:"capacity"`
		Held     int           `json:"held"`
		Holders  int           `json:"holders"`
		Waiting  int           `json:"waiting"`
		WaitedMs int64         `json:"waitedMs"` // the longest wait
		HeldMs   int64         `json:"heldMs"`   // the longest hold
		Since    time.Time     `json:"since,omitzero"`
		Claim    string        `json:"claim,omitempty"` // which has held since then
		Node     string        `json:"node,omitempty"`
		Label    string        `json:"label,omitempty"`
		Owner    string        `json:"owner,omitempty"`
		Pause    *berth.Pause  `json:"pause,omitempty"`
		AgeMs    int64         `json:"ageMs"`
	}
)

// onePage prints the list once.
func onePage(ctx context.Context, a *app.App, read *inspect.Reader, kind keyspace.Kind) error {
	filter := inspect.NameFilter{}
	if kind != "" {
		filter.Kinds = []keyspace.Kind{kind}
	}
	o, err := read.Overview(filter)
	if err != nil {
		return err
	}
	page, err := o.Read(ctx)
	if err != nil {
		return err
	}
	slices.SortStableFunc(page.Items, orders[0].compare)
	return app.Listed(errors.Join(page.Problems...), len(page.Items), func() error { return printPage(a, page) })
}

func printPage(a *app.App, page inspect.Page[berth.Name]) error {
	if a.JSON {
		document := topDocument{a.Namespace, page.At.UTC(), page.Replica, page.Partial || page.Next != "", []nameDocument{}}
		for _, n := range page.Items {
			document.Names = append(document.Names, documentOf(n, page.At))
		}
		return app.PrintDocument(a.Out, document)
	}
	if page.Partial || page.Next != "" {
		fmt.Fprintln(a.Err, "berth: partial: there is more that was not read")
	}
	if len(page.Items) == 0 {
		_, err := fmt.Fprintf(a.Out, "Nobody waits for anything in namespace %s.\n", text.Plain(a.Namespace))
		return err
	}
	var rows [][]string
	for _, n := range page.Items {
		by, long, oldest := "-", "-", "-"
		if h := n.Longest; h != nil {
			by, long = text.Plain(cmp.Or(h.Label, h.Owner, h.Node)), text.Human(n.Oldest)
		}
		if d := waited(n); d > 0 {
			oldest = text.Human(d)
		}
		rows = append(rows, []string{
			string(n.Kind), text.Plain(n.Name), fmt.Sprintf("%d/%d", n.Held, n.Capacity), fmt.Sprint(n.Waiting), oldest, by, long, watch.State(&n),
			age(page.At.Sub(n.At)),
		})
	}
	return app.Table(a.Out, []string{"KIND", "NAME", "HELD", "WAITING", "OLDEST", "HELD BY", "FOR", "STATE", "AGE"}, rows)
}

func documentOf(n berth.Name, at time.Time) nameDocument {
	d := nameDocument{
		Kind: n.Kind, Name: n.Name, State: watch.State(&n), Capacity: n.Capacity, Held: n.Held, Holders: n.Holders, Waiting: n.Waiting,
		WaitedMs: waited(n).Milliseconds(), HeldMs: n.Oldest.Milliseconds(), Pause: n.Pause,
		AgeMs: max(at.Sub(n.At), 0).Milliseconds(),
	}
	if h := n.Longest; h != nil {
		d.Since, d.Claim, d.Node, d.Label, d.Owner = h.Granted.UTC(), h.ID, h.Node, h.Label, h.Owner
	}
	return d
}
