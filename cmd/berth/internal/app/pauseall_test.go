package app_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/apptest"
	"github.com/berth-go/berth/pkg/node"
)

// It lasts as long as the command waits for all processes to hear, twice.
func TestPauseOfTheNamespace(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	ctx := context.Background()
	_, err := apptest.SemOf(t, s, "gpu", 2).Acquire(ctx, nil)
	require.NoError(t, err)
	require.Equal(t, apptest.Outcome(0, "paused for 2h00m: moving; in use: 1 name\n", ""),
		apptest.Call(t, s.URL(), "pause", "--all", "--for", "2h", "--reason", "moving", "--force"))
	_, err = apptest.LocksOf(t, s, node.Config{}).TryLock(ctx, "nightly", nil)
	var refused *berth.AcquireError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, berth.ReasonPaused, refused.Reason)
	require.Equal(t, "moving", refused.Pause.Reason)
	require.JSONEq(t, `{"namespace": "berth", "pausedMs": 0, "names": 1, "unread": 0}`,
		apptest.Call(t, s.URL(), "unpause", "--all", "--json").Out)
	_, err = apptest.SemOf(t, s, "gpu", 2).TryAcquire(ctx, nil)
	require.NoError(t, err)
}

func TestPauseOfTheNamespaceIsAskedForWholly(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	for says, args := range map[string][]string{
		"berth: --all is missing; one name is paused by 'berth sem|lock|pool pause NAME'":               {"pause", "--for", "2h", "--force"},
		"berth: --for D is missing: how long all is to be paused, such as 10m or 2h":                    {"pause", "--all", "--force"},
		"berth: it may be somebody else's: say --force if that is meant":                                {"pause", "--all", "--for", "2h"},
		"berth: --all is missing; the pause of one name is ended by 'berth sem|lock|pool unpause NAME'": {"unpause"},
		"berth: invalid --for: 9000h0m0s is not above 0 and at most 8784h0m0s":                          {"pause", "--all", "--for", "9000h", "--force"},
	} {
		got := apptest.Call(t, s.URL(), args...)
		require.Equal(t, 64, got.Code, says)
		require.Contains(t, got.Err, says+"\n")
	}
}
