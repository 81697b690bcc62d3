//go:build unix

package run

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/cmd/berth/internal/apptest"
	"github.com/berth-go/berth/pkg/allocator"
)

// F2: a run that says no --lease is taken within the pool's limits.
func TestARunThatSaysNoLeaseIsWithinTheLimits(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	pool := apptest.Filled(t, s, "gpu", "a")
	require.NoError(t, pool.Ops.Set(context.Background(), pool.Name(), "", allocator.Settings{MaxLease: 9 * time.Second}))
	require.Equal(t, apptest.Outcome(0, "a", ""), apptest.Spawn(t, s.URL(), says()...))
}

// F2b: the pool's MaxHold ends the command in other words than a failing renewal.
func TestTheLongestHoldOfThePoolIsNoFailedRenewal(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	pool := apptest.Filled(t, s, "gpu", "a")
	require.NoError(t, pool.Ops.Set(context.Background(), pool.Name(), "", allocator.Settings{MaxHold: 6 * time.Second}))
	got := apptest.Spawn(t, s.URL(), "run", "--pool", "gpu", "--", "sleep", "60")
	require.Equal(t, 76, got.Code)
	require.NotContains(t, got.Err, "no renewal in time")
}
