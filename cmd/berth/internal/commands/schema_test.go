package commands

import (
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/cmd/berth/internal/apptest"
	"github.com/berth-go/berth/internal/testkit/golden"
	"github.com/berth-go/berth/internal/wire"
)

// silent are the commands that refuse --json.
var silent = []string{"demo", "exporter", "run", "web"}

// The schema has each command that prints JSON and no other. All other tests see that what is printed is as it says.
func TestEachCommandThatPrintsJSONIsDescribed(t *testing.T) {
	documents := Documents()
	text, err := wire.Schema("What berth prints with --json", documents)
	require.NoError(t, err)
	golden.Compare(t, "../"+apptest.Schema, string(text)+"\n")

	var some []*cobra.Command
	app.Execute([]string{"version"}, nil, io.Discard, io.Discard, func(a *app.App) []*cobra.Command {
		some = all(a)
		return some
	})
	delete(documents, "pool show RESOURCE") // the same command
	delete(documents, "drain --list")       // likewise
	require.ElementsMatch(t, slices.AppendSeq(slices.Clone(silent), maps.Keys(documents)), runnable(some[0].Root()))
}

// runnable are the commands below another one that has commands, without those of cobra.
func runnable(of *cobra.Command) (paths []string) {
	for _, cmd := range of.Commands() {
		switch {
		case !cmd.IsAvailableCommand() || cmd.Name() == "completion" || cmd.Name() == "help":
		case cmd.HasSubCommands():
			paths = append(paths, runnable(cmd)...)
		default:
			paths = append(paths, strings.TrimPrefix(cmd.CommandPath(), "berth "))
		}
	}
	return paths
}
