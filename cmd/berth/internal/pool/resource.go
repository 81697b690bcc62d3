package pool

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/internal/view"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
)

func resourceShow(ctx context.Context, a *app.App, ops *allocator.Operator, read *inspect.Reader, name, resource string, bound bool, most int) error {
	info, err := a.PresentResource(ctx, ops, name, resource)
	if err != nil {
		return err
	}
	all, failed := app.AllWaiters(ctx, read, keyspace.Pool, name)
	waiters := slices.DeleteFunc(all.Items, func(w berth.Waiter) bool { return w.Resource != resource })
	if !bound {
		return cmp.Or(printResource(a, name, resourceDocument{info, waiters, nil, all.Problems}, most), failed)
	}
	bindings := []berth.Binding{}
	for b, err := range ops.Bindings(ctx, name) {
		if err != nil {
			return err
		}
		if b.Resource == resource {
			bindings = append(bindings, b)
		}
	}
	slices.SortFunc(bindings, func(x, y berth.Binding) int { return strings.Compare(x.Name, y.Name) })
	return cmp.Or(printResource(a, name, resourceDocument{info, waiters, bindings, all.Problems}, most), failed)
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
