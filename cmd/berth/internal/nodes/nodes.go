// Package nodes has the commands about nodes, about runs of package once and about elections of package leader.
package nodes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/internal/view"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/node"
)

const nodeHelp = `A node is one process on the namespace, as its claims tell of it. Nodes that have
started a swarm also watch each other, so that holds that do not renew by themselves come
free when their process has died. A program does that through package node; berth itself
only looks, and flushes.`

// NodeCommand is berth node.
func NodeCommand(a *app.App) *cobra.Command {
	return app.Group(&cobra.Command{
		Use:   "node",
		Short: "Look at processes, remove what dead ones hold",
		Long:  nodeHelp,
		Example: `  berth node ls
  berth node show 4f1c2a9be0d7735a
  berth node flush`,
	}, listCommand(a), showCommand(a), flushCommand(a))
}

// Documents are what the commands of this package print with --json, by command.
func Documents() map[string]any {
	return map[string]any{
		"node ls": app.Document[inspect.Page[inspect.Node]]{}, "node show": app.Document[nodeDocument]{}, "node flush": app.Document[node.Flushed]{},
		"once ls": app.Document[inspect.Page[berth.Name]]{}, "once show": app.Document[app.RunsDocument]{},
		"leader ls": app.Document[inspect.Page[inspect.Election]]{}, "leader show": app.Document[app.ShowDocument]{},
	}
}

// within adds --within to a command that walks over all claims.
func within(cmd *cobra.Command) *time.Duration {
	var d time.Duration
	app.TimeVar(cmd.Flags(), &d, "within", 10*time.Second, "leave out what is not read by then")
	return &d
}

func checkWithin(d time.Duration) error {
	if d <= 0 {
		return berth.Invalid("--within", "%s is not above 0", d)
	}
	return nil
}

func listCommand(a *app.App) *cobra.Command {
	var page app.Paging
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List the nodes: what each holds and waits for, and how it stands",
		Long: `List the nodes that hold something, wait for something or are in a swarm, those that are
dead and have left something first. HEARD is how long ago a node was heard of, LIMIT its
own zombie limit, SwarmConfig.ZombieAfter. A node is

  condemned  if a flush has found it dead; it is remembered for a day
  zombie     if nothing was heard of it for LIMIT: the next flush removes what it holds
  overdue    if it should have been heard of by now: it is dead, stopped or cut off
  alive      if it was heard of
  unknown    if nothing tells: it is in no swarm, waits for nothing and renews nothing

All claims of the namespace are gone through. What was not read --within the time is left
out, and the output is said to be partial.`,
		Example: "  berth node ls\n  berth node ls --limit 10 --json",
		Args:    app.Arguments(),
	}
	limit := within(cmd)
	page.Bind(cmd)
	cmd.RunE = a.Runs(func(cmd *cobra.Command, _ []string) error {
		if err := cmp.Or(page.Check(), checkWithin(*limit)); err != nil {
			return err
		}
		return a.WithReader(cmd.Context(), func(ctx context.Context, read *inspect.Reader) error {
			limited, cancel := context.WithTimeout(ctx, *limit)
			defer cancel()
			found, err := read.Nodes().Read(limited, 0)
			if err != nil {
				return err
			}
			return app.List(a, "", found, "No node holds or waits for anything, or is in a swarm,", view.Nodes, view.NodesAt(found.At, found.Items...), page.Of(a))
		})
	})
	return cmd
}

// nodeDocument is a node with its claims, those that last longest first.
type nodeDocument struct {
	inspect.Node
	Claims inspect.Page[inspect.Claim] `json:"claims"`
}

// ofNode are the columns of a node's claims.
var ofNode = view.Claims.Pick("KIND", "NAME", "RESOURCE", "DOES", "FOR", "LEFT", "PROCESS", "OWNER", "CLAIM")

func showCommand(a *app.App) *cobra.Command {
	var page app.Paging
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show a node: how it stands, what it holds and what it waits for",
		Long: `Show how a node stands, as 'berth node ls' does, and its claims, those that last longest
first.

Exit code 1: it is not known: it holds nothing, waits for nothing, and is in no swarm.`,
		Example: "  berth node show 4f1c2a9be0d7735a",
		Args:    app.Arguments("ID"),
	}
	limit := within(cmd)
	page.Bind(cmd)
	cmd.RunE = a.Runs(func(cmd *cobra.Command, args []string) error {
		if err := cmp.Or(page.Check(), checkWithin(*limit)); err != nil {
			return err
		}
		return a.WithReader(cmd.Context(), func(ctx context.Context, read *inspect.Reader) error {
			return show(ctx, a, read, args[0], *limit, page.Of(a))
		})
	})
	return cmd
}

func show(ctx context.Context, a *app.App, read *inspect.Reader, id string, limit time.Duration, most int) error {
	claims, err := app.AllClaims(ctx, read, inspect.ClaimFilter{Node: id}, limit)
	if err != nil {
		return err
	}
	n, err := read.NodeOf(ctx, id, claims)
	if err != nil { // what the claims tell is told
		claims.Problems = append(claims.Problems, err)
	}
	if n.State == "" && !claims.Partial && err == nil {
		return app.Exit(app.ExitFailed, fmt.Errorf("node %q is not known in namespace %q: it holds nothing, waits for nothing, and is in no swarm", id, a.Namespace))
	}
	slices.SortFunc(claims.Items, view.Oldest)
	if a.JSON {
		claims.Items, _ = app.First(claims.Items, most)
		return cmp.Or(app.PrintJSON(a, "", nodeDocument{n, claims}), errors.Join(claims.Problems...))
	}
	if err := app.Limited(a, view.Nodes.Pick("NODE", "STATE", "HEARD", "LIMIT", "LABEL"), view.NodesAt(claims.At, n), 0); err != nil {
		return err
	}
	if n.Drain != nil {
		fmt.Fprintln(a.Out, view.DrainSays(n.Drain, claims.At))
	}
	fmt.Fprintln(a.Out)
	return app.List(a, "", claims, "It holds nothing, and waits for nothing,", ofNode, view.Listed(claims.Items), most)
}

func flushCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:   "flush",
		Short: "Remove what dead nodes hold, now",
		Long: `Condemn the nodes that have not said for their own zombie limit that they live, and
remove what condemned nodes hold and have waiting, of all kinds; it goes to the next in line.
Every node of the swarm does the same from time to time. Detached holds, and those
of nodes that were never in the swarm, stay. A node that holds without end, and that
the server has lost, is entered again: flush once more after its limit.`,
		Example: "  berth node flush",
		Args:    app.Arguments(),
		RunE: a.Runs(func(cmd *cobra.Command, _ []string) error {
			return a.Looking(cmd.Context(), func(ctx context.Context, n *node.Node, _ *inspect.Reader) error {
				done, failed := n.Swarm().FlushNow(ctx) // what was done counts beside an error
				says := fmt.Sprintf("nodes condemned: %d, holds ended: %d, waiting claims removed: %d", done.Nodes, done.Holds, done.Waiters)
				return cmp.Or(app.Told(a, "", done, says), failed)
			})
		}),
	}
}

// notKnown is the error of a name of which a command knows nothing.
func notKnown(a *app.App, name, why string) error {
	return app.Exit(app.ExitFailed, fmt.Errorf("%s in namespace %s: %s", text.Quoted(name), text.Quoted(a.Namespace), why))
}
