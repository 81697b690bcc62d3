package app_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/apptest"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
)

func TestAVerbAtTheTopMeansTheKindThatIsInUse(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	call := func(args ...string) apptest.Result { return apptest.Call(t, s.URL(), args...) }
	paused := func(kind keyspace.Kind, name string) bool { return apptest.NameOf(t, s, kind, name).Pause != nil }

	const unused = "in namespace \"berth\" is in use; of a name that is not, say --kind\n"
	require.Equal(t, apptest.Outcome(1, "", "berth: no semaphore, lock or pool \"gpu\" "+unused), call("pause", "gpu", "--for", "1h"))
	require.Equal(t, apptest.Outcome(1, "", "berth: no semaphore, lock or pool \"lock/gpu\" in namespace \"berth\" is in use. Did you mean this? --kind lock gpu\n"),
		call("show", "lock/gpu"))
	require.Equal(t, 0, call("pause", "gpu", "--for", "1h", "--kind", "lock").Code)
	require.Equal(t, apptest.Outcome(1, "", "berth: no claim \"x\" of a semaphore, lock or pool \"gpu\" in namespace \"berth\", or no longer\n"), call("explain", "gpu", "x"))
	require.Equal(t, apptest.Outcome(0, "lock gpu: no longer paused\n", ""), call("unpause", "gpu"), "the pause is a use")

	permit := apptest.Got(apptest.SemOf(t, s, "gpu", 2).Acquire(apptest.Owned("ann"), nil))(t)
	require.Equal(t, apptest.Outcome(0, "semaphore gpu: paused for 1h00m\n", ""), call("pause", "gpu", "--for", "1h"))
	require.True(t, paused(keyspace.Sem, "gpu"))
	require.Equal(t, apptest.Outcome(0, "semaphore gpu: 1 hold wanted back\n", ""), call("want", "gpu"))
	<-permit.Wanted()

	hold := apptest.Got(apptest.LocksOf(t, s, node.Config{}).Lock(apptest.Owned("ann"), "gpu", nil))(t)

	for _, args := range [][]string{{"pause", "gpu", "--for", "2h"}, {"unpause", "gpu"}, {"want", "gpu"}, {"release", "gpu", "--force"}} {
		want := apptest.Outcome(64, "", "berth: \"gpu\" is a semaphore and a lock: say --kind sem or --kind lock\nSee 'berth "+args[0]+" --help'.\n")
		require.Equal(t, want, call(args...))
	}
	require.False(t, paused(keyspace.Lock, "gpu"))
	require.NoError(t, hold.Renew(context.Background()))
	require.Equal(t, 0, call("pause", "gpu", "--for", "2h", "--kind", "lock").Code)
	require.True(t, paused(keyspace.Lock, "gpu"))

	require.JSONEq(t, `{"namespace": "berth", "owner": "ann", "released": 2}`, call("release", "--owner", "ann", "--force", "--json").Out, "of all kinds")
	apptest.Ends(t, permit)
	apptest.Ends(t, hold)
	require.Equal(t, apptest.Outcome(1, "", "berth: owner \"ann\" neither holds a name in namespace \"berth\" nor waits for one\n"), call("release", "--owner", "ann", "--force"))
	require.Equal(t, apptest.Outcome(0, "0 dropped\n", ""), call("sweep", "gpu"))
}

// What stands behind NAME is read for the kind that the name is found to be of.
func TestReleaseAtTheTop(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	ctx := context.Background()
	release := func(args ...string) apptest.Result {
		return apptest.Call(t, s.URL(), append([]string{"release", "--force"}, args...)...)
	}
	var holds []berth.Hold
	for range 2 {
		holds = append(holds, apptest.Got(apptest.Filled(t, s, "proxies", "a", "b").Allocate(ctx, nil))(t))
	}
	permit := apptest.Got(apptest.SemOf(t, s, "gpu", 1).Acquire(ctx, nil))(t)
	hold := apptest.Got(apptest.LocksOf(t, s, node.Config{}).Lock(ctx, "nightly", nil))(t)
	require.Equal(t, apptest.Outcome(0, "lock nightly: 1 claim released\n", ""), release("nightly"))
	apptest.Ends(t, hold)
	require.Equal(t, apptest.Outcome(0, "pool proxies: 1 claim on a released\n", ""), release("proxies", "a"))
	apptest.Ends(t, holds[0])
	require.Contains(t, release("proxies").Ends(t, 64).Err, "CLAIM or RESOURCE is missing: what of \"proxies\"")
	require.Contains(t, release("gpu").Ends(t, 64).Err, "CLAIM is missing: what of \"gpu\"")
	require.Contains(t, release("gpu", "--resource", "a").Ends(t, 64).Err, "invalid --resource: a semaphore has no resources")
	require.Contains(t, release("gpu", "a").Ends(t, 1).Err, `no claim "a" of semaphore "gpu"`)
	require.Equal(t, apptest.Outcome(0, "semaphore gpu: claim "+permit.ID()+" released\n", ""), release("gpu", permit.ID()))
	require.Equal(t, 0, release("--all", "--kind", "pool").Code)
	apptest.Ends(t, holds[1])
}
