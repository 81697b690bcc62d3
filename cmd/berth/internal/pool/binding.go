package pool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/internal/view"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
)

// defaultBindFor is how long a binding lasts that says nothing else, as in package allocator.
const defaultBindFor = time.Hour

// unboundDocument is a binding as it was, without a resource if it was not there.
type unboundDocument struct {
	berth.Binding
	Removed bool `json:"removed"`
}

// printBindings lists the bindings of a pool, not all of them where some have failed.
func printBindings(a *app.App, name string, bindings []berth.Binding, failed error, most int) error {
	listed := inspect.Page[berth.Binding]{Items: bindings}
	if failed != nil {
		listed.Partial, listed.Problems = true, []error{failed}
	}
	return app.List(a, name, listed, "Nothing is bound in pool "+text.Plain(name), view.Bindings, bindings, most)
}

func printUnbound(a *app.App, name string, was berth.Binding) error {
	says, removed := "was not bound", was.Resource != ""
	if removed {
		says = "is bound to " + view.Key(was.Resource) + " no more"
	}
	return app.Told(a, name, unboundDocument{was, removed}, text.Plain(name)+": "+view.Key(was.Name)+" "+says)
}

func bindingCommand(a *app.App) *cobra.Command {
	return app.Group(&cobra.Command{
		Use:   "binding",
		Short: "List, set and remove the bindings of a pool",
		Long: `A binding is a name by which a claim gets the same resource again, if that is free:
'berth run --pool POOL --bind BINDING'.`,
		Example: `  berth pool binding ls proxies
  berth pool binding set proxies customer-7 10.0.0.1:3128 --for 1d
  berth pool binding remove proxies customer-7`,
	}, bindingLsCommand(a), bindingSetCommand(a), bindingRemoveCommand(a))
}

func bindingLsCommand(a *app.App) *cobra.Command {
	return a.OfName(keyspace.Pool, &cobra.Command{
		Use:     "ls NAME",
		Short:   "List the bindings of a pool",
		Long:    "List the bindings of a pool, by name. LEFT is how long a binding lasts.",
		Example: "  berth pool binding ls proxies",
	}, func(ctx context.Context, n *node.Node, _ *inspect.Reader, name string, most int) error {
		all, err := bindingsOf(ctx, n, name)
		return printBindings(a, name, all, err, most)
	})
}

// bindingsOf are the bindings of a pool, by name.
func bindingsOf(ctx context.Context, n *node.Node, name string) ([]berth.Binding, error) {
	all, err := app.Collect(allocator.NewOperator(n).Bindings(ctx, name))
	slices.SortFunc(all, func(x, y berth.Binding) int { return strings.Compare(x.Name, y.Name) })
	return all, err
}

func bindingSetCommand(a *app.App) *cobra.Command {
	var opts allocator.BindOptions
	var quoted bool
	cmd := &cobra.Command{
		Use:   "set NAME BINDING RESOURCE [--for D]",
		Short: "Bind a name to a resource",
		Long: `Bind a name to a resource, in place of the one that it was bound to. Who holds that
keeps it.

Exit code 1: the resource is not in the pool, leaves it, or is damaged.`,
		Example:           "  berth pool binding set proxies customer-7 10.0.0.1:3128 --for 1d",
		Args:              app.Arguments("NAME", "BINDING", "RESOURCE"),
		ValidArgsFunction: app.Completing(a.Names(keyspace.Pool), a.BindingsOf, a.ResourcesOf),
		RunE: a.Runs(func(cmd *cobra.Command, args []string) error {
			binding, failed := app.KeyArgument("BINDING", args[1], quoted)
			resource, err := app.KeyArgument("RESOURCE", args[2], quoted)
			if opts.BindFor <= 0 {
				err = cmp.Or(err, berth.Invalid("--for", "%s is not above 0; 'berth pool binding remove' ends a binding", opts.BindFor))
			}
			if err := cmp.Or(failed, err); err != nil {
				return err
			}
			return withBound(cmd.Context(), a, args[0], func(ctx context.Context, pool *allocator.Pool[string]) error {
				err := pool.Bind(ctx, binding, resource, &opts)
				if errors.Is(err, berth.ErrAbsent) {
					return a.Absent(args[0], resource)
				}
				if err != nil {
					return app.InFlags(err, "name", "BINDING", "resource", "RESOURCE", "BindFor", "--for")
				}
				b := berth.Binding{Name: binding, Resource: resource, Left: opts.BindFor}
				return app.Told(a, args[0], b, fmt.Sprintf("%s: %s is bound to %s, %s left",
					text.Plain(args[0]), view.Key(binding), view.Key(resource), text.Human(b.Left)))
			})
		}),
	}
	app.EndlessVar(cmd.Flags(), &opts.BindFor, "for", defaultBindFor, "how long the binding lasts, or forever")
	app.QuotedFlag(cmd, &quoted)
	return cmd
}

func bindingRemoveCommand(a *app.App) *cobra.Command {
	var quoted bool
	cmd := &cobra.Command{
		Use:   "remove NAME BINDING",
		Short: "End a binding", SuggestFor: []string{"rm", "delete"},
		Long: `End a binding. Who holds its resource keeps it. One that is not there is none too
many: the exit code is 0.`,
		Example:           "  berth pool binding remove proxies customer-7",
		Args:              app.Arguments("NAME", "BINDING"),
		ValidArgsFunction: app.Completing(a.Names(keyspace.Pool), a.BindingsOf),
		RunE: a.Runs(func(cmd *cobra.Command, args []string) error {
			binding, err := app.KeyArgument("BINDING", args[1], quoted)
			if err != nil {
				return err
			}
			return withBound(cmd.Context(), a, args[0], func(ctx context.Context, pool *allocator.Pool[string]) error {
				was, err := pool.Binding(ctx, binding)
				if err == nil {
					err = pool.Unbind(ctx, binding)
				}
				if err != nil {
					return app.InFlags(err, "name", "BINDING")
				}
				return printUnbound(a, args[0], was)
			})
		}),
	}
	app.QuotedFlag(cmd, &quoted)
	return cmd
}

// withBound connects, and calls f with a pool, whose name is right.
func withBound(ctx context.Context, a *app.App, name string, f func(context.Context, *allocator.Pool[string]) error) error {
	if err := app.CheckName(name); err != nil {
		return err
	}
	return a.WithNode(ctx, node.Config{}, func(ctx context.Context, n *node.Node) error { return f(ctx, poolOf(n, name)) })
}
