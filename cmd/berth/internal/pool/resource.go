package pool

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/internal/view"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
)

func resourceShow(ctx context.Context, a *app.App, n *node.Node, read *inspect.Reader, name, resource string, bound bool, most int) error {
	info, err := allocator.NewOperator(n).Resource(ctx, name, resource)
	if err == nil && info.State == allocator.Absent {
		err = a.Absent(name, resource)
	}
	if err != nil {
		return err
	}
	all, failed := app.AllWaiters(ctx, read, keyspace.Pool, name)
	waiters := slices.DeleteFunc(all.Items, func(w berth.Waiter) bool { return w.Resource != resource })
	d := resourceDocument{info, waiters, nil, all.Problems}
	if bound {
		bindings, err := bindingsOf(ctx, n, name)
		if err != nil {
			return err
		}
		d.Bindings = slices.DeleteFunc(bindings, func(b berth.Binding) bool { return b.Resource != resource })
	}
	return cmp.Or(printResource(a, name, d, most), failed)
}

type resourceDocument struct {
	allocator.ResourceInfo
	Waiters  []berth.Waiter  `json:"waiters"`           // for this one alone
	Bindings []berth.Binding `json:"bindings,omitzero"` // only with --bindings
	Problems []error         `json:"problems,omitzero"` // of what is left out
}

// printResource shows a resource; bindings are nil where they are not to be shown.
func printResource(a *app.App, name string, info resourceDocument, most int) error {
	if a.JSON {
		info.Holders, _ = app.First(info.Holders, most)
		info.Waiters, _ = app.First(info.Waiters, most)
		info.Bindings, _ = app.First(info.Bindings, most)
		return app.PrintJSON(a, name, info)
	}
	says := fmt.Sprintf("%s: %s is %s", text.Plain(name), view.Key(info.Resource), info.State)
	if info.State == allocator.Leased || info.State == allocator.Resting {
		says += ", " + text.Human(info.Left) + " left"
	}
	if info.MaxSharers > 1 {
		says += fmt.Sprintf(", %d of %d sharers", len(info.Holders), info.MaxSharers)
	}
	switch {
	case info.Leaving:
		says += ", leaves when it comes back"
	case info.Expiry != 0:
		says += ", stays for " + text.Human(info.Expiry)
	}
	fmt.Fprintln(a.Out, says)
	if info.Reason != "" {
		rests := "rests"
		if info.State == allocator.Leased {
			rests = "will rest when it comes back"
		}
		fmt.Fprintf(a.Out, "%s: %s\n", rests, text.Plain(info.Reason))
	}
	if says := settingsText(info.Own); says != "" {
		fmt.Fprintln(a.Out, "of its own: "+says)
	}
	err := a.PrintClaims(keyspace.Pool, name, info.Holders, info.Waiters, most)
	if info.Bindings == nil || err != nil {
		return err
	}
	fmt.Fprintln(a.Out)
	return printBindings(a, name, info.Bindings, nil, most)
}
