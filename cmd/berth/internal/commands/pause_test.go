package commands

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/cmd/berth/internal/apptest"
	"github.com/berth-go/berth/pkg/semaphore"
)

func TestPauseAndUnpause(t *testing.T) {
	t.Parallel()
	for _, group := range []string{"sem", "lock", "pool"} {
		url := apptest.Server(t).URL()
		require.Equal(t, apptest.Outcome(0, "gpu: paused for 2h00m: \"a\\nb\"\n", ""),
			apptest.Call(t, url, group, "pause", "gpu", "--for", "2h", "--reason", "a\nb"))
		require.Equal(t, apptest.Outcome(0, "gpu: paused for 1m00s\n", ""), apptest.Call(t, url, group, "pause", "gpu", "--for", "1m"))
		require.JSONEq(t, `{"namespace": "berth", "name": "gpu", "pausedMs": 90000, "reason": "why"}`,
			apptest.Call(t, url, group, "pause", "gpu", "--for", "90s", "--reason", "why", "--json").Out)
		require.Equal(t, apptest.Outcome(0, "gpu: not paused\n", ""), apptest.Call(t, url, group, "unpause", "gpu"))
		require.JSONEq(t, `{"namespace": "berth", "name": "gpu", "pausedMs": 0}`, apptest.Call(t, url, group, "unpause", "gpu", "--json").Out)
	}
}

func TestPauseIsRefused(t *testing.T) {
	t.Parallel()
	url := apptest.Server(t).URL()
	for _, args := range [][]string{
		{"sem", "pause", "gpu"},
		{"sem", "pause", "gpu", "--for", "0"},
		{"sem", "pause", "gpu", "--for", "9000h"},
		{"lock", "pause", "", "--for", "1h"},
		{"pool", "unpause"},
	} {
		require.Equal(t, 64, apptest.Call(t, url, args...).Code, args)
	}
	require.Equal(t, 69, apptest.Call(t, apptest.Nobody, "sem", "pause", "gpu", "--for", "1h").Code)
}

// A command that does not wait tells of the pause.
func TestRunOfAPausedName(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	client := apptest.ClientOf(t, s, semaphore.Config{})
	require.NoError(t, client.Operator().Pause(context.Background(), "gpu", time.Hour, "migration"))
	got := apptest.Call(t, s.URL(), "run", "--sem", "gpu", "--capacity", "1", "--try", "--", "true")
	require.Equal(t, 75, got.Code)
	require.Contains(t, got.Err, "migration")
}
