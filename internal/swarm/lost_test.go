package swarm

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/observe"
)

// lose has the server lose what it knows of the nodes, as a shard does that restarts
// without its data.
func (w *world) lose() {
	w.T.Helper()
	w.Do("DEL", stateKey, probesKey)
}

// flushing gives a node its flushes, each 10 s.
func flushing(c *Config) { c.FlushEvery = 10 * time.Second }

func TestANodeThatTheServerHasLostAndThatHasDiedIsFlushed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node("a").start(), w.node("b", flushing).start()
		w.line.endless("x", "a.1", "a", limit)
		w.line.wait("x", "b.1", "b")
		w.line.endless("y", "d.1", "d", 0) // its node was never in the swarm
		w.line.endless("z", "b.2", "b", limit)
		w.Until(11 * time.Second) // it has flushed, and found nothing
		w.lose()
		a.Cut()
		w.Until(20 * time.Second)
		require.ElementsMatch(t, []string{"p:b", "p:a"}, w.members(), "it is missed")
		require.Equal(t, Node{
			ID: "a", Label: "label of a", ProbedAt: time.UnixMilli(w.Began.Add(20 * time.Second).UnixMilli()), ZombieAfter: limit,
		}, b.listed()["a"])
		w.Until(40*time.Second - ms) // a flush at 30 s: it has its limit from when it was missed
		require.Empty(t, w.line.ended())
		require.Empty(t, b.Told(observe.Condemned))
		w.Until(40 * time.Second)
		require.Equal(t, []string{"x/a.1"}, w.line.ended())
		require.Equal(t, "b.1", w.line.holders["x"][0].ID, "handed on")
		require.Len(t, b.Told(observe.Condemned), 1)
		w.Advance(10 * time.Minute)
		require.Len(t, w.line.ended(), 1, "nothing else")
		require.Empty(t, b.ends())
	})
}

// A server that restarts without its data refuses writes for longer than the limit: the node that lives is
// replaced, and its new id is honestly not known.
func TestANodeThatIsReplacedMeanwhileMissesTheOthersAllTheSame(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node("a").start(), w.node("b", flushing).start()
		w.line.endless("x", "a.1", "a", limit)
		w.Until(11 * time.Second) // b has flushed, and found nothing
		w.lose()
		a.Cut() // and dies
		b.Cut()
		w.Until(40 * time.Second)
		require.NotEmpty(t, b.ends())
		b.heal()
		w.Advance(2*10*time.Second + limit)
		require.Equal(t, []string{"x/a.1"}, w.line.ended())
	})
}

// Whoever is missed and lives probes within its own limit, however long that is.
func TestANodeThatTheServerHasLostAndThatLivesLosesNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		slow, b := w.node("slow", limited(time.Minute)).start(), w.node("b", flushing).start()
		w.line.endless("x", "slow.1", "slow", time.Minute)
		w.Until(31 * time.Second) // it has just probed
		for range 4 {
			w.lose()
			w.Advance(30*time.Second - ms)
			require.Contains(t, w.members(), "p:slow")
		}
		w.Advance(10 * time.Minute)
		require.Empty(t, w.line.ended())
		require.Empty(t, append(slow.ends(), b.ends()...))

		// One that was missed may stop as well.
		w.lose()
		b.flushes(Flushed{})
		require.Contains(t, w.members(), "p:slow")
		require.NoError(t, slow.Stop(context.Background()))
		require.NotContains(t, w.members(), "p:slow")
		require.NoError(t, slow.Start(context.Background()))
		require.Contains(t, w.members(), "p:slow")
	})
}

// All died, and the server has nothing but the claims.
func TestAFirstFlushMissesTheNodesOfThoseBefore(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.line.endless("x", "a.1", "a", limit)
		w.line.hold("y", "a.2", "a", false)
		w.line.hold("z", "a.3", "a", true)
		b := w.node("b", flushing).start()
		w.Until(30 * time.Second)
		require.Equal(t, []string{"x/a.1", "y/a.2"}, w.line.ended(), "all that it has, but for what is detached")
		require.Empty(t, b.ends())
	})
}

func TestAnOperatorFlushesTwiceWhomTheServerHasLost(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.line.endless("x", "a.1", "a", limit)
		b := w.node("b") // it takes no part
		for range 2 {
			b.flushes(Flushed{})
			require.Equal(t, 24*time.Hour+time.Minute, w.Expiry())
		}
		w.Until(limit - ms)
		b.flushes(Flushed{})
		w.Until(limit)
		z := b.zombies()
		require.Equal(t, []string{"a"}, z.Nodes)
		b.flushes(Flushed{Nodes: 1, Holds: 1})
	})
}

func TestWhoIsKnownIsNotExpected(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		expect := func(nodes ...string) int64 {
			args := []string{memoryMS}
			for _, node := range nodes {
				args = append(args, node, limitMS, "l")
			}
			r := w.Call("swarm_expect", args...)
			require.Equal(t, "expected", r.Status())
			return r.Int(1)
		}
		require.Zero(t, expect())
		require.Empty(t, w.Keys())
		w.probe("dead", 1)
		w.Advance(limit)
		w.condemn("dead")
		w.probe("late", 1)
		w.Advance(limit)
		w.probe("a", 1)
		require.EqualValues(t, 1, expect("a", "dead", "late", "lost"))
		require.Zero(t, expect("a", "dead", "late", "lost"))
		require.Equal(t, "alive "+limitMS, w.condemn("a"))
		require.Equal(t, "condemned 1", w.condemn("late"), "nobody revives it")
		require.Equal(t, "probed", w.probe("lost", 1), "it lives")
		require.Equal(t, "left", w.leave("lost", 1, 0))
		require.EqualValues(t, 1, expect("lost"))
		w.Advance(limit)
		require.Equal(t, "condemned", w.probe("lost", 2))
	})
}

func TestTheNamesAreReadOnceAnHourWhileNobodyIsDead(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node("a", flushing, limited(time.Hour)).start()
		w.line.endless("x", "a.1", "a", time.Hour)
		w.Until(3 * time.Hour)
		require.Equal(t, 3, w.line.passed())
		w.lose()
		require.NoError(t, n.ProbeNow(context.Background()))
		w.Advance(10 * time.Second)
		require.Equal(t, 4, w.line.passed(), "at once")
		require.NoError(t, n.Stop(context.Background()))
	})
}

func TestALossDuringAFlushIsNotOverlooked(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var n *node
		n = w.node("a", flushing, func(c *Config) {
			tell := c.Observe
			c.Observe = func(e observe.Event) {
				tell(e)
				if e.Kind == observe.Flushed {
					n.forgotten()
				}
			}
		}).start()
		w.probe("dead", 1)
		w.line.hold("x", "dead.1", "dead", false)
		w.Until(20 * time.Second)
		require.Len(t, w.line.ended(), 1)
		before := w.line.passed()
		w.Until(30 * time.Second)
		require.Equal(t, before+1, w.line.passed())
	})
}

// What its claims say of it must be true whenever it is not in the list.
func TestANodeSaysThatItIsInTheSwarmWhileTheServerHasIt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var asked []time.Duration
		var n *node
		fails := 0
		n = w.node("a", func(c *Config) {
			c.Leaving = func(context.Context) error {
				require.Zero(t, n.Limit("a"))
				require.Contains(t, w.members(), "p:a", "it is still there")
				asked = append(asked, w.Now())
				if fails--; fails >= 0 {
					return errMine
				}
				return nil
			}
		})
		require.Zero(t, n.Limit("a"))
		n.Once("swarm_probe", link.Slow(time.Second))
		n.start()
		require.Equal(t, limit, n.Limit("a"))
		require.Zero(t, n.Limit("b"))
		fails = 2
		require.NoError(t, n.Stop(context.Background()))
		require.Equal(t, []time.Duration{time.Second, 1200 * ms, 1600 * ms}, asked, "until it succeeds")
		require.Empty(t, w.members())
		require.Zero(t, n.Limit("a"))

		n.start()
		n.Stall()
		w.Advance(limit)
		require.Len(t, n.ends(), 1)
		require.Zero(t, n.Limit("a"))
		require.Zero(t, n.Limit("a-1"), "no probe of it is confirmed")
		asked = nil
		gone, cancel := context.WithCancel(context.Background())
		cancel()
		require.Error(t, n.Stop(gone))
		require.Empty(t, asked, "no claim can have said so")
		n.Flow()
	})
}

// A restart from an older snapshot has brought back what this node had released.
func TestANodeEndsWhatItDoesNotKnowOfItsOwn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		b := w.node("b").start()
		w.line.endless("x", "b.1", "b", limit)
		w.line.endless("y", "b.2", "b", limit)
		w.line.endless("z", "b.3", "b", limit)
		w.line.unknown = map[string]bool{"b.1": true, "b.3": true}
		w.line.parting = func() { w.line.detach("z") } // after the first reading
		b.flushes(Flushed{Holds: 1})
		require.Equal(t, []string{"x/b.1"}, w.line.ended(), "not what it knows, nor what it has detached meanwhile")
		require.Len(t, b.Told(observe.Flushed), 1)
	})
}
