package top

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/internal/view"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
)

// Documents are what berth top prints with --json, by command.
func Documents() map[string]any {
	return map[string]any{"top": app.Document[inspect.Page[berth.Name]]{}}
}

// wholeWithin is how long the list is read that is printed.
const wholeWithin = 5 * time.Second

// onePage prints the list once.
func onePage(ctx context.Context, a *app.App, read *inspect.Reader, kinds []keyspace.Kind) error {
	o, err := read.Overview(inspect.NameFilter{Kinds: kinds})
	if err != nil {
		return err
	}
	page, err := o.Whole(ctx, wholeWithin)
	if err != nil {
		return err
	}
	drains, err := read.Drains(ctx)
	if err != nil {
		fmt.Fprintf(a.Err, "berth: %s\n", words(err))
	}
	for i := range drains.Items {
		d := &drains.Items[i]
		fmt.Fprintf(a.Err, "berth: %s; to end it: %s\n", view.DrainSays(d, drains.At), view.Undrain(d.DrainTarget, a.Where()...))
	}
	view.Orders[0].Sort(page.Items)
	columns := aged(page.At).Pick("KIND", "NAME", "STATE", "HELD", "WAITING", "WAITED", "HELD BY", "FOR", "AGE")
	return app.List(a, "", page, "Nobody waits for anything", columns, page.Items, 0)
}

// aged are the columns of names, and how old a row is at a moment by the server's clock.
func aged(at time.Time) view.Columns[berth.Name] {
	return append(slices.Clip(view.Names), view.Column[berth.Name]{Head: "AGE", Width: 4, Right: true, Cell: func(n *berth.Name) view.Cell {
		if n.At.IsZero() { // it cannot be read
			return nil
		}
		return view.Cell{{Says: age(at.Sub(n.At))}}
	}})
}
