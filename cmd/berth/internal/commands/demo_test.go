package commands_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/cmd/berth/internal/apptest"
)

func TestTheDemoEndsWithASignal(t *testing.T) {
	t.Parallel()
	cmd := apptest.Command(t, "", "demo")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	require.NoError(t, cmd.Start())
	var said bytes.Buffer
	for !strings.Contains(said.String(), "worker 2 asks") {
		chunk := make([]byte, 1000)
		n, err := out.Read(chunk)
		require.NoError(t, err)
		said.Write(chunk[:n])
	}
	apptest.Interrupt(t, cmd, time.Millisecond) // also right before it exits
	_, err = said.ReadFrom(out)                 // ends when no worker is left either
	require.NoError(t, err)
	require.Error(t, cmd.Wait())
	require.Equal(t, 130, cmd.ProcessState.ExitCode())
	require.Equal(t, "berth: ended by signal: interrupt\n", errs.String())
}
