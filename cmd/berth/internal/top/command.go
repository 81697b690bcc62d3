// Package top is berth top: what contends, live on a terminal, and acted on from where it is seen. A model takes in
// messages and draws; all that it asks for is done by its world, which is the terminal's or a test's.
package top

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"runtime"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"

	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/internal/act"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/internal/watch"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
)

// Command is berth top.
func Command(a *app.App) *cobra.Command {
	var kind string
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch what contends, live, and act on it",
		Long: `Watch the semaphores, locks and pools that somebody waits for, the worst first, then those
with the most waiting: their state, how much is held, who waits and for how long, who has
held longest. What is stuck stays so until somebody mends it, what is overdue has a process
that should have been heard of, what is meant is paused, rests or was asked for; the first
line counts them. ! shows only what is stuck. A row opens into its holders and waiters, each
with its explanation, and the command that mends it. Keys release, pause, unpause, resize,
rest and drain; each first says what it will do, and asks. What was done, by whom and why is
printed on standard error when it has ended. ? shows all keys.

While few are waited for, names in use are shown beside them. Dead ones may be among those
who wait until somebody meets them.

It needs a terminal. Where the output is none, or one that cannot move its cursor, and with
--json, one page is printed, and that is all: it takes up to 5 s. The server is read at most
once in 2 s for the list and once a second for a name that is open.`,
		Example: "  berth top\n  berth top --kind lock\n  berth top --json",
		Args:    app.Arguments(),
		RunE: a.Runs(func(cmd *cobra.Command, _ []string) error {
			var kinds []keyspace.Kind
			if kind != "" {
				var err error
				if kinds, err = app.KindsOf(kind); err != nil {
					return err
				}
			}
			if a.JSON || !terminal(a, cmd) {
				return a.WithReader(cmd.Context(), func(ctx context.Context, read *inspect.Reader) error {
					return onePage(ctx, a, read, kinds)
				})
			}
			return watching(cmd, a, keyspace.Kind(kind))
		}),
	}
	cmd.Flags().StringVar(&kind, "kind", "", "only of `KIND`: sem, lock or pool")
	app.CompleteKind(cmd)
	return cmd
}

// terminal reports whether somebody looks at a terminal that can move its cursor, and can type.
func terminal(a *app.App, cmd *cobra.Command) bool {
	in, ok := cmd.InOrStdin().(*os.File)
	return (app.Capable() || runtime.GOOS == "windows") && ok && app.IsTerminal(in) && a.Out.File() != nil && app.IsTerminal(a.Out.File())
}

// watching shows the terminal until somebody ends it.
func watching(cmd *cobra.Command, a *app.App, kind keyspace.Kind) error {
	return app.UntilInterrupted(cmd.Context(), func(ctx context.Context) error {
		return a.WithServer(ctx, func(ctx context.Context, c *app.Connection) error { return show(ctx, cmd, a, c, kind) })
	})
}

// closing is how long the terminal may take to be as it was. A program that is ended at once reads on from what it has closed.
const closing = 5 * time.Second

func show(ctx context.Context, cmd *cobra.Command, a *app.App, c *app.Connection, kind keyspace.Kind) error {
	read, err := c.Reader()
	if err != nil {
		return err
	}
	var acts bytes.Buffer // the lines of what was done: the terminal is taken until the end
	actor := act.New(c.Redis, node.Config{Namespace: c.Namespace, CallTimeout: app.Times.Call, Observer: app.Acts(&acts)})
	watcher := watch.New(read, nil)
	defer watcher.Close()
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	world := newLive(inner, watcher, actor, whoami())
	model := newModel(world, a.Namespace, kind, !a.NoColor, time.Now())
	model.where = a.Where()
	killed, kill := context.WithCancel(context.WithoutCancel(ctx))
	defer kill()
	program := tea.NewProgram(model, tea.WithContext(killed), tea.WithInput(cmd.InOrStdin()), tea.WithOutput(a.Out.File()),
		tea.WithoutSignalHandler(), tea.WithFPS(30))
	defer context.AfterFunc(ctx, func() {
		slow := time.AfterFunc(closing, kill)
		defer slow.Stop()
		program.Quit()
		<-killed.Done()
	})()
	_, err = program.Run()
	kill()
	cancel()
	unsaid := world.end()
	_, _ = acts.WriteTo(a.Err) // as all that is said there
	model.last(a.Err, unsaid)
	if ctx.Err() != nil {
		return nil // the signal is told
	}
	if errors.Is(err, tea.ErrProgramPanic) {
		return app.Exit(app.ExitFailed, errors.New("it has failed: this is a fault of berth top"))
	}
	if err != nil {
		return app.Exit(app.ExitFailed, fmt.Errorf("the terminal: %w", err))
	}
	return nil
}

// last prints what has come of actions since the program has ended: ends of drains first, which tell what has become of
// the drains.
func (m *model) last(to io.Writer, unsaid []outcome) {
	for _, drains := range []bool{false, true} {
		for _, o := range unsaid {
			if (o.action.Verb == act.Drain) != drains {
				continue
			}
			line, bad := m.over(o)
			if bad && stopped(o) {
				fmt.Fprintf(to, "berth: the drain of node %s stays in force; 'berth drain --node %s --stop' ends it\n",
					text.Plain(o.action.Node), text.Shell(o.action.Node))
				continue
			}
			fmt.Fprintln(to, app.OneLine(line))
		}
	}
}

// whoami is the user of the system, "" if that is not known.
func whoami() string {
	me, err := user.Current()
	if err != nil {
		return ""
	}
	return me.Username
}
