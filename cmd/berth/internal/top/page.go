package top

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/internal/view"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
)

// Documents are what berth top prints with --json, by command.
func Documents() map[string]any {
	return map[string]any{"top": app.Document[inspect.Page[standing]]{}}
}

// standing is a name, and how it stands.
type standing struct {
	berth.Name
	State string `json:"state"`
}

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
		names := inspect.Page[standing]{At: page.At, Replica: page.Replica, Partial: page.Partial, Moving: page.Moving, Problems: page.Problems}
		for _, n := range page.Items {
			names.Items = append(names.Items, standing{n, view.NameState(&n)})
		}
		return app.PrintJSON(a, "", names)
	}
	if page.Partial {
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
			string(n.Kind), text.Plain(n.Name), fmt.Sprintf("%d/%d", n.Held, n.Capacity), fmt.Sprint(n.Waiting), oldest, by, long, view.NameState(&n),
			age(page.At.Sub(n.At)),
		})
	}
	return app.Table(a.Out, []string{"KIND", "NAME", "HELD", "WAITING", "OLDEST", "HELD BY", "FOR", "STATE", "AGE"}, rows)
}
