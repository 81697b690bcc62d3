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

// It lasts as long as the command waits for all processes to hear, twice.
func TestPauseOfTheNamespace(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	ctx := context.Background()
	_, err := apptest.SemOf(t, s, "gpu", 2).Acquire(ctx, nil)
	require.NoError(t, err)
	require.Equal(t, apptest.Outcome(0, "paused for 2h00m: moving; in use: 1 name\n", ""),
		apptest.Call(t, s.URL(), "pause", "--all", "--for", "2h", "--reason", "moving", "--force"))
	_, err = apptest.LocksOf(t, s, node.Config{}).TryLock(ctx, "nightly", nil)
	var refused *berth.AcquireError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, berth.ReasonPaused, refused.Reason)
	require.Equal(t, "moving", refused.Pause.Reason)
	require.JSONEq(t, `{"namespace": "berth", "pausedMs": 0, "names": 1, "unread": 0}`,
		apptest.Call(t, s.URL(), "unpause", "--all", "--json").Out)
	_, err = apptest.SemOf(t, s, "gpu", 2).TryAcquire(ctx, nil)
	require.NoError(t, err)
}

func TestWantAsksForHoldsBack(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	sem := apptest.SemOf(t, s, "gpu", 3)
	var permits []berth.Hold
	for range 2 {
		permit, err := sem.Acquire(apptest.Owned("ann"), nil)
		require.NoError(t, err)
		permits = append(permits, permit)
	}
	claim := permits[0].ID()
	require.Equal(t, apptest.Outcome(0, "gpu: 1 hold wanted back\n", ""), apptest.Call(t, s.URL(), "sem", "want", "gpu", claim))
	require.NoError(t, permits[0].Renew(context.Background()))
	<-permits[0].Wanted()
	require.Contains(t, apptest.Call(t, s.URL(), "sem", "show", "gpu").Out, ", wanted ")
	require.Contains(t, apptest.Call(t, s.URL(), "sem", "show", "gpu", "--json").Out, `"wantedMs":`)
	select {
	case <-permits[1].Wanted():
		require.Fail(t, "nobody has asked for this one")
	default:
	}
	require.JSONEq(t, `{"namespace": "berth", "owner": "ann", "wanted": 2}`,
		apptest.Call(t, s.URL(), "sem", "want", "--owner", "ann", "--json").Out)
	lock, err := apptest.LocksOf(t, s, node.Config{}).Lock(context.Background(), "gpu", nil)
	require.NoError(t, err)
	require.Equal(t, apptest.Outcome(0, "namespace berth: 1 hold wanted back\n", ""),
		apptest.Call(t, s.URL(), "lock", "want", "--node", lock.Node()))
	for _, permit := range permits {
		require.NoError(t, permit.Err())
	}
}

func TestWantOfNothing(t *testing.T) {
	t.Parallel()
	url := apptest.Server(t).URL()
	for code, calls := range map[int][][]string{
		1:  {{"gpu"}, {"gpu", "0a1b2c3d4e5f6071.d3k5m7p9r1t3v5x7z9b0"}, {"--owner", "ann"}, {"gpu", "--node", "n"}},
		64: {{}, {""}, {"gpu", ""}, {"--owner", ""}, {"--node", ""}, {"gpu", "a", "b"}},
	} {
		for _, args := range calls {
			for _, kind := range []string{"sem", "lock", "pool"} {
				got := apptest.Call(t, url, append([]string{kind, "want"}, args...)...)
				require.Equal(t, code, got.Code, "%s %q: %s", kind, args, got.Err)
				require.Empty(t, got.Out)
			}
		}
	}
}
