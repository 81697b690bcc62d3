package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/act"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/internal/view"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/node"
)

// WantCommand makes a command that asks for holds back.
func (a *App) WantCommand(v *Verb) *cobra.Command {
	var target berth.Target
	cmd := &cobra.Command{
		Use:   "want {NAME [CLAIM] | [NAME] {--owner OWNER | --node NODE}}",
		Short: "Ask for holds back",
		Long: fmt.Sprintf(`Ask for holds of a %s back: of NAME all, or the one of CLAIM, which 'berth show' tells;
--owner and --node ask for what an owner or a node holds, of NAME or of the namespace.
Nothing ends. The process that holds hears of it with a heartbeat: at once if it has ever waited,
else within a third of its lease. It is for that process to finish and release. 'berth run' sends its command the signal of --on-wanted.
Who waits is left alone. 'berth release' ends holds by force.

Exit code 1: nothing of what was named is held, or its time was over.`, v.noun()),
		Example:           fmt.Sprintf("  %s\n  %s", v.command("want "+sample[v.below]), v.command("want --node 0a1b2c3d4e5f6071")),
		Args:              ArgumentsFrom(0, "NAME", "CLAIM"),
		ValidArgsFunction: Completing(v.names(a), a.claims(v)),
	}
	flags := cmd.Flags()
	flags.StringVar(&target.Owner, "owner", "", "ask for what `OWNER` holds; of a claim without an owner its id")
	flags.StringVar(&target.Node, "node", "", "ask for what the node with this `ID` holds")
	v.bind(cmd, "the one in which NAME is in use, or without NAME all")
	cmd.RunE = a.Runs(func(cmd *cobra.Command, args []string) error {
		if err := readWanted(&target, cmd, args); err != nil {
			return err
		}
		return a.Looking(cmd.Context(), func(ctx context.Context, n *node.Node, read *inspect.Reader) (err error) {
			if target.Kind, err = v.meant(ctx, a, read, target.Name); err != nil {
				return err
			}
			count, err := n.Operator().Want(ctx, target)
			if count == 0 && (err == nil || errors.Is(err, berth.ErrNotHeld)) { // also where its time was over
				return Exit(ExitFailed, fmt.Errorf("nothing of what was named is held in namespace %q", a.Namespace))
			}
			if count > 0 {
				says := a.whole(target) + ": " + view.Count(count, "hold") + " wanted back"
				err = cmp.Or(Told(a, "", targetDocument{Target: target, Wanted: &count}, says), err)
			}
			return err
		})
	})
	return cmd
}

// readWanted fills in the target, and looks at it before anything is sent.
func readWanted(t *berth.Target, cmd *cobra.Command, args []string) error {
	given := cmd.Flags().Changed
	switch {
	case given("owner") && t.Owner == "":
		return berth.Invalid("--owner", "it is empty")
	case given("node") && t.Node == "":
		return berth.Invalid("--node", "it is empty")
	case len(args) == 0 && t.Owner == "" && t.Node == "":
		return Usage("NAME is missing; or --owner OWNER or --node NODE")
	case len(args) == 2 && args[1] == "":
		return berth.Invalid("CLAIM", "it is empty")
	case len(args) == 0:
		return nil
	}
	t.Name = args[0]
	if len(args) == 2 {
		t.Claim = args[1]
	}
	return CheckName(t.Name)
}

// targetDocument has what was named, and how many holds are wanted, or claims were ended.
type targetDocument struct {
	berth.Target
	Resource string `json:"resource,omitzero"`
	Wanted   *int   `json:"wanted,omitzero"`
	Released *int   `json:"released,omitzero"`
}

// whole is the name that is meant, or else the namespace.
func (a *App) whole(t berth.Target) string {
	if t.Name == "" {
		return "namespace " + text.Plain(a.Namespace)
	}
	return act.Nouns[t.Kind] + " " + text.Plain(t.Name)
}
