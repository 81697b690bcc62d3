package swarm

import (
	"context"
	"iter"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/guard"
	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/pkg/observe"
)

// brittle is a Line that panics while it is to.
type brittle struct {
	Line
	breaks atomic.Bool
	asked  atomic.Int64
}

func (l *brittle) Names(ctx context.Context) iter.Seq2[reader.Ref, error] {
	if l.asked.Add(1); l.breaks.Load() {
		panic(guard.Meant("no such index"))
	}
	return l.Line.Names(ctx)
}

func TestAFlushThatPanicsIsToldAndTheNodeProbesAndFlushesOn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		line := &brittle{Line: w.line}
		line.breaks.Store(true)
		n := w.node("n", func(c *Config) { c.FlushEvery, c.Line = 10*time.Second, line }).start()
		w.Advance(11 * time.Second)
		require.ErrorContains(t, n.Status().Err, "no such index")
		told := n.Told(observe.Panicked)
		require.NotEmpty(t, told)
		require.Equal(t, "a flush of the swarm", told[0].Detail)
		require.EqualValues(t, 1, line.asked.Load(), "it does not spin")
		line.breaks.Store(false)
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
