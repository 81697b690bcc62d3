package app

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/settings"
	"github.com/berth-go/berth/internal/view"
	"github.com/berth-go/berth/pkg/node"
)

// pauseAllCommand makes a command that has nothing granted in the whole namespace.
func (a *App) pauseAllCommand() *cobra.Command {
	var span time.Duration
	var reason string
	var all, forced bool
	cmd := &cobra.Command{
		Use:   "pause --all --for D [--reason TEXT] --force",
		Short: "Have nothing granted in the whole namespace for a while",
		Long: `Pause all semaphores, locks and pools of the namespace, those that are not there yet as well, as
'berth sem pause' does one. It takes 7 s and a walk over the names: then each process that
reaches the server has heard. 'berth unpause --all' ends it; 'berth sem unpause NAME' sets one name apart.

Exit code 1: some names could not be asked, or another operator's call was faster.`,
		Example: "  berth pause --all --for 2h --reason migration --force",
		Args:    cobra.NoArgs,
		RunE: a.Runs(func(cmd *cobra.Command, _ []string) error {
			if !all {
				return Usage("--all is missing; one name is paused by 'berth sem|lock|pool pause NAME'")
			}
			if !cmd.Flags().Changed("for") {
				return Usage("--for D is missing: how long all is to be paused, such as 10m or 2h")
			}
			if err := cmp.Or(NeedForce(forced), settings.Text("--reason", reason)); err != nil {
				return err
			}
			return a.pauseAll(cmd.Context(), &berth.Pause{Left: span, Reason: reason})
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "all names of the namespace (required)")
	TimeVar(cmd.Flags(), &span, "for", 0, "how long all is paused, at most 8784h (required)")
	cmd.Flags().StringVar(&reason, "reason", "", "why, for whoever asks for something or looks at it")
	cmd.Flags().BoolVar(&forced, "force", false, "required: it stops whoever waits or comes, for whatever name")
	return cmd
}

// unpauseAllCommand makes a command that ends that.
func (a *App) unpauseAllCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "unpause --all",
		Short: "End a pause of the whole namespace",
		Long: `End the pause that 'berth pause --all' has begun, and hand on. What was paused by its name stays
paused. It takes 7 s and a walk over the names.

Exit code 1: some names could not be asked, or another operator's call was faster.`,
		Example: "  berth unpause --all",
		Args:    cobra.NoArgs,
		RunE: a.Runs(func(cmd *cobra.Command, _ []string) error {
			if !all {
				return Usage("--all is missing; the pause of one name is ended by 'berth sem|lock|pool unpause NAME'")
			}
			return a.pauseAll(cmd.Context(), nil)
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "all names of the namespace (required)")
	return cmd
}

// pauseAll pauses the names of all kinds, or with nil ends that.
func (a *App) pauseAll(ctx context.Context, p *berth.Pause) error {
	var paused berth.PausedAll
	failed := a.WithNode(ctx, node.Config{}, func(ctx context.Context, n *node.Node) (err error) {
		if p == nil {
			paused, err = n.Operator().UnpauseAll(ctx)
		} else {
			paused, err = n.Operator().PauseAll(ctx, p.Left, p.Reason)
		}
		if paused.Unread > 0 {
			return Exit(ExitFailed, err)
		}
		return InFlags(err, "lasts", "--for")
	})
	return Listed(failed, paused.Names, func() error {
		counts := "pauses that were ended"
		if p != nil {
			counts = "in use"
		}
		says := fmt.Sprintf("%s; %s: %s", pausedText(p), counts, view.Count(paused.Names, "name"))
		return Told(a, "", pauseDocument{p, &paused.Names, &paused.Unread}, says)
	})
}
