package harness

import (
	"net"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// portVariable names the port that a child is to draw.
const portVariable = "BERTH_TEST_PORT"

func TestAPortIsOfOneProcess(t *testing.T) {
	addr, err := freeAddr()
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	number, err := strconv.ParseInt(port, 10, 64)
	require.NoError(t, err)
	ours, err := own(number)
	require.NoError(t, err)
	require.False(t, ours, "it is drawn once")

	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestChildThatDrawsAPort$", "-test.v")
	child.Env = append(os.Environ(), portVariable+"="+port)
	said, err := child.CombinedOutput()
	require.NoError(t, err)
	require.Contains(t, string(said), "drawn: false")
}

// TestChildThatDrawsAPort is the other process.
func TestChildThatDrawsAPort(t *testing.T) {
	if os.Getenv(portVariable) == "" {
		return
	}
	number, err := strconv.ParseInt(os.Getenv(portVariable), 10, 64)
	require.NoError(t, err)
	ours, err := own(number)
	require.NoError(t, err)
	t.Log("drawn:", ours)
}
