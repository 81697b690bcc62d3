package once_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/wire"
	"github.com/berth-go/berth/pkg/once"
)

func TestWhatIsToldIsJSON(t *testing.T) {
	t.Parallel()
	require.NoError(t, wire.Check(once.Info{}, once.Last{}, once.Result{}))
}
