package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
)

func (a *app) poolCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:   "pool",
		Short: "Look at pools of resources, fill them, rest resources, end holds",
		Example: `  berth pool ls
  berth pool add proxies 10.0.0.1:3128 10.0.0.2:3128
  berth pool replace proxies --file proxies.txt
  berth pool show proxies
  berth pool rest proxies 10.0.0.1:3128 --for 10m --reason "answers 429"
  berth pool inspect proxies`,
	}, a.poolLsCommand(), a.poolShowCommand(), a.poolAddCommand(), a.poolRemoveCommand(), a.poolReplaceCommand(),
		a.poolRestCommand(), a.poolReleaseCommand(), a.poolInspectCommand())
}

func (a *app) poolLsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "ls",
		Short: "List the pools",
		Long: `List the pools of the namespace, by name, with the number of their resources: free,
leased and resting ones. HOLDERS are more than the leased ones only where several
may hold one resource.`,
		Args: arguments(),
		RunE: a.runs(func(cmd *cobra.Command, _ []string) error {
			return a.withPools(cmd.Context(), func(ctx context.Context, pools *allocator.Client) error {
				all, err := poolsNow(ctx, pools)
				return listed(err, len(all), func() error { return a.printPools(all) })
			})
		}),
	}
}

func (a *app) poolShowCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show what a pool has, who holds it and who waits",
		Long: `Show a pool: the resources that are leased, and by whom; those that rest, and why;
those that are damaged, which 'berth pool inspect' explains;
and the waiting claims in the order in which they will be granted. STAYS is how long
a resource stays in the pool, LEFT what is left of the lease or of the rest, ALIVE
how long a waiting claim stays in line if nothing is heard of its process. With --all
the free resources are listed as well.

` + keysHelp + `

Exit code 1: the pool has no resources, and nobody waits for one.`,
		Args:              arguments("NAME"),
		ValidArgsFunction: completing(a.poolNames),
		RunE: a.runs(func(cmd *cobra.Command, args []string) error {
			if err := checkName(args[0]); err != nil {
				return err
			}
			return a.withPools(cmd.Context(), func(ctx context.Context, pools *allocator.Client) error {
				return a.poolShow(ctx, pools.Operator(), args[0], all)
			})
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "list the free resources too")
	return cmd
}

func (a *app) poolReleaseCommand() *cobra.Command {
	var forced bool
	cmd := &cobra.Command{
		Use:   "release NAME CLAIM --force",
		Short: "End somebody's hold of a resource, or take somebody's claim out of the line",
		Long: `End a hold, or a wait, by the id of its claim, which 'berth pool show' tells. The
resource goes to the next in line in the same step, or rests if it has to. The
process that had it is told, and its hold ends; until it has heard, two may use the
resource.

Exit code 1: there is no such claim, or its time was over.`,
		Args:              arguments("NAME", "CLAIM"),
		ValidArgsFunction: completing(a.poolNames),
		RunE: a.runs(func(cmd *cobra.Command, args []string) error {
			if err := cmp.Or(needForce(forced), checkName(args[0])); err != nil {
				return err
			}
			if args[1] == "" {
				return berth.Invalid("CLAIM", "it is empty")
			}
			return a.poolRelease(cmd.Context(), args[0], args[1])
		}),
	}
	force(cmd, &forced)
	return cmd
}

func (a *app) poolInspectCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "inspect NAME",
		Short: "Count a pool, and check that it is whole",
		Long: `Count everything in a pool, and check what must always be so: that the list of free
resources is one ring, that nothing is both free and leased, that nothing is lost.
A resource whose item cannot be read is listed: nobody gets it. 'berth pool remove'
takes it out, 'berth pool add' makes it whole. Inspect changes nothing. A pool of more than 10 000 resources is read in several steps;
where it changed meanwhile, the counts are not those of one moment, and it says so.

Exit codes: 0 the pool is whole, 1 it has no resources and nobody waits for one,
65 it is not whole.`,
		Args:              arguments("NAME"),
		ValidArgsFunction: completing(a.poolNames),
		RunE: a.runs(func(cmd *cobra.Command, args []string) error {
			if err := checkName(args[0]); err != nil {
				return err
			}
			return a.withPools(cmd.Context(), func(ctx context.Context, pools *allocator.Client) error {
				return a.poolInspect(ctx, pools.Operator(), args[0])
			})
		}),
	}
}

// pools returns the pools of the namespace. They end with the connection.
func (c *connection) pools(cfg allocator.Config) (*allocator.Client, error) {
	cfg.Namespace, cfg.CallTimeout = c.namespace, callTime
	pools, err := allocator.New(c.redis, cfg)
	if err == nil {
		c.clients = append(c.clients, pools)
	}
	return pools, err
}

// withPools connects, and calls f with a client for pools.
func (a *app) withPools(ctx context.Context, f func(context.Context, *allocator.Client) error) error {
	return a.withServer(ctx, func(ctx context.Context, c *connection) error {
		pools, err := c.pools(allocator.Config{})
		if err != nil {
			return err
		}
		return f(ctx, pools)
	})
}

// withPool connects, and calls f with one pool. The values are the keys.
func (a *app) withPool(ctx context.Context, name string, f func(context.Context, *allocator.Pool[string]) error) error {
	if err := checkName(name); err != nil {
		return err
	}
	return a.withPools(ctx, func(ctx context.Context, pools *allocator.Client) error {
		pool, err := allocator.NewPool(pools, name, allocator.PoolConfig[string]{})
		if err != nil {
			return err
		}
		return f(ctx, pool)
	})
}

// poolsNow returns the pools, by name. What a part of a cluster answered is
// returned with the error of the others.
func poolsNow(ctx context.Context, pools *allocator.Client) ([]allocator.Stats, error) {
	all, err := collect(pools.Operator().All(ctx))
	slices.SortFunc(all, func(a, b allocator.Stats) int { return strings.Compare(a.Name, b.Name) })
	return all, err
}

// poolNames returns the names of the pools that begin with a prefix.
func (a *app) poolNames(ctx context.Context, prefix string) (names []string, err error) {
	err = a.withPools(ctx, func(ctx context.Context, pools *allocator.Client) error {
		all, err := poolsNow(ctx, pools)
		for _, stats := range all {
			if strings.HasPrefix(stats.Name, prefix) {
				names = append(names, stats.Name)
			}
		}
		return err
	})
	return names, err
}

// unknown is the error for a pool in which nothing is and for which nobody waits,
// nil for others.
func (a *app) unknown(s allocator.Stats, name string) error {
	if s.Resources != 0 || s.Holders != 0 || s.Waiting != 0 {
		return nil
	}
	return &exitError{exitFailed, fmt.Errorf(
		"pool %q in namespace %q has no resources, and nobody waits for one; 'berth pool add' gives it some", name, a.namespace)}
}

func (a *app) poolShow(ctx context.Context, pools *allocator.Operator, name string, all bool) error {
	stats, err := pools.Stats(ctx, name)
	if err != nil {
		return err
	}
	if err := a.unknown(stats, name); err != nil {
		return err
	}
	var resources []allocator.ResourceInfo
	for info, err := range pools.Resources(ctx, name) {
		if err != nil {
			return err
		}
		if all || info.State != allocator.Free {
			resources = append(resources, info)
		}
	}
	slices.SortFunc(resources, func(a, b allocator.ResourceInfo) int { return strings.Compare(a.Resource, b.Resource) })
	waiters, failed := collect(pools.Waiters(ctx, name))
	return listed(failed, len(resources)+len(waiters), func() error { return a.printPool(stats, resources, waiters, all) })
}

func (a *app) poolRelease(ctx context.Context, name, claim string) error {
	return a.withPools(ctx, func(ctx context.Context, pools *allocator.Client) error {
		_, err := pools.Operator().Release(ctx, berth.Target{Name: name, Claim: claim})
		if errors.Is(err, berth.ErrNotHeld) { // also where its time was over
			return &exitError{exitFailed, fmt.Errorf("no claim %q of pool %q in namespace %q, or no longer", claim, name, a.namespace)}
		}
		if err != nil {
			return err
		}
		return a.printReleased(name, claim)
	})
}

func (a *app) poolInspect(ctx context.Context, pools *allocator.Operator, name string) error {
	found, err := pools.Inspect(ctx, name)
	if err != nil {
		return err
	}
	if len(found.Problems) == 0 {
		if err := a.unknown(found.Stats, name); err != nil {
			return err
		}
	}
	if err := a.printInspection(name, found); err != nil {
		return err
	}
	if n := len(found.Problems); n > 0 {
		return &exitError{exitDamaged, fmt.Errorf("pool %q in namespace %q is not whole: %s", name, a.namespace, count(n, "problem"))}
	}
	return nil
}

// count is a number of things.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return itoa(n) + " " + thing + "s"
}
