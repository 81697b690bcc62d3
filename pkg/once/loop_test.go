package once_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/once"
)

// loop runs in the background until the test ends, and records when each run began.
func (n *process) loop(cfg once.Config, f once.Func) (began *[]time.Duration, stop func() error) {
	n.w.T.Helper()
	began = new([]time.Duration)
	call := testkit.Queue(context.Background(), n.w.World, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, n.job(cfg).Run(ctx, func(ctx context.Context, run *once.Run) error {
			*began = append(*began, n.w.Now())
			return f(ctx, run)
		})
	})
	stop = func() error {
		call.Cancel(errMine)
		<-call.Done
		return call.Err
	}
	n.w.T.Cleanup(func() { _ = stop() })
	return began, stop
}

func TestALoopRunsAsSoonAsAPeriodStarts(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		w.Advance(10 * time.Minute)
		began, stop := n.loop(hourly, takes(time.Minute, nil))
		w.Until(4 * hour)
		require.ErrorIs(t, stop(), errMine)
		require.Equal(t, []time.Duration{10 * time.Minute, hour, 2 * hour, 3 * hour, 4 * hour}, *began)
		require.Equal(t, 4, n.Count("HMGET")-n.Count("HLEN")-1, "beside the notice one look for each period, and the one that stop ended")
	})
}

// A failure in a period of other settings, which starts later, is told once: nothing can begin before the
// period is over.
func TestALoopLeavesAPeriodInWhichOthersGoByAnotherLength(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, m := w.node(), w.node()
		w.Until(20 * time.Minute)
		n.ran(once.Config{Every: 20 * time.Minute}, errMine)
		m.loop(hourly, never(t))
		w.Until(59 * time.Minute)
		late := m.Told(observe.NotBegun)
		require.Len(t, late, 1)
		require.ErrorIs(t, late[0].Err, once.ErrLate)
	})
}

func TestALoopTriesAgainAfterAFailure(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		began, _ := n.loop(once.Config{Every: hour, Attempts: 2}, takes(0, errMine))
		w.Until(hour + 30*time.Minute)
		require.Equal(t, []time.Duration{0, time.Minute, hour, hour + time.Minute}, *began)
		failed := n.Told(observe.RunFailed)
		require.Len(t, failed, 4, "each attempt")
		require.Equal(t, "2026-01-01T00:00:00Z", failed[0].Detail)
		require.Equal(t, 1, failed[0].Count)
		used := n.Told(observe.NotBegun)
		require.Len(t, used, 2, "and that they are used up")
		require.Equal(t, "2026-01-01T00:00:00Z", used[0].Detail)
		require.ErrorIs(t, used[0].Err, once.ErrUsedUp)
		missed := n.Told(observe.Missed)
		require.Len(t, missed, 1)
		require.Equal(t, 1, missed[0].Count)
	})
}

func TestEachMissedPeriodIsToldOnce(t *testing.T) {
	const period = 10 * time.Minute
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		single := once.Config{Every: period, Attempts: 2}
		missed := func() (count int) {
			for _, e := range n.Told(observe.Missed) {
				count += e.Count
			}
			return count
		}
		n.ran(single, nil)
		w.Until(period)
		n.ran(single, errMine)
		n.ran(single, errMine)
		require.Zero(t, missed())
		w.Until(2 * period)
		n.ran(single, errMine)
		n.ran(single, errMine)
		require.Equal(t, 1, missed(), "the second one")
		w.Until(4 * period)
		require.Equal(t, 2, n.ran(single, nil).Missed)
		require.Equal(t, 3, missed(), "the third and the fourth")
		w.Until(5 * period)
		n.ran(single, nil)
		require.Equal(t, 3, missed())
		ran := n.Told(observe.Ran)
		require.Len(t, ran, 3)
		require.Equal(t, "once", ran[0].Primitive)
		require.Equal(t, digest, ran[0].Name)
		require.Equal(t, ms, ran[0].Held)
	})
}

// The server is away for two hours. Each turn is told, none as a run that failed, and the loop goes on.
func TestALoopOutlivesItsServer(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		began, _ := n.loop(hourly, takes(0, nil))
		w.Until(30 * time.Minute)
		n.Cut()
		w.Until(150 * time.Minute)
		n.Mend()
		w.Until(200 * time.Minute)
		require.Len(t, *began, 3)
		require.Equal(t, 3*hour, (*began)[2].Truncate(ms))
		require.Less(t, (*began)[1], 152*time.Minute)
		for _, e := range n.Told(observe.NotBegun) {
			require.ErrorIs(t, e.Err, berth.ErrUnavailable)
		}
		require.NotEmpty(t, n.Told(observe.NotBegun))
		require.Empty(t, n.Told(observe.RunFailed))
	})
}

// However long the loop is to rest after a failure of f, it asks a server that did not answer within a minute.
func TestALoopRunsInThePeriodInWhichItsServerComesBack(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		began, _ := n.loop(once.Config{Every: hour, RetryAfter: 2 * hour}, takes(0, nil))
		w.Until(hour - time.Second)
		n.Cut()
		w.Until(hour + 20*time.Second)
		n.Mend()
		w.Until(4 * hour)
		require.Len(t, *began, 4)
		require.Less(t, (*began)[1], hour+2*time.Minute)
		require.Equal(t, 2*hour, (*began)[2].Truncate(ms))
		require.Empty(t, n.Told(observe.Missed))
	})
}

// However short the loop is to rest after a failure of f, it asks what refuses it once a minute.
func TestALoopThatIsRefusedAsksOnceAMinute(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		w.Do("SET", record, "x")
		n.Fresh()
		n.loop(once.Config{Every: hour, RetryAfter: ms}, never(t))
		w.Until(10 * time.Minute)
		require.Equal(t, 11, n.Count("HMGET"))
	})
}

func TestALoopRestsForAsLongAsItSays(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		began, _ := w.node().loop(once.Config{Every: hour, RetryAfter: time.Second}, takes(0, errMine))
		w.Until(30 * time.Minute)
		require.Equal(t, []time.Duration{0, time.Second, 2 * time.Second}, *began)
	})
}

// Nobody hears of a success for longer than the lease. The process that knows of it tells it later, and
// does not do it again.
func TestALoopKeepsASuccessThatTheServerHasNotHeardOf(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		began, _ := a.loop(hourly, takes(time.Second, nil))
		w.Until(time.Second - ms)
		a.Cut()
		w.Until(10 * time.Minute)
		a.Mend()
		w.Until(20 * time.Minute)
		require.Equal(t, []time.Duration{0}, *began)
		b.finds(hourly, once.Done)
	})
}

// A run takes longer than its period, and the server loses all of it meanwhile. The process goes on with
// the next period, and tells of the success of this one.
func TestALoopGoesOnAfterARunThatTookLongerThanItsPeriod(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		began, _ := n.loop(once.Config{Every: time.Minute}, takes(90*time.Second, nil))
		w.Until(30 * time.Second)
		w.Do("FLUSHALL")
		w.Until(91 * time.Second)
		require.Equal(t, []time.Duration{0, 90 * time.Second}, *began)
		require.Equal(t, "2026-01-01T00:00:00Z", n.last().Success.Period.String())
	})
}

func TestAPeriodThatNobodyCouldBeginIsTold(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		lock, err := w.locks().Lock(t.Context(), digest, nil)
		require.NoError(t, err)
		began, _ := n.loop(once.Config{Every: time.Minute}, takes(0, nil))
		w.Until(2*time.Minute + time.Second)
		require.NoError(t, lock.Release(t.Context()))
		w.Until(2*time.Minute + 2*time.Second)
		require.Len(t, *began, 1)
		late := n.Told(observe.NotBegun)
		require.Len(t, late, 2)
		require.ErrorIs(t, late[0].Err, once.ErrLate)
	})
}

func TestADrainingProcessLeavesThePeriodToOthers(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		old, other := w.node(node.Config{Label: "old"}), w.node()
		began, _ := old.loop(hourly, takes(time.Minute, nil))
		w.Advance(time.Second)
		w.Notice("l:old", 0, "drain")
		w.Until(hour)
		require.Len(t, *began, 1)
		require.Len(t, old.Told(observe.Ran), 1, "it finishes what it runs")
		other.ran(hourly, nil)
		w.Until(2*hour + time.Minute)
		require.Len(t, *began, 1)
	})
}
