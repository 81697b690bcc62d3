package pool

import (
	"context"
	"encoding/json"
	"strconv"
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

func TestPoolLsAndInspect(t *testing.T) {
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

	require.Equal(t, apptest.Outcome(0, "proxies: 4 resources, 2 free, 1 leased, 1 resting, waiting 0, 0 bindings\nThe pool is whole.\n", ""),
		apptest.Call(t, url, "pool", "inspect", "proxies"))
	require.JSONEq(t, `{
		"namespace": "berth", "name": "proxies", "resources": 4, "free": 2, "leased": 1, "resting": 1, "holders": 1, "waiting": 0,
		"bindings": 0, "moving": false, "whole": true, "problems": []
	}`, apptest.Call(t, url, "pool", "inspect", "proxies", "--json").Out)
	require.Equal(t, 1, apptest.Call(t, url, "pool", "inspect", "none").Code)
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

	whole := apptest.Call(t, url, "pool", "show", "proxies", "--all").Out
	require.True(t, strings.HasPrefix(whole, strings.Join(lines[:2], "\n")))
	_, free, found := strings.Cut(whole, "\nFree\n")
	require.True(t, found, whole)
	require.Regexp(t, `^RESOURCE +STAYS\n"c\\x1b\[2J\\xff" +-\nd +(1h00m|59m\d\ds)\n$`, free)

	waits := apptest.Call(t, url, "pool", "show", "accounts")
	require.Regexp(t, `\nx +- +\d{16} +[\d.]+m?s +forever fixed +forever +- `, waits.Out)
	require.Regexp(t, `\nWaiting in line\nAHEAD +PRIORITY +.*\n0 +7 +[\d.]+m?s +[\d.]+m?s +- +host/one/1 +\S+\n$`, waits.Out)

	want := `{ "namespace": "berth", "name": "proxies", "resources": 4, "free": 2, "leased": 1, "resting": 1, ` +
		`"holders": 1, "waiting": 0, "listed": [ { "resource": "a", "state": "leased", "leftMs": 0, "reason": ` +
		`"", "expiryMs": null, "leaving": false, "maxSharers": 1, "holders": [ { "claim": "*", "node": *, ` +
		`"label": "host/one/1", "owner": "order 66", "fence": *, "leaseMs": 50000, "leftMs": 0, "noRenew": ` +
		`false, "maxHoldMs": 3600000, "since": *, "forMs": 0, "detached": false, "meta": { "step": "fetch" } ` +
		`} ] }, { "resource": "b", "state": "resting", "leftMs": 0, "reason": "answers\t429", "expiryMs": ` +
		`null, "leaving": false, "maxSharers": 1, "holders": [] } ], "waiters": [] }`
	require.Equal(t, want, strings.Join(strings.Fields(apptest.Settled(apptest.Call(t, url, "pool", "show", "proxies", "--json").Out)), " "))

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

// TestADamagedResourceIsListedAndMended has a pool that is not whole, of which the exit code tells.
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
		require.Contains(t, got.Out, "\nproblem: the item of the resource "+strconv.Quote(resource)+" cannot be read: remove the resource, or add it again")
	}
	require.NotContains(t, got.Out, "whole")
	require.Regexp(t, `^berth: pool "proxies" in namespace "berth" is not whole: \d+ problems?\n$`, got.Err)
	var document inspectDocument
	got = apptest.Call(t, s.URL(), "pool", "inspect", "proxies", "--json")
	require.NoError(t, json.Unmarshal([]byte(got.Out), &document))
	require.Equal(t, 65, got.Code)
	require.False(t, document.Whole)
	require.NotEmpty(t, document.Problems)
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
