//go:build unix

package run

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/apptest"
	"github.com/berth-go/berth/pkg/keyspace"
)

// Who is asked for the hold tells the command, which ends by itself: that is its own end.
func TestTheCommandIsToldThatItsHoldIsWanted(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	r := begin(t, s.URL(), "polite", "--on-wanted", "usr1", "--lease", "15s")
	wanted, err := apptest.OpsOf(t, s).Want(context.Background(), berth.Target{Kind: keyspace.Sem, Name: "gpu", Claim: r.claim})
	require.NoError(t, err)
	require.Equal(t, 1, wanted)
	require.Equal(t, "got user defined signal 1", r.line())
	require.Equal(t, 3, r.end(), "the command's own")
	require.Contains(t, r.errs.String(), `"gpu": somebody wants it back: SIGUSR1 sent`)
}

func TestOnWantedNamesASignal(t *testing.T) {
	t.Parallel()
	got := apptest.Call(t, apptest.Server(t).URL(), apptest.RunArgs("polite", "--on-wanted", "NOSUCH")...)
	require.Equal(t, 64, got.Code)
	require.Contains(t, got.Err, `--on-wanted`)
}
