package nodes

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/internal/view"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
)

// OnceCommand is berth once.
func OnceCommand(a *app.App) *cobra.Command {
	return app.Group(&cobra.Command{
		Use:   "once",
		Short: "Look at what runs once in each period",
		Long: `Look at the names that 'berth run --once', package once or a scheduler with Berth runs once in
each period: what has become of their runs, and when they are due.`,
		Example: `  berth once ls
  berth once show digest`,
	}, onceListCommand(a), onceShowCommand(a))
}

func onceListCommand(a *app.App) *cobra.Command {
	var page app.Paging
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List what runs once in each period, with its last outcome and when it is due",
		Long: `List the names of whose runs something is kept, what is due first. STATE is what became of
the run that began last, BEGAN how long ago that was; a run has died if its process has lost
its lock. SUCCESS is how long ago a run has succeeded, DUE by when the next one is to: in the
period after that of the last success.

What is kept of a name goes at the end of the period after the next one in which nothing runs.`,
		Example: "  berth once ls",
		Args:    app.Arguments(),
	}
	cmd.RunE = a.Runs(func(cmd *cobra.Command, _ []string) error {
		if err := page.Check(); err != nil {
			return err
		}
		return a.WithReader(cmd.Context(), func(ctx context.Context, read *inspect.Reader) error {
			all := app.AllNames(ctx, read, inspect.NameFilter{Kinds: []keyspace.Kind{keyspace.Once}})
			slices.SortFunc(all.Items, view.Soonest)
			return app.List(a, "", all, "Of no name are runs known", view.Runs, all.Items, page.Of(a))
		})
	})
	page.Bind(cmd)
	return cmd
}

func onceShowCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:   "show NAME",
		Short: "Show what became of the runs of a name, and when the next is due",
		Long: `Show the run of a name that began last, the newest that has succeeded, and by when the next
one is to succeed: in the period after that of the last success. Who holds the lock of the
name, and who waits for it, 'berth lock show NAME' tells.

Exit code 1: no runs of the name are known.`,
		Example:           "  berth once show digest",
		Args:              app.Arguments("NAME"),
		ValidArgsFunction: app.Completing(a.Names(keyspace.Once)),
		RunE: a.Runs(func(cmd *cobra.Command, args []string) error {
			name := args[0]
			if err := app.CheckName(name); err != nil {
				return err
			}
			return a.Looking(cmd.Context(), func(ctx context.Context, n *node.Node, read *inspect.Reader) error {
				d, err := app.RunsOf(ctx, n, read, name)
				if err != nil {
					return err
				}
				if d.Once == nil {
					return notKnown(a, name, "no runs of it are known")
				}
				says := fmt.Sprintf("%s: %s, due %s\n%s", text.Plain(name), view.RunsState(&d.Name).Says, due(&d.Name), d.Says())
				return app.Told(a, "", d, says)
			})
		}),
	}
}

// due says when a run is due.
func due(n *berth.Name) string {
	if n.Runs.Due.IsZero() {
		return "is not known"
	}
	at := n.Runs.Due.UTC().Format(time.RFC3339)
	if late := n.At.Sub(n.Runs.Due); late >= 0 {
		return fmt.Sprintf("since %s, %s ago", at, text.Human(late))
	}
	return fmt.Sprintf("by %s, in %s", at, text.Human(n.Runs.Due.Sub(n.At)))
}
