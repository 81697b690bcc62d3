package pool

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/internal/settings"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
)

func restCommand(a *app.App) *cobra.Command {
	var quoted, exactly bool
	var span time.Duration
	var reason string
	cmd := &cobra.Command{
		Use:   "rest NAME RESOURCE --for D --reason TEXT",
		Short: "Let a resource rest for a while",
		Long: `Let a resource rest: nobody gets it until the rest is over. A free or resting one
rests from now on, one that is leased from its release on. --for 0 ends a rest,
--for forever lasts until somebody does that. The reason is what 'berth pool show'
tells others. Where the resource rests for longer anyway, that rest and its reason
stay; --exactly shortens it.

A command under 'berth run --pool' can so let its own resource rest:

  berth pool rest "$BERTH_NAME" "$BERTH_RESOURCE" --for 10m --reason "answers 429"

Exit code 1: the resource is not in the pool, or another operator has changed it
meanwhile; then nothing is changed.`,
		Args:              app.Arguments("NAME", "RESOURCE"),
		ValidArgsFunction: app.Completing(a.Names(keyspace.Pool), a.ResourcesOf),
		RunE: a.Runs(func(cmd *cobra.Command, args []string) error {
			resource, err := app.KeyArgument("RESOURCE", args[1], quoted)
			given := cmd.Flags().Changed
			if err := cmp.Or(err, app.CheckName(args[0]), checkRest(span, reason, given("for"))); err != nil {
				return err
			}
			return rest(cmd.Context(), a, args[0], resource, span, reason, exactly)
		}),
	}
	app.EndlessVar(cmd.Flags(), &span, "for", 0, "how long it rests, 0 to end a rest, or forever (required)")
	cmd.Flags().StringVar(&reason, "reason", "", "why, for whoever looks at the pool (required for a rest)")
	cmd.Flags().BoolVar(&exactly, "exactly", false, "also shorten a rest that lasts longer")
	app.QuotedFlag(cmd, &quoted)
	return cmd
}

func checkRest(d time.Duration, reason string, given bool) error {
	switch {
	case !given:
		return app.Usage("--for D is missing: how long it is to rest, such as 30s or 10m; 0 ends a rest")
	case d < 0:
		return berth.Invalid("--for", "%s is below 0; 0 ends a rest", d)
	case d > 0 && reason == "":
		return app.Usage("--reason TEXT is missing: why it is to rest, for whoever looks at the pool")
	}
	return cmp.Or(settings.Duration("--for", d), settings.Text("--reason", reason))
}

func rest(ctx context.Context, a *app.App, name, resource string, d time.Duration, reason string, exactly bool) error {
	return a.WithNode(ctx, node.Config{}, func(ctx context.Context, n *node.Node) error {
		err := poolOf(n, name).Rest(ctx, resource, d, reason, &allocator.RestOptions{Exactly: exactly})
		if errors.Is(err, berth.ErrAbsent) {
			return a.Absent(name, resource)
		}
		if err != nil {
			return app.InFlags(err, "reason", "--reason", "d", "--for", "resource", "RESOURCE")
		}
		info, err := allocator.NewOperator(n).Resource(ctx, name, resource)
		if err != nil {
			return err
		}
		return printRest(a, name, d, info)
	})
}
