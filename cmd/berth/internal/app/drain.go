package app

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
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/internal/view"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/node"
)

// drainOptions are what the command was given.
type drainOptions struct {
	target berth.DrainTarget
	berth.DrainOptions
	stop, list bool
	within     time.Duration // of list
	page       Paging
}

// drainCommand makes a command that has processes finish.
func (a *App) drainCommand() *cobra.Command {
	var o drainOptions
	cmd := &cobra.Command{
		Use:   "drain {--node ID | --label TEXT} [--for D] [--reason TEXT] [--force-after D --force] | drain ... --stop | drain --list",
		Short: "Have processes finish what they hold and refuse new claims; list who drains",
		Long: `Drain processes: once they have heard, within 5 s, they refuse new claims of any semaphore, lock or pool.
What they wait for is cancelled, and they are asked for what they hold, until nothing of theirs is left, which
takes 7 s at least; what is left is told when it changes. With --force-after the rest is then ended by force.
'berth ps' lists nodes and labels; a label that ends in * means all that begin so. Processes that start later
are not drained.

Ctrl-C ends the command, not the drain: the processes go on refusing until --for has passed. --stop lets them work
again, within 5 s. --list shows the drains in force, the oldest first, with the holds and waits that are left of
those that were there; all names are gone through for that. It needs the right +hscan.

Exit code 1: something is left, or was left to whoever resumes it; or another operator's call was faster; or --for was over
before it was known that nothing is left.`,
		Example: "  berth drain --label 'worker/*' --for 2h --reason 'new release'\n" +
			"  berth drain --label 'worker/*' --force-after 10m --force\n  berth drain --list\n  berth drain --label 'worker/*' --stop",
		Args: Arguments(),
		RunE: a.Runs(func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd.Flags().Changed); err != nil {
				return err
			}
			if o.list {
				return a.listDrains(cmd.Context(), &o)
			}
			return a.drain(cmd.Context(), &o)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&o.target.Node, "node", "", "the node with this `ID`")
	flags.StringVar(&o.target.Label, "label", "", "the processes with this label; with a * at its end, all that begin so")
	TimeVar(flags, &o.For, "for", 0, "after how long the drain ends by itself, at most 8784h (default never)")
	flags.StringVar(&o.Reason, "reason", "", "why, for the processes and whoever looks")
	TimeVar(flags, &o.ForceAfter, "force-after", 0, "after how long the rest is ended by force (default never)")
	flags.BoolVar(&o.Force, "force", false, "required with --force-after: until it has heard, a process may go on inside")
	flags.BoolVar(&o.stop, "stop", false, "end a drain of the same node or label")
	flags.BoolVar(&o.list, "list", false, "list the drains in force")
	TimeVar(flags, &o.within, "within", 10*time.Second, "with --list: leave out what is not read by then")
	o.page.Bind(cmd)
	return cmd
}

// check says what is wrong with what was given.
func (o *drainOptions) check(given func(string) bool) error {
	for _, name := range []string{"for", "reason", "force-after", "force"} {
		if given(name) && (o.stop || o.list) {
			return berth.Invalid("--"+name, "it is not for --stop and --list")
		}
	}
	switch {
	case o.list && (o.stop || o.target != berth.DrainTarget{}):
		return Usage("--list takes no --stop, --node and --label")
	case o.list && o.within <= 0:
		return berth.Invalid("--within", "%s is not above 0", o.within)
	case o.list:
		return o.page.Check()
	case given("within"):
		return berth.Invalid("--within", "it is for --list alone")
	case (o.target.Node == "") == (o.target.Label == ""):
		return o.noTarget(given)
	case given("for") && o.For == 0:
		return berth.Invalid("--for", "it is not above 0")
	case given("force-after") && o.ForceAfter == 0:
		return berth.Invalid("--force-after", "it is not above 0")
	}
	return inDrainFlags(line.CheckDrain(&o.DrainOptions))
}

// inDrainFlags lets an error name the flag.
func inDrainFlags(err error) error {
	return InFlags(err, "Node", "--node", "Label", "--label", "For", "--for", "Reason", "--reason", "Force", "--force",
		"ForceAfter", "--force-after")
}

// noTarget returns why the target of a drain is unknown.
func (o *drainOptions) noTarget(given func(string) bool) error {
	switch {
	case o.target.Node != "":
		return berth.Invalid("--label", "with --node there are two to drain; leave one of them out")
	case given("label"):
		return berth.Invalid("--label", "it is empty")
	case given("node"):
		return berth.Invalid("--node", "it is empty")
	}
	return Usage("--node ID or --label TEXT is missing")
}

// listDrains lists the drains that are in force, and what is left of their processes.
func (a *App) listDrains(ctx context.Context, o *drainOptions) error {
	return a.WithReader(ctx, func(ctx context.Context, read *inspect.Reader) error {
		found, err := read.Drains(ctx)
		if err != nil {
			return err
		}
		drains := view.DrainsAt(found.Items, found.At)
		if len(drains) > 0 {
			claims, err := AllClaims(ctx, read, inspect.ClaimFilter{}, o.within)
			if err != nil {
				return err
			}
			found.Partial, found.Problems = found.Partial || claims.Partial, append(found.Problems, claims.Problems...)
			for _, c := range claims.Items {
				for i := range drains {
					drains[i].Count(c)
				}
			}
		}
		page := inspect.Page[view.Drain]{Items: drains, Partial: found.Partial, At: found.At, Replica: found.Replica, Problems: found.Problems}
		return List(a, "", page, "No drain is in force", view.Drains, drains, o.page.Of(a))
	})
}

// drainDocument is what has come of it.
type drainDocument struct {
	berth.DrainTarget
	Stopped bool `json:"stopped"`
	berth.Drained
	none bool // there was no drain to stop
}

// drain drains. The results are printed, even with an error.
func (a *App) drain(ctx context.Context, o *drainOptions) error {
	var d berth.Drained
	none := false
	failed := a.acting(ctx, node.Config{}, func(ctx context.Context, n *node.Node, read *inspect.Reader) (err error) {
		if o.stop {
			none = noDrain(ctx, read, o.target)
			err = n.Operator().StopDrain(ctx, o.target) // a process that knows of a drain goes on draining after the server has lost the drain
		} else {
			if ctx.Err() == nil { // else no server is asked
				a.tellDraining(&o.DrainOptions)
			}
			last := "0 left"
			o.Each = func(d berth.Drained) {
				if says := left(&d); says != last {
					last = says
					fmt.Fprintf(a.Err, "berth: %s\n", says)
				}
			}
			if d, err = n.Operator().Drain(ctx, o.target, &o.DrainOptions); err != nil && (d.Left > 0 || errors.Is(err, berth.ErrAbsent)) {
				return Exit(ExitFailed, err)
			}
		}
		return inDrainFlags(err)
	})
	err := Listed(failed, d.Asked+d.Cancelled+d.Ended+d.Left, func() error { return a.printDrained(drainDocument{o.target, o.stop, d, none}) })
	if err == nil && d.Detached > 0 {
		err = Exit(ExitFailed, fmt.Errorf("%s detached: no process has them", view.Count(d.Detached, "hold")))
	}
	return err
}

// noDrain says that no drain of the target is in force; false where that is not known.
func noDrain(ctx context.Context, read *inspect.Reader, target berth.DrainTarget) bool {
	found, err := read.Drains(ctx)
	return err == nil && !found.Partial && !slices.ContainsFunc(found.Items, func(d berth.Drain) bool { return d.DrainTarget == target })
}

// tellDraining says how long the command may last.
func (a *App) tellDraining(o *berth.DrainOptions) {
	ends := "this goes on until nothing is left"
	if o.Force {
		ends = "what is left in " + text.Human(o.ForceAfter) + " is ended by force"
	}
	stays := "leaves the drain in force"
	if o.For > 0 {
		stays += " for " + text.Human(o.For)
	}
	fmt.Fprintf(a.Err, "berth: asking; %s; Ctrl-C %s\n", ends, stays)
}

// leftShown is how many of the claims that are left are named.
const leftShown = 3

// left says what is left of a drain.
func left(d *berth.Drained) string {
	var some []string
	for _, u := range d.Some[:min(leftShown, len(d.Some))] {
		does := "holds"
		if u.Waits {
			does = "waits for"
		}
		some = append(some, fmt.Sprintf("%s %s %s %s (%s)", text.Plain(cmp.Or(u.Label, u.Node)), does, u.Kind, text.Quoted(u.Name), text.Plain(u.Claim)))
	}
	if len(some) == 0 {
		return fmt.Sprintf("%d left", d.Left)
	}
	if d.Left > len(some) {
		some = append(some, "...")
	}
	return fmt.Sprintf("%d left: %s", d.Left, strings.Join(some, "; "))
}

func (a *App) printDrained(d drainDocument) error {
	says := "drains no more; processes hear of it within 5 s"
	if d.none {
		says = "no such drain is in force; processes that drain all the same hear of its end within 5 s"
	}
	if !d.Stopped {
		says = fmt.Sprintf("%s asked for, %s cancelled, %s ended by force, %s",
			view.Count(d.Asked, "hold"), view.Count(d.Cancelled, "wait"), view.Count(d.Ended, "hold"), left(&d.Drained))
		if d.Asked+d.Cancelled+d.Ended+d.Detached+d.Left == 0 {
			says += "; no hold or wait matched"
		}
	}
	return Told(a, "", d, text.Plain(d.Node+d.Label)+": "+says)
}
