package pool

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/cmd/berth/internal/apptest"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
)

// TestLanesAreShown has two that wait for a, one of them for an hour alone, and one that takes any.
func TestLanesAreShown(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	pool := apptest.Filled(t, s, "proxies", "a", apptest.Wild)
	ctx, leave := context.WithCancel(context.Background())
	t.Cleanup(leave)
	for range 2 {
		apptest.Got(pool.Allocate(ctx, nil))(t)
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
	require.Equal(t, []string{"RESOURCE", "ONLY", "AHEAD", "PRIORITY", "FOR", "LEFT", "OWNER", "LABEL", "CLAIM"}, strings.Fields(lines[0]))
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
		resource string
		alone    bool
		ahead    int
	}
	told := func(args ...string) (all []waiting) {
		out := apptest.Call(t, url, append([]string{"pool", "show", "proxies", "--json"}, args...)...).Out
		for _, w := range apptest.Read[struct {
			Waiters []berth.Waiter `json:"waiters"`
		}](t, out).Waiters {
			all = append(all, waiting{w.Resource, w.BindWait > 0, w.Ahead})
		}
		return all
	}
	require.Equal(t, []waiting{{}, {"a", true, 0}, {"a", true, 1}, {apptest.Wild, true, 0}}, told())
	require.Equal(t, []waiting{{"a", true, 0}}, told("a", "--limit", "1"))
}

func TestARestIsSaidAndShown(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	pool := apptest.Filled(t, s, "proxies", "a", "b", apptest.Wild)
	held := apptest.Got(pool.Allocate(context.Background(), nil))(t)
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
	info := apptest.Got(pool.Ops.Resource(context.Background(), "proxies", "a"))(t)
	require.Equal(t, allocator.Resting, info.State)
	require.Equal(t, "answers 429", info.Reason)

	got := apptest.Call(t, s.URL(), "pool", "rest", "proxies", "d", "--for", "1s", "--reason", "x")
	require.Equal(t, apptest.Outcome(1, "", "berth: resource d is not in pool \"proxies\" in namespace \"berth\"\n"), got)
	info = apptest.Read[allocator.ResourceInfo](t, apptest.Call(t, s.URL(), "pool", "rest", "proxies", "b", "--for", "forever", "--reason", "x", "--json").Out)
	require.Equal(t, allocator.ResourceInfo{
		Resource: "b", State: allocator.Resting, Left: berth.Forever, Reason: "x", MaxSharers: 1, Holders: []berth.Holder{},
	}, info)
}

// TestADamagedResourceIsListedAndMended has a pool that is not whole, of which the exit code tells.
func TestADamagedResourceIsListedAndMended(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	apptest.Filled(t, s, "proxies", "a", "b", "c")
	redis := apptest.Got(s.Client(apptest.Patiently))(t)
	defer redis.Close()
	require.NoError(t, redis.Do(context.Background(), redis.B().Hset().Key("berth:pool:{proxies}:items").FieldValue().
		FieldValue("ia", "rubbish").FieldValue("ib", "rubbish").Build()).Error())
	got := apptest.Call(t, s.URL(), "pool", "inspect", "proxies").Ends(t, 65)
	for _, resource := range []string{"a", "b"} {
		require.Contains(t, got.Out, "\nproblem: the item of the resource "+strconv.Quote(resource)+" cannot be read: remove the resource, or add it again")
	}
	require.NotContains(t, got.Out, "whole")
	require.Regexp(t, `^berth: pool "proxies" in namespace "berth" is not whole: \d+ problems?\n$`, got.Err)
	got = apptest.Call(t, s.URL(), "pool", "show", "proxies").Ends(t, 0)
	require.Contains(t, got.Out, "proxies: 3 resources, 1 free, 0 leased, 0 resting, 2 damaged, waiting 0\n")
	require.Contains(t, got.Out, "\nDamaged\nRESOURCE   STAYS\na          -\nb          -\n")
	require.Equal(t, apptest.Outcome(0, "proxies: 1 removed\n", ""), apptest.Call(t, s.URL(), "pool", "remove", "proxies", "a"))
	require.Equal(t, apptest.Outcome(0, "proxies: 0 added, 1 kept\n", ""), apptest.Call(t, s.URL(), "pool", "add", "proxies", "b"))
	got = apptest.Call(t, s.URL(), "pool", "inspect", "proxies").Ends(t, 0)
}

func TestAPoolThatMovesIsInspectedWithThatSaid(t *testing.T) {
	var out strings.Builder
	a := app.New(&out, nil)
	require.NoError(t, printInspection(a, "proxies", allocator.Inspection{
		Resources: 3, Free: 1, Leased: 1, Holders: 2, Bindings: 1, Moving: true, Problems: []string{"b\x1b", "a"},
	}))
	require.Equal(t, "proxies: 3 resources, 1 free, 1 leased, 0 resting, 2 holders, waiting 0, 1 binding\n"+
		"It changed meanwhile: these counts are not those of one moment.\nproblem: a\nproblem: \"b\\x1b\"\n", out.String())
}

func TestAPoolIsSetAndShown(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	apptest.Filled(t, s, "proxies", "a", apptest.Wild)
	berthPool := func(args ...string) apptest.Result {
		t.Helper()
		return apptest.Call(t, s.URL(), append([]string{"pool"}, args...)...)
	}
	wild := []string{"--quoted", "proxies", text.Quoted(apptest.Wild)}
	require.Equal(t, apptest.Outcome(0, "proxies: cooldown 30s, 2 sharers\n", ""), berthPool("set", "proxies", "--cooldown", "30s", "--max-sharers", "2"))
	all := "most recent first, cooldown 30s, 2 sharers, bindings forever, leases up to 1m00s, holds without limit\n"
	require.Equal(t, apptest.Outcome(0, "proxies: "+all, ""),
		berthPool("set", "proxies", "--policy", "most-recent", "--bind-for", "forever", "--max-lease", "1m", "--max-hold", "forever"))
	require.Equal(t, apptest.Outcome(0, "proxies: \"c\\x1b[2J\\xff\": no cooldown\n", ""), berthPool(append([]string{"set", "--cooldown", "0"}, wild...)...))
	require.Contains(t, berthPool("show", "proxies").Out, "\nset by an operator: "+all)
	require.Contains(t, berthPool("show", "proxies", "--json").Out, `"settings": {
    "policy": "most-recent",
    "cooldownMs": 30000,
    "maxSharers": 2,
    "bindForMs": null,
    "maxLeaseMs": 60000,
    "maxHoldMs": null,
    "byOperator": true
  }`)
	require.Contains(t, berthPool(append([]string{"show"}, wild...)...).Out, "\nof its own: no cooldown\n")
	require.Contains(t, berthPool(append([]string{"show", "--json"}, wild...)...).Out, `"cooldownMs": 0`)
	require.JSONEq(t, `{"namespace": "berth", "name": "proxies"}`, berthPool("set", "proxies", "--reset", "--json").Out)
	require.Equal(t, apptest.Outcome(0, "proxies: nothing is set\n", ""), berthPool("set", "proxies", "--reset"))
	require.Equal(t, apptest.Outcome(1, "", "berth: resource gone is not in pool \"proxies\" in namespace \"berth\"\n"), berthPool("set", "proxies", "gone", "--max-sharers", "1"))
	require.Equal(t, apptest.Outcome(0, "later: 3 sharers\n", ""), berthPool("set", "later", "--max-sharers", "3"))
	require.Equal(t, apptest.Outcome(0, "later: 0 resources, 0 free, 0 leased, 0 resting, waiting 0\nset by an operator: 3 sharers\n", ""), berthPool("show", "later"))
}

func TestOneResourceIsShown(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	ctx := context.Background()
	pool := apptest.Filled(t, s, "proxies", "free", apptest.Wild)
	apptest.Got(pool.Add(ctx, []string{"shared"}, &allocator.AddOptions{MaxSharers: 2, Expiry: 10 * time.Hour}))(t)
	require.NoError(t, pool.Rest(ctx, apptest.Wild, time.Hour, "answers\t429", nil))
	var held *allocator.Allocation[string]
	for held == nil || held.Resource() != "shared" {
		held = apptest.Got(pool.Allocate(apptest.Owned("ann"), nil))(t)
	}
	require.NoError(t, pool.Rest(ctx, "shared", time.Hour, "later", nil))
	require.NoError(t, pool.Bind(ctx, "b", "shared", nil))
	require.NoError(t, pool.Bind(ctx, "a", "shared", &allocator.BindOptions{BindFor: berth.Forever}))
	require.NoError(t, pool.Bind(ctx, "other", "free", nil))

	show := func(args ...string) apptest.Result {
		t.Helper()
		return apptest.Call(t, s.URL(), append([]string{"pool", "show", "proxies"}, args...)...)
	}
	got := show("shared", "--bindings").Ends(t, 0)
	require.Regexp(t, `^proxies: shared is leased, [\d.]+s left, 1 of 2 sharers, stays for (10h00m|9h59m)\n`+
		`will rest when it comes back: later\n\nHeld by\nFENCE .*\n\d+ .* ann .*`+held.ID()+`\n\nBINDING +RESOURCE +LEFT\na +shared +forever\nb +shared +(1h00m|59m\d\ds)\n$`, got.Out)
	require.Regexp(t, `^proxies: "c\\x1b\[2J\\xff" is resting, (1h00m|59m\d\ds) left\nrests: "answers\\t429"\n$`, show("--quoted", text.Quoted(apptest.Wild)).Out)
	require.Equal(t, apptest.Outcome(1, "", "berth: resource gone is not in pool \"proxies\" in namespace \"berth\"\n"), show("gone"))

	require.NoError(t, pool.Unbind(ctx, "other"))
	require.NotContains(t, show("shared", "--json").Out, "bindings")
	document := apptest.Read[resourceDocument](t, show("shared", "--json", "--bindings").Out)
	require.Equal(t, "shared", document.Resource)
	require.Equal(t, allocator.Leased, document.State)
	require.Equal(t, 2, document.MaxSharers)
	require.Len(t, document.Holders, 1)
	require.Len(t, document.Bindings, 2)
	require.Equal(t, berth.Forever, document.Bindings[0].Left)
	require.NoError(t, held.Release(ctx))
	require.Contains(t, show("free", "--json", "--bindings").Out, `"bindings": []`)
}

func TestBindingsAreSetListedAndRemoved(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	pool := apptest.Filled(t, s, "proxies", "a", apptest.Wild)
	binding := func(args ...string) apptest.Result {
		t.Helper()
		return apptest.Call(t, s.URL(), append([]string{"pool", "binding"}, args...)...)
	}
	require.Equal(t, apptest.Outcome(0, "Nothing is bound in pool proxies in namespace berth.\n", ""), binding("ls", "proxies"))
	require.Empty(t, apptest.Read[inspect.Page[berth.Binding]](t, binding("ls", "proxies", "--json").Out).Items)
	require.Equal(t, apptest.Outcome(0, "proxies: customer is bound to a, 36h00m left\n", ""), binding("set", "proxies", "customer", "a", "--for", "1d12h"))
	require.Equal(t, apptest.Outcome(0, "proxies: b is bound to a, 1h00m left\n", ""), binding("set", "proxies", "b", "a"))
	require.JSONEq(t, `{"namespace": "berth", "name": "proxies", "binding": "c\u001b[2J\ufffd", "bindingBase64": "YxtbMkr/", "resource": "c\u001b[2J\ufffd", "resourceBase64": "YxtbMkr/", "leftMs": null}`,
		binding("set", "proxies", text.Quoted(apptest.Wild), text.Quoted(apptest.Wild), "--quoted", "--for", "forever", "--json").Out)
	bound := apptest.Got(pool.Binding(context.Background(), apptest.Wild))(t)
	require.Equal(t, berth.Binding{Name: apptest.Wild, Resource: apptest.Wild, Left: berth.Forever}, bound)
	require.Equal(t, apptest.Outcome(1, "", "berth: resource x is not in pool \"proxies\" in namespace \"berth\"\n"), binding("set", "proxies", "b", "x"))

	require.Regexp(t, `^BINDING +RESOURCE +LEFT\nb +a +(1h00m|59m\d\ds)\n"c\\x1b\[2J\\xff" +"c\\x1b\[2J\\xff" +forever\n\.\.\. and 1 more\n$`, binding("ls", "proxies", "--limit", "2").Out)

	require.Equal(t, apptest.Outcome(0, "proxies: b is bound to a no more\n", ""), binding("remove", "proxies", "b"))
	require.Equal(t, apptest.Outcome(0, "proxies: b was not bound\n", ""), binding("remove", "proxies", "b"))
	require.JSONEq(t, `{"namespace": "berth", "name": "proxies", "binding": "b", "resource": "", "leftMs": 0, "removed": false}`, binding("remove", "proxies", "b", "--json").Out)
	left := apptest.Read[inspect.Page[berth.Binding]](t, binding("ls", "proxies", "--json").Out).Items
	require.Len(t, left, 2)
	require.Equal(t, "customer", left[1].Name)
}

// TestFreeResourcesAreListedInTheirOrder takes the first of four and gives it back, so that it
// is the last; another one rests.
func TestFreeResourcesAreListedInTheirOrder(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	ctx := context.Background()
	pool := apptest.Filled(t, s, "proxies", "z", "rests", apptest.Wild, "a")
	next := func(args ...string) apptest.Result {
		t.Helper()
		return apptest.Call(t, s.URL(), append([]string{"pool", "next", "proxies"}, args...)...)
	}
	require.NoError(t, apptest.Got(pool.Allocate(ctx, nil))(t).Release(ctx))
	require.NoError(t, pool.Rest(ctx, "rests", time.Hour, "worn out", nil))
	require.Equal(t, apptest.Outcome(0, strings.TrimLeft(`
RESOURCE         STAYS
"c\x1b[2J\xff"   -
a                -
z                -
`, "\n"), ""), next())
	require.Equal(t, "RESOURCE         STAYS\n\"c\\x1b[2J\\xff\"   -\na                -\n... and more\n", next("--limit", "2").Out)
	require.NotContains(t, next("--limit", "3").Out, "more")
	told := func(args ...string) []allocator.ResourceInfo {
		return apptest.Read[inspect.Page[allocator.ResourceInfo]](t, next(append(args, "--json")...).Out).Items
	}
	require.Equal(t, []allocator.ResourceInfo{{Resource: apptest.Wild, State: allocator.Free, MaxSharers: 1, Holders: []berth.Holder{}}}, told("--limit", "1"))

	apptest.Got(pool.Add(ctx, []string{"shared"}, &allocator.AddOptions{MaxSharers: 2, Expiry: 10 * time.Hour}))(t)
	apptest.Got(pool.Allocate(ctx, &allocator.AllocateOptions{Resource: "shared"}))(t)
	apptest.Got(pool.Remove(ctx, []string{"a", "z", apptest.Wild}))(t)
	require.Regexp(t, `^RESOURCE +STAYS +SHARERS\nshared +(10h00m|9h59m) +1 of 2\n$`, next().Out)
	apptest.Got(pool.Allocate(ctx, nil))(t)
	require.Equal(t, apptest.Outcome(0, "Nothing is free in pool proxies in namespace berth.\n", ""), next())
	require.Empty(t, told())
}

func TestAPoolThatHandsOutAtRandomHasNoOrder(t *testing.T) {
	for _, test := range []struct {
		err  error
		code int
		says string
	}{
		{berth.Invalid("Policy", "under Random there is no order"), app.ExitFailed, `pool "proxies" in namespace "berth" hands out at random: there is no order`},
		{errors.New("the server is gone"), app.CodeOf(errors.New("x")), "the server is gone"},
	} {
		var out strings.Builder
		a := app.New(&out, nil)
		a.Namespace = "berth"
		err := printNext(a, "proxies", func(yield func(allocator.ResourceInfo, error) bool) { yield(allocator.ResourceInfo{}, test.err) }, 0)
		require.EqualError(t, err, test.says)
		require.Equal(t, test.code, app.CodeOf(err))
		require.Empty(t, out.String())
	}
}
