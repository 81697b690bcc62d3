package swarm

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/guard"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/observe"
)

func TestAFlushRemovesWhatTheDeadHave(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		a, b := w.node("a").start(), w.node("b").start()
		w.line.hold("x", "a.1", "a", false)
		w.line.wait("x", "b.1", "b")
		w.line.wait("x", "a.2", "a")
		w.line.hold("y", "a.3", "a", true)
		w.line.hold("y", "c.1", "c", false) // never in the swarm
		w.line.wait("z", "a.4", "a")
		a.Cut()

		w.Until(limit - ms)
		z := b.zombies()
		require.Empty(t, z.Nodes)
		b.flushes(Flushed{})

		w.Until(limit)
		z = b.zombies()
		require.Equal(t, []string{"a"}, z.Nodes)
		require.Equal(t, []string{"a.2", "a.4", "owner of a.1"}, z.Owners, "a claim without an owner is its own")
		require.Len(t, z.Holds, 1)
		require.Equal(t, "x", z.Holds[0].Name)
		require.Equal(t, "a.1", z.Holds[0].ID)
		require.Len(t, z.Waiters, 2)
		require.Empty(t, w.line.ended(), "that changed nothing")

		b.flushes(Flushed{Nodes: 1, Holds: 1, Waiters: 2})
		require.Equal(t, []string{"x/a.2", "x/a.1", "z/a.4"}, w.line.ended(), "waiters first")
		require.Equal(t, "b.1", w.line.holders["x"][0].ID, "handed on")
		require.Len(t, w.line.holders["y"], 2)

		condemned := b.Told(observe.Condemned)
		require.Len(t, condemned, 1)
		require.Equal(t, observe.Event{Kind: observe.Condemned, Context: ctx, Node: "b", Detail: "a"}, condemned[0])
		require.Equal(t, []observe.Event{
			{Kind: observe.Flushed, Primitive: "lock", Context: ctx, Name: "x", Node: "b", Detail: "a", Count: 2},
			{Kind: observe.Flushed, Primitive: "lock", Context: ctx, Name: "z", Node: "b", Detail: "a", Count: 1},
		}, b.Told(observe.Flushed))
		require.Equal(t, time.Now(), b.Status().FlushedAt)

		z = b.zombies()
		require.Zero(t, z, "it left with its flush")

		a.heal()
		require.Equal(t, []string{"p:b", "p:a-1", "c:a"}, w.members())
		w.line.wait("y", "a.5", "a") // it came late
		z = b.zombies()
		require.Equal(t, []string{"a"}, z.Nodes)
		require.Equal(t, []string{"a.5"}, z.Owners)
	})
}

func TestEveryPassCoversWhoWasCondemnedWithinADay(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		require.Equal(t, "probed", w.probe("dead", 1))
		b := w.node("b")
		w.Advance(limit)
		b.flushes(Flushed{Nodes: 1})              // its swarm is not started
		w.line.hold("x", "dead.1", "dead", false) // it came late
		w.Advance(24*time.Hour - ms)
		b.flushes(Flushed{Holds: 1})
		w.line.hold("x", "dead.2", "dead", false)
		w.Advance(ms)
		b.flushes(Flushed{})
		require.Len(t, b.Told(observe.Condemned), 1)
	})
}

func TestAnErrorWithOneDoesNotStopTheOthers(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		w.probe("dead", 1)
		b := w.node("b")
		for i := range 20 {
			w.line.hold(fmt.Sprintf("n%d", i), "dead.1", "dead", false)
			w.line.hold(fmt.Sprintf("n%d", i), "dead.2", "dead", false)
		}
		for i := range 10 {
			w.line.fail(fmt.Sprintf("n%d", i), errMine)
		}
		w.line.fail("n19/dead.1", fmt.Errorf("another reason"))
		w.line.fail("n18/dead.1", berth.ErrExpired)
		w.Advance(limit)
		out, err := b.FlushNow(ctx)
		require.ErrorIs(t, err, errMine)
		require.ErrorContains(t, err, "and 3 more errors")
		require.ErrorIs(t, b.Status().Err, errMine)
		require.Equal(t, Flushed{Nodes: 1, Holds: 38}, out)
		for i := range 10 {
			w.line.fail(fmt.Sprintf("n%d", i), nil)
		}
		w.line.fail("n19/dead.1", nil)
		w.line.fail("n18/dead.1", nil)
		w.line.fail("*", errMine)
		_, err = b.Zombies(ctx)
		require.ErrorIs(t, err, errMine)
		out, err = b.FlushNow(ctx)
		require.ErrorIs(t, err, errMine)
		require.Equal(t, Flushed{Holds: 2}, out)
		w.line.fail("*", nil)
		b.flushes(Flushed{})
		require.NoError(t, b.Status().Err)
	})
}

func TestAPassThatIsCutShortSaysSo(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.probe("dead", 1)
		ctx, cancel := context.WithCancelCause(context.Background())
		b := w.node("b", func(c *Config) {
			c.Observe = func(e observe.Event) {
				if e.Kind == observe.Flushed {
					cancel(errMine)
				}
			}
		})
		w.line.hold("x", "dead.1", "dead", false)
		w.line.hold("y", "dead.2", "dead", false)
		w.Advance(limit)
		out, err := b.FlushNow(ctx)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, errMine)
		require.Equal(t, Flushed{Nodes: 1, Holds: 1}, out)
	})
}

func TestTwoMayFlushAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		for i := range 120 {
			w.probe(fmt.Sprintf("dead%d", i), 1)
			w.line.hold(fmt.Sprintf("n%d", i), "1", fmt.Sprintf("dead%d", i), false)
		}
		w.Advance(limit)
		nodes := []*node{w.node("a"), w.node("b")}
		var all sync.WaitGroup
		var mu sync.Mutex
		var sum Flushed
		for _, n := range nodes {
			all.Go(func() {
				out, err := n.FlushNow(ctx)
				require.NoError(t, err)
				mu.Lock()
				defer mu.Unlock()
				sum.Nodes += out.Nodes
				sum.Holds += out.Holds
			})
		}
		all.Wait()
		require.Equal(t, Flushed{Nodes: 120, Holds: 120}, sum)
		require.Len(t, w.line.ended(), 120)

		// All were condemned in one ms, and none is missed.
		for i := range 120 {
			w.line.hold(fmt.Sprintf("n%d", i), "2", fmt.Sprintf("dead%d", i), false)
		}
		out, err := nodes[0].FlushNow(ctx)
		require.NoError(t, err)
		require.Equal(t, Flushed{Holds: 120}, out)
	})
}

// The first attempt condemned the node, and nobody heard of it.
func TestACondemnationWhoseReplyIsLostIsCounted(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.probe("dead", 1)
		b := w.node("b")
		w.Advance(limit)
		b.Once("swarm_condemn", link.LoseReply)
		b.flushes(Flushed{Nodes: 1})
		require.Equal(t, 2, b.Count("swarm_condemn"))
		require.Len(t, b.Told(observe.Condemned), 1)
	})
}

func TestTheBackgroundFlushes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node("a", func(c *Config) { c.FlushEvery, c.ProbeEvery = 0, 7*time.Second }).start() // the default
		w.probe("dead", 1)
		w.line.hold("x", "dead.1", "dead", false)
		w.Until(20*time.Second - ms)
		require.Empty(t, w.line.ended())
		w.Until(20 * time.Second)
		require.Equal(t, []string{"x/dead.1"}, w.line.ended())
		require.Equal(t, time.Now(), n.Status().FlushedAt)
		w.line.hold("x", "dead.2", "dead", false) // it came late
		w.Advance(10 * time.Second)
		require.Len(t, w.line.ended(), 2)

		// While it finds nothing, it reads the names less and less often.
		w.Advance(time.Hour)
		require.Less(t, w.line.passed(), 15)
		w.line.hold("x", "dead.3", "dead", false)
		w.Advance(time.Hour)
		require.Len(t, w.line.ended(), 3)
		w.probe("next", 1)
		w.line.hold("x", "next.1", "next", false)
		w.Advance(limit + 10*time.Second)
		require.Len(t, w.line.ended(), 4, "another one is dead: at once")
		require.NoError(t, n.Stop(context.Background()))
		n.Reset()
		w.Advance(time.Hour)
		require.Zero(t, n.Count("ZRANGEBYSCORE"))
	})
}

func TestAPassThatFailedIsDoneAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node("a", func(c *Config) { c.FlushEvery = 10 * time.Second }).start()
		w.probe("dead", 1)
		w.line.hold("x", "dead.1", "dead", false)
		w.line.fail("x/dead.1", errMine)
		w.Until(20 * time.Second)
		require.ErrorIs(t, n.Status().Err, errMine)
		w.Until(50 * time.Second)
		require.Equal(t, 6, w.line.passed(), "each time, and once to see that the names can be read")
		w.line.fail("x/dead.1", nil)
		w.Advance(10 * time.Second)
		require.Len(t, w.line.ended(), 1)
		require.NoError(t, n.Status().Err)
	})
}

func TestInfoListsTheNodes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		n := w.node("a").start()
		w.probe("dead", 1)
		w.Advance(limit)
		out, err := n.FlushNow(ctx)
		require.NoError(t, err)
		require.Equal(t, 1, out.Nodes)
		w.Until(30 * time.Second)
		w.probe("late", 1)
		w.Advance(limit)
		require.Equal(t, map[string]Node{
			"a":    {ID: "a", Label: "label of a", ProbedAt: time.UnixMilli(w.Began.Add(44 * time.Second).UnixMilli()), ZombieAfter: limit},
			"dead": {ID: "dead", Label: "l", ProbedAt: time.UnixMilli(w.Began.UnixMilli()), ZombieAfter: limit, Zombie: true, Condemned: true},
			"late": {ID: "late", Label: "l", ProbedAt: time.UnixMilli(w.Began.Add(30 * time.Second).UnixMilli()), ZombieAfter: limit, Zombie: true},
		}, n.listed())
		for _, err := range n.Info(ctx) {
			require.NoError(t, err)
			break
		}
		n.Cut()
		for _, err := range n.Info(ctx) {
			require.Error(t, err)
		}
	})
}

func TestAFlushThatPanicsIsToldAndTheNodeProbesAndFlushesOn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.line.fail("*", errPanics)
		n := w.node("n", flushing).start()
		w.Advance(11 * time.Second)
		require.ErrorContains(t, n.Status().Err, "no such index")
		told := n.Told(observe.Panicked)
		require.NotEmpty(t, told)
		require.Equal(t, "a flush of the swarm", told[0].Detail)
		require.Equal(t, 1, w.line.passed(), "it does not spin")
		w.line.fail("*", nil)
		w.Advance(time.Minute)
		require.NoError(t, n.Status().Err)
		require.Equal(t, "n", n.current(), "it has probed all the time")
		require.Empty(t, n.ends())
	})
}

func TestAPanicOfTheLoopOrOfACallDelaysTheNextProbe(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var panics atomic.Int64
		n := w.node("n", func(c *Config) {
			c.Observe = func(e observe.Event) {
				if e.Kind == observe.ProbeFailed {
					panics.Add(1)
					panic(guard.Meant("the observer"))
				}
			}
			c.Leaving = func(context.Context) error { panics.Add(1); panic(guard.Meant("the last word")) }
		}).start()
		n.Cut()
		w.Advance(n.cfg.ProbeEvery + n.cfg.ZombieAfter/6 + n.cfg.ProbeEvery/5)
		require.Positive(t, panics.Load())
		require.LessOrEqual(t, panics.Load(), int64(3), "it does not spin")
		n.Mend()
		w.Advance(3 * n.cfg.ProbeEvery)
		require.NoError(t, n.Status().Err)
		require.Equal(t, "n", n.current())

		before := panics.Load()
		err := n.Stop(context.Background())
		require.ErrorContains(t, err, "the last word", "it goes on asking until the horizon passes")
		require.Greater(t, panics.Load(), before+1)
		require.Less(t, panics.Load(), before+100)
	})
}

func TestAShortProbeEndsNobody(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node("n", func(c *Config) { c.FlushEvery = 10 * time.Second }).start()
		w.Do("ZADD", probesKey, "5", "x", "6", "")
		w.Advance(11 * time.Second)
		require.ErrorContains(t, n.Status().Err, "damaged member")
		w.Do("ZREM", probesKey, "x", "")
		w.Advance(11 * time.Second)
		require.NoError(t, n.Status().Err)
		require.Empty(t, n.Told(observe.Panicked))
		require.Empty(t, n.ends())
	})
}
