package app

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
)

func TestAnUnknownErrorIsTheServers(t *testing.T) {
	require.Equal(t, 0, CodeOf(nil))
	require.Equal(t, exitUnavailable, CodeOf(errors.New("anything")))
	require.Equal(t, exitUsage, CodeOf(berth.Invalid("Lease", "no")))
	require.Equal(t, ExitFailed, CodeOf(fmt.Errorf("so far: %w", &berth.StaleError{Name: "gpu", Changed: "capacity 5, before 3"})))
	require.Equal(t, ExitFailed, CodeOf(Exit(ExitFailed, berth.Invalid("Lease", "no"))))
}

func TestRedact(t *testing.T) {
	require.Equal(t, `dial "redis://***@h:1" and rediss://***@i`, redact(`dial "redis://u:p@ss@h:1" and rediss://:x@i`))
	require.Equal(t, "redis://h:1 is a@b", redact("redis://h:1 is a@b"))
	require.Equal(t, "berth: one line", OneLine("berth: one\n  line"))
}
