package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/cmd/berth/internal/apptest"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/semaphore"
)

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
	for line, says := range map[string][2]string{
		"sem ls":         {"No semaphore is in use in namespace shop.", `{"namespace": "shop", "semaphores": []}`},
		"lock ls":        {"No lock is held in namespace shop.", `{"namespace": "shop", "locks": []}`},
		"pool ls":        {"There is no pool in namespace shop.", `{"namespace": "shop", "pools": []}`},
		"lock queue gpu": {"Nobody waits for lock gpu in namespace shop.", `{"namespace": "shop", "name": "gpu", "waiters": []}`},
		"swarm status": {
			"No node is in the swarm of namespace shop.", `{"namespace": "shop", "nodes": [], "leftBehind": {"owners": [], "names": [], "waiting": 0}}`,
		},
	} {
		args := append(strings.Fields(line), "--namespace", "shop")
		require.Equal(t, apptest.Outcome(0, says[0]+"\n", ""), apptest.Call(t, url, args...))
		require.JSONEq(t, says[1], apptest.Call(t, url, append(args, "--json")...).Out)
	}
}

func TestListingsAreSortedAndLimited(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	ctx := context.Background()
	n := apptest.NodeOf(t, s, node.Config{})
	for name, held := range map[string][2]int{"a": {8, 2}, "b": {2, 1}, "c": {4, 3}} { // capacity, held
		sem := semaphore.New(n, name, held[0], nil)
		_, err := sem.Acquire(ctx, &semaphore.AcquireOptions{Weight: held[1]})
		require.NoError(t, err)
		if name == "b" {
			go func() { _, _ = sem.Acquire(ctx, &semaphore.AcquireOptions{Weight: 2}) }() // ends with the node
			apptest.WaitingFor(t, s, keyspace.Sem, name)
		}
	}
	for order, names := range map[string][]string{"name": {"a", "b", "c"}, "held": {"c", "a", "b"}, "share": {"c", "b", "a"}, "waiting": {"b", "a", "c"}} {
		got := apptest.Call(t, s.URL(), "sem", "ls", "--sort", order)
		require.Equal(t, names, firstColumn(got.Out), order)
		got = apptest.Call(t, s.URL(), "sem", "ls", "--sort", order, "--limit", "2")
		require.True(t, strings.HasSuffix(got.Out, "\n... and 1 more\n"), got.Out)
		require.Equal(t, names[:2], firstColumn(got.Out)[:2])
		var document struct{ Semaphores []struct{ Name string } }
		require.NoError(t, json.Unmarshal([]byte(apptest.Call(t, s.URL(), "sem", "ls", "--sort", order, "--limit", "1", "--json").Out), &document))
		require.Len(t, document.Semaphores, 1)
		require.Equal(t, names[0], document.Semaphores[0].Name)
	}
	for _, flags := range [][2]string{{"--sort", "age"}, {"--limit", "-1"}, {"--limit", "x"}, {"--limit", "1x"}} {
		got := apptest.Call(t, apptest.Nobody, "sem", "ls", flags[0], flags[1])
		require.Equal(t, 64, got.Code)
		require.Contains(t, got.Err, "invalid "+flags[0])
	}
}

func TestLocksAndPoolsAreSorted(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	ctx := context.Background()
	locks := apptest.LocksOf(t, s, node.Config{})
	for _, name := range []string{"b", "a", "c"} {
		_, err := locks.Lock(ctx, name, nil)
		require.NoError(t, err)
	}
	go func() { _, _ = locks.Lock(ctx, "c", nil) }() // ends with the node
	apptest.WaitingFor(t, s, keyspace.Lock, "c")
	for order, names := range map[string][]string{"name": {"a", "b", "c"}, "share": {"a", "b", "c"}, "waiting": {"c", "a", "b"}} {
		require.Equal(t, names, firstColumn(apptest.Call(t, s.URL(), "lock", "ls", "--sort", order).Out), order)
	}
	held := apptest.Call(t, s.URL(), "lock", "ls", "--sort", "held")
	require.Zero(t, held.Code, held.Err)

	for name, leased := range map[string]int{"a": 0, "b": 1, "c": 2} {
		resources := []string{"1", "2", "3", "4", "5"}
		if name == "b" {
			resources = resources[:1]
		}
		pool := apptest.Filled(t, s, name, resources...)
		for range leased {
			_, err := pool.Allocate(ctx, nil)
			require.NoError(t, err)
		}
	}
	for order, names := range map[string][]string{"name": {"a", "b", "c"}, "held": {"c", "b", "a"}, "share": {"b", "c", "a"}, "waiting": {"a", "b", "c"}} {
		require.Equal(t, names, firstColumn(apptest.Call(t, s.URL(), "pool", "ls", "--sort", order).Out), order)
	}
}

func TestClaimsAndResourcesAreLimited(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	ctx := context.Background()
	locks := apptest.LocksOf(t, s, node.Config{})
	_, err := locks.Lock(ctx, "gpu", nil)
	require.NoError(t, err)
	for i := range 3 {
		go func() { _, _ = locks.Lock(ctx, "gpu", nil) }() // ends with the node
		require.Eventually(t, func() bool { return apptest.Waiting(t, s, keyspace.Lock, "gpu") == i+1 }, apptest.Patience, 10*time.Millisecond)
	}
	for _, command := range []string{"queue", "show"} {
		got := apptest.Call(t, s.URL(), "lock", command, "gpu", "--limit", "1")
		require.Regexp(t, `(?s)AHEAD.*\n0 [^\n]*\n\.\.\. and 2 more\n$`, got.Out)
		require.NotContains(t, apptest.Call(t, s.URL(), "lock", command, "gpu", "--limit", "0").Out, "more")
	}
	var queue struct{ Waiters []struct{ Ahead int } }
	require.NoError(t, json.Unmarshal([]byte(apptest.Call(t, s.URL(), "lock", "queue", "gpu", "--json", "--limit", "2").Out), &queue))
	require.Len(t, queue.Waiters, 2)

	many := make([]string, 102)
	for i := range many {
		many[i] = fmt.Sprintf("%03d", i)
	}
	pool := apptest.Filled(t, s, "proxies", many...)
	_, err = pool.Allocate(ctx, nil)
	require.NoError(t, err)
	got := apptest.Call(t, s.URL(), "pool", "show", "proxies", "--all")
	require.Contains(t, got.Out, "\n100        -\n... and 1 more\n", "a screenful by default")
	var document struct{ Listed []struct{ Resource string } }
	require.NoError(t, json.Unmarshal([]byte(apptest.Call(t, s.URL(), "pool", "show", "proxies", "--all", "--json").Out), &document))
	require.Len(t, document.Listed, len(many), "with --json all")
}
