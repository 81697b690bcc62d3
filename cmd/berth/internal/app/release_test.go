package app_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/apptest"
	"github.com/berth-go/berth/internal/testkit/link"
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
		permits = append(permits, apptest.Got(sem.Acquire(context.Background(), nil))(t))
	}
	require.Equal(t, apptest.Outcome(0, "semaphore gpu: 2 claims released\n", ""), apptest.Call(t, s.URL(), "sem", "release", "gpu", "--all", "--force"))
	for _, permit := range permits {
		apptest.Ends(t, permit)
	}
	lock := apptest.Got(apptest.LocksOf(t, s, node.Config{}).Lock(context.Background(), "gpu", nil))(t)
	require.JSONEq(t, `{"namespace": "berth", "kind": "lock", "name": "gpu", "released": 1}`, apptest.Call(t, s.URL(), "lock", "release", "gpu", "--force", "--json").Out)
	apptest.Ends(t, lock)
	require.Equal(t, apptest.Outcome(1, "", "berth: nobody holds semaphore \"gpu\" in namespace \"berth\"\n"), apptest.Call(t, s.URL(), "sem", "release", "gpu", "--all", "--force"))
}

func TestReleaseOfAClaimEndsAWait(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	locks := apptest.LocksOf(t, s, node.Config{})
	held := apptest.Got(locks.Lock(context.Background(), "gpu", nil))(t)
	waited := make(chan error, 1)
	go func() {
		_, err := locks.Lock(context.Background(), "gpu", nil)
		waited <- err
	}()
	id := apptest.WaitingFor(t, s, keyspace.Lock, "gpu")
	require.Equal(t, apptest.Outcome(0, "lock gpu: claim "+id+" released\n", ""), apptest.Call(t, s.URL(), "lock", "release", "gpu", id, "--force"))
	var refused *berth.AcquireError
	require.ErrorAs(t, <-waited, &refused)
	require.Equal(t, berth.ReasonGone, refused.Reason)
	require.NoError(t, held.Err())
	require.Equal(t, apptest.Outcome(1, "", "berth: no claim \""+id+"\" of lock \"gpu\" in namespace \"berth\", or no longer\n"),
		apptest.Call(t, s.URL(), "lock", "release", "gpu", id, "--force"))
	require.JSONEq(t, `{"namespace": "berth", "kind": "lock", "name": "gpu", "claim": "`+held.ID()+`", "released": 1}`,
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
				hold, err = semaphore.New(locks.Node, name, 2, semaphore.Config{}).Acquire(apptest.Owned(owner), nil)
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
		other, err = semaphore.New(locks.Node, "other", 2, semaphore.Config{}).Acquire(apptest.Owned("ann"), nil)
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
			require.Equal(t, apptest.Outcome(0, nouns+" "+one+": 1 claim released\n", ""), release(one, "--owner", "ann"))
			apptest.Ends(t, holds["ann"][0])
			require.NoError(t, holds["ann"][1].Err())
			require.Equal(t, apptest.Outcome(1, "", `berth: owner "ann" neither holds `+nouns+` "`+one+`" in namespace "berth" nor waits for it`+"\n"), release(one, "--owner", "ann"))
			require.Equal(t, apptest.Outcome(0, "namespace berth: 1 claim released\n", ""), release("--owner", "ann"))
			apptest.Ends(t, holds["ann"][1])
			require.Equal(t, apptest.Outcome(1, "", `berth: owner "ann" neither holds a `+nouns+` in namespace "berth" nor waits for one`+"\n"), release("--owner", "ann"))
			require.NoError(t, holds["bob"][0].Err())

			require.JSONEq(t, `{"namespace": "berth", "kind": "`+kind+`", "all": true, "released": 2}`, release("--all", "--json").Out)
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
	apptest.Got(pool.Add(ctx, []string{"a"}, &allocator.AddOptions{MaxSharers: 2}))(t)
	apptest.Got(pool.Add(ctx, []string{"b", like, apptest.Wild}, nil))(t)
	holds := map[string][]berth.Hold{}
	for range 5 {
		held := apptest.Got(pool.Allocate(ctx, nil))(t)
		holds[held.Resource()] = append(holds[held.Resource()], held)
	}
	release := func(args ...string) apptest.Result {
		t.Helper()
		return apptest.Call(t, s.URL(), append([]string{"pool", "release", "proxies", "--force"}, args...)...)
	}
	require.Equal(t, apptest.Outcome(0, "pool proxies: 2 claims on a released\n", ""), release("a"))
	apptest.Ends(t, holds["a"][0])
	apptest.Ends(t, holds["a"][1])
	require.NoError(t, holds["b"][0].Err())
	require.Equal(t, apptest.Outcome(1, "", "berth: nobody holds resource a of pool \"proxies\" in namespace \"berth\"\n"), release("a"))
	require.Equal(t, apptest.Outcome(1, "", "berth: resource c is not in pool \"proxies\" in namespace \"berth\"\n"), release("c"))
	require.Equal(t, apptest.Outcome(1, "", "berth: no claim \""+like+"\" of pool \"proxies\" in namespace \"berth\", or no longer\n"), release(like))
	require.JSONEq(t, `{"namespace": "berth", "kind": "pool", "name": "proxies", "resource": "`+like+`", "released": 1}`, release("--resource", like, "--json").Out)
	apptest.Ends(t, holds[like][0])
	require.Equal(t, apptest.Outcome(0, "pool proxies: 1 claim on "+text.Quoted(apptest.Wild)+" released\n", ""), release("--quoted", text.Quoted(apptest.Wild)))
	apptest.Ends(t, holds[apptest.Wild][0])
	require.Equal(t, apptest.Outcome(0, "pool proxies: 1 claim released\n", ""), release("--all"), "the whole pool")
	apptest.Ends(t, holds["b"][0])
}

func TestSweepDropsWhatHasExpired(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	ctx := context.Background()
	pool := apptest.Filled(t, s, "proxies", "stays")
	apptest.Got(pool.Add(ctx, []string{"a", "b"}, &allocator.AddOptions{Expiry: 20 * time.Millisecond}))(t)
	require.Eventually(t, func() bool { return apptest.NameOf(t, s, keyspace.Pool, "proxies").Expired == 2 }, apptest.Patience, time.Millisecond)
	require.Equal(t, apptest.Outcome(0, "0 dropped\n", ""), apptest.Call(t, s.URL(), "pool", "sweep", "accounts"))
	require.JSONEq(t, `{"namespace": "berth", "names": ["proxies"], "dropped": 2}`, apptest.Call(t, s.URL(), "pool", "sweep", "proxies", "--json").Out)
	for _, kind := range []string{"sem", "lock", "pool"} {
		require.Equal(t, apptest.Outcome(0, "0 dropped\n", ""), apptest.Call(t, s.URL(), kind, "sweep"))
		require.JSONEq(t, `{"namespace": "berth", "names": [], "dropped": 0}`, apptest.Call(t, s.URL(), kind, "sweep", "--json").Out)
	}
	require.Equal(t, 69, apptest.Call(t, apptest.Nobody, "sem", "sweep").Code)
}

const asking = "berth: asking; this goes on until nothing is left; Ctrl-C leaves the drain in force\n"

// It lasts as long as the command waits for all processes to hear.
func TestDrainOfALabel(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	ctx := context.Background()
	way := link.New(nil)
	sem := semaphore.New(apptest.NodeOf(t, s, node.Config{Label: "worker/7"}, way.Wrap), "gpu", 2, semaphore.Config{})
	permit := apptest.Got(sem.Acquire(ctx, nil))(t)
	go func() {
		<-permit.Wanted()
		_ = permit.Release(ctx)
	}()
	asked := func() bool { return apptest.HoldersOf(t, s, keyspace.Sem, "gpu")[0].Wanted > 0 }
	drained := apptest.Drain(t, s, way, asked, "drain", "--label", "worker/*", "--reason", "moving")
	require.Equal(t, "worker/*: 1 hold asked for, 0 waits cancelled, 0 holds ended by force, 0 left\n", drained.Out)
	require.Regexp(t, `^`+asking+`berth: 1 left: worker/7 holds sem "gpu" \(`+permit.ID()+`\)\nberth: 0 left\n$`, drained.Err)
	listed := apptest.Call(t, s.URL(), "drain", "--list")
	require.Regexp(t, `^DRAINED +SINCE +LEFT +HOLDS +WAITS +REASON\nlabel "worker/\*" +[\d.]+s +no end +0 +0 +"moving"\n$`, listed.Out)
	_, err := sem.TryAcquire(ctx, nil)
	require.ErrorIs(t, err, berth.ErrDraining)
	stop := func(flags ...string) apptest.Result {
		return apptest.Call(t, s.URL(), append([]string{"drain", "--label", "worker/*", "--stop"}, flags...)...)
	}
	require.Equal(t, apptest.Outcome(0, "worker/*: drains no more; processes hear of it within 5 s\n", ""), stop())
	require.JSONEq(t, `{"namespace": "berth", "label": "worker/*", "stopped": true,
		"asked": 0, "cancelled": 0, "ended": 0, "detached": 0, "left": 0}`,
		stop("--json").Out)
	require.Equal(t, apptest.Outcome(0, "n1: no such drain is in force; processes that drain all the same hear of its end within 5 s\n", ""), apptest.Call(t, s.URL(), "drain", "--node", "n1", "--stop"))
}

func TestDrainLeavesWhatIsDetached(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	ctx := context.Background()
	sem := semaphore.New(apptest.NodeOf(t, s, node.Config{Label: "worker/7"}), "gpu", 2, semaphore.Config{})
	permit := apptest.Got(sem.Acquire(ctx, &semaphore.AcquireOptions{Lease: berth.Forever}))(t)
	apptest.Got(permit.Detach(ctx))(t)
	require.Equal(t, apptest.Outcome(1, "worker/7: 0 holds asked for, 0 waits cancelled, 0 holds ended by force, 0 left\n",
		asking+"berth: 1 hold detached: no process has them\n"),
		apptest.Call(t, s.URL(), "drain", "--label", "worker/7"))
}

func TestDrainOfWhatNobodyHas(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	apptest.Got(apptest.SemOf(t, s, "gpu", 2).Acquire(context.Background(), nil))(t)
	require.Equal(t, apptest.Outcome(0, "nobody: 0 holds asked for, 0 waits cancelled, 0 holds ended by force, 0 left; no hold or wait matched\n",
		"berth: asking; what is left in 1h00m is ended by force; Ctrl-C leaves the drain in force\n"),
		apptest.Call(t, s.URL(), "drain", "--label", "nobody", "--force-after", "1h", "--force"))
	ended := apptest.Call(t, s.URL(), "drain", "--label", "nobody", "--for", "1s") // it may end within a pass, whose error stands behind it
	require.Equal(t, 1, ended.Code)
	require.Regexp(t, `^berth: asking; this goes on until nothing is left; Ctrl-C leaves the drain in force for 1s\n`+
		`berth: the drain has ended by itself after 1s, with 0 holds and waits left( .*)?\n$`, ended.Err)
}

func TestADrainThatEndsBeforeAllHaveHeardHasFailed(t *testing.T) {
	t.Parallel()
	called := apptest.Call(t, apptest.Server(t).URL(), "drain", "--label", "nobody", "--for", "300ms")
	require.Equal(t, 1, called.Code, "no server was out of reach")
	require.Contains(t, called.Err, "the drain has ended by itself after 300ms")
}

// It lasts as long as the command waits for all processes to hear, twice.
func TestPauseOfTheNamespace(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	ctx := context.Background()
	apptest.Got(apptest.SemOf(t, s, "gpu", 2).Acquire(ctx, nil))(t)
	require.Equal(t, apptest.Outcome(0, "paused for 2h00m: moving; in use: 1 name\n", ""),
		apptest.Call(t, s.URL(), "pause", "--all", "--for", "2h", "--reason", "moving", "--force"))
	_, err := apptest.LocksOf(t, s, node.Config{}).TryLock(ctx, "nightly", nil)
	var refused *berth.AcquireError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, berth.ReasonPaused, refused.Reason)
	require.Equal(t, "moving", refused.Pause.Reason)
	require.JSONEq(t, `{"namespace": "berth", "pause": null, "names": 1, "unread": 0}`,
		apptest.Call(t, s.URL(), "unpause", "--all", "--json").Out)
	apptest.Got(apptest.SemOf(t, s, "gpu", 2).TryAcquire(ctx, nil))(t)
}

func TestWantAsksForHoldsBack(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	sem := apptest.SemOf(t, s, "gpu", 3)
	var permits []berth.Hold
	for range 2 {
		permits = append(permits, apptest.Got(sem.Acquire(apptest.Owned("ann"), nil))(t))
	}
	claim := permits[0].ID()
	require.Equal(t, apptest.Outcome(0, "semaphore gpu: 1 hold wanted back\n", ""), apptest.Call(t, s.URL(), "sem", "want", "gpu", claim))
	require.NoError(t, permits[0].Renew(context.Background()))
	<-permits[0].Wanted()
	require.Contains(t, apptest.Call(t, s.URL(), "sem", "show", "gpu").Out, ", wanted ")
	require.Contains(t, apptest.Call(t, s.URL(), "sem", "show", "gpu", "--json").Out, `"wantedMs":`)
	select {
	case <-permits[1].Wanted():
		require.Fail(t, "nobody has asked for this one")
	default:
	}
	require.JSONEq(t, `{"namespace": "berth", "kind": "sem", "owner": "ann", "wanted": 2}`,
		apptest.Call(t, s.URL(), "sem", "want", "--owner", "ann", "--json").Out)
	lock := apptest.Got(apptest.LocksOf(t, s, node.Config{}).Lock(context.Background(), "gpu", nil))(t)
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
