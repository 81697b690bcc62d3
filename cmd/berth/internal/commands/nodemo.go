//go:build nodemo

package commands

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/berth-go/berth/cmd/berth/internal/app"
)

// errNoDemo is what the demo says in archives, packages and images, which leave out its server.
var errNoDemo = errors.New("the demo is not in this build; with Go: go run github.com/berth-go/berth/cmd/berth@latest demo")

func demoCommands(a *app.App) []*cobra.Command {
	return []*cobra.Command{{
		Use: "demo", Short: "Say how to get the demo, which is not in this build",
		DisableFlagParsing: true,
		RunE:               a.Runs(func(*cobra.Command, []string) error { return app.Exit(app.ExitFailed, errNoDemo) }),
	}}
}
