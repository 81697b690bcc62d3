package swarm

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/observe"
)

// limited gives a node a zombie limit of its own.
func limited(limit time.Duration) func(*Config) {
	return func(c *Config) { c.ZombieAfter, c.ProbeEvery = limit, limit/2 }
}

// listed are the nodes that Info goes through.
func listed(t *testing.T, n *node) map[string]Node {
	t.Helper()
	all := make(map[string]Node)
	for one, err := range n.Info(context.Background()) {
		require.NoError(t, err)
		all[one.ID] = one
	}
	return all
}

func TestANodeIsDeadByItsOwnLimitAlone(t *testing.T) {
	for flusher, its := range map[string]time.Duration{"a shorter one": 200 * ms, "a longer one": 24 * time.Hour} {
		t.Run("whoever flushes has "+flusher, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				ctx := context.Background()
				const own = time.Minute
				a, b := w.node("a", limited(own)).start(), w.node("b", limited(its))
				w.line.hold("x", "a.1", "a", false)
				a.Cut()

				w.Until(own - ms)
				require.Equal(t, own, listed(t, b)["a"].ZombieAfter)
				require.False(t, listed(t, b)["a"].Zombie)
				require.Equal(t, w.Began.UnixMilli(), listed(t, b)["a"].ProbedAt.UnixMilli())
				z, err := b.Zombies(ctx)
				require.NoError(t, err)
				require.Empty(t, z.Nodes)
				out, err := b.FlushNow(ctx)
				require.NoError(t, err)
				require.Zero(t, out)
				_, mine, err := b.calls.Condemn(ctx, "a")
				require.NoError(t, err)
				require.False(t, mine, "nor does the script do it that condemns")

				w.Until(own)
				require.True(t, listed(t, b)["a"].Zombie)
				z, err = b.Zombies(ctx)
				require.NoError(t, err)
				require.Equal(t, []string{"a"}, z.Nodes)
				out, err = b.FlushNow(ctx)
				require.NoError(t, err)
				require.Equal(t, Flushed{Nodes: 1, Holds: 1}, out)
				w.Advance(time.Minute)
				require.Equal(t, own, listed(t, b)["a"].ZombieAfter, "it is remembered")
				require.Equal(t, w.Began.UnixMilli(), listed(t, b)["a"].ProbedAt.UnixMilli())
			})
		})
	}
}

// The limit that a node has been given with its last probe counts until the next.
func TestALateCallIsJudgedByTheStoredLimit(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		probe := func(node, limit string) string {
			r := w.Call("swarm_probe", node, "1", "l", limit, memoryMS)
			return r.Status()
		}
		require.Equal(t, "probed", probe("a", "60000"))
		require.Equal(t, "probed", probe("b", "1000"))
		w.Advance(time.Second)
		require.Equal(t, "condemned", probe("b", "60000"))
		require.Equal(t, "condemned", w.leave("b", 1, 0))
		w.Advance(58 * time.Second)
		require.Equal(t, "probed", probe("a", "1000"))
		w.Advance(999 * ms)
		require.Equal(t, "probed", probe("a", "60000"))
		w.Advance(time.Minute - ms)
		require.Equal(t, "left", w.leave("a", 1, 0))
	})
}

// Who may not read the names could remove nothing of those that it has condemned.
func TestNobodyIsCondemnedWhileTheNamesCannotBeRead(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		w.probe("dead", 1)
		b := w.node("b")
		w.line.fail("*", errMine)
		out, err := b.FlushNow(ctx)
		require.ErrorIs(t, err, errMine, "nobody is dead, but some may be lost")
		require.Zero(t, out)
		w.Advance(limit)
		for range 2 {
			out, err = b.FlushNow(ctx)
			require.ErrorIs(t, err, errMine)
			require.Zero(t, out)
		}
		require.ErrorIs(t, b.Status().Err, errMine)
		require.Equal(t, []string{"p:dead"}, w.members())
		require.Empty(t, b.Told(observe.Condemned))
		require.True(t, listed(t, b)["dead"].Zombie)
		require.False(t, listed(t, b)["dead"].Condemned)
		w.line.fail("*", nil)
		out, err = b.FlushNow(ctx)
		require.NoError(t, err)
		require.Equal(t, Flushed{Nodes: 1}, out)
	})
}
