package server_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/test/bench/server"
)

func TestAServerThatEndsBeforeItAnswersIsStartedElsewhere(t *testing.T) {
	ctx := context.WithoutCancel(t.Context())
	_, _, _, err := server.Under(ctx, "false")
	require.ErrorContains(t, err, "it has ended")

	once := `if [ -e "$0" ]; then exec "$@"; fi; : > "$0"`
	addr, pid, stop, err := server.Under(ctx, "sh", "-c", once, filepath.Join(t.TempDir(), "tried"))
	require.NoError(t, err)
	require.NotEmpty(t, addr)
	require.Positive(t, pid)
	require.NoError(t, stop())
}
