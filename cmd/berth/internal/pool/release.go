package pool

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/pkg/keyspace"
)

func releaseCommand(a *app.App) *cobra.Command {
	return a.ReleaseCommand(&app.Releasing{Kind: keyspace.Pool, Resources: true}, &cobra.Command{
		Use:   "release {NAME {CLAIM | RESOURCE} | [NAME] {--owner OWNER | --node NODE | --all}} --force",
		Short: "End somebody's holds of resources, or take somebody's claim out of the line",
		Long: `End holds of resources, or waits, whoever has them. With RESOURCE the holds of that
resource end. What has the form of a claim is taken for one; a resource of that form is
named by --resource. A resource rests after it where it has to.
` + fmt.Sprintf(app.ReleaseHelp, "pool", "NAME alone is refused: a CLAIM may be missing."),
		Example: "  berth pool release proxies 10.0.0.1:3128 --force",
	})
}
