package app_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/cmd/berth/internal/apptest"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
)

func TestPsListsClaimsOfAllKinds(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	ctx := context.Background()
	require.Equal(t, apptest.Outcome(0, "No claim was found in namespace berth.\n", ""), apptest.Call(t, s.URL(), "ps"))

	gpu := semaphore.New(apptest.NodeOf(t, s, node.Config{Label: "host-1/one"}), "gpu", 2, semaphore.Config{})
	first, err := gpu.Acquire(apptest.Owned("order 66\x1b[2J"), &semaphore.AcquireOptions{Weight: 2, Meta: map[string]string{"job": "7", "a": "b"}})
	require.NoError(t, err)
	locks := apptest.LocksOf(t, s, node.Config{Label: "host-2/two"})
	apptest.Got(locks.Lock(ctx, "nightly", nil))(t)
	go func() { _, _ = locks.Lock(ctx, "nightly", &qlock.LockOptions{Priority: 3}) }() // ends with the node
	apptest.WaitingFor(t, s, keyspace.Lock, "nightly")
	apptest.Filled(t, s, "proxies", apptest.Wild)
	pool := apptest.PoolOf(t, s, "proxies", node.Config{Label: "host-2/one"})
	apptest.Got(pool.Allocate(ctx, nil))(t)

	for _, test := range []struct {
		args []string
		want []string
	}{
		{[]string{"--node", first.Node()}, []string{"sem"}},
		{[]string{"--owner", "order 66\x1b[2J"}, []string{"sem"}},
		{[]string{"--label", "host-2/two"}, []string{"lock", "lock"}},
		{[]string{"--label", "host-2/*"}, []string{"lock", "lock", "pool"}},
		{[]string{"--meta", "job=7", "--meta", "a=b"}, []string{"sem"}},
		{[]string{"--kind", "lock", "--kind", "sem", "--holding"}, []string{"sem", "lock"}},
		{[]string{"--waiting"}, []string{"lock"}},
		{[]string{"--limit", "2"}, []string{"sem", "lock", "..."}},
	} {
		require.Equal(t, test.want, firstColumn(apptest.Call(t, s.URL(), append([]string{"ps"}, test.args...)...).Out), test.args)
	}

	document := apptest.Read[inspect.Page[inspect.Claim]](t, apptest.Call(t, s.URL(), "ps", "--json", "--limit", "2").Out)
	require.False(t, document.Partial)
	require.Len(t, document.Items, 2)
	require.Equal(t, first.ID(), document.Items[0].ID())
	require.Equal(t, map[string]string{"job": "7", "a": "b"}, document.Items[0].Hold.Meta)

	got := apptest.Call(t, s.URL(), "ps", "--within", "1ns", "--kind", "lock")
	require.Equal(t, apptest.Outcome(69, "", "berth: nothing was read within 1ns: SCAN: context deadline exceeded\n"), got)
}

// Wherever the time runs out, what was not read is left out, and no server is blamed.
func TestPsWithinTooLittleTime(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	n := apptest.NodeOf(t, s, node.Config{})
	for i := range 20 {
		apptest.Got(semaphore.New(n, fmt.Sprint("gpu", i), 1, semaphore.Config{}).Acquire(context.Background(), nil))(t)
	}
	for i := range 50 {
		got := apptest.Call(t, s.URL(), "ps", "--within", fmt.Sprintf("%dus", 100*(i+1)))
		if got.Code == 69 {
			require.Contains(t, got.Err, "berth: nothing was read within ")
			continue
		}
		require.Zero(t, got.Code, got.Err)
		require.Contains(t, []string{"", "berth: partial: there is more that was not read\n"}, got.Err)
	}
}

// firstColumn are the first words of the lines under the heading of a table.
func firstColumn(out string) (words []string) {
	for _, line := range strings.Split(strings.TrimSpace(out), "\n")[1:] {
		words = append(words, strings.Fields(line)[0])
	}
	return words
}

func TestListingsOfNothing(t *testing.T) {
	t.Parallel()
	url := apptest.Server(t).URL()
	const none = `{"namespace": "shop", "items": [], "partial": false, "replica": false, "moving": false}`
	at := regexp.MustCompile(`"at": "[^"]+",`)
	for line, says := range map[string][2]string{
		"sem ls":    {"No semaphore is in use in namespace shop.", none},
		"lock ls":   {"No lock is held in namespace shop.", none},
		"pool ls":   {"There is no pool in namespace shop.", none},
		"node ls":   {"No node holds or waits for anything, or is in a swarm, in namespace shop.", none},
		"once ls":   {"Of no name are runs known in namespace shop.", none},
		"leader ls": {"Nobody leads or stands for anything in namespace shop.", none},
	} {
		args := append(strings.Fields(line), "--namespace", "shop")
		require.Equal(t, apptest.Outcome(0, says[0]+"\n", ""), apptest.Call(t, url, args...))
		require.JSONEq(t, says[1], at.ReplaceAllString(apptest.Call(t, url, append(args, "--json")...).Out, ""))
	}
}

func TestListingsAreSortedAndLimited(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	ctx := context.Background()
	n := apptest.NodeOf(t, s, node.Config{})
	for name, held := range map[string][2]int{"a": {8, 2}, "b": {2, 1}, "c": {4, 3}} { // capacity, held
		sem := semaphore.New(n, name, held[0], semaphore.Config{})
		apptest.Got(sem.Acquire(ctx, &semaphore.AcquireOptions{Weight: held[1]}))(t)
		if name == "b" {
			go func() { _, _ = sem.Acquire(ctx, &semaphore.AcquireOptions{Weight: 2}) }() // ends with the node
			apptest.WaitingFor(t, s, keyspace.Sem, name)
		}
	}
	for order, names := range map[string][]string{
		"name": {"a", "b", "c"}, "held": {"c", "a", "b"}, "share": {"c", "b", "a"}, "waiting": {"b", "a", "c"}, "wait": {"b", "a", "c"},
	} {
		require.Equal(t, names, firstColumn(apptest.Call(t, s.URL(), "sem", "ls", "--sort", order).Out), order)
		got := apptest.Call(t, s.URL(), "sem", "ls", "--sort", order, "--limit", "2")
		require.True(t, strings.HasSuffix(got.Out, "\n... and 1 more\n"), got.Out)
		require.Equal(t, names[:2], firstColumn(got.Out)[:2])
		page := apptest.Read[inspect.Page[berth.Name]](t, apptest.Call(t, s.URL(), "sem", "ls", "--sort", order, "--limit", "1", "--json").Out)
		require.Len(t, page.Items, 1)
		require.Equal(t, names[0], page.Items[0].Name)
	}
}

func TestClaimsAndResourcesAreLimited(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	ctx := context.Background()
	locks := apptest.LocksOf(t, s, node.Config{})
	apptest.Got(locks.Lock(ctx, "gpu", nil))(t)
	for i := range 3 {
		go func() { _, _ = locks.Lock(ctx, "gpu", nil) }() // ends with the node
		require.Eventually(t, func() bool { return apptest.Waiting(t, s, keyspace.Lock, "gpu") == i+1 }, apptest.Patience, 10*time.Millisecond)
	}
	got := apptest.Call(t, s.URL(), "lock", "show", "gpu", "--limit", "1")
	require.Regexp(t, `(?s)AHEAD.*\n0 [^\n]*\n\.\.\. and 2 more\n$`, got.Out)
	require.NotContains(t, apptest.Call(t, s.URL(), "lock", "show", "gpu", "--limit", "0").Out, "more")
	require.Len(t, apptest.Read[app.ShowDocument](t, apptest.Call(t, s.URL(), "lock", "show", "gpu", "--json", "--limit", "2").Out).Waiters, 2)

	many := make([]string, 102)
	for i := range many {
		many[i] = fmt.Sprintf("%03d", i)
	}
	pool := apptest.Filled(t, s, "proxies", many...)
	apptest.Got(pool.Allocate(ctx, nil))(t)
	got = apptest.Call(t, s.URL(), "pool", "show", "proxies", "--all")
	require.Contains(t, got.Out, "\n100        -\n... and 1 more\n", "a screenful by default")
	document := apptest.Read[app.ShowDocument](t, apptest.Call(t, s.URL(), "pool", "show", "proxies", "--all", "--json").Out)
	require.Len(t, document.Resources, len(many), "with --json all")
}

func TestAListingCountsTheStuck(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	locks := apptest.LocksOf(t, s, node.Config{})
	for _, name := range []string{"a", "b"} {
		l := apptest.Got(locks.Lock(context.Background(), name, &qlock.LockOptions{Lease: berth.Forever}))(t)
		if name == "a" {
			apptest.Got(l.Detach(context.Background()))(t)
			go func() { _, _ = locks.Lock(context.Background(), name, nil) }() // ends with the node
			apptest.WaitingFor(t, s, keyspace.Lock, name)
		}
	}
	page := apptest.Read[inspect.Page[berth.Name]](t, apptest.Call(t, s.URL(), "lock", "ls", "--json", "--limit", "1").Out)
	require.Equal(t, []int{1, 1}, []int{len(page.Items), page.Stuck})
}
