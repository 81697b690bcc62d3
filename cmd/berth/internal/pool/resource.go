package pool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/pkg/allocator"
)

func resourceShow(ctx context.Context, a *app.App, ops *allocator.Operator, name, resource string, bound bool, most int) error {
	info, err := a.PresentResource(ctx, ops, name, resource)
	if err != nil {
		return err
	}
	if !bound {
		return printResource(a, name, info, nil, most)
	}
	bindings := []allocator.Binding{}
	for b, err := range ops.Bindings(ctx, name) {
		if err != nil {
			return err
		}
		if b.Resource == resource {
			bindings = append(bindings, b)
		}
	}
	slices.SortFunc(bindings, func(x, y allocator.Binding) int { return strings.Compare(x.Name, y.Name) })
	return printResource(a, name, info, bindings, most)
}

type showResourceDocument struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	resourceDocument
	Bindings []bindingDocument `json:"bindings,omitzero"` // only with --bindings
}

// printResource shows a resource; bindings are nil where they are not to be shown.
func printResource(a *app.App, name string, info allocator.ResourceInfo, bindings []allocator.Binding, most int) error {
	if a.JSON {
		info.Holders, _ = app.First(info.Holders, most)
		document := showResourceDocument{Namespace: a.Namespace, Name: name, resourceDocument: resourceDocumentOf(info)}
		if bindings != nil {
			document.Bindings = bindingDocuments(bindings, most)
		}
		return app.PrintJSON(a.Out, document)
	}
	text := fmt.Sprintf("%s: %s is %s", app.Plain(name), app.Key(info.Resource), info.State)
	if info.State == allocator.Leased || info.State == allocator.Resting {
		text += ", " + app.Human(info.Left) + " left"
	}
	if info.MaxSharers > 1 {
		text += fmt.Sprintf(", %d of %d sharers", len(info.Holders), info.MaxSharers)
	}
	switch {
	case info.Leaving:
		text += ", leaves when it comes back"
	case info.Expiry != 0:
		text += ", stays for " + app.Human(info.Expiry)
	}
	fmt.Fprintln(a.Out, text)
	if info.Reason != "" {
		rests := "rests"
		if info.State == allocator.Leased {
			rests = "will rest when it comes back"
		}
		fmt.Fprintf(a.Out, "%s: %s\n", rests, app.Plain(info.Reason))
	}
	err := a.PrintClaims(info.Holders, nil, false, most)
	if bindings == nil || err != nil {
		return err
	}
	fmt.Fprintln(a.Out)
	return printBindings(a, name, bindings, most)
}

func poolBindingCommand(a *app.App) *cobra.Command {
	return app.Group(&cobra.Command{
		Use:   "binding",
		Short: "List, set and remove the bindings of a pool",
		Long: `A binding is a name by which a claim gets the same resource again, if that is free:
'berth run --pool POOL --bind BINDING'.`,
		Example: `  berth pool binding ls proxies
  berth pool binding set proxies customer-7 10.0.0.1:3128 --for 1d
  berth pool binding rm proxies customer-7`,
	}, bindingLsCommand(a), bindingSetCommand(a), bindingRmCommand(a))
}

func bindingLsCommand(a *app.App) *cobra.Command {
	var page app.Paging
	cmd := &cobra.Command{
		Use:               "ls POOL",
		Short:             "List the bindings of a pool",
		Long:              "List the bindings of a pool, by name. LEFT is how long a binding lasts.",
		Example:           "  berth pool binding ls proxies",
		Args:              app.Arguments("POOL"),
		ValidArgsFunction: app.Completing(a.PoolNames),
		RunE: a.Runs(func(cmd *cobra.Command, args []string) error {
			if err := cmp.Or(checkPool(args[0]), page.Check()); err != nil {
				return err
			}
			return a.WithPools(cmd.Context(), func(ctx context.Context, pools *allocator.Client) error {
				all, err := app.Collect(pools.Operator().Bindings(ctx, args[0]))
				slices.SortFunc(all, func(x, y allocator.Binding) int { return strings.Compare(x.Name, y.Name) })
				return app.Listed(err, len(all), func() error { return printBoundOf(a, args[0], all, page.Of(a)) })
			})
		}),
	}
	page.Bind(cmd)
	return cmd
}

func bindingSetCommand(a *app.App) *cobra.Command {
	var opts allocator.BindOptions
	var quoted bool
	cmd := &cobra.Command{
		Use:   "set POOL BINDING RESOURCE [--for D]",
		Short: "Bind a name to a resource",
		Long: `Bind a name to a resource, in place of the one that it was bound to. Who holds that
keeps it.

Exit code 1: the resource is not in the pool, leaves it, or is damaged.`,
		Example:           "  berth pool binding set proxies customer-7 10.0.0.1:3128 --for 1d",
		Args:              app.Arguments("POOL", "BINDING", "RESOURCE"),
		ValidArgsFunction: app.Completing(a.PoolNames, a.BindingsOf, a.ResourcesOf),
		RunE: a.Runs(func(cmd *cobra.Command, args []string) error {
			binding, err := bindingOf(args[1], quoted)
			if err != nil {
				return err
			}
			resource, err := app.KeyOf(args[2], quoted)
			switch {
			case err != nil:
				return berth.Invalid("RESOURCE", "%s", err)
			case opts.BindFor <= 0:
				return berth.Invalid("--for", "%s is not above 0; 'berth pool binding rm' ends a binding", opts.BindFor)
			}
			return withBound(cmd.Context(), a, args[0], func(ctx context.Context, pool *allocator.Pool[string]) error {
				err := pool.Bind(ctx, binding, resource, &opts)
				if errors.Is(err, berth.ErrAbsent) {
					return a.Absent(args[0], resource)
				}
				if err != nil {
					return app.InFlags(err, "name", "BINDING", "resource", "RESOURCE", "BindFor", "--for")
				}
				return printBound(a, args[0], allocator.Binding{Name: binding, Resource: resource, Left: opts.BindFor})
			})
		}),
	}
	app.EndlessVar(cmd.Flags(), &opts.BindFor, "for", defaultBindFor, "how long the binding lasts, or forever")
	app.QuotedFlag(cmd, &quoted)
	return cmd
}

func bindingRmCommand(a *app.App) *cobra.Command {
	var quoted bool
	cmd := &cobra.Command{
		Use:   "rm POOL BINDING",
		Short: "End a binding",
		Long: `End a binding. Who holds its resource keeps it. One that is not there is none too
many: the exit code is 0.`,
		Example:           "  berth pool binding rm proxies customer-7",
		Args:              app.Arguments("POOL", "BINDING"),
		ValidArgsFunction: app.Completing(a.PoolNames, a.BindingsOf),
		RunE: a.Runs(func(cmd *cobra.Command, args []string) error {
			binding, err := bindingOf(args[1], quoted)
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

func checkPool(name string) error { return app.InFlags(app.CheckName(name), "NAME", "POOL") }

// bindingOf is the name of a binding that a text stands for.
func bindingOf(text string, quoted bool) (string, error) {
	binding, err := app.KeyOf(text, quoted)
	if err != nil {
		return "", berth.Invalid("BINDING", "%s", err)
	}
	return binding, nil
}

// withBound is withPool, for a command whose argument is POOL.
func withBound(ctx context.Context, a *app.App, name string, f func(context.Context, *allocator.Pool[string]) error) error {
	if err := checkPool(name); err != nil {
		return err
	}
	return a.WithPool(ctx, name, f)
}
