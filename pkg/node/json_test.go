package node_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/wire"
	"github.com/berth-go/berth/pkg/node"
)

func TestWhatIsToldIsJSON(t *testing.T) {
	t.Parallel()
	require.NoError(t, wire.Check(node.SwarmNode{}, node.Zombies{}, node.Flushed{}))
}
