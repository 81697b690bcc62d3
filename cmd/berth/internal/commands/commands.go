// Package commands is the program with all its commands.
package commands

import (
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/cmd/berth/internal/exporter"
	"github.com/berth-go/berth/cmd/berth/internal/lock"
	"github.com/berth-go/berth/cmd/berth/internal/nodes"
	"github.com/berth-go/berth/cmd/berth/internal/pool"
	"github.com/berth-go/berth/cmd/berth/internal/run"
	"github.com/berth-go/berth/cmd/berth/internal/sem"
	"github.com/berth-go/berth/cmd/berth/internal/top"
	"github.com/berth-go/berth/cmd/berth/internal/web"
	"github.com/berth-go/berth/pkg/keyspace"
)

// Execute runs the program, and returns its exit code.
func Execute(args []string, in io.Reader, out, errs io.Writer) int {
	return app.Execute(args, in, out, errs, all)
}

// all are the commands beside those that package app has.
func all(a *app.App) []*cobra.Command {
	show := a.ShowAnyCommand(map[keyspace.Kind]app.Shower{
		keyspace.Sem: sem.Shower(a), keyspace.Lock: lock.Shower(a), keyspace.Pool: pool.Shower(a, false),
	})
	return slices.Concat([]*cobra.Command{
		run.Command(a), show, sem.Command(a), lock.Command(a), pool.Command(a), nodes.NodeCommand(a), nodes.OnceCommand(a),
		nodes.LeaderCommand(a), top.Command(a), web.Command(a), exporter.Command(a),
	}, demoCommands(a))
}

// Documents are what the commands print with --json, by command; of one with a RESOURCE there is another one.
func Documents() map[string]any {
	all := app.Documents()
	for _, more := range []map[string]any{sem.Documents(), lock.Documents(), pool.Documents(), nodes.Documents(), top.Documents()} {
		maps.Copy(all, more)
	}
	return all
}
