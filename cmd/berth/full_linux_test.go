package main

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnOutputThatCannotBeWrittenIsNotTheServersFault(t *testing.T) {
	t.Parallel()
	s, _ := lockScenery(t)
	for _, args := range [][]string{
		{"check"},
		{"check", "--json"},
		{"sem", "ls"},
		{"lock", "ls"},
		{"lock", "show", "gpu", "--json"},
		{"lock", "queue", "gpu"},
		{"pool", "ls"},
		{"pool", "add", "proxies", "a"},
		{"swarm", "status"},
		{"swarm", "flush"},
		{"--version"},
		{"run", "--help"},
	} {
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		require.NoError(t, err)
		cmd := program(t, s.URL(), args...)
		var errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = full, &errs
		require.Error(t, cmd.Run(), args)
		require.NoError(t, full.Close())
		require.Equal(t, exitOutput, cmd.ProcessState.ExitCode(), "%v: %s", args, &errs)
		require.Equal(t, "berth: cannot write the output: write /dev/stdout: no space left on device\n", errs.String())
	}
}
