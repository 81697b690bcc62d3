// Package sem is the command about semaphores.
package sem

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/internal/view"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/semaphore"
)

// Command is berth sem.
func Command(a *app.App) *cobra.Command {
	return app.Group(&cobra.Command{
		Use:   "sem",
		Short: "Look at semaphores, resize and pause them, end permits",
		Example: `  berth sem ls
  berth sem show gpu
  berth sem explain gpu
  berth sem resize gpu 8
  berth sem release gpu 0a1b2c3d4e5f6071.d3k5m7p9r1t3v5x7z9b0 --force
  berth sem pause gpu --for 2h --reason migration
  berth sem sweep`,
	}, append(a.ActingCommands(keyspace.Sem), lsCommand(a), showCommand(a), resizeCommand(a), a.ExplainCommand(app.VerbOf(keyspace.Sem)))...)
}

func lsCommand(a *app.App) *cobra.Command {
	return a.LsCommand(keyspace.Sem, &cobra.Command{
		Short: "List the semaphores in use",
		Long: `List the semaphores of the namespace in which anything is held or waits, and those
that are paused, by name. One that is idle is remembered for a minute, but not listed.`,
		Example: "  berth sem ls --sort waiting --limit 10",
	}, "No semaphore is in use", "NAME", "CAPACITY", "HELD", "FREE", "HOLDERS", "WAITING", "STATE", "PAUSED")
}

func showCommand(a *app.App) *cobra.Command {
	return a.ShowCommand(app.VerbOf(keyspace.Sem), &cobra.Command{
		Short: "Show who holds a semaphore and who waits for it",
		Long: `Show a semaphore: its holders, the longest first, and its waiting claims in the
order in which they will be granted. LEFT is what is left of the lease; of a waiting
claim, how long it stays in line if nothing is heard of its process.

Exit code 1: the semaphore is not known.`,
		Example: "  berth sem show gpu --limit 20",
	}, map[keyspace.Kind]app.Shower{keyspace.Sem: Shower(a)})
}

func resizeCommand(a *app.App) *cobra.Command {
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

Exit code 1: the semaphore is not known, and --create is not given; or another operator has
resized it meanwhile, and then nothing is changed.`,
		Args:              app.Arguments("NAME", "CAPACITY"),
		ValidArgsFunction: app.Completing(a.Names(keyspace.Sem)),
		RunE: a.Runs(func(cmd *cobra.Command, args []string) error {
			if err := app.CheckName(args[0]); err != nil {
				return err
			}
			capacity, err := strconv.Atoi(args[1])
			if err != nil || capacity < 1 {
				return berth.Invalid("CAPACITY", "%q is not a whole number of at least 1", args[1])
			}
			return resize(cmd.Context(), a, args[0], capacity, opts)
		}),
	}
	cmd.Flags().BoolVar(&opts.Keep, "keep", false, "remember the capacity for good")
	cmd.Flags().BoolVar(&opts.Create, "create", false, "set the capacity of a semaphore that nobody uses, too")
	return cmd
}

// Shower reads semaphores.
func Shower(a *app.App) app.Shower {
	return func(ctx context.Context, _ *node.Node, read *inspect.Reader, name string) (s app.Shown, err error) {
		n, err := read.Name(ctx, keyspace.Sem, name)
		if err != nil {
			return s, err
		}
		if s.Name = n; n.Capacity == 0 && app.Unused(n) {
			s.Absent = app.Exit(app.ExitFailed, fmt.Errorf(
				"no semaphore %q in namespace %q: it has not been used, or not for a minute", name, a.Namespace))
		}
		s.Unread = s.ReadClaims(ctx, read)
		slices.SortFunc(s.HeldBy, func(a, b berth.Holder) int { return int(a.Fence - b.Fence) })
		s.Says = fmt.Sprintf("%s: capacity %d, held %d, free %d, waiting %d", text.Plain(name), n.Capacity, n.Held, view.Free(&n), n.Live())
		s.Lists = func(most int) error { return a.PrintClaims(keyspace.Sem, name, s.HeldBy, s.Waiters, most) }
		return s, nil
	}
}

// resizeLinger is how long a semaphore without a holder keeps the capacity that
// this command sets.
const resizeLinger = time.Minute

func resize(ctx context.Context, a *app.App, name string, capacity int, opts semaphore.ResizeOptions) error {
	before := 0
	watch := observe.Func(func(e observe.Event) {
		if e.Kind == observe.Resized { // on the goroutine that resizes
			before = e.Count
		}
	})
	return a.WithNode(ctx, node.Config{Observer: watch, Linger: resizeLinger}, func(ctx context.Context, n *node.Node) error {
		err := semaphore.NewOperator(n).Resize(ctx, name, capacity, &opts)
		if errors.Is(err, berth.ErrAbsent) {
			return app.Exit(app.ExitFailed, fmt.Errorf(
				"no semaphore %q in namespace %q: it has not been used, or not for a minute; to set its capacity all the same, say --create", name, a.Namespace))
		}
		if err != nil {
			return app.InFlags(err, "capacity", "CAPACITY")
		}
		return printResized(a, name, before, capacity, opts.Keep)
	})
}
