package app

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheVersionIsThatOfTheBuild(t *testing.T) {
	t.Parallel()
	of := func(settings ...debug.BuildSetting) string {
		return versionOf(&debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Version: "v1.2.3"}, Settings: settings}).String()
	}
	revision, time := debug.BuildSetting{Key: "vcs.revision", Value: "da66189"}, debug.BuildSetting{Key: "vcs.time", Value: "2026-11-24T09:00:00Z"}
	require.Equal(t, "berth version v1.2.3, go1.26.8", of())
	require.Equal(t, "berth version v1.2.3, revision da66189, 2026-11-24T09:00:00Z, go1.26.8",
		of(revision, time, debug.BuildSetting{Key: "vcs.modified", Value: "false"}))
	require.Equal(t, "berth version v1.2.3, revision da66189 (modified), 2026-11-24T09:00:00Z, go1.26.8",
		of(revision, time, debug.BuildSetting{Key: "vcs.modified", Value: "true"}))
	require.Equal(t, "berth version (devel), "+runtime.Version(), versionOf(nil).String())
}
