package view

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
)

func TestARunOfWhichItIsNotKeptWhenItIsDueIsNotOverdue(t *testing.T) {
	due := Runs.Pick("DUE")[0].Cell
	n := berth.Name{At: time.UnixMilli(1_700_000_000_000), Runs: &berth.RunsInfo{}}
	require.Empty(t, due(&n))
	n.Runs.Due = n.At.Add(-time.Minute)
	require.Equal(t, Bad, due(&n)[0].Look)
}
