package inspect_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/wire"
	"github.com/berth-go/berth/pkg/inspect"
)

func TestWhatIsToldIsJSON(t *testing.T) {
	t.Parallel()
	require.NoError(t, wire.Check(inspect.Page[berth.Name]{}, inspect.Page[inspect.Claim]{}, inspect.Circles{}, inspect.Look{}))
}
