package main

import (
	"io"

	"github.com/spf13/cobra"
)

// perform runs the program with its commands, and returns its exit code.
func perform(args []string, in io.Reader, out, errs io.Writer) int {
	return execute(args, in, out, errs, func(a *app) []*cobra.Command {
		return []*cobra.Command{a.runCommand(), a.semCommand(), a.lockCommand(), a.poolCommand(), a.swarmCommand(), a.demoCommand(), a.demoWorkerCommand()}
	})
}
