package app_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/apptest"
	"github.com/berth-go/berth/pkg/node"
)

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
