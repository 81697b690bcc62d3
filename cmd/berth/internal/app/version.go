package app

import (
	"cmp"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

const versionHelp = `Print the version of the module, the revision that it was built from with its
time, and the version of Go. A part that the build does not know is left out: go build and
go install of a checkout know the revision, go run only with -buildvcs=true.`

const devel = "(devel)" // the version that Go gives a build that knows none

func (a *App) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Long:    versionHelp,
		Example: "  berth version --json",
		Args:    Arguments(),
		RunE:    a.Runs(a.version),
	}
}

// versionDocument is the JSON document of the version.
type versionDocument struct {
	Version  string `json:"version"`
	Revision string `json:"revision"` // "" where the build does not know it
	Time     string `json:"time"`     // of the revision, "" where the build does not know it
	Modified bool   `json:"modified"` // the files were not those of the revision
	Go       string `json:"go"`
}

func (a *App) version(*cobra.Command, []string) error {
	info, _ := debug.ReadBuildInfo()
	document := versionOf(info)
	return Told(a, "", document, document.String())
}

// versionOf reads what a build says of itself, nil for one that says nothing.
func versionOf(info *debug.BuildInfo) versionDocument {
	if info == nil {
		info = &debug.BuildInfo{}
	}
	document := versionDocument{Version: cmp.Or(info.Main.Version, devel), Go: cmp.Or(info.GoVersion, runtime.Version())}
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			document.Revision = setting.Value
		case "vcs.time":
			document.Time = setting.Value
		case "vcs.modified":
			document.Modified = setting.Value == "true"
		}
	}
	return document
}

// String is one line.
func (d versionDocument) String() string {
	text := "berth version " + d.Version
	switch {
	case d.Revision != "":
		text += ", revision " + d.Revision
	case d.Version == devel:
		text += ", built without its revision"
	}
	if d.Modified {
		text += " (modified)"
	}
	if d.Time != "" {
		text += ", " + d.Time
	}
	return text + ", " + d.Go
}
