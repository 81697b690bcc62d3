package app

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/berth-go/berth/pkg/node"
)

// SweepCommand makes a command that drops what has expired.
func (a *App) SweepCommand(v *Verb) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sweep [NAME...]",
		Short: "Drop what has expired, now",
		Long: `Drop what has expired (holds, waiting claims, and of pools rests, resources and bindings), of
the names given, or of all names of the namespace. Every call that writes drops some on its
way; this is for who wants all of it gone now. What has not expired stays as it is.`,
		Example:           "  " + v.command("sweep"),
		ValidArgsFunction: completingAll(v.names(a)),
		RunE: a.Runs(func(cmd *cobra.Command, names []string) error {
			var wrong error
			for _, name := range names {
				wrong = cmp.Or(wrong, CheckName(name))
			}
			if wrong != nil {
				return wrong
			}
			return a.WithNode(cmd.Context(), node.Config{}, func(ctx context.Context, n *node.Node) error {
				dropped, failed := n.Operator().Sweep(ctx, v.kind, names...)
				return Listed(failed, dropped, func() error {
					return Told(a, "", sweepDocument{names, dropped}, fmt.Sprintf("%d dropped", dropped))
				})
			})
		}),
	}
	v.bind(cmd, "all")
	return cmd
}

type sweepDocument struct {
	Names   []string `json:"names"` // none is all
	Dropped int      `json:"dropped"`
}
