package swarm

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/observe"
)

func TestANodeProbesAndItsHorizonFollows(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node("a")
		require.Zero(t, n.Horizon("a"), "no swarm runs")
		require.False(t, n.Running())
		w.Advance(time.Second)
		n.start()
		require.True(t, n.Running())
		require.Equal(t, last+time.Second, n.Horizon("a"))
		require.Zero(t, n.Horizon("b"), "another id")
		require.Equal(t, Status{Running: true, Node: "a", ProbedAt: time.Now()}, n.Status())
		n.Reset()
		w.Advance(2*time.Second - ms)
		require.Zero(t, n.Count("swarm_probe"))
		w.Advance(ms)
		require.Equal(t, 1, n.Count("swarm_probe"))
		require.Equal(t, last+3*time.Second, n.Horizon("a"))
		w.Advance(10 * time.Minute)
		require.Equal(t, 301, n.Count("swarm_probe"))
		require.Zero(t, n.Count("ZRANGEBYSCORE"))
		require.Empty(t, n.ends())
	})
}

// The time that a probe takes counts as if the server had it at once.
func TestTheHorizonCountsFromTheStartOfTheProbe(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node("a").start()
		n.Once("swarm_probe", link.Slow(time.Second))
		w.Advance(2 * time.Second)
		require.Equal(t, last, n.Horizon("a"), "its answer is not there")
		w.Advance(time.Second)
		require.Equal(t, last+2*time.Second, n.Horizon("a"))
	})
}

func TestANodeThatIsCutOffIsReplacedAtItsHorizon(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node("a").start()
		w.Advance(2 * time.Second)
		n.Cut()
		w.Until(2*time.Second + last - ms)
		require.Empty(t, n.ends())
		require.False(t, n.Passed("a"))
		failed := n.Told(observe.ProbeFailed)
		require.NotEmpty(t, failed)
		require.Equal(t, "a", failed[0].Node)
		require.Error(t, failed[0].Err)
		require.Equal(t, 2*time.Second+last-4*time.Second, failed[0].Left)
		require.Error(t, n.Status().Err)
		w.Advance(ms)
		require.Equal(t, []replaced{{2*time.Second + last, "a", ReasonSilent}}, n.ends())
		require.Zero(t, n.Horizon("a-1"), "no probe of the new one can have run")
		w.Advance(2 * time.Minute)
		require.Len(t, n.ends(), 1, "who is not in the swarm is not replaced")
		n.Mend()
		w.Advance(2 * time.Second)
		require.NotZero(t, n.Horizon("a-1"))
		require.Equal(t, []string{"p:a", "p:a-1"}, w.members())
		require.NoError(t, n.Status().Err)
		require.Equal(t, "a-1", n.Status().Node)
	})
}

// Nothing comes back, and whether it arrives nobody knows.
func TestANodeIsReplacedWhateverIsInFlight(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node("a").start()
		n.Stall()
		w.Until(last - ms)
		require.Empty(t, n.ends())
		w.Until(last)
		require.Equal(t, []replaced{{last, "a", ReasonSilent}}, n.ends())
		require.Equal(t, 2*last, n.Horizon("a-1"), "its first probe may have run")
		w.Until(2 * last)
		require.Len(t, n.ends(), 2)
		n.Flow()
		w.Advance(3 * time.Second)
		require.NotZero(t, n.Horizon("a-2"))
		require.Len(t, n.ends(), 2)
	})
}

func TestALateAnswerRevivesNobody(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node("a").start()
		n.OnCommand(func(c link.Command) link.Fate {
			switch {
			case c.Name != "swarm_probe" || c.Args[4] != "a":
				return link.Pass
			case w.Now() < last-3*time.Second:
				return link.LoseRequest
			}
			return link.Slow(last + 500*ms - w.Now())
		})
		w.Until(last - ms)
		require.Contains(t, w.members(), "p:a")
		require.Equal(t, "alive 13153", w.condemn("a"), "the server has its last probe, of 13 s")
		require.Equal(t, last, n.Horizon("a"))
		require.Empty(t, n.ends())
		w.Until(last)
		require.Equal(t, []replaced{{last, "a", ReasonSilent}}, n.ends())
		require.Equal(t, 2*last, n.Horizon("a-1"))
		w.Until(last + time.Second) // the answer is there
		require.Zero(t, n.Horizon("a"))
		require.Equal(t, 2*last, n.Horizon("a-1"))
		require.Len(t, n.ends(), 1)
	})
}

// Of a handle that looks at the clock, and an answer that comes then, one wins.
func TestWhoHasSeenTheHorizonPassIsNotContradicted(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node("a").start()
		n.arm("a", n.cfg.Clock.Now()) // this very moment, without the loop
		require.True(t, n.Passed("a"))
		require.False(t, n.confirm("a", last))
		require.False(t, n.disarm("a"))
		require.Negative(t, n.Horizon("a"))
		require.False(t, n.Passed("b"))
		synctest.Wait()
		require.Equal(t, []replaced{{0, "a", ReasonSilent}}, n.ends(), "and the node is replaced at once")
	})
}

func TestAProbeThatComesTooLateIsNotTakenForConfirmed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node("a").start()
		n.probesMeet(link.Slow(time.Second))
		probed := inBackground(func() error { return n.ProbeNow(context.Background()) })
		n.arm("a", n.cfg.Clock.Now()+500*ms) // and the loop does not know
		require.NoError(t, <-probed)
		require.Equal(t, 2*time.Second, w.Now(), "that of the new id")
		require.Equal(t, []replaced{{time.Second, "a", ReasonSilent}}, n.ends())
	})
}

func TestTheHorizonNeverMovesBack(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node("a").start()
		require.True(t, n.confirm("a", last-time.Second))
		require.Equal(t, last, n.Horizon("a"))
		require.False(t, n.confirm("b", 2*last))
		require.Equal(t, last, n.Horizon("a"))
	})
}

func TestAPauseBelowTheLimitCostsNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node("a").start(), w.node("b").start()
		w.line.hold("x", "a.1", "a", false)
		a.Cut()
		w.Until(last - 10*ms)
		b.flushes(Flushed{})
		a.heal()
		w.Advance(time.Minute)
		b.flushes(Flushed{})
		require.Empty(t, a.ends())
	})
}

func TestACondemnedNodeIsReplacedAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node("a").start()
		w.Do("ZREM", probesKey, "p:a")
		w.Do("ZADD", probesKey, "1", "c:a")
		w.Do("ZADD", probesKey, "XX", "20000000000000", "c:a")
		w.Until(2 * time.Second)
		require.Equal(t, []replaced{{2 * time.Second, "a", ReasonCondemned}}, n.ends())
		require.Equal(t, 2*time.Second+last, n.Horizon("a-1"))
		w.Advance(time.Minute)
		require.Len(t, n.ends(), 1)
	})
}

func TestALostReplyIsAskedForAgain(t *testing.T) {
	for name, fate := range map[string]link.Fate{"reply": link.LoseReply, "request": link.LoseRequest} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n := w.node("a").start()
				n.Once("swarm_probe", fate)
				w.Advance(2 * time.Second)
				require.Equal(t, last, n.Horizon("a"), "not confirmed")
				require.Len(t, n.Told(observe.ProbeFailed), 1)
				w.Advance(200*ms - ms)
				require.Equal(t, last, n.Horizon("a"))
				w.Advance(ms)
				require.Equal(t, last+2200*ms, n.Horizon("a"))
				require.NoError(t, n.Stop(context.Background()))
				require.Equal(t, []string{"t:a"}, w.members(), "one may still come")
			})
		})
	}
}

func TestProbeNowProbesOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node("a").start()
		w.Advance(time.Second)
		n.Reset()
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() { require.NoError(t, n.ProbeNow(context.Background())) })
		}
		all.Wait()
		require.Equal(t, last+time.Second, n.Horizon("a"))
		require.LessOrEqual(t, n.Count("swarm_probe"), 10)
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(errMine)
		n.Stall()
		err := n.ProbeNow(ctx)
		n.Flow()
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, errMine)
		synctest.Wait()
		n.Once("swarm_probe", link.LoseRequest)
		require.Error(t, n.ProbeNow(context.Background()))
	})
}

// limited gives a node a zombie limit of its own.
func limited(limit time.Duration) func(*Config) {
	return func(c *Config) { c.ZombieAfter, c.ProbeEvery = limit, limit/2 }
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
				require.Equal(t, own, b.listed()["a"].ZombieAfter)
				require.False(t, b.listed()["a"].Zombie)
				require.Equal(t, w.Began.UnixMilli(), b.listed()["a"].ProbedAt.UnixMilli())
				z := b.zombies()
				require.Empty(t, z.Nodes)
				b.flushes(Flushed{})
				_, mine, err := b.calls.Condemn(ctx, "a")
				require.NoError(t, err)
				require.False(t, mine, "nor does the script do it that condemns")

				w.Until(own)
				require.True(t, b.listed()["a"].Zombie)
				z = b.zombies()
				require.Equal(t, []string{"a"}, z.Nodes)
				b.flushes(Flushed{Nodes: 1, Holds: 1})
				w.Advance(time.Minute)
				require.Equal(t, own, b.listed()["a"].ZombieAfter, "it is remembered")
				require.Equal(t, w.Began.UnixMilli(), b.listed()["a"].ProbedAt.UnixMilli())
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
		require.True(t, b.listed()["dead"].Zombie)
		require.False(t, b.listed()["dead"].Condemned)
		w.line.fail("*", nil)
		b.flushes(Flushed{Nodes: 1})
	})
}
