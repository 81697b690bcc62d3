package pool

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/cmd/berth/internal/apptest"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/keyspace"
)

// poolScenery is a server with a pool of which one resource is leased, one rests and
// two are free, and one of whose single resource one waits.
func poolScenery(t *testing.T) (url string) {
	t.Helper()
	s := apptest.Server(t)
	ctx := context.Background()
	proxies := apptest.Filled(t, s, "proxies", "a", "b", apptest.Wild)
	_, err := proxies.Add(ctx, []string{"d"}, &allocator.AddOptions{Expiry: time.Hour})
	require.NoError(t, err)
	_, err = proxies.Allocate(berth.WithOwner(ctx, "order 66"), &allocator.AllocateOptions{MaxHold: time.Hour, Meta: map[string]string{"step": "fetch"}})
	require.NoError(t, err)
	require.NoError(t, proxies.Rest(ctx, "b", time.Hour, "answers\t429", nil))

	accounts := apptest.Filled(t, s, "accounts", "x")
	_, err = accounts.Allocate(ctx, &allocator.AllocateOptions{Lease: berth.Forever})
	require.NoError(t, err)
	waits, leave := context.WithCancel(ctx)
	t.Cleanup(leave)
	go func() { _, _ = accounts.Allocate(waits, &allocator.AllocateOptions{Priority: 7}) }() // ends with the node
	require.Eventually(t, func() bool { return apptest.Waiting(t, s, keyspace.Pool, "accounts") == 1 }, apptest.Patience, 10*time.Millisecond)
	return s.URL()
}

func TestPoolLs(t *testing.T) {
	t.Parallel()
	url := poolScenery(t)
	require.Equal(t, apptest.Outcome(0, strings.TrimLeft(`
NAME       RESOURCES   FREE   LEASED   RESTING   HOLDERS   WAITING
accounts   1           0      1        0         1         1
proxies    4           2      1        1         1         0
`, "\n"), ""), apptest.Call(t, url, "pool", "ls"))
	require.JSONEq(t, `{
		"namespace": "berth",
		"pools": [
			{"name": "accounts", "resources": 1, "free": 0, "leased": 1, "resting": 0, "holders": 1, "waiting": 1},
			{"name": "proxies", "resources": 4, "free": 2, "leased": 1, "resting": 1, "holders": 1, "waiting": 0}
		]
	}`, apptest.Call(t, url, "pool", "ls", "--json").Out)
}

func TestPoolLsOfNothing(t *testing.T) {
	t.Parallel()
	url := apptest.Server(t).URL()
	require.Equal(t, apptest.Outcome(0, "There is no pool in namespace shop.\n", ""), apptest.Call(t, url, "pool", "ls", "--namespace", "shop"))
	require.Equal(t, apptest.Outcome(0, "{\n  \"namespace\": \"berth\",\n  \"pools\": []\n}\n", ""), apptest.Call(t, url, "pool", "ls", "--json"))
}

func TestPoolShow(t *testing.T) {
	t.Parallel()
	url := poolScenery(t)
	got := apptest.Call(t, url, "pool", "show", "proxies")
	require.Zero(t, got.Code, got.Err)
	require.NotContains(t, got.Out, "\x1b")
	lines := strings.Split(got.Out, "\n")
	require.Equal(t, "proxies: 4 resources, 2 free, 1 leased, 1 resting, waiting 0", lines[0])
	require.Equal(t, "Leased to", lines[2])
	require.Equal(t, []string{"RESOURCE", "STAYS", "FENCE", "HELD", "LEASE", "LEFT", "OWNER", "LABEL", "CLAIM"}, strings.Fields(lines[3]))
	require.Regexp(t, `^a +- +\d{16} +[\d.]+m?s +50s, at most 1h00m +[\d.]+s +order 66 +host/one/1 +[0-9a-f]{16}\.\w{20}$`, lines[4])
	require.Equal(t, "Resting", lines[6])
	require.Equal(t, []string{"RESOURCE", "STAYS", "LEFT", "REASON"}, strings.Fields(lines[7]))
	require.Regexp(t, `^b +- +(1h00m|59m\d\ds) +"answers\\t429"$`, lines[8])
	require.Len(t, lines, 10, "and not the free ones")

	all := apptest.Call(t, url, "pool", "show", "proxies", "--all")
	require.True(t, strings.HasPrefix(all.Out, strings.Join(lines[:2], "\n")))
	_, free, found := strings.Cut(all.Out, "\nFree\n")
	require.True(t, found, all.Out)
	require.Regexp(t, `^RESOURCE +STAYS\n"c\\x1b\[2J\\xff" +-\nd +(1h00m|59m\d\ds)\n$`, free)

	waits := apptest.Call(t, url, "pool", "show", "accounts")
	require.Regexp(t, `\nx +- +\d{16} +[\d.]+m?s +forever fixed +forever +- `, waits.Out)
	require.Regexp(t, `\nWaiting in line\nAHEAD +PRIORITY +.*\n0 +7 +[\d.]+m?s +[\d.]+m?s +- +host/one/1 +\S+\n$`, waits.Out)
}

func TestPoolShowInJSON(t *testing.T) {
	t.Parallel()
	url := poolScenery(t)
	require.Equal(t, strings.TrimLeft(`
{
  "namespace": "berth",
  "name": "proxies",
  "resources": 4,
  "free": 2,
  "leased": 1,
  "resting": 1,
  "holders": 1,
  "waiting": 0,
  "listed": [
    {
      "resource": "a",
      "state": "leased",
      "leftMs": 0,
      "reason": "",
      "expiryMs": null,
      "leaving": false,
      "maxSharers": 1,
      "holders": [
        {
          "claim": "*",
          "node": *,
          "label": "host/one/1",
          "owner": "order 66",
          "fence": *,
          "leaseMs": 50000,
          "leftMs": 0,
          "noRenew": false,
          "maxHoldMs": 3600000,
          "since": *,
          "forMs": 0,
          "detached": false,
          "meta": {
            "step": "fetch"
          }
        }
      ]
    },
    {
      "resource": "b",
      "state": "resting",
      "leftMs": 0,
      "reason": "answers\t429",
      "expiryMs": null,
      "leaving": false,
      "maxSharers": 1,
      "holders": []
    }
  ],
  "waiters": []
}
`, "\n"), apptest.Settled(apptest.Call(t, url, "pool", "show", "proxies", "--json").Out))

	var all showPoolDocument
	require.NoError(t, json.Unmarshal([]byte(apptest.Call(t, url, "--json", "pool", "show", "proxies", "--all").Out), &all))
	require.Len(t, all.Listed, 4)
	require.Equal(t, []byte(apptest.Wild), all.Listed[2].Base64, "JSON cannot say it")
	require.Nil(t, all.Listed[0].Base64)
	require.Zero(t, *all.Listed[3].LeftMs)
	require.Positive(t, *all.Listed[3].ExpiryMs)

	var forever showPoolDocument
	require.NoError(t, json.Unmarshal([]byte(apptest.Call(t, url, "--json", "pool", "show", "accounts").Out), &forever))
	require.Nil(t, forever.Listed[0].LeftMs, "no end")
	require.Equal(t, 7, forever.Waiters[0].Priority)
}

// TestLanesAreShown has two that wait for a, one of them for an hour alone, and one that takes any.
func TestLanesAreShown(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	pool := apptest.Filled(t, s, "proxies", "a", apptest.Wild)
	ctx, leave := context.WithCancel(context.Background())
	t.Cleanup(leave)
	for range 2 {
		_, err := pool.Allocate(ctx, nil)
		require.NoError(t, err)
	}
	require.NoError(t, pool.Bind(ctx, "anna", "a", nil))
	for i, opts := range []*allocator.AllocateOptions{{Resource: "a"}, {Bind: "anna", BindWait: time.Hour}, {Resource: apptest.Wild}, nil} {
		go func() { _, _ = pool.Allocate(ctx, opts) }() // ends with the node
		require.Eventually(t, func() bool { return apptest.Waiting(t, s, keyspace.Pool, "proxies") == i+1 }, apptest.Patience, 10*time.Millisecond)
	}
	url := s.URL()
	_, lanes, found := strings.Cut(apptest.Call(t, url, "pool", "show", "proxies").Out, "\nWaiting in line\n")
	require.True(t, found)
	lines := strings.Split(lanes, "\n")
	require.Equal(t, []string{"RESOURCE", "ONLY", "AHEAD", "PRIORITY", "WAITED", "ALIVE", "OWNER", "LABEL", "CLAIM"}, strings.Fields(lines[0]))
	require.Regexp(t, `^- +- +0 +0 `, lines[1], "who takes any comes first")
	require.Regexp(t, `^a +forever +0 +0 `, lines[2])
	require.Regexp(t, `^a +(1h00m|59m\d\ds) +1 +0 `, lines[3])
	require.Regexp(t, `^"c\\x1b\[2J\\xff" +forever +0 +0 `, lines[4])
	require.Len(t, lines, 6)

	_, lane, found := strings.Cut(apptest.Call(t, url, "pool", "show", "proxies", "a").Out, "\nWaiting in line\n")
	require.True(t, found)
	require.Equal(t, []string{"a", "a"}, []string{strings.Fields(lane)[9], strings.Split(lane, "\n")[2][:1]})
	require.Equal(t, 3, strings.Count(lane, "\n"), "and nobody who waits for something else")

	type waiting struct {
		Resource   string
		Base64     []byte
		BindWaitMs *int64
		Ahead      int
	}
	var document struct{ Waiters []waiting }
	require.NoError(t, json.Unmarshal([]byte(apptest.Call(t, url, "pool", "show", "proxies", "--json").Out), &document))
	all := document.Waiters
	require.Len(t, all, 4)
	require.Zero(t, *all[0].BindWaitMs)
	require.Positive(t, *all[2].BindWaitMs)
	all[0].BindWaitMs, all[2].BindWaitMs = nil, nil
	require.Equal(t, []waiting{{}, {Resource: "a"}, {Resource: "a", Ahead: 1}, {Resource: "c\x1b[2J\ufffd", Base64: []byte(apptest.Wild)}}, all)
	require.NoError(t, json.Unmarshal([]byte(apptest.Call(t, url, "pool", "show", "proxies", "a", "--json", "--limit", "1").Out), &document))
	require.Equal(t, []waiting{{Resource: "a"}}, document.Waiters)
}

func TestAHoldOfAPoolCanBeReleasedByItsClaim(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	pool := apptest.Filled(t, s, "proxies", "a")
	held, err := pool.Allocate(context.Background(), nil)
	require.NoError(t, err)
	require.Equal(t, 64, apptest.Call(t, s.URL(), "pool", "release", "proxies", held.ID()).Code, "without --force")
	got := apptest.Call(t, s.URL(), "pool", "release", "proxies", held.ID(), "--force")
	require.Equal(t, apptest.Outcome(0, "proxies: claim "+held.ID()+" released\n", ""), got)
	apptest.Ends(t, held)
	got = apptest.Call(t, s.URL(), "pool", "release", "proxies", held.ID(), "--force")
	require.Equal(t, apptest.Outcome(1, "", "berth: no claim \""+held.ID()+"\" of pool \"proxies\" in namespace \"berth\", or no longer\n"), got)
}

func TestARestIsSaidAndShown(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	pool := apptest.Filled(t, s, "proxies", "a", "b", apptest.Wild)
	held, err := pool.Allocate(context.Background(), nil)
	require.NoError(t, err)
	require.Equal(t, "a", held.Resource())
	for _, step := range []struct {
		args []string
		says string
	}{
		{[]string{"b", "--for", "1h", "--reason", "answers 429"}, "proxies: b rests for 1h00m\n"},
		{[]string{"b", "--for", "forever", "--reason", "is gone"}, "proxies: b rests until somebody ends that\n"},
		{[]string{"b", "--for", "1s", "--reason", "late"}, "proxies: b rests until somebody ends that, which was asked for before; --exactly shortens it\n"},
		{[]string{"b", "--for", "1m", "--reason", "again", "--exactly"}, "proxies: b rests for 1m00s\n"},
		{[]string{"b", "--for", "0"}, "proxies: b rests no more, it is free\n"},
		{[]string{"a", "--for", "10m", "--reason", "answers 429"}, "proxies: a is leased, and rests for 10m00s when it comes back\n"},
		{[]string{"--quoted", `"c\x1b[2J\xff"`, "--for", "1m", "--reason", "x"}, "proxies: \"c\\x1b[2J\\xff\" rests for 1m00s\n"},
	} {
		got := apptest.Call(t, s.URL(), append([]string{"pool", "rest", "proxies"}, step.args...)...)
		require.Equal(t, apptest.Outcome(0, step.says, ""), got)
	}
	require.NoError(t, held.Release(context.Background()))
	info, err := pool.Ops.Resource(context.Background(), "proxies", "a")
	require.NoError(t, err)
	require.Equal(t, allocator.Resting, info.State)
	require.Equal(t, "answers 429", info.Reason)

	got := apptest.Call(t, s.URL(), "pool", "rest", "proxies", "d", "--for", "1s", "--reason", "x")
	require.Equal(t, apptest.Outcome(1, "", "berth: resource d is not in pool \"proxies\" in namespace \"berth\"\n"), got)
	var document restDocument
	require.NoError(t, json.Unmarshal([]byte(apptest.Call(t, s.URL(), "pool", "rest", "proxies", "b", "--for", "forever", "--reason", "x", "--json").Out), &document))
	require.Nil(t, document.ForMs)
	require.Equal(t, "resting", document.Resource.State)
}

func TestAWholePoolIsInspected(t *testing.T) {
	t.Parallel()
	url := poolScenery(t)
	require.Equal(t, apptest.Outcome(0, "proxies: 4 resources, 2 free, 1 leased, 1 resting, waiting 0, 0 bindings\nThe pool is whole.\n", ""),
		apptest.Call(t, url, "pool", "inspect", "proxies"))
	require.JSONEq(t, `{
		"namespace": "berth", "name": "proxies", "resources": 4, "free": 2, "leased": 1, "resting": 1, "holders": 1, "waiting": 0,
		"bindings": 0, "moving": false, "whole": true, "problems": []
	}`, apptest.Call(t, url, "pool", "inspect", "proxies", "--json").Out)
	require.Equal(t, 1, apptest.Call(t, url, "pool", "inspect", "none").Code)
}

// TestAPoolThatIsNotWholeHasAnExitCodeOfItsOwn takes one link out of the ring of the
// free resources.
func TestAPoolThatIsNotWholeHasAnExitCodeOfItsOwn(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	apptest.Filled(t, s, "proxies", "a", "b", "c")
	redis, err := s.Client(apptest.Patiently)
	require.NoError(t, err)
	defer redis.Close()
	require.NoError(t, redis.Do(context.Background(), redis.B().Hdel().Key("berth:pool:{proxies}:free").Field("nb").Build()).Error())
	got := apptest.Call(t, s.URL(), "pool", "inspect", "proxies")
	require.Equal(t, 65, got.Code, got.Out+got.Err)
	require.Contains(t, got.Out, "\nproblem: ")
	require.NotContains(t, got.Out, "whole")
	require.Regexp(t, `^berth: pool "proxies" in namespace "berth" is not whole: \d+ problems?\n$`, got.Err)
	var document inspectDocument
	got = apptest.Call(t, s.URL(), "pool", "inspect", "proxies", "--json")
	require.NoError(t, json.Unmarshal([]byte(got.Out), &document))
	require.Equal(t, 65, got.Code)
	require.False(t, document.Whole)
	require.NotEmpty(t, document.Problems)
}

func TestADamagedResourceIsListedAndMended(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	apptest.Filled(t, s, "proxies", "a", "b", "c")
	redis, err := s.Client(apptest.Patiently)
	require.NoError(t, err)
	defer redis.Close()
	require.NoError(t, redis.Do(context.Background(), redis.B().Hset().Key("berth:pool:{proxies}:items").FieldValue().
		FieldValue("ia", "rubbish").FieldValue("ib", "rubbish").Build()).Error())
	got := apptest.Call(t, s.URL(), "pool", "inspect", "proxies")
	require.Equal(t, 65, got.Code, got.Out+got.Err)
	for _, resource := range []string{"a", "b"} {
		require.Contains(t, got.Out, `problem: the item of the resource "`+resource+`" cannot be read: remove the resource, or add it again`)
	}
	got = apptest.Call(t, s.URL(), "pool", "show", "proxies")
	require.Zero(t, got.Code, got.Err)
	require.Contains(t, got.Out, "\nDamaged\nRESOURCE   STAYS\na          -\nb          -\n")
	require.Equal(t, apptest.Outcome(0, "proxies: 1 removed\n", ""), apptest.Call(t, s.URL(), "pool", "remove", "proxies", "a"))
	require.Equal(t, apptest.Outcome(0, "proxies: 0 added, 1 kept\n", ""), apptest.Call(t, s.URL(), "pool", "add", "proxies", "b"))
	got = apptest.Call(t, s.URL(), "pool", "inspect", "proxies")
	require.Zero(t, got.Code, got.Out+got.Err)
}

func TestAPoolThatMovesIsInspectedWithThatSaid(t *testing.T) {
	var out strings.Builder
	a := app.New(&out, nil)
	require.NoError(t, printInspection(a, "proxies", allocator.Inspection{
		Resources: 1, Leased: 1, Holders: 2, Bindings: 1, Moving: true, Problems: []string{"b\x1b", "a"},
	}))
	require.Equal(t, "proxies: 1 resource, 0 free, 1 leased, 0 resting, 2 holders, waiting 0, 1 binding\n"+
		"It changed meanwhile: these counts are not those of one moment.\nproblem: a\nproblem: \"b\\x1b\"\n", out.String())
}

func TestCompletionKnowsThePools(t *testing.T) {
	t.Parallel()
	url := poolScenery(t)
	for _, args := range [][]string{{"pool", "show", ""}, {"pool", "next", ""}, {"pool", "add", ""}, {"pool", "rest", ""}, {"run", "--pool", ""}} {
		require.Equal(t, "accounts\nproxies\n:4\n", apptest.Call(t, url, append([]string{"__complete"}, args...)...).Out)
	}
	require.Equal(t, ":4\n", apptest.Call(t, url, "__complete", "pool", "add", "proxies", "").Out)
}

func TestCompletionKnowsTheBindingsOfThePool(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	require.Zero(t, apptest.Call(t, s.URL(), "pool", "add", "proxies", "a", "b", "c").Code)
	for _, binding := range []string{"customer 7", "customer-8", "other", "two\nlines"} {
		require.Equal(t, apptest.Result{}, apptest.Spawn(t, s.URL(), "run", "--pool", "proxies", "--bind", binding, "--", "true"))
	}
	require.Equal(t, "customer-8\nother\n:4\n", apptest.Call(t, s.URL(), "__complete", "run", "--pool", "proxies", "--bind", "").Out)
	require.Equal(t, "customer-8\n:4\n", apptest.Call(t, s.URL(), "__complete", "run", "--pool", "proxies", "--bind", "customer-").Out)
	require.Equal(t, ":4\n", apptest.Call(t, s.URL(), "__complete", "run", "--bind", "").Out, "of no pool")
	require.Equal(t, "a\nb\nc\n:4\n", apptest.Call(t, s.URL(), "__complete", "run", "--pool", "proxies", "--resource", "").Out)
	require.Equal(t, "fail\nwait\nwork\nextend\n:4\n", apptest.Call(t, s.URL(), "__complete", "run", "--conflict", "").Out)
}

func TestExitCodesOfPools(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	for name, test := range map[string]struct {
		args []string
		url  string
		code int
		err  string
	}{
		"pool":                   {args: []string{"pool"}, url: apptest.Nobody},
		"unknown below pool":     {args: []string{"pool", "rm"}, code: 64, err: `unknown command "rm" for "berth pool"`},
		"ls":                     {args: []string{"pool", "ls"}},
		"ls, unreachable":        {args: []string{"pool", "ls"}, url: apptest.Nobody, code: 69, err: "cannot reach"},
		"show an unknown one":    {args: []string{"pool", "show", "x"}, code: 1, err: `pool "x" in namespace "berth" has no resources, and nobody waits for one`},
		"show a bad name":        {args: []string{"pool", "show", "a{"}, url: apptest.Nobody, code: 64, err: "invalid NAME"},
		"next of an unknown one": {args: []string{"pool", "next", "x"}, code: 1, err: `pool "x" in namespace "berth" has no resources`},
		"next of no name":        {args: []string{"pool", "next"}, url: apptest.Nobody, code: 64, err: "NAME is missing"},
		"next of less than none": {args: []string{"pool", "next", "x", "--limit", "-1"}, url: apptest.Nobody, code: 64, err: "invalid --limit"},
		"add to no name":         {args: []string{"pool", "add"}, url: apptest.Nobody, code: 64, err: "NAME is missing"},
		"add to a bad name":      {args: []string{"pool", "add", "a{", "x"}, url: apptest.Nobody, code: 64, err: "invalid NAME"},
		"add nothing":            {args: []string{"pool", "add", "x"}, url: apptest.Nobody, code: 64, err: "RESOURCE is missing"},
		"add, unreachable":       {args: []string{"pool", "add", "x", "a"}, url: apptest.Nobody, code: 69, err: "connection refused"},
		"add a missing file":     {args: []string{"pool", "add", "x", "--file", "/nowhere"}, url: apptest.Nobody, code: 66, err: "no such file"},
		"add for no time":        {args: []string{"pool", "add", "x", "a", "--expiry", "0s"}, url: apptest.Nobody, code: 64, err: "invalid --expiry: 0s is not above 0; leave it out for good"},
		"add for good":           {args: []string{"pool", "add", "x", "a", "--expiry", berth.Forever.String()}, url: apptest.Nobody, code: 64, err: "invalid --expiry: it must end"},
		"add for microseconds":   {args: []string{"pool", "add", "x", "a", "--expiry", "1us"}, url: apptest.Nobody, code: 64, err: "whole number of milliseconds"},
		"replace with nothing":   {args: []string{"pool", "replace", "x", "--file", "/dev/null"}, url: apptest.Nobody, code: 64, err: `there is none to replace those of "x" with; to empty the pool, say --allow-empty`},
		"remove nothing":         {args: []string{"pool", "remove", "x"}, url: apptest.Nobody, code: 64, err: "RESOURCE is missing"},
		"rest nothing":           {args: []string{"pool", "rest", "x"}, url: apptest.Nobody, code: 64, err: "RESOURCE is missing"},
		"rest for no time":       {args: []string{"pool", "rest", "x", "a", "--reason", "r"}, url: apptest.Nobody, code: 64, err: "--for D is missing"},
		"rest for no reason":     {args: []string{"pool", "rest", "x", "a", "--for", "1s"}, url: apptest.Nobody, code: 64, err: "--reason TEXT is missing"},
		"rest for less than 0":   {args: []string{"pool", "rest", "x", "a", "--for", "-1s"}, url: apptest.Nobody, code: 64, err: "invalid --for: -1s is below 0"},
		"rest for a number":      {args: []string{"pool", "rest", "x", "a", "--for", "5"}, url: apptest.Nobody, code: 64, err: `invalid --for: "5" is not a time such as`},
		"rest for microseconds":  {args: []string{"pool", "rest", "x", "a", "--for", "1us", "--reason", "r"}, url: apptest.Nobody, code: 64, err: "invalid --for"},
		"rest for a long reason": {args: []string{"pool", "rest", "x", "a", "--for", "1s", "--reason", strings.Repeat("r", 513)}, url: apptest.Nobody, code: 64, err: "invalid --reason"},
		"rest an empty one":      {args: []string{"pool", "rest", "x", "", "--for", "0"}, url: apptest.Nobody, code: 64, err: "invalid RESOURCE"},
		"release without force":  {args: []string{"pool", "release", "x", "y"}, url: apptest.Nobody, code: 64, err: "say --force if that is meant"},
		"release no claim":       {args: []string{"pool", "release", "x", "", "--force"}, url: apptest.Nobody, code: 64, err: "invalid CLAIM"},
		"inspect, unreachable":   {args: []string{"pool", "inspect", "x"}, url: apptest.Nobody, code: 69, err: "cannot reach"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := test.url
			if url == "" {
				url = s.URL()
			}
			got := apptest.Call(t, url, test.args...)
			require.Equal(t, test.code, got.Code, got.Err)
			require.Contains(t, got.Err, test.err)
			if test.code != 0 {
				require.Empty(t, got.Out)
			}
		})
	}
}
