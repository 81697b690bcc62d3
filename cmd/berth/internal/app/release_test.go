package app_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/apptest"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/semaphore"
)

func TestReleaseOfANameEndsAllItsHolds(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	sem := apptest.SemOf(t, s, "gpu", 2)
	var permits []berth.Hold
	for range 2 {
		permit, err := sem.Acquire(context.Background(), nil)
		require.NoError(t, err)
		permits = append(permits, permit)
	}
	require.Equal(t, apptest.Outcome(0, "gpu: 2 claims released\n", ""), apptest.Call(t, s.URL(), "sem", "release", "gpu", "--all", "--force"))
	for _, permit := range permits {
		apptest.Ends(t, permit)
	}
	lock, err := apptest.LocksOf(t, s, node.Config{}).Lock(context.Background(), "gpu", nil)
	require.NoError(t, err)
	require.JSONEq(t, `{"namespace": "berth", "name": "gpu", "released": 1}`, apptest.Call(t, s.URL(), "lock", "release", "gpu", "--force", "--json").Out)
	apptest.Ends(t, lock)
	require.Equal(t, apptest.Outcome(1, "", "berth: nobody holds semaphore \"gpu\" in namespace \"berth\"\n"), apptest.Call(t, s.URL(), "sem", "release", "gpu", "--all", "--force"))
}

func TestReleaseOfAClaimEndsAWait(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	locks := apptest.LocksOf(t, s, node.Config{})
	held, err := locks.Lock(context.Background(), "gpu", nil)
	require.NoError(t, err)
	waited := make(chan error, 1)
	go func() {
		_, err := locks.Lock(context.Background(), "gpu", nil)
		waited <- err
	}()
	id := apptest.WaitingFor(t, s, keyspace.Lock, "gpu")
	require.Equal(t, apptest.Outcome(0, "gpu: claim "+id+" released\n", ""), apptest.Call(t, s.URL(), "lock", "release", "gpu", id, "--force"))
	var refused *berth.AcquireError
	require.ErrorAs(t, <-waited, &refused)
	require.Equal(t, berth.ReasonGone, refused.Reason)
	require.NoError(t, held.Err())
	require.Equal(t, apptest.Outcome(1, "", "berth: no claim \""+id+"\" of lock \"gpu\" in namespace \"berth\", or no longer\n"),
		apptest.Call(t, s.URL(), "lock", "release", "gpu", id, "--force"))
	require.JSONEq(t, `{"namespace": "berth", "name": "gpu", "claim": "`+held.ID()+`", "released": 1}`,
		apptest.Call(t, s.URL(), "lock", "release", "gpu", held.ID(), "--force", "--json").Out)
}

// ownersScenery has two owners, of which each holds something of two names of a kind, and one something of another kind.
func ownersScenery(t *testing.T, s *embedded.Server, kind string) (holds map[string][]berth.Hold, other berth.Hold) {
	t.Helper()
	holds = map[string][]berth.Hold{}
	locks := apptest.LocksOf(t, s, node.Config{})
	var err error
	for _, owner := range []string{"ann", "bob"} {
		for _, name := range []string{"one", "two"} {
			var hold berth.Hold
			switch kind {
			case "sem":
				hold, err = semaphore.New(locks.Node, name, 2, nil).Acquire(apptest.Owned(owner), nil)
			case "lock":
				hold, err = locks.Lock(apptest.Owned(owner), owner+"-"+name, nil)
			default:
				hold, err = apptest.Filled(t, s, name, "a", "b").Allocate(apptest.Owned(owner), nil)
			}
			require.NoError(t, err)
			holds[owner] = append(holds[owner], hold)
		}
	}
	if kind == "lock" {
		other, err = semaphore.New(locks.Node, "other", 2, nil).Acquire(apptest.Owned("ann"), nil)
	} else {
		other, err = locks.Lock(apptest.Owned("ann"), locks.ID(), nil)
	}
	require.NoError(t, err)
	return holds, other
}

func TestReleaseByOwnerNodeOrAll(t *testing.T) {
	t.Parallel()
	for kind, nouns := range map[string]string{"sem": "semaphore", "lock": "lock", "pool": "pool"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := apptest.Server(t)
			release := func(args ...string) apptest.Result {
				t.Helper()
				return apptest.Call(t, s.URL(), append([]string{kind, "release", "--force"}, args...)...)
			}
			holds, other := ownersScenery(t, s, kind)
			one := "one"
			if kind == "lock" {
				one = "ann-one"
			}
			require.Equal(t, apptest.Outcome(0, one+": 1 claim released\n", ""), release(one, "--owner", "ann"))
			apptest.Ends(t, holds["ann"][0])
			require.NoError(t, holds["ann"][1].Err())
			require.Equal(t, apptest.Outcome(1, "", `berth: owner "ann" neither holds `+nouns+` "`+one+`" in namespace "berth" nor waits for it`+"\n"), release(one, "--owner", "ann"))
			require.Equal(t, apptest.Outcome(0, "namespace berth: 1 claim released\n", ""), release("--owner", "ann"))
			apptest.Ends(t, holds["ann"][1])
			require.Equal(t, apptest.Outcome(1, "", `berth: owner "ann" neither holds a `+nouns+` in namespace "berth" nor waits for one`+"\n"), release("--owner", "ann"))
			require.NoError(t, holds["bob"][0].Err())

			require.JSONEq(t, `{"namespace": "berth", "released": 2}`, release("--all", "--json").Out)
			apptest.Ends(t, holds["bob"][0])
			require.Equal(t, apptest.Outcome(0, "namespace berth: 0 claims released\n", ""), release("--all"))

			require.NoError(t, other.Renew(t.Context()), "it is of another kind")

			holds, other = ownersScenery(t, s, kind)
			node := holds["ann"][1].Node()
			require.Equal(t, 1, release("--node", "0123456789abcdef").Code)
			require.Equal(t, 1, release("--node", node, "--owner", "eve").Code)
			var document struct {
				Namespace, Owner, Node string
				Released               int
			}
			require.NoError(t, json.Unmarshal([]byte(release("--node", node, "--owner", "ann", "--json").Out), &document))
			require.Equal(t, []string{"berth", "ann", node}, []string{document.Namespace, document.Owner, document.Node})
			require.Positive(t, document.Released)
			apptest.Ends(t, holds["ann"][1])
			require.NoError(t, holds["bob"][1].Err())
			require.NoError(t, other.Renew(t.Context()))
		})
	}
}

func TestReleaseOfAResourceEndsItsHolds(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	ctx := context.Background()
	like := "0123456789abcdef.0123456789abcdefghij" // the form of a claim
	pool := apptest.Filled(t, s, "proxies")
	_, err := pool.Add(ctx, []string{"a"}, &allocator.AddOptions{MaxSharers: 2})
	require.NoError(t, err)
	_, err = pool.Add(ctx, []string{"b", like, apptest.Wild}, nil)
	require.NoError(t, err)
	holds := map[string][]berth.Hold{}
	for range 5 {
		held, err := pool.Allocate(ctx, nil)
		require.NoError(t, err)
		holds[held.Resource()] = append(holds[held.Resource()], held)
	}
	release := func(args ...string) apptest.Result {
		t.Helper()
		return apptest.Call(t, s.URL(), append([]string{"pool", "release", "proxies", "--force"}, args...)...)
	}
	require.Equal(t, apptest.Outcome(0, "proxies: 2 claims on a released\n", ""), release("a"))
	apptest.Ends(t, holds["a"][0])
	apptest.Ends(t, holds["a"][1])
	require.NoError(t, holds["b"][0].Err())
	require.Equal(t, apptest.Outcome(1, "", "berth: nobody holds resource a of pool \"proxies\" in namespace \"berth\"\n"), release("a"))
	require.Equal(t, apptest.Outcome(1, "", "berth: resource c is not in pool \"proxies\" in namespace \"berth\"\n"), release("c"))
	require.Equal(t, apptest.Outcome(1, "", "berth: no claim \""+like+"\" of pool \"proxies\" in namespace \"berth\", or no longer\n"), release(like))
	require.JSONEq(t, `{"namespace": "berth", "name": "proxies", "resource": "`+like+`", "released": 1}`, release("--resource", like, "--json").Out)
	apptest.Ends(t, holds[like][0])
	require.Equal(t, apptest.Outcome(0, "proxies: 1 claim on "+text.Quoted(apptest.Wild)+" released\n", ""), release("--quoted", text.Quoted(apptest.Wild)))
	apptest.Ends(t, holds[apptest.Wild][0])
	require.Equal(t, apptest.Outcome(0, "proxies: 1 claim released\n", ""), release("--all"), "the whole pool")
	apptest.Ends(t, holds["b"][0])
}

func TestWhatIsRefusedBeforeTheServerIsAsked(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args []string
		err  string
	}{
		"all, and a claim":          {[]string{"lock", "release", "x", "y", "--all", "--force"}, "invalid --all"},
		"all, and a resource":       {[]string{"pool", "release", "x", "--resource", "a", "--all", "--force"}, "invalid --all"},
		"a semaphore alone":         {[]string{"sem", "release", "x", "--force"}, `CLAIM is missing: what of "x" to release; with --all`},
		"a pool alone":              {[]string{"pool", "release", "x", "--force"}, `CLAIM or RESOURCE is missing: what of "x"`},
		"all of a name, unforced":   {[]string{"sem", "release", "x", "--all"}, "say --force if that is meant"},
		"all, and an owner":         {[]string{"lock", "release", "--all", "--owner", "ann", "--force"}, "invalid --all"},
		"all, and a node":           {[]string{"sem", "release", "--all", "--node", "n", "--force"}, "invalid --all"},
		"all without force":         {[]string{"lock", "release", "--all"}, "say --force if that is meant"},
		"an empty owner":            {[]string{"lock", "release", "--owner", "", "--force"}, "invalid --owner: it is empty"},
		"an empty node":             {[]string{"pool", "release", "x", "--node", "", "--force"}, "invalid --node: it is empty"},
		"nothing":                   {[]string{"pool", "release", "--force"}, "NAME is missing; or --owner"},
		"too much":                  {[]string{"lock", "release", "x", "y", "z", "--force"}, `"z" is one argument too many`},
		"a resource of no pool":     {[]string{"pool", "release", "--resource", "a", "--force"}, "NAME is missing: the pool"},
		"two resources":             {[]string{"pool", "release", "x", "a", "--resource", "b", "--force"}, "invalid --resource"},
		"an empty resource":         {[]string{"pool", "release", "x", "--resource", "", "--force"}, "invalid --resource: a key is empty"},
		"a resource of an owner":    {[]string{"pool", "release", "x", "a", "--owner", "ann", "--force"}, "invalid RESOURCE"},
		"a resource that is quoted": {[]string{"pool", "release", "x", `"a`, "--quoted", "--force"}, "invalid RESOURCE"},
		"a pause of nothing":        {[]string{"pause", "--for", "2h", "--force"}, "--all is missing; one name is paused by 'berth sem|lock|pool pause NAME'\n"},
		"all, paused for no time":   {[]string{"pause", "--all", "--force"}, "--for D is missing: how long all is to be paused, such as 10m or 2h\n"},
		"all, paused unforced":      {[]string{"pause", "--all", "--for", "2h"}, "it may be somebody else's: say --force if that is meant\n"},
		"no pause is ended":         {[]string{"unpause"}, "--all is missing; the pause of one name is ended by 'berth sem|lock|pool unpause NAME'\n"},
		"a pause for no time":       {[]string{"sem", "pause", "gpu"}, "--for"},
		"a pause of no name":        {[]string{"lock", "pause", "", "--for", "1h"}, "NAME"},
		"an end of no pause":        {[]string{"pool", "unpause"}, "NAME"},
		"a drain of nobody":         {[]string{"drain"}, "--node"},
		"a drain of two":            {[]string{"drain", "--node", "a", "--label", "b"}, "--label"},
		"a drain within no time":    {[]string{"drain", "--label", "b", "--within", "0"}, "--within"},
		"an end of a drain within":  {[]string{"drain", "--label", "b", "--within", "1m", "--stop"}, "--within"},
		"claims of no kind":         {[]string{"ps", "--kind", "x"}, "--kind"},
		"claims with a bad word":    {[]string{"ps", "--meta", "x"}, "--meta"},
		"claims with no key":        {[]string{"ps", "--meta", "=x"}, "--meta"},
		"claims in no time":         {[]string{"ps", "--within", "0s"}, "--within"},
		"less than no claims":       {[]string{"ps", "--limit", "-1"}, "--limit"},
		"a sweep of a bad name":     {[]string{"sem", "sweep", "x", "x{"}, "invalid NAME"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := apptest.Call(t, apptest.Nobody, test.args...)
			require.Equal(t, 64, got.Code, got.Err)
			require.Contains(t, got.Err, test.err)
			require.Empty(t, got.Out)
		})
	}
}

func TestSweepDropsWhatHasExpired(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	ctx := context.Background()
	pool := apptest.Filled(t, s, "proxies", "stays")
	_, err := pool.Add(ctx, []string{"a", "b"}, &allocator.AddOptions{Expiry: 20 * time.Millisecond})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return apptest.NameOf(t, s, keyspace.Pool, "proxies").Expired == 2 }, apptest.Patience, time.Millisecond)
	require.Equal(t, apptest.Outcome(0, "0 dropped\n", ""), apptest.Call(t, s.URL(), "pool", "sweep", "accounts"))
	require.JSONEq(t, `{"namespace": "berth", "names": ["proxies"], "dropped": 2}`, apptest.Call(t, s.URL(), "pool", "sweep", "proxies", "--json").Out)
	for _, kind := range []string{"sem", "lock", "pool"} {
		require.Equal(t, apptest.Outcome(0, "0 dropped\n", ""), apptest.Call(t, s.URL(), kind, "sweep"))
		require.JSONEq(t, `{"namespace": "berth", "names": [], "dropped": 0}`, apptest.Call(t, s.URL(), kind, "sweep", "--json").Out)
	}
	require.Equal(t, 69, apptest.Call(t, apptest.Nobody, "sem", "sweep").Code)
}
