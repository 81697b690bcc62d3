package inspect_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/wire"
	"github.com/berth-go/berth/pkg/inspect"
)

func TestWhatIsToldIsJSON(t *testing.T) {
	t.Parallel()
	require.NoError(t, wire.Check(inspect.Page[berth.Name]{}, inspect.Page[inspect.Claim]{}, inspect.Cycles{}, inspect.Look{}))
}

func TestAClaimOfWhichNothingIsToldHasNothing(t *testing.T) {
	t.Parallel()
	var c inspect.Claim
	require.NoError(t, json.Unmarshal([]byte("{}"), &c))
	require.Empty(t, c.ID()+c.Node()+c.Label()+c.Owner()+c.Resource())
	require.Equal(t, []time.Duration{0, 0}, []time.Duration{c.For(), c.Left()})
	require.True(t, c.Since().IsZero())
	require.NotPanics(t, func() { _ = c.String() })
}
