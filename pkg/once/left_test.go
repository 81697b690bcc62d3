package once_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/once"
)

// single allows one attempt.
var single = once.Config{Every: hour, Attempts: 1}

// The caller leaves while the run begins. Nothing runs, and no attempt is used.
func TestARunWhoseCallerHasLeftMeanwhileDoesNotStart(t *testing.T) {
	for row, cause := range map[string]error{"cancelled": context.Canceled, "timed out": context.DeadlineExceeded} {
		inWorldOf(t, row, func(t *testing.T, w *world) {
			n := w.node()
			n.OnCommand(slow("once_begin", time.Second))
			ctx, cancel := context.WithTimeout(t.Context(), 500*ms)
			if row == "cancelled" {
				ctx, cancel = context.WithCancel(t.Context())
				time.AfterFunc(500*ms, cancel)
			}
			defer cancel()
			_, err := n.job(single).Do(ctx, never(t))
			require.Equal(t, 500*ms, w.Now(), "it is let go at once")
			require.ErrorIs(t, err, berth.ErrNotAcquired)
			require.ErrorIs(t, err, cause)
			n.OnCommand(nil)
			w.Advance(time.Second)
			w.RequireIdle()
			require.Equal(t, once.Stopped, n.last().Run.Outcome)
			require.Empty(t, n.Told(observe.RunFailed))
			n.ran(single, nil)
		})
	}
}

// The caller leaves before the server is asked for anything, or before it has answered.
func TestACallThatIsLeftBeforeItKnowsAnythingEndsAsAnyWait(t *testing.T) {
	for _, after := range []time.Duration{0, time.Second} {
		inWorldOf(t, after.String(), func(t *testing.T, w *world) {
			n := w.node()
			n.OnCommand(slow("HMGET", 2*time.Second))
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(after, func() { cancel(errMine) })
			w.Advance(0)
			_, err := n.job(hourly).Do(ctx, never(t))
			var refused *berth.AcquireError
			require.ErrorAs(t, err, &refused)
			require.Equal(t, berth.ReasonCancelled, refused.Reason)
			require.Equal(t, after, w.Now())
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorIs(t, err, errMine)
			w.Advance(2 * time.Second) // the link is done
		})
	}
}

// The server is away while the caller leaves and the node is closed: Close waits for the answer, and has
// the run that has begun stopped.
func TestCloseWaitsForABeginWhoseCallerHasLeft(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.OnCommand(func(c link.Command) link.Fate {
			if c.Name == "once_begin" {
				n.Cut()
				return link.LoseReply
			}
			return link.Pass
		})
		begin := n.start(t.Context(), single, never(t))
		w.Advance(ms)
		begin.Cancel(errMine)
		<-begin.Done
		require.Equal(t, ms, w.Now())
		require.ErrorIs(t, begin.Got.err, errMine)
		require.ErrorIs(t, begin.Got.err, berth.ErrNotAcquired)
		closing := testkit.Queue(context.Background(), w.World, func(ctx context.Context) (struct{}, error) { return struct{}{}, n.Close(ctx) })
		w.Advance(time.Second)
		require.True(t, closing.Pending())
		n.OnCommand(nil)
		n.Mend()
		<-closing.Done
		require.NoError(t, closing.Err)
		other := w.node()
		require.Equal(t, once.Stopped, other.last().Run.Outcome)
		require.Equal(t, 1, other.ran(single, nil).Attempt)
	})
}

func TestAWaitForTheRestEndsAsAnyWait(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.ran(once.Config{Every: hour, RetryAfter: 10 * time.Minute}, errMine)
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errMine)
		defer cancel()
		_, err := n.job(waiting(hourly)).Do(ctx, never(t))
		var refused *berth.AcquireError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, berth.ReasonTimedOut, refused.Reason)
		require.Equal(t, time.Minute, refused.Waited.Truncate(time.Second))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, errMine)
	})
}

// A begin is answered, the answer is lost, and its repeat comes when the period is over.
func TestARepeatThatComesAfterThePeriodHasBegun(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		w.Until(hour - ms)
		n.Once("once_begin", link.LoseReply)
		r := n.ran(hourly, nil)
		require.Greater(t, w.Now(), hour)
		require.Equal(t, w.Began.UTC(), r.Period.Start)
		require.Equal(t, 1, n.last().Success.Attempt)
	})
}

func TestAProcessThatDrainsNoLongerRunsThePeriodAfterAll(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node(node.Config{Label: "old"})
		began, _ := n.loop(hourly, takes(0, nil))
		w.Until(hour - time.Minute)
		w.Notice("l:old", 0, "drain")
		w.Until(hour + time.Minute)
		w.Notice("l:old", 0, "stop")
		w.Until(2*hour - ms)
		require.Len(t, *began, 2)
		require.InDelta(t, (hour + time.Minute).Seconds(), (*began)[1].Seconds(), 7)
		require.Len(t, n.Told(observe.NotBegun), 1)
	})
}

// Ten loops use up a period. One of them tells, and who comes later sends one read.
func TestAUsedUpPeriodIsToldOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		nodes := make([]*process, 5)
		for i := range nodes {
			nodes[i] = w.node()
			nodes[i].loop(once.Config{Every: hour, Attempts: 2}, takes(time.Second, errMine))
		}
		w.Until(10 * time.Minute)
		told := 0
		for _, n := range nodes {
			for _, e := range n.Told(observe.NotBegun) {
				require.ErrorIs(t, e.Err, once.ErrUsedUp)
				told++
			}
		}
		require.Equal(t, 1, told)
		late := w.node()
		late.Fresh()
		_, err := late.job(waiting(once.Config{Every: hour, Attempts: 2})).Do(t.Context(), never(t))
		require.ErrorIs(t, err, once.ErrUsedUp)
		require.Empty(t, late.Scripts())
	})
}

// The period is done while a call waits for the end of a rest.
func TestAWaitForTheRestLooksBeforeItStandsInLine(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		a.ran(once.Config{Every: hour, RetryAfter: time.Minute}, errMine)
		call := b.start(t.Context(), waiting(hourly), never(t))
		w.Until(30 * time.Second)
		w.Do("HSET", record, "success", strings.Replace(w.kept()["run"], " failed ", " done ", 1))
		before := b.Count("once_begin")
		require.Equal(t, once.Done, call.GrantedWithin(time.Minute, time.Second).Status)
		require.Equal(t, before, b.Count("once_begin"))
	})
}

// A process knows of a success in a period that lies ahead, as the server's clock went back.
func TestASuccessFarAheadCountsAsNothing(t *testing.T) {
	t.Parallel()
	for ahead, want := range map[time.Duration]once.Status{
		-hour: "", 0: once.Done, hour: once.Done, hour + time.Minute: once.Done, hour + time.Minute + ms: "", 24 * 30 * hour: "",
	} {
		require.Equal(t, want, once.Decided(hour, ahead), ahead)
	}
}

func TestMissedPeriodsAreToldThoughTheFirstBeginWasNotAnswered(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.ran(hourly, nil)
		w.Until(2 * hour)
		n.OnCommand(func(c link.Command) link.Fate {
			if c.Name == "once_begin" {
				return link.LoseReply
			}
			return link.Pass
		})
		_, err := n.job(hourly).Do(t.Context(), never(t))
		require.ErrorIs(t, err, berth.ErrUnavailable)
		n.OnCommand(nil)
		require.Equal(t, 1, n.ran(hourly, nil).Missed)
		require.Len(t, n.Told(observe.Missed), 1)
	})
}

// A run is lost, fails by that, and another one has begun: each is said once.
func TestTheErrorOfALostRunSaysEachThingOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		first := a.start(t.Context(), hourly, func(ctx context.Context, _ *once.Run) error {
			<-ctx.Done()
			time.Sleep(20 * time.Second)
			return context.Cause(ctx)
		})
		a.Cut()
		w.Until(lease)
		b.ran(hourly, nil)
		w.Until(10 * time.Second)
		a.Mend()
		err := first.GrantedWithin(25*time.Second, time.Minute).err
		require.ErrorIs(t, err, berth.ErrLost)
		require.Equal(t, 1, strings.Count(err.Error(), "(claim "), err)
	})
}

func TestWhatCannotBeReadIsSaid(t *testing.T) {
	for field, text := range map[string]string{"run": "garbage", "success": "x", "expires": "zzz"} {
		inWorldOf(t, field, func(t *testing.T, w *world) {
			n := w.node()
			w.Do("HSET", record, "fmt", "1", "expires", strconv.FormatInt(w.Began.Add(3*hour).UnixMilli(), 10), field, text)
			before := w.kept()
			_, err := n.job(hourly).Do(t.Context(), never(t))
			require.ErrorIs(t, err, state.ErrDamaged)
			require.ErrorContains(t, err, "cannot be read")
			require.Equal(t, before, w.kept())
		})
	}
}
