package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/semaphore"
)

func (a *app) semCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sem",
		Short: "Look at semaphores, and resize them",
		Example: `  berth sem ls
  berth sem show gpu
  berth sem resize gpu 8`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unknown command %q for %q", args[0], cmd.CommandPath())
			}
			return cmd.Help()
		},
	}
	cmd.AddCommand(a.semLsCommand(), a.semShowCommand(), a.semResizeCommand())
	return cmd
}

func (a *app) semLsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "ls",
		Short: "List the semaphores in use",
		Long: `List the semaphores of the namespace in which anything is held or waits, by
name. One that is idle is remembered for a minute, but not listed.`,
		Args: cobra.NoArgs,
		RunE: a.runs(func(cmd *cobra.Command, _ []string) error {
			return a.withServer(cmd.Context(), semaphore.Config{}, a.semLs)
		}),
	}
}

func (a *app) semShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show NAME",
		Short: "Show who holds a semaphore and who waits for it",
		Long: `Show a semaphore: its holders, the longest first, and its waiting claims in the
order in which they will be granted. LEFT is what is left of the lease, ALIVE how
long a waiting claim stays in line if nothing is heard of its process.

Exit code 1: the semaphore is not known.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeNames,
		RunE: a.runs(func(cmd *cobra.Command, args []string) error {
			if err := checkName(args[0]); err != nil {
				return err
			}
			return a.withServer(cmd.Context(), semaphore.Config{}, func(ctx context.Context, c *connection) error {
				return a.semShow(ctx, c, args[0])
			})
		}),
	}
}

func (a *app) semResizeCommand() *cobra.Command {
	var keep bool
	cmd := &cobra.Command{
		Use:   "resize NAME CAPACITY",
		Short: "Change the capacity of a semaphore",
		Long: `Change the capacity of a semaphore, also while it is in use. Nobody loses a
permit: where more is held than the new capacity, grants pause until enough is
given back. Waiting claims that are heavier than the new capacity are refused.

A semaphore that is idle for a minute is forgotten, and its capacity too. With
--keep it is remembered for good; a later resize without --keep lets it go again.`,
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: a.completeNames,
		RunE: a.runs(func(cmd *cobra.Command, args []string) error {
			if err := checkName(args[0]); err != nil {
				return err
			}
			capacity, err := strconv.Atoi(args[1])
			if err != nil || capacity < 1 {
				return berth.Invalid("CAPACITY", "%q is not a whole number of at least 1", args[1])
			}
			return a.semResize(cmd.Context(), args[0], capacity, keep)
		}),
	}
	cmd.Flags().BoolVar(&keep, "keep", false, "remember the capacity for good")
	return cmd
}

func checkName(name string) error { return inFlags(keyspace.CheckName(name), "name", "NAME") }

// withServer connects, and calls f. What f returns is the server's error, unless
// it has an exit code of its own.
func (a *app) withServer(ctx context.Context, cfg semaphore.Config, f func(context.Context, *connection) error) error {
	c, err := a.connect(ctx, cfg)
	if err != nil {
		return err
	}
	defer c.close()
	err = f(ctx, c)
	if exit := (*exitError)(nil); err == nil || errors.As(err, &exit) || errors.Is(err, berth.ErrInvalidConfig) {
		return err
	}
	return unreachable(c.address, err)
}

// inUse returns what Stats says of all semaphores in use, by name. What a part
// of a cluster answered is returned with the error of the others.
func inUse(ctx context.Context, c *connection) ([]semaphore.Stats, error) {
	var all []semaphore.Stats
	var errs []error
	for stats, err := range c.sems.Stats(ctx) {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		all = append(all, stats)
	}
	slices.SortFunc(all, func(a, b semaphore.Stats) int { return strings.Compare(a.Name, b.Name) })
	return all, errors.Join(errs...)
}

// names returns the names in use that begin with a prefix.
func (a *app) names(ctx context.Context, prefix string) (names []string, err error) {
	err = a.withServer(ctx, semaphore.Config{}, func(ctx context.Context, c *connection) error {
		all, err := inUse(ctx, c)
		for _, stats := range all {
			if strings.HasPrefix(stats.Name, prefix) {
				names = append(names, stats.Name)
			}
		}
		return err
	})
	return names, err
}

func (a *app) semLs(ctx context.Context, c *connection) error {
	all, failed := inUse(ctx, c)
	if err := a.printList(all); err != nil {
		return err
	}
	return failed
}

func (a *app) semShow(ctx context.Context, c *connection, name string) error {
	sem, err := c.sems.Semaphore(name, 1) // a look stores no capacity
	if err != nil {
		return err
	}
	stats, err := sem.Stats(ctx)
	if err != nil {
		return err
	}
	if stats.Capacity == 0 {
		return &exitError{exitFailed, fmt.Errorf(
			"no semaphore %q in namespace %q: it has not been used, or not for a minute", name, a.namespace)}
	}
	var holders []semaphore.Holder
	for holder, err := range sem.Holders(ctx) {
		if err != nil {
			return err
		}
		holders = append(holders, holder)
	}
	slices.SortFunc(holders, func(a, b semaphore.Holder) int { return int(a.Fence - b.Fence) })
	var waiters []semaphore.Waiter
	for waiter, err := range sem.Waiters(ctx) {
		if err != nil {
			return err
		}
		waiters = append(waiters, waiter)
	}
	return a.printSemaphore(stats, holders, waiters)
}

func (a *app) semResize(ctx context.Context, name string, capacity int, keep bool) error {
	before := 0
	watch := observe.Func(func(e observe.Event) {
		if e.Kind == observe.Resized { // on the goroutine that resizes
			before = e.Count
		}
	})
	return a.withServer(ctx, semaphore.Config{Observer: watch}, func(ctx context.Context, c *connection) error {
		sem, err := c.sems.Semaphore(name, capacity)
		if err != nil {
			return inFlags(err, "capacity", "CAPACITY")
		}
		if err := sem.Resize(ctx, capacity, &semaphore.ResizeOptions{Keep: keep}); err != nil {
			return err
		}
		return a.printResized(name, before, capacity, keep)
	})
}
