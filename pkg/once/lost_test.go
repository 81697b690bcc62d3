package once_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/fence"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/once"
)

func TestWhatADeadProcessBeganIsTakenByTheNextInLine(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		run := a.start(t.Context(), hourly, takes(time.Minute, nil))
		wait := b.start(t.Context(), waiting(hourly), takes(time.Second, nil))
		a.Die()
		r := wait.GrantedBy(lease + time.Second)
		require.NoError(t, r.err)
		require.Equal(t, 2, r.Attempt)
		run.Returned(2 * time.Minute)
	})
}

// A process is cut off past its lease, and goes on all the same. Another one takes over.
func TestTheSecondRunHasTheGreaterFence(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		first := a.start(t.Context(), hourly, takes(time.Minute, nil))
		a.Cut()
		w.Until(lease)
		second := b.ran(hourly, nil)
		w.Until(30 * time.Second)
		a.Mend()
		r := first.GrantedWithin(time.Minute, time.Minute)
		require.ErrorIs(t, r.err, fence.ErrStale)
		require.ErrorIs(t, r.err, berth.ErrLost)
		require.NotErrorIs(t, r.err, context.Canceled)
		require.Equal(t, 1, strings.Count(r.err.Error(), "(claim "), "each thing is said once: %v", r.err)
		require.Equal(t, once.Ran, r.Status)
		require.Less(t, r.Fence, second.Fence)
		last := b.last()
		require.Equal(t, second.Fence, last.Success.Fence)
		require.Equal(t, second.Fence, last.Run.Fence)
		told := a.Told(observe.RunFailed)
		require.Len(t, told, 1)
		require.ErrorIs(t, told[0].Err, fence.ErrStale)
	})
}

// Nobody has begun since.
func TestASuccessCountsAfterItsHoldIsLost(t *testing.T) {
	for row, loses := range map[string]func(w *world, n *process){
		"after the lease": func(w *world, n *process) { n.Cut(); w.Until(30 * time.Second); n.Mend() },
		"by a flush":      flush,
	} {
		inWorldOf(t, row, func(t *testing.T, w *world) {
			a, b := w.node(), w.node()
			first := a.start(t.Context(), hourly, takes(time.Minute, nil))
			loses(w, a)
			r := first.GrantedWithin(time.Minute, time.Second)
			require.NoError(t, r.err)
			require.Equal(t, r.Fence, b.finds(hourly, once.Done).Fence)
		})
	}
}

// The server is away for half a lease when f ends. Nobody begins before it knows of the success.
func TestTheLockIsHeldUntilTheOutcomeIsKept(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		first := a.start(t.Context(), hourly, takes(time.Second, nil))
		wait := b.start(t.Context(), waiting(hourly), never(t))
		w.Until(time.Second - ms)
		a.Cut()
		w.Advance(lease / 2)
		require.True(t, first.Pending())
		require.True(t, wait.Pending())
		a.Mend()
		r := first.GrantedWithin(time.Second+lease/2-ms, time.Second)
		require.NoError(t, r.err)
		require.Equal(t, once.Done, wait.GrantedWithin(first.At, time.Second).Status)
	})
}

func TestLostRepliesChangeNothing(t *testing.T) {
	for _, script := range []string{"once_begin", "once_end", "thin_acquire", "thin_release"} {
		inWorldOf(t, script, func(t *testing.T, w *world) {
			a, b := w.node(), w.node()
			for _, want := range []error{errMine, nil} {
				a.Once(script, link.LoseReply)
				r, err := a.job(hourly).Do(t.Context(), takes(ms, want))
				require.ErrorIs(t, err, want)
				require.Equal(t, once.Ran, r.Status)
				require.Equal(t, r.Attempt, b.last().Run.Attempt)
			}
			require.Equal(t, 2, b.last().Success.Attempt)
			b.finds(hourly, once.Done)
		})
	}
}

// A copy of each script comes when the run has long ended, and another one goes on.
func TestLateCopiesChangeNothing(t *testing.T) {
	for _, script := range []string{"once_begin", "once_end"} {
		inWorldOf(t, script, func(t *testing.T, w *world) {
			n := w.node()
			for _, goesOn := range []bool{false, true} {
				n.Once(script, link.Late)
				n.ran(hourly, errMine)
				if goesOn {
					run, _ := n.begins(hourly)
					defer func() { require.NoError(t, run.End(t.Context(), nil)) }()
				}
				before := w.kept()
				w.Advance(time.Second)
				late, err := n.DeliverLate()
				require.NoError(t, err)
				require.Equal(t, 1, late)
				require.Equal(t, before, w.kept())
			}
		})
	}
}

// A begin was answered that somebody has failed and the rest is not over, or was given up. A copy of it begins a run
// that nobody runs: it uses up one attempt, however many copies come.
func TestALateCopyOfABeginThatBeganNothingUsesUpOneAttempt(t *testing.T) {
	for row, late := range map[string]int{"answered": 1, "given up": 1000} {
		inWorldOf(t, row, func(t *testing.T, w *world) {
			n := w.node()
			n.ran(once.Config{Every: hour, RetryAfter: time.Minute}, errMine)
			copies := 0
			n.OnCommand(func(c link.Command) link.Fate {
				if c.Name == "once_begin" && copies < late {
					copies++
					return link.Late
				}
				return link.Pass
			})
			r, err := n.job(hourly).Do(t.Context(), never(t))
			if row == "answered" {
				require.NoError(t, err)
				require.Equal(t, once.HasFailed, r.Status)
			} else {
				require.ErrorIs(t, err, berth.ErrUnavailable)
				require.Greater(t, copies, 1)
			}
			n.OnCommand(nil)
			w.Advance(time.Minute)
			delivered, err := n.DeliverLate()
			require.NoError(t, err)
			require.Equal(t, copies, delivered)
			run := n.last().Run
			require.Equal(t, once.Begun, run.Outcome)
			require.Equal(t, 2, run.Attempt)
			require.Equal(t, 3, n.ran(hourly, nil).Attempt)
		})
	}
}

// The server knows the hour before, and has lost the lock and the begin of this one.
func TestAnOutcomeIsKeptWhereItsBeginIsLost(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.ran(hourly, nil)
		w.Until(hour)
		lose := w.Snapshot()
		run, r := n.begins(hourly)
		lose()
		require.NoError(t, run.End(t.Context(), nil))
		last := n.last()
		require.Equal(t, r.Period, last.Success.Period)
		require.Equal(t, r.Fence, last.Run.Fence)
		require.Equal(t, r.Begun, last.Run.Begun)
	})
}

// The hold is lost between the grant and the begin: f does not run, and no attempt is used.
func TestAHoldThatIsLostBeforeItsRunBeginsRunsNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node(node.Config{CallTimeout: time.Minute})
		n.OnCommand(on("once_begin", link.Pass, func() {
			w.Do("DEL", w.State)
			time.Sleep(lease) // heartbeats say that it is gone
		}))
		_, _ = n.fails(hourly, berth.ErrLost)
		n.OnCommand(nil)
		n.ran(single, nil)
	})
}

func TestAnEndWaitsForOneInProgress(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		run, r := n.begins(hourly)
		require.Equal(t, once.Ran, r.Status)
		require.Equal(t, digest, run.Name())
		require.Equal(t, r.Period, run.Period())
		require.Equal(t, 1, run.Attempt())
		require.Equal(t, run.Fence(), run.Hold().Fence())
		require.NoError(t, run.Context().Err())
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // as a scheduler that has shut down
		require.NoError(t, run.End(ctx, nil))
		require.NoError(t, run.End(ctx, errMine), "the first one counts")
		require.ErrorIs(t, context.Cause(run.Context()), berth.ErrReleased)
		n.finds(hourly, once.Done)
		nobody, r := n.begins(hourly)
		require.Nil(t, nobody)
		require.Equal(t, once.Done, r.Status)
	})
}

// The hold is lost between the grant and the begin, and another run has begun meanwhile.
func TestABeginThatAnotherOneOvertookFindsItRunning(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		var overtakes sync.Once
		var run *once.Run
		a.OnCommand(on("once_begin", link.Pass, func() {
			overtakes.Do(func() {
				w.Do("DEL", w.State)
				time.Sleep(ms) // fences are told apart by the time in between
				run, _, _ = b.job(hourly).Begin(context.Background())
			})
		}))
		defer func() { require.NoError(t, run.End(t.Context(), nil)) }()
		a.finds(hourly, once.Running)
	})
}

// The caller has left when the hold is over: the server is told within CleanupTimeout, and the lock released within
// another one.
func TestTheEndOfALostRunWhoseCallerHasLeftTakesTheCleanupTimeout(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node(node.Config{CleanupTimeout: 500 * ms})
		run, _ := n.begins(hourly)
		n.Cut()
		<-run.Context().Done()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		at := w.Now()
		require.ErrorIs(t, run.End(ctx, nil), berth.ErrUnavailable)
		require.LessOrEqual(t, w.Now()-at, time.Second)
	})
}

// A server that was cut off has lost a success with a later start, of other settings, and a run begins there. It
// ends on the server that knows of that success: the newest one stays.
func TestASuccessWithALaterStartStays(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		w.Advance(45 * time.Minute)
		cutOff := w.Snapshot()
		newest := a.ran(once.Config{Every: 20 * time.Minute}, nil)
		primary := w.Snapshot()
		cutOff()
		w.Advance(ms)
		run, _ := b.begins(hourly)
		require.NotNil(t, run)
		primary()
		require.NoError(t, run.End(t.Context(), nil))
		last := b.last()
		require.Equal(t, run.Fence(), last.Run.Fence)
		require.Equal(t, newest.Fence, last.Success.Fence)
	})
}

// single allows one attempt.
var single = once.Config{Every: hour, Attempts: 1}

// The caller leaves while the run begins. Nothing runs, and no attempt is used.
func TestARunWhoseCallerHasLeftMeanwhileDoesNotStart(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.OnCommand(slow("once_begin", time.Second))
		ctx, cancel := context.WithTimeout(t.Context(), 500*ms)
		defer cancel()
		_, err := n.job(single).Do(ctx, never(t))
		require.Equal(t, 500*ms, w.Now(), "it is let go at once")
		require.ErrorIs(t, err, berth.ErrNotAcquired)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		n.OnCommand(nil)
		w.Advance(time.Second)
		w.RequireIdle()
		require.Equal(t, once.Stopped, n.last().Run.Outcome)
		require.Empty(t, n.Told(observe.RunFailed))
		n.ran(single, nil)
	})
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
		n.OnCommand(on("once_begin", link.LoseReply, n.Cut))
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
		_, _ = late.fails(waiting(once.Config{Every: hour, Attempts: 2}), once.ErrUsedUp)
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

// The process is closed, and does not wait for the run that goes on, which it says. A second Close waits.
func TestWhatARunComesToThatACloseHasLeft(t *testing.T) {
	for row, c := range map[string]struct {
		fails           error
		lost, overtaken bool // its hold, before the Close; the run, after it
		want            once.Outcome
	}{
		"nobody has begun since":   {fails: errMine, want: once.Stopped},
		"its hold was lost before": {fails: errMine, lost: true, want: once.Failed},
		"another one has begun":    {overtaken: true, want: once.Succeeded},
	} {
		inWorldOf(t, row, func(t *testing.T, w *world) {
			n, other := w.node(), w.node()
			run := n.start(t.Context(), single, takes(time.Minute, c.fails))
			if c.lost {
				w.Do("DEL", w.State)
				w.Advance(lease)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			require.ErrorIs(t, n.Close(ctx), context.DeadlineExceeded)
			var second once.Result
			if c.overtaken {
				second = other.ran(hourly, nil)
			}
			require.NoError(t, n.Close(context.Background()))
			require.Equal(t, time.Minute, w.Now())
			r := run.Granted(time.Minute)
			require.Equal(t, c.want, r.Outcome)
			require.Equal(t, c.overtaken, errors.Is(r.err, fence.ErrStale))
			require.Equal(t, c.overtaken, r.Fence < second.Fence)
			if c.want == once.Stopped {
				require.Equal(t, 1, other.ran(single, nil).Attempt)
			}
		})
	}
}

func TestWhatTheServerLostIsDoneAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		lose := w.Snapshot()
		first := a.ran(hourly, nil)
		lose()
		second := b.ran(hourly, nil)
		require.Greater(t, second.Fence, first.Fence)
	})
}
