package pool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/spf13/cobra"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
)

func nextCommand(a *app.App) *cobra.Command {
	var page app.Paging
	cmd := &cobra.Command{
		Use:   "next NAME",
		Short: "List the free resources in the order in which they will be handed out",
		Long: `List the resources that the next claims get, the first one first. A claim that names its
RESOURCE, or is bound to one, gets that out of turn. No more is read than --limit asks for.

Exit code 1: the pool has no resources, or hands them out at random, so that there is no
order.`,
		Example:           "  berth pool next proxies --limit 10",
		Args:              app.Arguments("NAME"),
		ValidArgsFunction: app.Completing(a.Names(keyspace.Pool)),
		RunE: a.Runs(func(cmd *cobra.Command, args []string) error {
			if err := cmp.Or(app.CheckName(args[0]), page.Check()); err != nil {
				return err
			}
			return with(cmd.Context(), a, func(ctx context.Context, n *node.Node, read *inspect.Reader) error {
				if err := counted(ctx, a, read, args[0]); err != nil {
					return err
				}
				return printNext(a, args[0], poolOf(n, args[0]).FreeInOrder(ctx), page.Of(a))
			})
		}),
	}
	page.Bind(cmd)
	return cmd
}

// printNext shows the first of a listing, 0 for all of it, and whether there are more.
func printNext(a *app.App, name string, listing iter.Seq2[allocator.ResourceInfo, error], most int) error {
	var resources []allocator.ResourceInfo
	more := false
	for info, err := range listing {
		if invalid, ok := errors.AsType[*berth.ConfigError](err); ok && invalid.Field == "Policy" {
			return app.Exit(app.ExitFailed, fmt.Errorf("pool %q in namespace %q hands out at random: there is no order", name, a.Namespace))
		}
		if err != nil {
			return err
		}
		if more = most > 0 && len(resources) == most; more {
			break
		}
		resources = append(resources, info)
	}
	if a.JSON {
		return app.PrintJSON(a, name, inspect.Page[allocator.ResourceInfo]{Items: resources})
	}
	if len(resources) == 0 {
		_, err := fmt.Fprintf(a.Out, "Nothing is free in pool %s in namespace %s.\n", text.Plain(name), text.Plain(a.Namespace))
		return err
	}
	err := app.Limited(a.Out, staying, rowsOf(name, resources), 0)
	if err == nil && more {
		_, err = fmt.Fprintln(a.Out, "... and more")
	}
	return err
}
