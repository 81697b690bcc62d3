// Package lock has the commands about locks.
package lock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/internal/settings"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/qlock"
)

// Command is berth lock.
func Command(a *app.App) *cobra.Command {
	return app.Group(&cobra.Command{
		Use:   "lock",
		Short: "Look at locks, end and lengthen holds",
		Example: `  berth lock ls
  berth lock show nightly
  berth lock explain nightly
  berth lock release nightly --force
  berth lock extend nightly --by 10m --force
  berth lock sweep`,
	}, append(a.ActingCommands(keyspace.Lock), lsCommand(a), showCommand(a), extendCommand(a), a.ExplainCommand(app.VerbOf(keyspace.Lock)))...)
}

// Documents are what the commands of this package print with --json, by command.
func Documents() map[string]any {
	return map[string]any{
		"lock extend": app.Named[extendDocument]{},
	}
}

func lsCommand(a *app.App) *cobra.Command {
	return a.LsCommand(keyspace.Lock, &cobra.Command{
		Short: "List the locks that are held",
		Long: `List the locks of the namespace that somebody holds, and those that are paused, by name. LEFT is how long a
lock stays held if nothing renews it, HOLDERS how often its owner has taken it.`,
		Example: "  berth lock ls --sort held --limit 10",
	}, "No lock is held", "NAME", "FENCE", "FOR", "LEFT", "HOLDERS", "WAITING", "STATE", "OWNER", "LABEL", "PAUSED")
}

func showCommand(a *app.App) *cobra.Command {
	return a.ShowCommand(app.VerbOf(keyspace.Lock), &cobra.Command{
		Short: "Show who holds a lock and who waits for it",
		Long: `Show a lock: the entries of its owner, the outermost first, and its waiting claims
in the order in which they will be granted, unless one comes that draws a place
ahead of them. LEFT is what is left of the lease; of a waiting claim, how long it
stays in line if nothing is heard of its process.

Where 'berth run --once NAME' or package once runs the name, held or free, it also says
what became of the newest run and which success is the newest.

Exit code 1: nobody holds the lock, and nobody waits for it, and no runs of the name are
known. With --json the document of a free lock is printed all the same.`,
		Example: "  berth lock show nightly",
	}, map[keyspace.Kind]app.Shower{keyspace.Lock: Shower(a)})
}

func extendCommand(a *app.App) *cobra.Command {
	var forced bool
	var by time.Duration
	cmd := &cobra.Command{
		Use:   "extend NAME --by D --force",
		Short: "Lengthen somebody's hold of a lock",
		Long: `Move the end of a lock's hold further off by so much, whoever has it, for instance
of one that does not renew, so that its holder can finish. Its maximum hold still
bounds it. The process that has it hears of it with its next call, within a third of
its lease.

Exit code 1: nobody holds the lock.`,
		Args:              app.Arguments("NAME"),
		ValidArgsFunction: app.Completing(a.Names(keyspace.Lock)),
		RunE: a.Runs(func(cmd *cobra.Command, args []string) error {
			if err := cmp.Or(app.NeedForce(forced), app.CheckName(args[0]), checkBy(by, cmd.Flags().Changed("by"))); err != nil {
				return err
			}
			return extend(cmd.Context(), a, args[0], by)
		}),
	}
	app.Force(cmd, &forced)
	app.TimeVar(cmd.Flags(), &by, "by", 0, "by how much (required)")
	return cmd
}

func checkBy(by time.Duration, given bool) error {
	switch {
	case !given:
		return app.Usage("--by D is missing: by how much, such as 30s or 10m")
	case by <= 0:
		return berth.Invalid("--by", "%s is not above 0; it says by how much", by)
	case by == berth.Forever:
		return berth.Invalid("--by", "it must end")
	}
	return settings.Duration("--by", by)
}

// shown has the data that is shown of a lock.
type shown struct {
	app.Shown
	runs app.RunsDocument
}

// Shower reads locks, and what is kept of the runs of their names.
func Shower(a *app.App) app.Shower {
	return func(ctx context.Context, n *node.Node, read *inspect.Reader, name string) (app.Shown, error) {
		s, err := look(ctx, a, n, read, name)
		return s.Shown, err
	}
}

// look reads a lock, and what is kept of the runs of its name.
func look(ctx context.Context, a *app.App, n *node.Node, read *inspect.Reader, name string) (s shown, err error) {
	var failed error
	s.runs, failed = app.RunsOf(ctx, n, read, name)
	if errors.Is(failed, berth.ErrUnavailable) { // there is no use in asking it for the lock
		return s, failed
	}
	if s.Name, err = read.Name(ctx, keyspace.Lock, name); err != nil {
		return s, err
	}
	if s.Once = s.runs.Once; s.Once != nil {
		s.GoesOn = s.runs.Runs.GoesOn
	}
	if failed != nil { // the lock could be read
		fmt.Fprintln(a.Err, app.OneLine(fmt.Sprintf("warning: what is kept of the runs of %s cannot be read: %v", text.Word(name), failed)))
	}
	s.Unread = s.ReadClaims(ctx, read)
	if s.Lock == nil && len(s.Waiters) == 0 && app.Unused(s.Name) && s.Once == nil {
		s.Absent = app.Exit(app.ExitFailed, fmt.Errorf(
			"lock %q in namespace %q is free: nobody holds it, and nobody waits for it", name, a.Namespace))
	}
	s.Says = "free"
	if s.Lock != nil {
		s.Says = fmt.Sprintf("held for %s, %s left", text.Human(s.Oldest), text.Human(s.Lock.Left))
	}
	s.Says = fmt.Sprintf("%s: %s, waiting %d", text.Plain(name), s.Says, len(s.Waiters))
	s.Lists = func(most int) error { return printLock(a, &s, most) }
	return s, nil
}

func extend(ctx context.Context, a *app.App, name string, by time.Duration) error {
	var sent observe.Event
	watch := observe.Func(func(e observe.Event) {
		if e.Kind == observe.Extended { // on the goroutine that calls
			sent = e
		}
	})
	return a.WithNode(ctx, node.Config{Observer: watch}, func(ctx context.Context, n *node.Node) error {
		err := qlock.NewOperator(n).Extend(ctx, name, by)
		if errors.Is(err, berth.ErrNotHeld) {
			return app.Exit(app.ExitFailed, fmt.Errorf("nobody holds lock %q in namespace %q", name, a.Namespace))
		}
		if err != nil {
			return err
		}
		says := fmt.Sprintf("%s: extended by %s, %s left", text.Plain(name), text.Human(by), text.Human(sent.Left))
		return app.Told(a, name, extendDocument{sent.Fence, by, sent.Left}, says)
	})
}
