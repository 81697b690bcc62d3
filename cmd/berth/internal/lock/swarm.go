package lock

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/internal/view"
	"github.com/berth-go/berth/pkg/node"
)

const swarmHelp = `A swarm is the nodes of a namespace that watch each other, so that locks which do
not renew by themselves come free when the process that holds them has died. A
program joins it through package node; berth itself only looks, and flushes.`

// SwarmCommand is berth swarm.
func SwarmCommand(a *app.App) *cobra.Command {
	return app.Group(&cobra.Command{
		Use:   "swarm",
		Short: "Look at the nodes that watch each other, remove what dead ones hold",
		Long:  swarmHelp,
		Example: `  berth swarm status
  berth swarm flush`,
	}, swarmStatusCommand(a), swarmFlushCommand(a))
}

func swarmStatusCommand(a *app.App) *cobra.Command {
	return ofSwarm(a, &cobra.Command{
		Use:   "status",
		Short: "List the nodes of the swarm, and what dead ones have left behind",
		Long: `List the nodes of the swarm, those heard of last first. PROBED is how long ago a node
last said that it lives, LIMIT its own zombie limit, SwarmConfig.ZombieAfter. A node is

  alive      if PROBED is less than LIMIT
  zombie     if it is more: the next flush removes what the node holds
  condemned  if a flush has found it so; it is remembered for a day`,
	}, func(ctx context.Context, swarm *node.Swarm, ahead time.Duration) error {
		return swarmStatus(ctx, a, swarm, ahead)
	})
}

func swarmFlushCommand(a *app.App) *cobra.Command {
	return ofSwarm(a, &cobra.Command{
		Use:   "flush",
		Short: "Remove what dead nodes hold, now",
		Long: `Condemn the nodes that have not said for their own zombie limit that they live, and
remove what condemned nodes hold and have waiting, of all kinds; it goes to the next in line.
Every node of the swarm does the same from time to time. Detached holds, and those
of nodes that were never in the swarm, stay. A node that holds without end, and that
the server has lost, is entered again: flush once more after its limit.`,
	}, func(ctx context.Context, swarm *node.Swarm, _ time.Duration) error {
		done, failed := swarm.FlushNow(ctx) // what was done counts beside an error
		says := fmt.Sprintf("nodes condemned: %d, holds ended: %d, waiting claims removed: %d", done.Nodes, done.Holds, done.Waiters)
		return cmp.Or(app.Told(a, "", done, says), failed)
	})
}

// ofSwarm completes a command about the swarm. It is told how far the clock of
// the server is ahead of ours.
func ofSwarm(a *app.App, cmd *cobra.Command, f func(ctx context.Context, swarm *node.Swarm, ahead time.Duration) error) *cobra.Command {
	cmd.Args = app.Arguments()
	cmd.RunE = a.Runs(func(cmd *cobra.Command, _ []string) error {
		return a.WithServer(cmd.Context(), func(ctx context.Context, c *app.Connection) error {
			n, err := c.Node(node.Config{}) // it never probes
			if err != nil {
				return err
			}
			ahead, err := ahead(ctx, c)
			if err != nil {
				return err
			}
			return f(ctx, n.Swarm(), ahead)
		})
	})
	return cmd
}

// ahead is by how much the server's clock is ahead of ours.
func ahead(ctx context.Context, c *app.Connection) (time.Duration, error) {
	words, err := c.Redis.Do(ctx, c.Redis.B().Time().Build()).AsIntSlice()
	if err != nil {
		return 0, err
	}
	if len(words) != 2 {
		return 0, fmt.Errorf("TIME has %d parts", len(words))
	}
	return time.Until(time.Unix(words[0], words[1]*int64(time.Microsecond))), nil
}

func swarmStatus(ctx context.Context, a *app.App, swarm *node.Swarm, ahead time.Duration) error {
	nodes, err := app.Collect(swarm.Info(ctx))
	if err != nil {
		return err
	}
	slices.SortFunc(nodes, func(a, b node.SwarmNode) int {
		return cmp.Or(b.ProbedAt.Compare(a.ProbedAt), strings.Compare(a.Node, b.Node))
	})
	left, failed := swarm.Zombies(ctx) // the nodes are shown beside an error
	return cmp.Or(printSwarm(a, nodes, left, time.Now().Add(ahead)), failed)
}

// swarmDocument is the nodes of the swarm, the one heard of last first.
type swarmDocument struct {
	At         time.Time        `json:"at"`
	Nodes      []node.SwarmNode `json:"nodes"`
	LeftBehind node.Zombies     `json:"leftBehind"`
}

func printSwarm(a *app.App, nodes []node.SwarmNode, left node.Zombies, now time.Time) error {
	if a.JSON || len(nodes) == 0 {
		return app.Told(a, "", swarmDocument{now, nodes, left}, "No node is in the swarm of namespace "+text.Plain(a.Namespace)+".")
	}
	if err := app.Limited(a, view.Nodes, view.NodesAt(nodes, now), 0); err != nil {
		return err
	}
	if len(left.Names) == 0 && len(left.Waiters) == 0 {
		return nil
	}
	says := fmt.Sprintf("\nDead nodes have left behind: %d waiting", len(left.Waiters))
	held := ", held: "
	for _, n := range left.Names {
		says, held = says+held+string(n.Kind)+" "+text.Plain(n.Name), ", "
	}
	_, err := fmt.Fprintln(a.Out, says)
	return err
}
