package app

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-go/berth/internal/settings"
	"github.com/berth-go/berth/internal/text"
)

// PauseCommand makes a command that has nothing granted of a name for some time.
func (a *App) PauseCommand(k Kind, group string) *cobra.Command {
	var span time.Duration
	var reason string
	cmd := &cobra.Command{
		Use:   "pause NAME --for D [--reason TEXT]",
		Short: "Have nothing granted for a while",
		Long: fmt.Sprintf(`Pause a %[1]s: nothing is granted of it. What is held stays held and is renewed, who waits
keeps its place in line, who comes joins the line. The pause ends by itself, and who waits is
then granted in its order; 'berth %[2]s unpause' ends it now. Pausing again sets another end.

Exit code 1: another operator has paused it, or ended its pause, meanwhile; then nothing is changed.`, k.Noun, group),
		Example:           fmt.Sprintf("  berth %s pause gpu --for 2h --reason migration", group),
		Args:              Arguments("NAME"),
		ValidArgsFunction: Completing(a.Names(k.Kind)),
		RunE: a.Runs(func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("for") {
				return cmp.Or(CheckName(args[0]), Usage("--for D is missing: how long it is to be paused, such as 10m or 2h"))
			}
			if err := cmp.Or(CheckName(args[0]), settings.Text("--reason", reason)); err != nil {
				return err
			}
			return k.With(cmd.Context(), func(ctx context.Context, ops Operator) error {
				if err := ops.Pause(ctx, args[0], span, reason); err != nil {
					return InFlags(err, "lasts", "--for")
				}
				return a.printPaused(args[0], span, reason)
			})
		}),
	}
	TimeVar(cmd.Flags(), &span, "for", 0, "how long it is paused, at most 8784h (required)")
	cmd.Flags().StringVar(&reason, "reason", "", "why, for whoever asks for it or looks at it")
	return cmd
}

// UnpauseCommand makes a command that ends a pause.
func (a *App) UnpauseCommand(k Kind, group string) *cobra.Command {
	return &cobra.Command{
		Use:   "unpause NAME",
		Short: "End a pause, and hand on",
		Long: fmt.Sprintf(`End the pause of a %s now. The first in line gets what is free, in the same step.

Exit code 1: another operator has paused it, or ended its pause, meanwhile; then nothing is changed.`, k.Noun),
		Example:           fmt.Sprintf("  berth %s unpause gpu", group),
		Args:              Arguments("NAME"),
		ValidArgsFunction: Completing(a.Names(k.Kind)),
		RunE: a.Runs(func(cmd *cobra.Command, args []string) error {
			if err := CheckName(args[0]); err != nil {
				return err
			}
			return k.With(cmd.Context(), func(ctx context.Context, ops Operator) error {
				if err := ops.Unpause(ctx, args[0]); err != nil {
					return err
				}
				return a.printPaused(args[0], 0, "")
			})
		}),
	}
}

// pauseDocument is what has been decided of a name; 0 ms is no pause.
type pauseDocument struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	PausedMs  int64  `json:"pausedMs"`
	Reason    string `json:"reason,omitempty"`
}

func (a *App) printPaused(name string, span time.Duration, reason string) error {
	if a.JSON {
		return PrintJSON(a.Out, pauseDocument{a.Namespace, name, span.Milliseconds(), reason})
	}
	about := text.Plain(name) + ": no longer paused"
	if span > 0 {
		about = text.Plain(name) + ": paused for " + text.Human(span)
	}
	if reason != "" {
		about += ": " + text.Plain(reason)
	}
	_, err := fmt.Fprintln(a.Out, about)
	return err
}
