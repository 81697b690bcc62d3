package harness

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheEmbeddedServerTakesWrites(t *testing.T) {
	t.Parallel()
	d := Embedded(t)
	require.Equal(t, "embedded", d.Name)
	require.Equal(t, d.Servers(), d.Masters(t))
	requireTakesWrites(t, d, "k")
}
