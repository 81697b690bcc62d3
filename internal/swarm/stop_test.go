package swarm

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/observe"
)

func TestStopTakesTheNodeOut(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node("a").start(), w.node("b").start()
		w.line.hold("x", "a.1", "a", false)
		w.Advance(time.Second)
		require.NoError(t, a.Stop(context.Background()))
		require.False(t, a.Running())
		require.Zero(t, a.Horizon("a"))
		require.Equal(t, []string{"p:b"}, w.members(), "every probe was answered, so no tombstone")
		a.Reset()
		w.Advance(time.Minute)
		require.Zero(t, a.Count("swarm_probe"), "it probes no more")
		b.flushes(Flushed{})
		require.Empty(t, a.ends())
		require.NoError(t, b.Stop(context.Background()))
		require.Empty(t, w.Keys(), "the last one leaves nothing")
	})
}

func TestStopMayComeBeforeStartAndTwiceAndAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		n := w.node("a")
		require.NoError(t, n.Stop(ctx))
		require.ErrorIs(t, n.ProbeNow(ctx), berth.ErrNotRunning)
		n.start()
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() { require.NoError(t, n.Stop(ctx)) })
		}
		all.Wait()
		require.NoError(t, n.Stop(ctx))
		require.ErrorIs(t, n.ProbeNow(ctx), berth.ErrNotRunning)
		for range 4 {
			all.Go(func() { require.NoError(t, n.Start(ctx)) })
		}
		all.Wait()
		require.Equal(t, 2, n.Count("swarm_probe"), "one for each start")
		require.True(t, n.Running())
		require.Equal(t, []string{"p:a"}, w.members())
	})
}

// A Start that meets a Stop waits for it, and starts anew.
func TestAStartDuringAStopStartsAnew(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node("a").start()
		n.Once("swarm_leave", link.Slow(time.Second))
		stopped := inBackground(func() error { return n.Stop(context.Background()) })
		require.False(t, n.Running())
		require.Equal(t, last, n.Horizon("a"), "until it is known that it has left")
		require.ErrorIs(t, n.ProbeNow(context.Background()), berth.ErrNotRunning)
		require.Zero(t, w.Now(), "it is told at once")
		require.NoError(t, n.Start(context.Background()))
		require.Equal(t, time.Second, w.Now())
		require.NoError(t, <-stopped)
		require.True(t, n.Running())
		require.Equal(t, last+time.Second, n.Horizon("a"))
		require.Equal(t, []string{"p:a"}, w.members())
	})
}

// A Stop that comes while Start waits for its first probe ends that run, and not the
// Start.
func TestAStartThatAStopMeetsStartsAnew(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node("a")
		n.Once("swarm_probe", link.Slow(time.Second))
		started := make(chan error, 2)
		for range 2 {
			go func() { started <- n.Start(context.Background()) }()
		}
		synctest.Wait()
		n.Once("swarm_leave", link.Slow(time.Second))
		stopped := inBackground(func() error { return n.Stop(context.Background()) })
		require.NoError(t, <-stopped)
		for range 2 {
			require.NoError(t, <-started)
		}
		require.True(t, n.Running())
		require.NotZero(t, n.Horizon("a"))
		require.Contains(t, w.members(), "p:a")
		require.Empty(t, n.ends())
	})
}

// The probe was not answered and comes after the node has left.
func TestAGhostProbeDoesNotBringBackWhoHasLeft(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node("a").start()
		n.Once("swarm_probe", link.Late)
		w.Advance(2 * time.Second)
		require.NoError(t, n.Stop(context.Background()))
		count, err := n.DeliverLate()
		require.NoError(t, err)
		require.Equal(t, 1, count)
		require.Equal(t, []string{"t:a"}, w.members())
		n.start()
		require.Equal(t, []string{"p:a", "t:a"}, w.members(), "a later run is another matter")
		w.Advance(time.Minute + 2*time.Second)
		require.Equal(t, []string{"p:a"}, w.members(), "and the tombstone ends")
	})
}

// The first probe ran, and its caller was told that it failed.
func TestAStartThatFailsLeavesNobodyInTheSwarm(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node("a")
		n.probesMeet(link.LoseReply)
		require.Error(t, n.Start(context.Background()))
		require.Equal(t, 15, n.Count("swarm_probe"), "as many as Config.Retry lets begin within 10 s")
		require.False(t, n.Running())
		require.NoError(t, n.Stop(context.Background()), "waits until it has left")
		require.Equal(t, []string{"t:a"}, w.members())
		require.Zero(t, n.Horizon("a"))
		require.Empty(t, n.ends())
		n.OnCommand(nil)
		n.start()
		require.Equal(t, []string{"p:a", "t:a"}, w.members())
	})
}

func TestAStartThatReachesNobodyChangesNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node("a")
		n.Cut()
		w.Advance(time.Second)
		for range 3 { // until no connection is left that it could be sent on
			_, err := n.FlushNow(context.Background())
			require.Error(t, err)
		}
		require.Error(t, n.Start(context.Background()))
		require.NoError(t, n.Stop(context.Background()))
		require.Zero(t, n.Horizon("a"))
		require.Empty(t, n.ends())
		require.Len(t, n.Told(observe.ProbeFailed), 1)
		require.Zero(t, n.Told(observe.ProbeFailed)[0].Left, "nothing ends")
		require.Empty(t, w.Keys())
	})
}

func TestAStartWhoseContextEndsReturnsAndLeaves(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node("a")
		n.probesMeet(link.Slow(10 * time.Second))
		ctx, cancel := context.WithTimeoutCause(context.Background(), time.Second, errMine)
		defer cancel()
		err := n.Start(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, errMine)
		require.Equal(t, time.Second, w.Now())
		synctest.Wait()
		require.False(t, n.Running())
		require.NoError(t, n.Stop(context.Background()))
		require.NotContains(t, w.members(), "p:a")
		require.Empty(t, n.ends())
	})
}

// It is not known whether the node is out, so its handles end when they would have.
func TestAStopThatIsNotAnsweredEndsAtTheHorizon(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node("a").start()
		n.Cut()
		require.Error(t, n.Stop(context.Background()))
		require.Equal(t, last, w.Now())
		require.Equal(t, []replaced{{last, "a", ReasonSilent}}, n.ends())
		require.Zero(t, n.Horizon("a"))
		require.Zero(t, n.Horizon("a-1"))
		require.False(t, n.Running())
	})
}

func TestAStopThatIsAnsweredAtLastCostsNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node("a").start()
		n.Cut()
		time.AfterFunc(10*time.Second, n.Mend)
		require.NoError(t, n.Stop(context.Background()))
		require.Less(t, w.Now(), 12*time.Second+ms)
		require.Empty(t, n.ends())
		require.Empty(t, w.members())
	})
}

func TestAStopThatIsCutShortReplacesTheNode(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node("a").start()
		n.Stall()
		ctx, cancel := context.WithTimeoutCause(context.Background(), time.Second, errMine)
		defer cancel()
		err := n.Stop(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, errMine)
		require.Equal(t, time.Second, w.Now())
		require.Equal(t, []replaced{{time.Second, "a", ReasonUnsure}}, n.ends())
		require.False(t, n.Running())
		n.Flow()
		require.NoError(t, n.Stop(context.Background()), "waits for the rest")
	})
}

// The process stood still, and its first act is to stop.
func TestAStopAfterTheHorizonDoesNotSaveTheNode(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node("a").start()
		n.Once("swarm_leave", link.Slow(2*time.Second))
		n.Cut()
		w.Until(last - time.Second)
		n.Mend()
		require.Error(t, n.Stop(context.Background()))
		require.Equal(t, []replaced{{last, "a", ReasonSilent}}, n.ends())
	})
}

func TestAClosingClientEndsTheSwarm(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node("a").start()
		n.mu.Lock()
		n.closing = true
		n.mu.Unlock()
		n.Cut()
		w.Until(last)
		require.False(t, n.Running())
		require.Len(t, n.ends(), 1)
		n.Reset()
		w.Advance(time.Minute)
		require.Zero(t, n.Count("swarm_probe"))
	})
}

func TestTheTimesThatCannotBeAreRefused(t *testing.T) {
	t.Parallel()
	require.NoError(t, Config{}.Validate())
	for field, cfgs := range map[string][]Config{
		"Swarm.ProbeEvery": {{ProbeEvery: -1}, {ProbeEvery: ms - 1}},
		"Swarm.ZombieAfter": {
			{ZombieAfter: -ms},
			{ZombieAfter: 19 * ms, ProbeEvery: ms},
			{ZombieAfter: 15*time.Second + 1},
			{ZombieAfter: 4*time.Second - ms},
			{ZombieAfter: 24*time.Hour + ms},
		},
		"Swarm.FlushEvery": {{FlushEvery: ms - 1}},
	} {
		for _, cfg := range cfgs {
			_, err := New(cfg)
			var refused *berth.ConfigError
			require.ErrorAs(t, err, &refused)
			require.Equal(t, field, refused.Field)
		}
	}
}
