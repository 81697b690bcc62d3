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
	"github.com/berth-go/berth/internal/act"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
)

// explainCommand is berth explain, which looks for cycles over all names.
func (a *App) explainCommand() *cobra.Command {
	var page Paging
	var cycles bool
	var o inspect.CycleOptions
	cmd := &cobra.Command{
		Use:   "explain --cycles",
		Short: "Find claims that wait for each other in a cycle",
		Long: `Find claims that wait for each other in a cycle, over semaphores, locks and pools,
among the up to 1000 names that somebody waits for. It reads only, each name of a cycle
twice. Of one name or claim 'berth sem|lock|pool explain NAME' tells.

Nobody can see whether a process that waits does something else beside. So a cycle is
certain as far as each owner does one thing after another: give what belongs together one
owner ('berth run --owner'). A cycle by node or label is possible: the process may wait in one
goroutine and hold in another. Owners, nodes and labels that were seen with several waits at
once are left out, unless --loose is given.

Exit code 1: there is a certain cycle; with --loose: any.`,
		Example: "  berth explain --cycles",
		Args:    ArgumentsFrom(0, "NAME"),
		RunE: a.Runs(func(cmd *cobra.Command, args []string) error {
			switch {
			case !cycles || len(args) > 0:
				return Usage("say 'berth sem explain NAME', or lock, or pool; 'berth explain --cycles' looks for cycles over all names")
			case o.Within <= 0:
				return berth.Invalid("--within", "%s is not above 0", o.Within)
			case page.Check() != nil:
				return page.Check()
			}
			return a.cycles(cmd.Context(), o, page.Of(a))
		}),
	}
	cmd.Flags().BoolVar(&cycles, "cycles", false, "look for cycles (required)")
	cmd.Flags().BoolVar(&o.Loose, "loose", false, "look also at who was seen with several waits at once; it may show what is no cycle")
	TimeVar(cmd.Flags(), &o.Within, "within", 5*time.Second, "leave out what is not read by then")
	page.Bind(cmd)
	return cmd
}

func (a *App) cycles(ctx context.Context, o inspect.CycleOptions, most int) error {
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
		a.printCycle(c)
	}
	if more > 0 {
		fmt.Fprintf(a.Out, "... and %d more\n", more)
	}
	if found.Skipped > 0 && !loose {
		fmt.Fprintf(a.Out, "Left out: %s seen with several waits at once; --loose counts them, and may show what is none.\n", Count(found.Skipped, "owner"))
	}
	part := "."
	if found.Partial {
		part = "; partial: there is more that was not read."
	}
	names := "name that somebody waits for"
	if found.Names != 1 {
		names = "names that somebody waits for"
	}
	_, err := fmt.Fprintf(a.Out, "Read: %d %s%s\n", found.Names, names, part)
	return err
}

// printCycle says of a cycle who waits for whom, what of it ends by itself, and how to end it.
func (a *App) printCycle(c inspect.Cycle) {
	says := "possible; a process may wait in one goroutine and hold in another."
	switch {
	case c.Certain:
		says = "certain, as far as each owner does one thing after another."
	case c.By == "owner":
		says = "possible; an owner may do several things at once, and the clocks of a Cluster's servers differ."
	}
	fmt.Fprintf(a.Out, "A cycle, by %s: %s\n", c.By, says)
	for _, l := range c.Links {
		fmt.Fprintf(a.Out, "  %s.\n", LinkSays(l))
	}
	fmt.Fprintf(a.Out, "  %s\n", EndSays(c))
	a.printRelease(c.Release)
	if c.Behind > 0 {
		fmt.Fprintf(a.Out, "  Behind it: %s more.\n", Count(c.Behind, "claim"))
	}
}

// LinkSays says what somebody of a cycle holds and waits for. Where its processes are several, each is named beside
// what it holds or waits for.
func LinkSays(l inspect.Link) string {
	subject, by := who(l.Actor, l.Wait.Label()), func(string) string { return "" }
	if slices.ContainsFunc(l.Holds, func(c inspect.Claim) bool { return c.Label() != l.Wait.Label() }) {
		subject, by = text.Word(l.Actor), func(label string) string { return " (" + text.Word(label) + ")" }
	}
	var holds []string
	for _, c := range l.Holds {
		holds = append(holds, fmt.Sprintf("%s%s for %s", c, by(c.Label()), text.Human(c.For())))
	}
	return fmt.Sprintf("%s has held %s, and has waited %s for %s%s",
		subject, strings.Join(holds, ", "), text.Human(l.Wait.For()), l.Wait, by(l.Wait.Label()))
}

// who is an actor with its label, if that is another.
func who(actor, label string) string {
	if label == "" || label == actor {
		return text.Word(actor)
	}
	return text.Word(actor) + " (" + text.Word(label) + ")"
}

// EndSays is the first end that comes by itself and frees a cycle.
func EndSays(c inspect.Cycle) string {
	i := slices.IndexFunc(c.Ends, func(e inspect.End) bool { return e.Frees })
	switch {
	case len(c.Ends) == 0:
		return "Nothing of it ends by itself."
	case i < 0:
		return "What of it ends by itself does not free it."
	}
	e, unless := c.Ends[i], ""
	if len(e.If) > 0 {
		unless = "unless " + unheard(c, e) + " is heard of, "
	}
	what := "the lease of %s on %s ends"
	switch e.What {
	case inspect.MaxHoldEnds:
		what = "the maximum hold of %s on %s ends"
	case inspect.ClaimLeaves:
		what = "the claim of %s leaves the line of %s"
	}
	return fmt.Sprintf("By itself: %sin %s (%s) "+what+", which frees it.",
		unless, text.Human(e.In), e.At.UTC().Format("15:04:05 UTC"), of(c, e.Claim), act.Nouns[e.Kind]+" "+text.Quoted(e.Name))
}

// unheard is who must not be heard of before an end comes: "it" is whose end that is.
func unheard(c inspect.Cycle, e inspect.End) string {
	other := ""
	for _, l := range c.Links {
		for _, c := range append([]inspect.Claim{l.Wait}, l.Holds...) {
			switch {
			case !slices.Contains(e.If, c.Node()):
			case c.ID() == e.Claim:
				return "it"
			case other == "":
				other = text.Word(cmp.Or(c.Label(), c.ID()))
			}
		}
	}
	return cmp.Or(other, "it")
}

// of is whose claim of a cycle one is.
func of(c inspect.Cycle, claim string) string {
	for _, l := range c.Links {
		if l.Wait.ID() == claim || slices.ContainsFunc(l.Holds, func(c inspect.Claim) bool { return c.ID() == claim }) {
			return text.Word(l.Actor)
		}
	}
	return text.Word(claim)
}

func (a *App) printRelease(release []inspect.Claim) {
	if len(release) == 0 {
		return
	}
	var holders []string
	for _, c := range release {
		holders = append(holders, who(cmp.Or(c.Owner(), c.Label(), c.ID()), c.Label()))
	}
	says := "end the youngest hold, that of %s; its process goes on inside until it hears"
	if len(release) > 1 {
		says = "end all of these holds, those of %s; their processes go on inside until they hear"
	}
	fmt.Fprintf(a.Out, "  To end it, "+says+":\n", strings.Join(holders, ", "))
	for _, c := range release {
		fmt.Fprintln(a.Out, "    "+a.releasing(c.Kind, c.Name, c.ID()))
	}
}

// releasing is the command that ends a claim.
func (a *App) releasing(kind keyspace.Kind, name, claim string) string {
	words := []string{"berth", string(kind), "release"}
	if a.given("namespace") {
		words = append(words, "--namespace", a.Namespace)
	}
	if strings.HasPrefix(name, "-") || strings.HasPrefix(claim, "-") {
		return Shell(append(words, "--force", "--", name, claim)...)
	}
	return Shell(append(words, name, claim, "--force")...)
}
