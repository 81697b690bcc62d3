package lock

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/cmd/berth/internal/apptest"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
)

// TestTheSwarmIsShownAndFlushed lets a node go silent that holds a lock for an hour
// and does not renew it. Another one has a far longer limit, and lives.
func TestTheSwarmIsShownAndFlushed(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	const limit = 10 * time.Second
	way := link.New(nil)
	redis, err := s.Client(way.Wrap)
	require.NoError(t, err)
	t.Cleanup(redis.Close)
	dead, err := node.New(redis, node.Config{
		Label: "dead/one/1", Lease: time.Minute, Swarm: node.SwarmConfig{ProbeEvery: limit / 6, ZombieAfter: limit, FlushEvery: -1},
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		way.Mend() // it has nothing any more, and is not to try for long to find that out
		_ = dead.Close(context.Background())
	})
	id := dead.ID()
	held, err := qlock.New(dead, nil).Lock(context.Background(), "table", &qlock.LockOptions{Lease: time.Hour, NoRenew: true})
	require.NoError(t, err)
	require.NoError(t, dead.Swarm().Start(context.Background()))
	require.Equal(t, id, dead.ID())

	got := apptest.Call(t, s.URL(), "swarm", "status")
	require.Zero(t, got.Code, got.Err)
	require.Regexp(t, `^NODE +STATE +PROBED +LIMIT +LABEL\n`+id+` +alive +[\d.]+[mµ]?s +10s +dead/one/1\n$`, got.Out)

	way.Cut()
	live := apptest.LocksOf(t, s, node.Config{
		Label: "live/one/2", Swarm: node.SwarmConfig{ProbeEvery: time.Minute, ZombieAfter: time.Hour, FlushEvery: -1},
	})
	require.NoError(t, live.Swarm().Start(context.Background()))
	require.Eventually(t, func() bool { return strings.Contains(apptest.Call(t, s.URL(), "swarm", "status").Out, "zombie") },
		apptest.Patience, 200*time.Millisecond)

	var document swarmDocument
	require.NoError(t, json.Unmarshal([]byte(apptest.Call(t, s.URL(), "swarm", "status", "--json").Out), &document))
	require.Len(t, document.Nodes, 2)
	require.Equal(t, live.ID(), document.Nodes[0].Node, "who was heard of last")
	require.Equal(t, time.Hour.Milliseconds(), document.Nodes[0].ZombieAfterMs)
	require.Equal(t, id, document.Nodes[1].Node)
	require.Equal(t, "zombie", document.Nodes[1].State)
	require.Equal(t, limit.Milliseconds(), document.Nodes[1].ZombieAfterMs)
	require.GreaterOrEqual(t, document.Nodes[1].ProbedMsAgo, limit.Milliseconds()-50)
	require.Equal(t, leftDocument{[]string{held.ID()}, []nameDocument{{"lock", "table"}}, 0}, document.Left)
	require.Contains(t, apptest.Call(t, s.URL(), "swarm", "status").Out, "\nDead nodes have left behind: 0 waiting, held: lock table\n")

	require.Equal(t, apptest.Outcome(0, "nodes condemned: 1, holds ended: 1, waiting claims removed: 0\n", ""), apptest.Call(t, s.URL(), "swarm", "flush"))
	require.JSONEq(t, `{"namespace": "berth", "nodes": 0, "holds": 0, "waiters": 0}`, apptest.Call(t, s.URL(), "swarm", "flush", "--json").Out)
	require.Contains(t, apptest.Call(t, s.URL(), "swarm", "status").Out, "condemned")
	lock, err := live.TryLock(context.Background(), "table", nil)
	require.NoError(t, err, "it is free")
	require.NoError(t, lock.Release(context.Background()))
}
