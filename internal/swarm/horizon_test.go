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
		status, left := w.condemn("a")
		require.Equal(t, "alive", status)
		require.Greater(t, left, int64(12000), "the server has its last probe")
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
		n.OnCommand(func(c link.Command) link.Fate {
			if c.Name == "swarm_probe" {
				return link.Slow(time.Second)
			}
			return link.Pass
		})
		probed := make(chan error, 1)
		go func() { probed <- n.ProbeNow(context.Background()) }()
		synctest.Wait()
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
		out, err := b.FlushNow(context.Background())
		require.NoError(t, err)
		require.Zero(t, out)
		a.heal()
		w.Advance(time.Minute)
		out, err = b.FlushNow(context.Background())
		require.NoError(t, err)
		require.Zero(t, out)
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
