package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/qlock"
)

func TestTheSwarmOfNobody(t *testing.T) {
	t.Parallel()
	url := server(t).URL()
	require.Equal(t, outcome{0, "No node is in the swarm of namespace shop.\n", ""}, call(t, url, "swarm", "status", "--namespace", "shop"))
	require.Equal(t, outcome{0, "nodes condemned: 0, holds ended: 0, waiting claims removed: 0\n", ""}, call(t, url, "swarm", "flush"))
	require.JSONEq(t, `{"namespace": "berth", "nodes": [], "leftBehind": {"owners": [], "locks": [], "waiting": 0}}`,
		call(t, url, "swarm", "status", "--json").out)
}

// TestTheSwarmIsShownAndFlushed lets a node go silent that holds a lock for an hour
// and does not renew it.
func TestTheSwarmIsShownAndFlushed(t *testing.T) {
	t.Parallel()
	s := server(t)
	const limit = 300 * time.Millisecond
	// Its own limit is far: it believes in its hold, as a stopped one would.
	dead := locksOf(t, s, qlock.Config{Label: "dead/one/1", Swarm: qlock.SwarmConfig{ProbeEvery: time.Hour, ZombieAfter: 2 * time.Hour, FlushEvery: -1}})
	require.NoError(t, dead.Swarm().Start(context.Background()))
	_, err := dead.Lock(context.Background(), "table", &qlock.LockOptions{Lease: time.Hour, NoRenew: true})
	require.NoError(t, err)

	got := call(t, s.URL(), "swarm", "status")
	require.Zero(t, got.code, got.err)
	require.Regexp(t, `^NODE +STATE +PROBED +LABEL\n`+dead.Node()+` +alive +[\d.]+m?s +dead/one/1\n$`, got.out)

	limited := func(command string, more ...string) outcome {
		return call(t, s.URL(), append([]string{"swarm", command, "--zombie-after", limit.String()}, more...)...)
	}
	// Far below the limit that holds without the flag.
	require.Eventually(t, func() bool { return strings.Contains(limited("status").out, "zombie") }, 10*time.Second, 10*time.Millisecond)
	live := locksOf(t, s, qlock.Config{Label: "live/one/2"})
	require.NoError(t, live.Swarm().Start(context.Background()))

	var document swarmDocument
	require.NoError(t, json.Unmarshal([]byte(call(t, s.URL(), "swarm", "status", "--zombie-after", limit.String(), "--json").out), &document))
	require.Len(t, document.Nodes, 2)
	require.Equal(t, live.Node(), document.Nodes[0].Node, "who was heard of last")
	require.Equal(t, "zombie", document.Nodes[1].State)
	require.GreaterOrEqual(t, document.Nodes[1].ProbedMsAgo, limit.Milliseconds()-50)
	require.Equal(t, leftDocument{[]string{}, []string{"table"}, 0}, document.Left)
	require.Contains(t, limited("status").out, "\nDead nodes have left behind: 0 waiting, locks held: table\n")

	require.NoError(t, live.Swarm().ProbeNow(context.Background()))
	require.Equal(t, outcome{0, "nodes condemned: 1, holds ended: 1, waiting claims removed: 0\n", ""}, limited("flush"))
	require.JSONEq(t, `{"namespace": "berth", "nodes": 0, "locks": 0, "waiters": 0}`, call(t, s.URL(), "swarm", "flush", "--json").out)
	require.Contains(t, call(t, s.URL(), "swarm", "status").out, "condemned")
	lock, err := live.TryLock(context.Background(), "table", nil)
	require.NoError(t, err, "it is free")
	require.NoError(t, lock.Release(context.Background()))
}
