// Package pool is the command about pools.
package pool

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/internal/view"
	"github.com/berth-go/berth/internal/watch"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
)

// Command is berth pool.
func Command(a *app.App) *cobra.Command {
	return app.Group(&cobra.Command{
		Use:   "pool",
		Short: "Look at pools of resources, fill and set them, check and rest resources, end holds",
		Example: `  berth pool ls
  berth pool add proxies 10.0.0.1:3128 10.0.0.2:3128
  berth pool replace proxies --file proxies.txt
  berth pool show proxies
  berth pool rest proxies 10.0.0.1:3128 --for 10m --reason "answers 429"
  berth pool set proxies --cooldown 30s
  berth pool release proxies 10.0.0.1:3128 --force
  berth pool check proxies --exec 'curl -fsS --proxy "$BERTH_RESOURCE" https://example.com'
  berth pool inspect proxies`,
	}, append(a.ActingCommands(keyspace.Pool), lsCommand(a), showCommand(a), nextCommand(a), addCommand(a), removeCommand(a),
		replaceCommand(a), restCommand(a), setCommand(a), inspectCommand(a), a.ExplainCommand(app.VerbOf(keyspace.Pool)), bindingCommand(a), checkCommand(a))...)
}

func lsCommand(a *app.App) *cobra.Command {
	return a.LsCommand(keyspace.Pool, &cobra.Command{
		Short: "List the pools",
		Long: `List the pools of the namespace, by name, with the number of their resources: free,
leased (HELD) and resting ones. HOLDERS are more than the leased ones only where several
may hold one resource.`,
		Example: "  berth pool ls --sort share --limit 10",
	}, "There is no pool", "NAME", "CAPACITY", "FREE", "HELD", "RESTING", "HOLDERS", "WAITING", "STATE", "PAUSED")
}

func showCommand(a *app.App) *cobra.Command {
	var all, bindings, quoted bool
	var page app.Paging
	cmd := &cobra.Command{
		Use:   "show NAME [RESOURCE]",
		Short: "Show what a pool has, who holds it and who waits; or one resource of it",
		Long: `Show a pool: the resources that are leased, and by whom; those that rest, and why;
those that are damaged, which 'berth pool inspect' explains;
and the waiting claims: first those that take any resource, in the order in which they
will be granted, then those that wait for one RESOURCE, resource by resource. ONLY is
how long such a claim takes no other one, AHEAD how many stand before it of those that
wait for the same. STAYS is how long
a resource stays in the pool, LEFT what is left of the lease or of the rest; of a
waiting claim, how long it stays in line if nothing is heard of its process. With --all
the free resources are listed as well. What is set of the pool stands above.

With RESOURCE show that one alone: its state, why it rests, how long it stays in the
pool, what is set of it alone, who holds it, and who waits for it alone; all waiting
claims are read for that. With --bindings also the bindings that point to it; all
bindings of the pool are read for that.

` + keysHelp + `

Exit code 1: the pool has no resources, nobody waits for one, and nothing is set of it; or
RESOURCE is not in the pool.`,
		Example:           "  berth pool show proxies 10.0.0.1:3128 --bindings",
		Args:              app.ArgumentsFrom(1, "NAME", "RESOURCE"),
		ValidArgsFunction: app.Completing(a.Names(keyspace.Pool), a.ResourcesOf),
		RunE: a.Runs(func(cmd *cobra.Command, args []string) error {
			if err := cmp.Or(app.CheckName(args[0]), page.Check()); err != nil {
				return err
			}
			if len(args) == 1 && bindings {
				return berth.Invalid("--bindings", "it is for one RESOURCE; 'berth pool binding ls' lists those of a pool")
			}
			if len(args) == 1 {
				return a.Show(cmd.Context(), app.VerbOf(keyspace.Pool), args[0], page.Of(a), map[keyspace.Kind]app.Shower{keyspace.Pool: Shower(a, all)})
			}
			resource, err := app.KeyArgument("RESOURCE", args[1], quoted)
			switch {
			case err != nil:
				return err
			case all:
				return berth.Invalid("--all", "with RESOURCE one is shown; leave one of them out")
			}
			return a.Looking(cmd.Context(), func(ctx context.Context, n *node.Node, read *inspect.Reader) error {
				return resourceShow(ctx, a, n, read, args[0], resource, bindings, page.Of(a))
			})
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "list the free resources too")
	cmd.Flags().BoolVar(&bindings, "bindings", false, "list the bindings that point to RESOURCE")
	app.QuotedFlag(cmd, &quoted)
	page.Bind(cmd)
	a.Watch(cmd, watch.NameEvery)
	return cmd
}

func inspectCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:   "inspect NAME",
		Short: "Count a pool, and check that it is whole",
		Long: `Count everything in a pool, and check what must always be so: that all that
is free can be had, that nothing is both free and leased, that nothing is lost.
A resource whose item cannot be read is listed: nobody gets it. 'berth pool remove'
takes it out, 'berth pool add' makes it whole. Inspect changes nothing. A pool of more than 10 000 resources is read in several steps;
where it changed meanwhile, the counts are not those of one moment, and it says so.

Exit codes: 0 the pool is whole, 1 it has no resources and nobody waits for one,
65 it is not whole.`,
		Args:              app.Arguments("NAME"),
		ValidArgsFunction: app.Completing(a.Names(keyspace.Pool)),
		RunE: a.Runs(func(cmd *cobra.Command, args []string) error {
			if err := app.CheckName(args[0]); err != nil {
				return err
			}
			return a.WithNode(cmd.Context(), node.Config{}, func(ctx context.Context, n *node.Node) error {
				return inspection(ctx, a, allocator.NewOperator(n), args[0])
			})
		}),
	}
}

// unknown is the error for a pool in which nothing is and for which nobody waits,
// nil for others.
func unknown(a *app.App, n berth.Name) error {
	if n.Capacity != 0 || n.Holders != 0 || n.Waiting != 0 {
		return nil
	}
	return app.Exit(app.ExitFailed, fmt.Errorf(
		"pool %q in namespace %q has no resources, and nobody waits for one; 'berth pool add' gives it some", n.Name, a.Namespace))
}

// poolOf is the pool of a name. Its values are the keys.
func poolOf(n *node.Node, name string) *allocator.Pool[string] {
	return allocator.New(n, name, allocator.Config[string]{})
}

// counted counts a pool; its error is also that there is nothing to count.
func counted(ctx context.Context, a *app.App, read *inspect.Reader, name string) error {
	n, err := read.Name(ctx, keyspace.Pool, name)
	return cmp.Or(err, unknown(a, n))
}

// Shower reads pools; all says that the free resources are shown, too.
func Shower(a *app.App, all bool) app.Shower {
	return func(ctx context.Context, n *node.Node, read *inspect.Reader, name string) (s app.Shown, err error) {
		pools := allocator.NewOperator(n)
		if s.Name, err = read.Name(ctx, keyspace.Pool, name); err != nil {
			return s, err
		}
		if s.Settings, err = pools.Settings(ctx, name); err != nil {
			return s, err
		}
		if err := unknown(a, s.Name); err != nil && !s.Settings.ByOperator && app.Unused(s.Name) {
			s.Absent = err
		}
		s.Resources = []allocator.ResourceInfo{}
		damaged, free := 0, 0
		for info, err := range pools.Resources(ctx, name) {
			if err != nil {
				return s, err
			}
			switch leased := info.State == allocator.Leased; {
			case info.State == allocator.Damaged:
				damaged++
			case info.State == allocator.Free, leased && !info.Leaving && len(info.Holders) < info.MaxSharers:
				free++
			}
			if all || info.State != allocator.Free {
				s.Resources = append(s.Resources, info)
			}
		}
		if damaged > 0 && s.Pool != nil { // the server's count of the free ones has those that were free before
			s.Pool.Free = min(s.Pool.Free, free)
		}
		slices.SortFunc(s.Resources, func(a, b allocator.ResourceInfo) int { return strings.Compare(a.Resource, b.Resource) })
		waiters, failed := app.AllWaiters(ctx, read, keyspace.Pool, name)
		s.Waiters, s.Problems, s.Unread = waiters.Items, waiters.Problems, failed
		s.Says = summary(s.Name, damaged)
		s.Lists = func(most int) error { return printLists(a, s.ShowDocument, most) }
		return s, nil
	}
}

func inspection(ctx context.Context, a *app.App, pools *allocator.Operator, name string) error {
	found, err := pools.Inspect(ctx, name)
	if err != nil {
		return err
	}
	if len(found.Problems) == 0 {
		if err := unknown(a, nameOf(name, found)); err != nil {
			return err
		}
	}
	if err := printInspection(a, name, found); err != nil {
		return err
	}
	if n := len(found.Problems); n > 0 {
		return app.Exit(app.ExitDamaged, fmt.Errorf("pool %q in namespace %q is not whole: %s", name, a.Namespace, view.Count(n, "problem")))
	}
	return nil
}
