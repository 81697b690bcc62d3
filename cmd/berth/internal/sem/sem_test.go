package sem

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/apptest"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/semaphore"
)

// scenery is a server with a semaphore that one holds and two wait for, and two
// with a permit that has no end.
func scenery(t *testing.T) (url string) {
	t.Helper()
	s := apptest.Server(t)
	n := apptest.NodeOf(t, s, node.Config{Label: "host/one/1"})
	gpu := semaphore.New(n, "gpu", 4, nil)
	owned := berth.WithOwner(context.Background(), "order 66\x1b[2J")
	_, err := gpu.Acquire(owned, &semaphore.AcquireOptions{
		Weight: 3, MaxHold: time.Hour, Meta: map[string]string{"step": "render"},
	})
	require.NoError(t, err)
	ctx, leave := context.WithCancel(context.Background())
	t.Cleanup(leave)
	for _, o := range []semaphore.AcquireOptions{{Weight: 2}, {Weight: 4, Priority: 7}} {
		before := apptest.Waiting(t, s, keyspace.Sem, "gpu")
		go func() { _, _ = gpu.Acquire(ctx, &o) }() // ends with the node
		require.Eventually(t, func() bool { return apptest.Waiting(t, s, keyspace.Sem, "gpu") == before+1 }, apptest.Patience, 10*time.Millisecond)
	}
	for _, name := range []string{"disk 2", "disk"} { // their keys sort so
		_, err = semaphore.New(n, name, 1, nil).Acquire(context.Background(), &semaphore.AcquireOptions{Lease: berth.Forever})
		require.NoError(t, err)
	}
	return s.URL()
}

func TestSemLsAndShow(t *testing.T) {
	t.Parallel()
	url := scenery(t)
	got := apptest.Call(t, url, "sem", "ls")
	require.Equal(t, apptest.Outcome(0, strings.TrimLeft(`
NAME     CAPACITY   HELD   FREE   HOLDERS   WAITING
disk     1          1      0      1         0
disk 2   1          1      0      1         0
gpu      4          3      1      1         2
`, "\n"), ""), got)

	require.JSONEq(t, `{
		"namespace": "berth",
		"semaphores": [
			{"name": "disk", "capacity": 1, "held": 1, "free": 0, "holders": 1, "waiting": 0},
			{"name": "disk 2", "capacity": 1, "held": 1, "free": 0, "holders": 1, "waiting": 0},
			{"name": "gpu", "capacity": 4, "held": 3, "free": 1, "holders": 1, "waiting": 2}
		]
	}`, apptest.Call(t, url, "sem", "ls", "--json").Out)

	got = apptest.Call(t, url, "sem", "show", "gpu").Ends(t, 0)
	lines := strings.Split(got.Out, "\n")
	require.Equal(t, "gpu: capacity 4, held 3, free 1, waiting 2", lines[0])
	require.Equal(t, "Held by", lines[2])
	require.Equal(t, []string{"FENCE", "WEIGHT", "HELD", "LEASE", "LEFT", "OWNER", "LABEL", "CLAIM"}, strings.Fields(lines[3]))
	require.Regexp(t, `^\d{16} +3 +[\d.]+m?s +50s, at most 1h00m +[\d.]+s +"order 66\\x1b\[2J" +host/one/1 +[0-9a-f]{16}\.\w{20}$`, lines[4])
	require.Equal(t, "Waiting in line", lines[6])
	require.Equal(t, []string{"AHEAD", "WEIGHT", "PRIORITY", "WAITED", "ALIVE", "OWNER", "LABEL", "CLAIM"}, strings.Fields(lines[7]))
	require.Regexp(t, `^0 +4 +7 +[\d.]+m?s +[\d.]+s +- +host/one/1 +\S+$`, lines[8])
	require.Regexp(t, `^1 +2 +0 +[\d.]+m?s +[\d.]+s +- +host/one/1 +\S+$`, lines[9])

	forever := apptest.Call(t, url, "sem", "show", "disk 2")
	require.Regexp(t, `\n\d{16} +1 +[\d.]+m?s +forever fixed +forever +- `, forever.Out)
	require.NotContains(t, forever.Out, "Waiting")

	want := `{ "namespace": "berth", "name": "gpu", "capacity": 4, "held": 3, "free": 1, "holders": [ { "claim": ` +
		`"*", "node": *, "label": "host/one/1", "owner": "order 66\u001b[2J", "weight": 3, "fence": *, ` +
		`"leaseMs": 50000, "leftMs": 0, "noRenew": false, "maxHoldMs": 3600000, "since": *, "forMs": 0, ` +
		`"detached": false, "meta": { "step": "render" } } ], "waiters": [ { "claim": "*", "node": *, ` +
		`"label": "host/one/1", "owner": "", "weight": 4, "priority": 7, "ahead": 0, "since": *, "forMs": 0, ` +
		`"leftMs": 0, "meta": {} }, { "claim": "*", "node": *, "label": "host/one/1", "owner": "", "weight": ` +
		`2, "priority": 0, "ahead": 1, "since": *, "forMs": 0, "leftMs": 0, "meta": {} } ] }`
	require.Equal(t, want, strings.Join(strings.Fields(apptest.Settled(apptest.Call(t, url, "sem", "show", "gpu", "--json").Out)), " "))

	document := apptest.Read[showDocument](t, apptest.Call(t, url, "--json", "sem", "show", "disk 2").Out)
	require.Nil(t, document.Holders[0].LeaseMs, "no end")
	require.Nil(t, document.Holders[0].LeftMs)
}

func TestSemResize(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	for _, args := range [][]string{{"3"}, {"3", "--keep"}, {"3", "--json"}} {
		got := apptest.Call(t, s.URL(), append([]string{"sem", "resize", "gpu"}, args...)...)
		require.Equal(t, apptest.Outcome(1, "", `berth: no semaphore "gpu" in namespace "berth": it has not been used, `+
			"or not for a minute; to set its capacity all the same, say --create\n"), got)
	}
	require.Equal(t, 1, apptest.Call(t, s.URL(), "sem", "show", "gpu").Code, "and nothing was written")
	const stays = "; forgotten when idle for 1m00s, unless --keep is given\n"
	for _, step := range []struct {
		args []string
		says string
	}{
		{[]string{"3", "--create"}, "gpu: capacity 3, created" + stays},
		{[]string{"5"}, "gpu: capacity 5, was 3" + stays},
		{[]string{"5", "--keep"}, "gpu: capacity 5; kept for good\n"},
		{[]string{"2", "--keep", "--create"}, "gpu: capacity 2, was 5; kept for good\n"},
		{[]string{"2", "--json", "--keep"}, "{\n  \"namespace\": \"berth\",\n  \"name\": \"gpu\",\n  \"capacity\": 2,\n  \"before\": 2,\n  \"kept\": true,\n  \"idleMs\": null\n}\n"},
		{[]string{"4", "--json"}, "{\n  \"namespace\": \"berth\",\n  \"name\": \"gpu\",\n  \"capacity\": 4,\n  \"before\": 2,\n  \"kept\": false,\n  \"idleMs\": 60000\n}\n"},
	} {
		got := apptest.Call(t, s.URL(), append([]string{"sem", "resize", "gpu"}, step.args...)...)
		require.Equal(t, apptest.Outcome(0, step.says, ""), got)
	}
	require.Equal(t, 4, apptest.NameOf(t, s, keyspace.Sem, "gpu").Capacity)
	require.Equal(t, "gpu: capacity 4, held 0, free 4, waiting 0\n", apptest.Call(t, s.URL(), "sem", "show", "gpu").Out)
}
