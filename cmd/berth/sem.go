package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/semaphore"
)

func (a *app) semCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:   "sem",
		Short: "Look at semaphores, resize them, end permits",
		Example: `  berth sem ls
  berth sem show gpu
  berth sem resize gpu 8
  berth sem release gpu 0a1b2c3d4e5f6071.d3k5m7p9r1t3v5x7z9b0 --force
  berth sem sweep`,
	}, a.semLsCommand(), a.semShowCommand(), a.semResizeCommand(), a.semReleaseCommand(),
		a.sweepCommand(a.semKind(), "sem", "permits and waiting claims"))
}

func (a *app) semLsCommand() *cobra.Command {
	var page paging
	order := sorting[semaphore.Stats]{
		"name":    func(x, y semaphore.Stats) int { return strings.Compare(x.Name, y.Name) },
		"held":    func(x, y semaphore.Stats) int { return cmp.Compare(y.Held, x.Held) },
		"share":   func(x, y semaphore.Stats) int { return cmp.Compare(y.Share(), x.Share()) },
		"waiting": func(x, y semaphore.Stats) int { return cmp.Compare(y.Waiting, x.Waiting) },
	}
	return lsCommand(a, &page, order, &cobra.Command{
		Short: "List the semaphores in use",
		Long: `List the semaphores of the namespace in which anything is held or waits, by
name. One that is idle is remembered for a minute, but not listed.`,
		Example: "  berth sem ls --sort waiting --limit 10",
	}, func(ctx context.Context, sort func([]semaphore.Stats)) error {
		return a.withSems(ctx, semaphore.Config{}, func(ctx context.Context, sems *semaphore.Client) error {
			all, err := collect(sems.Operator().All(ctx))
			sort(all)
			return listed(err, len(all), func() error { return a.printList(all, page.of(a)) })
		})
	})
}

func (a *app) semShowCommand() *cobra.Command {
	var page paging
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show who holds a semaphore and who waits for it",
		Long: `Show a semaphore: its holders, the longest first, and its waiting claims in the
order in which they will be granted. LEFT is what is left of the lease, ALIVE how
long a waiting claim stays in line if nothing is heard of its process.

Exit code 1: the semaphore is not known.`,
		Example:           "  berth sem show gpu --limit 20",
		Args:              arguments("NAME"),
		ValidArgsFunction: completing(a.semNames),
		RunE: a.runs(func(cmd *cobra.Command, args []string) error {
			if err := cmp.Or(checkName(args[0]), page.check()); err != nil {
				return err
			}
			return a.withSems(cmd.Context(), semaphore.Config{}, func(ctx context.Context, sems *semaphore.Client) error {
				return a.semShow(ctx, sems, args[0], page.of(a))
			})
		}),
	}
	page.bind(cmd)
	return cmd
}

func (a *app) semResizeCommand() *cobra.Command {
	var opts semaphore.ResizeOptions
	cmd := &cobra.Command{
		Use:   "resize NAME CAPACITY",
		Short: "Change the capacity of a semaphore",
		Long: `Change the capacity of a semaphore, also while it is in use. Nobody loses a
permit: where more is held than the new capacity, grants pause until enough is
given back. Waiting claims that are heavier than the new capacity are refused.

A semaphore that is idle for a minute is forgotten, and its capacity too. With
--keep it is remembered for good; a later resize without --keep lets it go again.
The output says which. A name that nobody uses may be mistyped: it is refused
unless --create is given.

Exit code 1: the semaphore is not known, and --create is not given.`,
		Args:              arguments("NAME", "CAPACITY"),
		ValidArgsFunction: completing(a.semNames),
		RunE: a.runs(func(cmd *cobra.Command, args []string) error {
			if err := checkName(args[0]); err != nil {
				return err
			}
			capacity, err := strconv.Atoi(args[1])
			if err != nil || capacity < 1 {
				return berth.Invalid("CAPACITY", "%q is not a whole number of at least 1", args[1])
			}
			return a.semResize(cmd.Context(), args[0], capacity, opts)
		}),
	}
	cmd.Flags().BoolVar(&opts.Keep, "keep", false, "remember the capacity for good")
	cmd.Flags().BoolVar(&opts.Create, "create", false, "set the capacity of a semaphore that nobody uses, too")
	return cmd
}

func (a *app) semShow(ctx context.Context, sems *semaphore.Client, name string, most int) error {
	ops := sems.Operator()
	stats, err := ops.Stats(ctx, name)
	if err != nil {
		return err
	}
	if stats.Capacity == 0 {
		return exitWith(exitFailed, fmt.Errorf(
			"no semaphore %q in namespace %q: it has not been used, or not for a minute", name, a.namespace))
	}
	holders, failed := collect(ops.Holders(ctx, name))
	slices.SortFunc(holders, func(a, b berth.Holder) int { return int(a.Fence - b.Fence) })
	waiters, errs := collect(ops.Waiters(ctx, name))
	return listed(errors.Join(failed, errs), len(holders)+len(waiters), func() error {
		return a.printSemaphore(stats, holders, waiters, most)
	})
}

// resizeLinger is how long a semaphore without a holder keeps the capacity that
// this command sets.
const resizeLinger = time.Minute

func (a *app) semResize(ctx context.Context, name string, capacity int, opts semaphore.ResizeOptions) error {
	before := 0
	watch := observe.Func(func(e observe.Event) {
		if e.Kind == observe.Resized { // on the goroutine that resizes
			before = e.Count
		}
	})
	cfg := semaphore.Config{Observer: watch, Linger: resizeLinger}
	return a.withSems(ctx, cfg, func(ctx context.Context, sems *semaphore.Client) error {
		err := sems.Operator().Resize(ctx, name, capacity, &opts)
		if errors.Is(err, berth.ErrAbsent) {
			return exitWith(exitFailed, fmt.Errorf(
				"no semaphore %q in namespace %q: it has not been used, or not for a minute; to set its capacity all the same, say --create", name, a.namespace))
		}
		if err != nil {
			return inFlags(err, "capacity", "CAPACITY")
		}
		return a.printResized(name, before, capacity, opts.Keep)
	})
}

func (a *app) semKind() kind {
	return kind{noun: "semaphore", names: a.semNames, with: func(ctx context.Context, f func(context.Context, operator) error) error {
		return a.withSems(ctx, semaphore.Config{}, func(ctx context.Context, sems *semaphore.Client) error { return f(ctx, sems.Operator()) })
	}}
}

func (a *app) semReleaseCommand() *cobra.Command {
	return a.releaseCommand(&releasing{kind: a.semKind()}, &cobra.Command{
		Use:     "release {NAME CLAIM | [NAME] {--owner OWNER | --node NODE | --all}} --force",
		Short:   "End somebody's permits, or take somebody's claim out of the line",
		Long:    "End permits, or waits, whoever has them.\n" + fmt.Sprintf(releaseHelp, "sem", "NAME alone is refused: a CLAIM may be missing."),
		Example: "  berth sem release gpu 0a1b2c3d4e5f6071.d3k5m7p9r1t3v5x7z9b0 --force",
	})
}
