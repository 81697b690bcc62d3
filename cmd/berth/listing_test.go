package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
)

// firstColumn are the first words of the lines under the heading of a table.
func firstColumn(out string) (words []string) {
	for _, line := range strings.Split(strings.TrimSpace(out), "\n")[1:] {
		words = append(words, strings.Fields(line)[0])
	}
	return words
}

func TestListingsAreSortedAndLimited(t *testing.T) {
	t.Parallel()
	s := server(t)
	ctx := context.Background()
	sems := clientOf(t, s, semaphore.Config{})
	for name, held := range map[string][2]int{"a": {8, 2}, "b": {2, 1}, "c": {4, 3}} { // capacity, held
		sem, err := sems.Semaphore(name, held[0], nil)
		require.NoError(t, err)
		_, err = sem.Acquire(ctx, &semaphore.AcquireOptions{Weight: held[1]})
		require.NoError(t, err)
		if name == "b" {
			go func() { _, _ = sem.Acquire(ctx, &semaphore.AcquireOptions{Weight: 2}) }() // ends with the client
			waitingFor(t, sems.Operator(), name)
		}
	}
	for order, names := range map[string][]string{"name": {"a", "b", "c"}, "held": {"c", "a", "b"}, "share": {"c", "b", "a"}, "waiting": {"b", "a", "c"}} {
		got := call(t, s.URL(), "sem", "ls", "--sort", order)
		require.Equal(t, names, firstColumn(got.out), order)
		got = call(t, s.URL(), "sem", "ls", "--sort", order, "--limit", "2")
		require.True(t, strings.HasSuffix(got.out, "\n... and 1 more\n"), got.out)
		require.Equal(t, names[:2], firstColumn(got.out)[:2])
		var document listDocument
		require.NoError(t, json.Unmarshal([]byte(call(t, s.URL(), "sem", "ls", "--sort", order, "--limit", "1", "--json").out), &document))
		require.Len(t, document.Semaphores, 1)
		require.Equal(t, names[0], document.Semaphores[0].Name)
	}
	for _, flags := range [][2]string{{"--sort", "age"}, {"--limit", "-1"}, {"--limit", "x"}, {"--limit", "1x"}} {
		got := call(t, nobody, "sem", "ls", flags[0], flags[1])
		require.Equal(t, 64, got.code)
		require.Contains(t, got.err, "invalid "+flags[0])
	}
}

func TestLocksAndPoolsAreSorted(t *testing.T) {
	t.Parallel()
	s := server(t)
	ctx := context.Background()
	locks := locksOf(t, s, qlock.Config{})
	for _, name := range []string{"b", "a", "c"} {
		_, err := locks.Lock(ctx, name, nil)
		require.NoError(t, err)
	}
	go func() { _, _ = locks.Lock(ctx, "c", nil) }() // ends with the client
	waitingFor(t, locks.Operator(), "c")
	for order, names := range map[string][]string{"name": {"a", "b", "c"}, "share": {"a", "b", "c"}, "waiting": {"c", "a", "b"}} {
		require.Equal(t, names, firstColumn(call(t, s.URL(), "lock", "ls", "--sort", order).out), order)
	}
	held := call(t, s.URL(), "lock", "ls", "--sort", "held")
	require.Zero(t, held.code, held.err)

	for name, leased := range map[string]int{"a": 0, "b": 1, "c": 2} {
		resources := []string{"1", "2", "3", "4", "5"}
		if name == "b" {
			resources = resources[:1]
		}
		pool := filled(t, s, name, resources...)
		for range leased {
			_, err := pool.Allocate(ctx, nil)
			require.NoError(t, err)
		}
	}
	for order, names := range map[string][]string{"name": {"a", "b", "c"}, "held": {"c", "b", "a"}, "share": {"b", "c", "a"}, "waiting": {"a", "b", "c"}} {
		require.Equal(t, names, firstColumn(call(t, s.URL(), "pool", "ls", "--sort", order).out), order)
	}
}

func TestClaimsAndResourcesAreLimited(t *testing.T) {
	t.Parallel()
	s := server(t)
	ctx := context.Background()
	locks := locksOf(t, s, qlock.Config{})
	_, err := locks.Lock(ctx, "gpu", nil)
	require.NoError(t, err)
	for i := range 3 {
		go func() { _, _ = locks.Lock(ctx, "gpu", nil) }() // ends with the client
		require.Eventually(t, func() bool {
			stats, err := locks.Operator().Stats(ctx, "gpu")
			return err == nil && stats.Waiting == i+1
		}, patience, 10*time.Millisecond)
	}
	for _, command := range []string{"queue", "show"} {
		got := call(t, s.URL(), "lock", command, "gpu", "--limit", "1")
		require.Regexp(t, `(?s)AHEAD.*\n0 [^\n]*\n\.\.\. and 2 more\n$`, got.out)
		require.NotContains(t, call(t, s.URL(), "lock", command, "gpu", "--limit", "0").out, "more")
	}
	var queue queueDocument
	require.NoError(t, json.Unmarshal([]byte(call(t, s.URL(), "lock", "queue", "gpu", "--json", "--limit", "2").out), &queue))
	require.Len(t, queue.Waiters, 2)

	many := make([]string, 102)
	for i := range many {
		many[i] = fmt.Sprintf("%03d", i)
	}
	pool := filled(t, s, "proxies", many...)
	_, err = pool.Allocate(ctx, nil)
	require.NoError(t, err)
	got := call(t, s.URL(), "pool", "show", "proxies", "--all")
	require.Contains(t, got.out, "\n100        -\n... and 1 more\n", "a screenful by default")
	var document showPoolDocument
	require.NoError(t, json.Unmarshal([]byte(call(t, s.URL(), "pool", "show", "proxies", "--all", "--json").out), &document))
	require.Len(t, document.Listed, len(many), "with --json all")
}
