package main

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
)

func TestAnUnknownErrorIsTheServers(t *testing.T) {
	require.Equal(t, 0, codeOf(nil))
	require.Equal(t, exitUnavailable, codeOf(errors.New("anything")))
	require.Equal(t, exitUsage, codeOf(berth.Invalid("Lease", "no")))
	require.Equal(t, exitFailed, codeOf(exitWith(exitFailed, berth.Invalid("Lease", "no"))))
}

func TestRedact(t *testing.T) {
	require.Equal(t, `dial "redis://***@h:1" and rediss://***@i`, redact(`dial "redis://u:p@ss@h:1" and rediss://:x@i`))
	require.Equal(t, "redis://h:1 is a@b", redact("redis://h:1 is a@b"))
	require.Equal(t, "berth: one line", oneLine("berth: one\n  line"))
}
