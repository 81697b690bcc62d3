package top

import (
	"io"
	"testing"

	"github.com/spf13/cobra"

	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/cmd/berth/internal/apptest"
)

// program is berth with this command alone: its tests know what others may not.
func program(args []string, in io.Reader, out, errs io.Writer) int {
	return app.Execute(args, in, out, errs, func(a *app.App) []*cobra.Command { return []*cobra.Command{Command(a)} })
}

func TestMain(m *testing.M) { apptest.Main(m, program) }
