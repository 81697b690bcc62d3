package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/berth-go/berth/cmd/berth/internal/app"
)

// perform runs the program with its commands, and returns its exit code.
func perform(args []string, in io.Reader, out, errs io.Writer) int {
	return app.Execute(args, in, out, errs, func(a *app.App) []*cobra.Command {
		return []*cobra.Command{runCommand(a), semCommand(a), lockCommand(a), poolCommand(a), swarmCommand(a), demoCommand(a), demoWorkerCommand(a)}
	})
}
