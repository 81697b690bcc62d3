package app

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/act"
	"github.com/berth-go/berth/internal/settings"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
)

// PauseCommand makes a command that has nothing granted of a name for some time.
func (a *App) PauseCommand(kind keyspace.Kind) *cobra.Command {
	var span time.Duration
	var reason string
	cmd := &cobra.Command{
		Use:   "pause NAME --for D [--reason TEXT]",
		Short: "Have nothing granted for a while",
		Long: fmt.Sprintf(`Pause a %[1]s: nothing is granted of it. What is held stays held and is renewed, who waits
keeps its place in line, who comes joins the line. The pause ends by itself, and who waits is
then granted in its order; 'berth %[2]s unpause' ends it now. Pausing again sets another end.

Exit code 1: another operator has paused it, or ended its pause, meanwhile; then nothing is changed.`, act.Nouns[kind], kind),
		Example:           fmt.Sprintf("  berth %s pause %s --for 2h --reason migration", kind, sample[kind]),
		Args:              Arguments("NAME"),
		ValidArgsFunction: Completing(a.Names(kind)),
		RunE: a.Runs(func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("for") {
				return cmp.Or(CheckName(args[0]), Usage("--for D is missing: how long it is to be paused, such as 10m or 2h"))
			}
			if err := cmp.Or(CheckName(args[0]), settings.Text("--reason", reason)); err != nil {
				return err
			}
			return a.WithNode(cmd.Context(), node.Config{}, func(ctx context.Context, n *node.Node) error {
				if err := n.Operator().Pause(ctx, kind, args[0], span, reason); err != nil {
					return InFlags(err, "lasts", "--for")
				}
				return a.printPaused(args[0], &berth.Pause{Left: span, Reason: reason})
			})
		}),
	}
	TimeVar(cmd.Flags(), &span, "for", 0, "how long it is paused, at most 8784h (required)")
	cmd.Flags().StringVar(&reason, "reason", "", "why, for whoever asks for it or looks at it")
	return cmd
}

// UnpauseCommand makes a command that ends a pause.
func (a *App) UnpauseCommand(kind keyspace.Kind) *cobra.Command {
	return &cobra.Command{
		Use:   "unpause NAME",
		Short: "End a pause, and hand on",
		Long: fmt.Sprintf(`End the pause of a %s now. The first in line gets what is free, in the same step.

Exit code 1: another operator has paused it, or ended its pause, meanwhile; then nothing is changed.`, act.Nouns[kind]),
		Example:           fmt.Sprintf("  berth %s unpause %s", kind, sample[kind]),
		Args:              Arguments("NAME"),
		ValidArgsFunction: Completing(a.Names(kind)),
		RunE: a.Runs(func(cmd *cobra.Command, args []string) error {
			if err := CheckName(args[0]); err != nil {
				return err
			}
			return a.WithNode(cmd.Context(), node.Config{}, func(ctx context.Context, n *node.Node) error {
				if err := n.Operator().Unpause(ctx, kind, args[0]); err != nil {
					return err
				}
				return a.printPaused(args[0], nil)
			})
		}),
	}
}

// pauseDocument is what has been decided of a name, or of all names and how many those are; the pause is nil where it has ended.
type pauseDocument struct {
	Pause  *berth.Pause `json:"pause"`
	Names  *int         `json:"names,omitzero"`
	Unread *int         `json:"unread,omitzero"`
}

func (a *App) printPaused(name string, p *berth.Pause) error {
	return Told(a, name, pauseDocument{Pause: p}, text.Plain(name)+": "+pausedText(p))
}

func pausedText(p *berth.Pause) string {
	switch {
	case p == nil:
		return "no longer paused"
	case p.Reason == "":
		return "paused for " + text.Human(p.Left)
	}
	return "paused for " + text.Human(p.Left) + ": " + text.Plain(p.Reason)
}
