package lock

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/apptest"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
)

func TestLockExtend(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	locks := apptest.LocksOf(t, s, node.Config{})
	apptest.Got(locks.Lock(t.Context(), "gpu", &qlock.LockOptions{MaxHold: time.Hour}))(t)
	apptest.Got(locks.Lock(t.Context(), "disk 2", &qlock.LockOptions{Lease: berth.Forever}))(t)
	got := apptest.Call(t, s.URL(), "lock", "extend", "gpu", "--by", "10m", "--force").Ends(t, 0)
	require.Regexp(t, `^gpu: extended by 10m00s, 10m\d\ds left\n$`, got.Out)

	extended := apptest.Read[extendDocument](t, apptest.Call(t, s.URL(), "lock", "extend", "gpu", "--by", "2h", "--force", "--json").Out)
	require.Equal(t, 2*time.Hour, extended.By)
	require.InDelta(t, time.Hour, extended.Left, float64(apptest.Patience), "the maximum hold bounds it")

	got = apptest.Call(t, s.URL(), "lock", "extend", "disk 2", "--by", "1s", "--force")
	require.Equal(t, apptest.Outcome(0, "disk 2: extended by 1s, forever left\n", ""), got)
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
	_, err = qlock.New(dead, nil).Lock(context.Background(), "table", &qlock.LockOptions{Lease: time.Hour, NoRenew: true})
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

	require.Contains(t, apptest.Call(t, s.URL(), "swarm", "status").Out, "\nDead nodes have left behind: 0 waiting, held: lock table\n")

	require.Equal(t, apptest.Outcome(0, "nodes condemned: 1, holds ended: 1, waiting claims removed: 0\n", ""), apptest.Call(t, s.URL(), "swarm", "flush"))
	require.Contains(t, apptest.Call(t, s.URL(), "swarm", "status").Out, "condemned")
	lock, err := live.TryLock(context.Background(), "table", nil)
	require.NoError(t, err, "it is free")
	require.NoError(t, lock.Release(context.Background()))
}
