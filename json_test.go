package berth_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/wire"
)

func TestWhatIsToldIsJSON(t *testing.T) {
	t.Parallel()
	require.NoError(t, wire.Check(
		berth.Holder{}, berth.Waiter{}, berth.Name{}, berth.Ref{}, berth.Binding{}, berth.Pause{}, berth.PausedAll{}, berth.Report{},
		berth.Target{}, berth.DrainTarget{}, berth.Drained{},
	))
}
