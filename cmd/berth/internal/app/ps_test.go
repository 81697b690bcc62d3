package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/cmd/berth/internal/apptest"
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

	gpu := semaphore.New(apptest.NodeOf(t, s, node.Config{Label: "host-1/one"}), "gpu", 2, nil)
	first, err := gpu.Acquire(apptest.Owned("order 66\x1b[2J"), &semaphore.AcquireOptions{Weight: 2, Meta: map[string]string{"job": "7", "a": "b"}})
	require.NoError(t, err)
	locks := apptest.LocksOf(t, s, node.Config{Label: "host-2/two"})
	_, err = locks.Lock(ctx, "nightly", nil)
	require.NoError(t, err)
	go func() { _, _ = locks.Lock(ctx, "nightly", &qlock.LockOptions{Priority: 3}) }() // ends with the node
	waiter := apptest.WaitingFor(t, s, keyspace.Lock, "nightly")
	apptest.Filled(t, s, "proxies", apptest.Wild)
	pool := apptest.PoolOf(t, s, "proxies", node.Config{Label: "host-2/one"})
	_, err = pool.Allocate(ctx, nil)
	require.NoError(t, err)

	got := apptest.Call(t, s.URL(), "ps")
	require.Zero(t, got.Code, got.Err)
	require.Empty(t, got.Err)
	lines := strings.Split(strings.TrimSpace(got.Out), "\n")
	require.Equal(t, []string{"KIND", "NAME", "RESOURCE", "DOES", "FOR", "LEFT", "OWNER", "LABEL", "NODE", "CLAIM"}, strings.Fields(lines[0]))
	require.Len(t, lines, 5)
	require.Regexp(t, `^sem +gpu +- +holds +[\d.]+m?s +[\d.]+s +"order 66\\x1b\[2J" +host-1/one +`+first.Node()+` +`+first.ID()+`$`, lines[1], "the longest first")
	require.Regexp(t, `^lock +nightly +- +holds `, lines[2])
	require.Regexp(t, `^lock +nightly +- +waits +[\d.]+m?s +[\d.]+s +- +host-2/two +\S+ +`+waiter+`$`, lines[3])
	require.Regexp(t, `^pool +proxies +"c\\x1b\[2J\\xff" +holds `, lines[4])

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

	var document struct {
		Partial bool
		More    int
		Claims  []map[string]any
	}
	require.NoError(t, json.Unmarshal([]byte(apptest.Call(t, s.URL(), "ps", "--json", "--limit", "2").Out), &document))
	require.False(t, document.Partial)
	require.Equal(t, 2, document.More)
	require.Equal(t, "hold", document.Claims[0]["what"])
	require.Equal(t, map[string]any{"job": "7", "a": "b"}, document.Claims[0]["meta"])
	require.Empty(t, document.Claims[1]["resource"])

	got = apptest.Call(t, s.URL(), "ps", "--within", "1ns", "--kind", "lock")
	require.Equal(t, apptest.Outcome(69, "", "berth: nothing was read within 1ns: SCAN: context deadline exceeded\n"), got)
}

// Wherever the time runs out, what was not read is left out, and no server is blamed.
func TestPsWithinTooLittleTime(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	n := apptest.NodeOf(t, s, node.Config{})
	for i := range 20 {
		_, err := semaphore.New(n, fmt.Sprint("gpu", i), 1, nil).Acquire(context.Background(), nil)
		require.NoError(t, err)
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
