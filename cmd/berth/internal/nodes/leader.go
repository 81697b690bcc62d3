package nodes

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/internal/settings"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/internal/view"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
)

// LeaderCommand is berth leader.
func LeaderCommand(a *app.App) *cobra.Command {
	return app.Group(&cobra.Command{
		Use:   "leader",
		Short: "Look at who leads",
		Long: `Look at the elections of package leader. An election is a lock whose claims say in their
metadata that they are of one: berth=leader. So one in which nobody leads or stands is not
known.`,
		Example: `  berth leader ls
  berth leader show scheduler`,
	}, leaderListCommand(a), leaderShowCommand(a))
}

func leaderListCommand(a *app.App) *cobra.Command {
	var page app.Paging
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List who leads what, and how many would",
		Long: `List the elections by name: who leads, for how long, for how much longer if nothing renews
it, and how many others stand.

All locks of the namespace are gone through. What was not read --within the time is left out,
and the output is said to be partial.`,
		Example: "  berth leader ls",
		Args:    app.Arguments(),
	}
	limit := within(cmd)
	page.Bind(cmd)
	cmd.RunE = a.Runs(func(cmd *cobra.Command, _ []string) error {
		if err := cmp.Or(page.Check(), checkWithin(*limit)); err != nil {
			return err
		}
		return a.WithReader(cmd.Context(), func(ctx context.Context, read *inspect.Reader) error {
			claims, err := app.AllClaims(ctx, read, inspect.Candidacies(), *limit)
			if err != nil {
				return err
			}
			found := inspect.Elections(claims)
			return app.List(a, "", found, "Nobody leads or stands for anything", view.Elections, found.Items, page.Of(a))
		})
	})
	return cmd
}

func leaderShowCommand(a *app.App) *cobra.Command {
	return a.ShowCommand(app.VerbOf(keyspace.Lock), &cobra.Command{
		Short: "Show who leads, and who would",
		Long: `Show who leads, and the candidates in the order in which they would lead next.

Exit code 1: nobody leads or stands for the name.`,
		Example: "  berth leader show scheduler",
	}, map[keyspace.Kind]app.Shower{keyspace.Lock: func(ctx context.Context, _ *node.Node, read *inspect.Reader, name string) (s app.Shown, err error) {
		if s.Name, err = read.Name(ctx, keyspace.Lock, name); err != nil {
			return s, err
		}
		s.Unread = s.ReadClaims(ctx, read)
		stands := slices.ContainsFunc(s.Waiters, func(w berth.Waiter) bool { return ofLeader(w.Meta) })
		s.Says = "nobody leads"
		if len(s.HeldBy) > 0 {
			h := &s.HeldBy[0]
			who := view.Who(h.Label, h.Owner, h.ID)
			if s.Says = "nobody leads: " + who + " holds the lock, and is no candidate"; ofLeader(h.Meta) {
				s.Says, stands = fmt.Sprintf("%s has led for %s, %s left", who, text.Human(h.Held), text.Human(h.Left)), true
			}
		}
		if !stands && s.Unread == nil {
			s.Absent = notKnown(a, name, "nobody leads or stands for it")
		}
		s.Says = text.Plain(name) + ": " + s.Says
		s.Lists = func(most int) error { return a.PrintClaims(keyspace.Lock, name, s.HeldBy, s.Waiters, most) }
		return s, nil
	}})
}

// ofLeader reports whether a claim is one of package leader, by its metadata.
func ofLeader(meta map[string]string) bool { return meta[settings.MetaKey] == settings.MetaLeader }
