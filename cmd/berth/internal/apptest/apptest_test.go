package apptest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/cmd/berth/internal/apptest"
)

func TestNoticesOfABusyMachineAreLeftOut(t *testing.T) {
	t.Parallel()
	const own = "berth: \"gpu\" not acquired: held\nberth: warning: a capacity differs\n"
	require.Equal(t, own, apptest.Said(
		"berth: warning: for 1s now the server has not answered for \"gpu\", or has refused; it is asked again: berth: the server is unavailable: it has not answered yet (it may have run)\n"+
			own+"berth: still waiting for \"gpu\" after 5s (waiting 0)\n"))
	refused := "berth: warning: for 1s now the server has not answered for \"gpu\", or has refused; it is asked again: READONLY\n"
	require.Equal(t, refused, apptest.Said(refused))
}
