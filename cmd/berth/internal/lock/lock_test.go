package lock

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/cmd/berth/internal/apptest"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
)

func TestLockLsAndExtend(t *testing.T) {
	t.Parallel()
	s, _ := apptest.LockScenery(t)
	got := apptest.Call(t, s.URL(), "lock", "ls").Ends(t, 0)
	lines := strings.Split(got.Out, "\n")
	require.Equal(t, []string{"NAME", "FENCE", "HELD", "LEFT", "ENTRIES", "WAITING", "OWNER", "LABEL"}, strings.Fields(lines[0]))
	require.Regexp(t, `^disk 2 +\d{16} +[\d.]+m?s +forever +1 +0 +- +host/one/1$`, lines[1])
	require.Regexp(t, `^gpu +\d{16} +[\d.]+m?s +[\d.]+s +2 +2 +"order 66\\x1b\[2J" +host/one/1$`, lines[2])
	require.Len(t, lines, 4)

	document := apptest.Read[locksDocument](t, apptest.Call(t, s.URL(), "lock", "ls", "--json").Out)
	require.Equal(t, "berth", document.Namespace)
	require.Len(t, document.Locks, 2)
	require.Nil(t, document.Locks[0].LeftMs, "no end")
	require.Equal(t, "order 66\x1b[2J", document.Locks[1].Owner)
	require.Equal(t, 2, document.Locks[1].Waiting)

	got = apptest.Call(t, s.URL(), "lock", "extend", "gpu", "--by", "10m", "--force").Ends(t, 0)
	require.Regexp(t, `^gpu: extended by 10m00s, 10m\d\ds left\n$`, got.Out)

	extended := apptest.Read[extendDocument](t, apptest.Call(t, s.URL(), "lock", "extend", "gpu", "--by", "2h", "--force", "--json").Out)
	require.Equal(t, int64(7_200_000), extended.ByMs)
	require.InDelta(t, time.Hour.Milliseconds(), *extended.LeftMs, float64(apptest.Patience.Milliseconds()), "the maximum hold bounds it")

	got = apptest.Call(t, s.URL(), "lock", "extend", "disk 2", "--by", "1s", "--force")
	require.Equal(t, apptest.Outcome(0, "disk 2: extended by 1s, forever left\n", ""), got)
}

func TestLockShow(t *testing.T) {
	t.Parallel()
	s, outer := apptest.LockScenery(t)
	got := apptest.Call(t, s.URL(), "lock", "show", "gpu").Ends(t, 0)
	lines := strings.Split(got.Out, "\n")
	require.Regexp(t, `^gpu: held for [\d.]+m?s, (50|[34]\d(\.\d)?)s left, waiting 2$`, lines[0])
	require.Equal(t, "re-entered once, extended by 10s", lines[1])
	require.Equal(t, "Held by", lines[3])
	require.Equal(t, []string{"FENCE", "HELD", "LEASE", "LEFT", "OWNER", "LABEL", "CLAIM"}, strings.Fields(lines[4]))
	for _, line := range lines[5:7] {
		require.Regexp(t, `^\d{16} +[\d.]+m?s +40s, at most (1h00m|59m\d\ds) +[\d.]+s +"order 66\\x1b\[2J" +host/one/1 +[0-9a-f]{16}\.\w{20}$`, line)
	}
	require.Equal(t, "Waiting in line", lines[8])
	require.Equal(t, []string{"AHEAD", "PRIORITY", "WAITED", "ALIVE", "OWNER", "LABEL", "CLAIM"}, strings.Fields(lines[9]))
	require.Regexp(t, `^0 +7 +[\d.]+m?s +[\d.]+s +- +host/one/1 +\S+$`, lines[10])
	require.Regexp(t, `^1 +0 +[\d.]+m?s +[\d.]+s +- +host/one/1 +\S+$`, lines[11])

	queue := apptest.Call(t, s.URL(), "lock", "queue", "gpu").Ends(t, 0)
	require.Equal(t, strings.Fields(lines[9]), strings.Fields(strings.Split(queue.Out, "\n")[0]))
	require.Equal(t, 3, strings.Count(queue.Out, "\n"))

	text := apptest.Call(t, s.URL(), "lock", "show", "gpu", "--json").Out
	require.NotContains(t, text, "weight")
	document := apptest.Read[showLockDocument](t, text)
	require.True(t, document.Held)
	require.Equal(t, "order 66\x1b[2J", document.Owner)
	require.Equal(t, outer.Fence(), document.Fence)
	require.Equal(t, 1, document.Reentry.Count)
	require.Equal(t, int64(10_000), document.Reentry.ExtendedMs)
	require.NotNil(t, document.Reentry.ExtendedAt)
	require.Nil(t, document.Reentry.WorkedThroughAt, "never")
	require.Len(t, document.Entries, 2)
	require.Equal(t, outer.ID(), document.Entries[0].Claim)
	require.Equal(t, map[string]string{"step": "render"}, document.Entries[0].Meta)
	require.Len(t, document.Waiters, 2)
	require.Equal(t, 7, document.Waiters[0].Priority)

	line := apptest.Read[queueDocument](t, apptest.Call(t, s.URL(), "lock", "queue", "gpu", "--json").Out)
	require.Len(t, line.Waiters, 2)
	require.Equal(t, document.Waiters[1].Claim, line.Waiters[1].Claim)
}

func TestLockShowOfAFreeLockInJSON(t *testing.T) {
	t.Parallel()
	got := apptest.Call(t, apptest.Server(t).URL(), "lock", "show", "gpu", "--json").Ends(t, 1)
	require.JSONEq(t, `{
		"namespace": "berth", "name": "gpu", "held": false, "owner": "", "fence": 0, "leftMs": 0,
		"reentry": {"count": 0, "workedThroughAt": null, "extendedMs": 0, "lastLeaseMs": 0, "extendedAt": null},
		"entries": [], "waiters": []
	}`, got.Out)
	require.Equal(t, "berth: lock \"gpu\" in namespace \"berth\" is free: nobody holds it, and nobody waits for it\n", got.Err)
}

// TestTheSwarmIsShownAndFlushed lets a node go silent that holds a lock for an hour
// and does not renew it. Another one has a far longer limit, and lives.
func TestTheSwarmIsShownAndFlushed(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	const limit = 10 * time.Second
	way := link.New(nil)
	redis := apptest.Got(s.Client(way.Wrap))(t)
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

	got := apptest.Call(t, s.URL(), "swarm", "status").Ends(t, 0)
	require.Regexp(t, `^NODE +STATE +PROBED +LIMIT +LABEL\n`+id+` +alive +[\d.]+[mµ]?s +10s +dead/one/1\n$`, got.Out)

	way.Cut()
	live := apptest.LocksOf(t, s, node.Config{
		Label: "live/one/2", Swarm: node.SwarmConfig{ProbeEvery: time.Minute, ZombieAfter: time.Hour, FlushEvery: -1},
	})
	require.NoError(t, live.Swarm().Start(context.Background()))
	require.Eventually(t, func() bool { return strings.Contains(apptest.Call(t, s.URL(), "swarm", "status").Out, "zombie") },
		apptest.Patience, 200*time.Millisecond)

	document := apptest.Read[swarmDocument](t, apptest.Call(t, s.URL(), "swarm", "status", "--json").Out)
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
