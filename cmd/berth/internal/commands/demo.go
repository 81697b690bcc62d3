//go:build !nodemo

package commands

import (
	"github.com/spf13/cobra"

	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/cmd/berth/internal/demo"
)

// demoCommands are the demo, and what its processes run.
func demoCommands(a *app.App) []*cobra.Command {
	return []*cobra.Command{demo.Command(a), demo.WorkerCommand(a)}
}
