package metrics

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/test/harness"
)

// TestAnExporterThatMayNotAskHowTheServerIsSaysSo has the user that only reads, without +info: nobody would hear of a full
// server.
func TestAnExporterThatMayNotAskHowTheServerIsSaysSo(t *testing.T) {
	t.Parallel()
	server := harness.Start(t)
	server.ReadingUser(t, "berth")
	told := read(t, "http://"+exporter(t, "redis://reading@"+server.Addr)+"/metrics")
	require.Contains(t, told, "\nberth_up 1\n")
	require.Contains(t, told, "\nberth_exporter_problems 1\n")
	require.NotContains(t, told, "\nberth_server_full{")
}
