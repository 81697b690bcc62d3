package pool

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/berth-go/berth/internal/testkit/amount"
)

// alone is a world without a server: its clock moves only when it is told to.
func alone() World {
	now := time.UnixMilli(1_800_000_000_000)
	return World{
		Now:     func() time.Time { return now },
		Advance: func(d time.Duration, _ ...string) { now = now.Add(d) },
	}
}

func TestTheModelKeepsItsOwnLaws(t *testing.T) {
	require.NoError(t, amount.Histories(200))
	rapid.Check(t, func(rt *rapid.T) { Run(rt, alone()) })
}
