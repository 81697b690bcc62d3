package app

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/view"
	"github.com/berth-go/berth/pkg/inspect"
)

// cyclesCommand is berth cycles, which looks for cycles over all names.
func (a *App) cyclesCommand() *cobra.Command {
	var page Paging
	var o inspect.CycleOptions
	cmd := &cobra.Command{
		Use:   "cycles",
		Short: "Find claims that wait for each other in a cycle",
		Long: `Find claims that wait for each other in a cycle, over semaphores, locks and pools,
among the up to 1000 names that somebody waits for. It reads only, each name of a cycle
twice. Of one name or claim 'berth explain NAME' tells.

Nobody can see whether a process that waits does something else beside. So a cycle is
certain as far as each owner does one thing after another: give what belongs together one
owner ('berth run --owner'). A cycle by node or label is possible: the process may wait in one
goroutine and hold in another. Owners, nodes and labels that were seen with several waits at
once are left out, unless --loose is given.

Exit code 1: there is a certain cycle; with --loose: any.`,
		Example: "  berth cycles",
		Args:    Arguments(),
		RunE: a.Runs(func(cmd *cobra.Command, _ []string) error {
			if o.Within <= 0 {
				return berth.Invalid("--within", "%s is not above 0", o.Within)
			}
			if err := page.Check(); err != nil {
				return err
			}
			return a.cycles(cmd.Context(), &o, page.Of(a))
		}),
	}
	cmd.Flags().BoolVar(&o.Loose, "loose", false, "look also at who was seen with several waits at once; it may show what is no cycle")
	TimeVar(cmd.Flags(), &o.Within, "within", 5*time.Second, "leave out what is not read by then")
	page.Bind(cmd)
	return cmd
}

func (a *App) cycles(ctx context.Context, o *inspect.CycleOptions, most int) error {
	return a.WithReader(ctx, func(ctx context.Context, read *inspect.Reader) error {
		found, err := read.Cycles(ctx, o)
		if err != nil {
			return err
		}
		for _, problem := range found.Problems {
			fmt.Fprintln(a.Err, OneLine("left out: "+strings.TrimPrefix(problem.Error(), "berth: ")))
		}
		if err := a.printCycles(found, o.Loose, most); err != nil {
			return err
		}
		if slices.ContainsFunc(found.Cycles, func(c inspect.Cycle) bool { return c.Certain || o.Loose }) {
			return Exit(ExitFailed, nil)
		}
		return nil
	})
}

func (a *App) printCycles(found inspect.Cycles, loose bool, most int) error {
	shown, more := First(found.Cycles, most)
	if a.JSON {
		found.Cycles = shown
		return PrintJSON(a, "", found)
	}
	if len(found.Cycles) == 0 {
		fmt.Fprintln(a.Out, "No cycle was found.")
	}
	for _, c := range shown {
		a.printCycle("A cycle", c)
	}
	if more > 0 {
		fmt.Fprintf(a.Out, "... and %d more\n", more)
	}
	if found.Skipped > 0 && !loose {
		fmt.Fprintf(a.Out, "Left out: %s seen with several waits at once; --loose counts them, and may show what is none.\n", view.Count(found.Skipped, "owner"))
	}
	part := "."
	if found.Partial {
		part = "; partial: there is more that was not read."
	}
	_, err := fmt.Fprintf(a.Out, "Read: %s that somebody waits for%s\n", view.Count(found.Names, "name"), part)
	return err
}

// printCycle says of a cycle who waits for whom, what of it ends by itself, and how to end it.
func (a *App) printCycle(what string, c inspect.Cycle) {
	fmt.Fprintf(a.Out, "%s, by %s: %s.\n", what, c.By, view.CycleSays(c))
	for _, l := range c.Links {
		fmt.Fprintf(a.Out, "  %s.\n", view.LinkSays(l))
	}
	fmt.Fprintf(a.Out, "  %s\n", view.EndSays(c))
	a.printRelease(c.Release)
	if c.Behind > 0 {
		fmt.Fprintf(a.Out, "  Behind it: %s more.\n", view.Count(c.Behind, "claim"))
	}
}

func (a *App) printRelease(release []inspect.Claim) {
	if len(release) == 0 {
		return
	}
	var holders []string
	for _, c := range release {
		holders = append(holders, view.Actor(cmp.Or(c.Owner(), c.Label(), c.ID()), c.Label()))
	}
	says := "end the youngest hold, that of %s; its process goes on inside until it hears"
	if len(release) > 1 {
		says = "end all of these holds, those of %s; their processes go on inside until they hear"
	}
	fmt.Fprintf(a.Out, "  To end it, "+says+":\n", strings.Join(holders, ", "))
	for _, c := range release {
		fmt.Fprintln(a.Out, "    "+view.Command(view.Releasing(c), a.Where()...))
	}
}
