package pool

import (
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
	return a.OfName(keyspace.Pool, &cobra.Command{
		Use:   "next NAME",
		Short: "List the free resources in the order in which they will be handed out",
		Long: `List the resources that the next claims get, the first one first. A claim that names its
RESOURCE, or is bound to one, gets that out of turn. No more is read than --limit asks for.

Exit code 1: the pool has no resources, or hands them out at random, so that there is no
order.`,
		Example: "  berth pool next proxies --limit 10",
	}, func(ctx context.Context, n *node.Node, read *inspect.Reader, name string, most int) error {
		if err := counted(ctx, a, read, name); err != nil {
			return err
		}
		return printNext(a, name, poolOf(n, name).FreeInOrder(ctx), most)
	})
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
	listed := inspect.Page[allocator.ResourceInfo]{Items: resources}
	err := app.List(a, name, listed, "Nothing is free in pool "+text.Plain(name), staying, rowsOf(name, resources), 0)
	if err == nil && more && !a.JSON {
		_, err = fmt.Fprintln(a.Out, "... and more")
	}
	return err
}
