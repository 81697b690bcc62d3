package app

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/internal/view"
	"github.com/berth-go/berth/pkg/node"
)

// drainCommand makes a command that has processes finish.
func (a *App) drainCommand() *cobra.Command {
	var target berth.DrainTarget
	var within time.Duration
	var stop bool
	cmd := &cobra.Command{
		Use:   "drain {--node ID | --label TEXT} [--within D] [--stop]",
		Short: "Have processes finish what they hold and refuse new claims",
		Long: `Drain processes: once they have heard, within 5 s, they refuse new claims of any semaphore, lock or pool.
What they wait for is cancelled, and they are asked for what they hold, until nothing of theirs is left, which
takes 7 s at least. With --within the rest is then ended by force. 'berth ps' lists nodes and labels; a label
that ends in * means all that begin so. Processes that start later are not drained.

Ctrl-C ends the command, not the drain: the processes go on refusing. --stop lets them work again, within 5 s.

Exit code 1: something is left, or was left to whoever resumes it; or another operator's call was faster.`,
		Example: "  berth drain --label 'worker/*' --within 10m\n  berth drain --label 'worker/*' --stop",
		Args:    cobra.NoArgs,
		RunE: a.Runs(func(cmd *cobra.Command, _ []string) error {
			switch given := cmd.Flags().Changed; {
			case (target.Node == "") == (target.Label == ""):
				return Usage("--node ID or --label TEXT is missing, or both are there")
			case given("within") && (stop || within <= 0):
				return berth.Invalid("--within", "it is above 0, and not for --stop")
			}
			return a.drain(cmd.Context(), target, within, stop)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&target.Node, "node", "", "the node with this `ID`")
	flags.StringVar(&target.Label, "label", "", "the processes with this label; with a * at its end, all that begin so")
	TimeVar(flags, &within, "within", 0, "after how long the rest is ended by force (default never)")
	flags.BoolVar(&stop, "stop", false, "end a drain of the same node or label")
	return cmd
}

// drainDocument is what has come of it.
type drainDocument struct {
	berth.DrainTarget
	Stopped bool `json:"stopped"`
	berth.Drained
}

// drain drains. What was done is told, also beside an error.
func (a *App) drain(ctx context.Context, target berth.DrainTarget, within time.Duration, stop bool) error {
	var d berth.Drained
	failed := a.WithNode(ctx, node.Config{}, func(ctx context.Context, n *node.Node) (err error) {
		if stop {
			err = n.Operator().StopDrain(ctx, target)
		} else {
			if ctx.Err() == nil { // else no server is asked
				a.tellDraining(within)
			}
			if d, err = n.Operator().Drain(ctx, target, within); err != nil && d.Left > 0 {
				return Exit(ExitFailed, err)
			}
		}
		return InFlags(err, "Node", "--node", "Label", "--label")
	})
	err := Listed(failed, d.Asked+d.Cancelled+d.Ended, func() error { return a.printDrained(drainDocument{target, stop, d}) })
	if err == nil && d.Detached > 0 {
		err = Exit(ExitFailed, fmt.Errorf("%s detached: no process has them", view.Count(d.Detached, "hold")))
	}
	return err
}

// tellDraining says how long the command may last, which says nothing more until it has ended.
func (a *App) tellDraining(within time.Duration) {
	ends := "this goes on until nothing is left"
	if within > 0 {
		ends = "what is left in " + text.Human(within) + " is ended by force"
	}
	fmt.Fprintf(a.Err, "berth: asking; %s; Ctrl-C leaves the drain in force\n", ends)
}

func (a *App) printDrained(d drainDocument) error {
	says := "drains no more; processes hear of it within 5 s"
	if !d.Stopped {
		says = fmt.Sprintf("%s asked for, %s cancelled, %s ended by force, %d left",
			view.Count(d.Asked, "hold"), view.Count(d.Cancelled, "wait"), view.Count(d.Ended, "hold"), d.Left)
		if d.Drained == (berth.Drained{}) {
			says += "; no hold or wait matched"
		}
	}
	return Told(a, "", d, text.Plain(d.Node+d.Label)+": "+says)
}
