package app_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/apptest"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/semaphore"
)

const asking = "berth: asking; this goes on until nothing is left; Ctrl-C leaves the drain in force\n"

// It lasts as long as the command waits for all processes to hear.
func TestDrainOfALabel(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	ctx := context.Background()
	way := link.New(nil)
	sem := semaphore.New(apptest.NodeOf(t, s, node.Config{Label: "worker/7"}, way.Wrap), "gpu", 2, nil)
	permit, err := sem.Acquire(ctx, nil)
	require.NoError(t, err)
	go func() {
		<-permit.Wanted()
		_ = permit.Release(ctx)
	}()
	asked := func() bool { return apptest.HoldersOf(t, s, keyspace.Sem, "gpu")[0].Wanted > 0 }
	require.Equal(t, apptest.Outcome(0, "worker/*: 1 hold asked for, 0 waits cancelled, 0 holds ended by force, 0 left\n", asking),
		apptest.Drain(t, s, way, asked, "drain", "--label", "worker/*"))
	_, err = sem.TryAcquire(ctx, nil)
	require.ErrorIs(t, err, berth.ErrDraining)
	require.JSONEq(t, `{"namespace": "berth", "label": "worker/*", "stopped": true,
		"asked": 0, "cancelled": 0, "ended": 0, "detached": 0, "left": 0}`,
		apptest.Call(t, s.URL(), "drain", "--label", "worker/*", "--stop", "--json").Out)
	require.Equal(t, apptest.Outcome(0, "n1: drains no more; processes hear of it within 5 s\n", ""), apptest.Call(t, s.URL(), "drain", "--node", "n1", "--stop"))
}

func TestDrainLeavesWhatIsDetached(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	ctx := context.Background()
	sem := semaphore.New(apptest.NodeOf(t, s, node.Config{Label: "worker/7"}), "gpu", 2, nil)
	permit, err := sem.Acquire(ctx, &semaphore.AcquireOptions{Lease: berth.Forever})
	require.NoError(t, err)
	_, err = permit.Detach(ctx)
	require.NoError(t, err)
	require.Equal(t, apptest.Outcome(1, "worker/7: 0 holds asked for, 0 waits cancelled, 0 holds ended by force, 0 left\n",
		asking+"berth: 1 hold detached: no process has them\n"),
		apptest.Call(t, s.URL(), "drain", "--label", "worker/7"))
}

func TestDrainOfWhatNobodyHas(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	_, err := apptest.SemOf(t, s, "gpu", 2).Acquire(context.Background(), nil)
	require.NoError(t, err)
	require.Equal(t, apptest.Outcome(0, "nobody: 0 holds asked for, 0 waits cancelled, 0 holds ended by force, 0 left; no hold or wait matched\n",
		"berth: asking; what is left in 1h00m is ended by force; Ctrl-C leaves the drain in force\n"),
		apptest.Call(t, s.URL(), "drain", "--label", "nobody", "--within", "1h"))
}

func TestDrainNeedsATarget(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	for _, args := range [][]string{
		{"drain"},
		{"drain", "--node", "a", "--label", "b"},
		{"drain", "--label", "b", "--within", "0"},
		{"drain", "--label", "b", "--within", "1m", "--stop"},
	} {
		require.Equal(t, 64, apptest.Call(t, s.URL(), args...).Code, "%v", args)
	}
}
