package qlock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/qlock"
)

func TestALockThatWaitsIsAskedForAgainUnderTheNewNode(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.member(), w.member()
		l := b.take(nil)
		waits := a.queue(nil)
		a.Cut()
		w.Until(20 * time.Second)
		require.True(t, waits.Pending())
		a.Mend()
		w.Until(29 * time.Second)
		_, queued := w.held(b)
		require.Len(t, queued, 1, "once")
		require.True(t, strings.HasPrefix(queued[0], a.Node()+"."))
		w.Until(30 * time.Second)
		require.NoError(t, l.Release(context.Background()))
		mine := waits.Granted(30 * time.Second)
		require.Equal(t, queued[0], mine.ID())
		require.NoError(t, mine.Err())
		require.NoError(t, mine.Release(context.Background()))
		w.RequireIdle()
	})
}

// Its node is well, and hears of its condemnation only after what follows from that.
func TestAWaitThatIsFlushedBeforeTheNextProbeGoesOnUnderTheNewNode(t *testing.T) {
	for name, test := range map[string]struct {
		opts  *qlock.LockOptions
		fate  link.Fate // of the probe that tells
		after time.Duration
	}{
		"at once":                   {nil, link.Pass, 0},
		"its grant needs a call":    {hour(), link.Pass, 0},
		"the probe is lost":         {nil, link.LoseRequest, 200 * ms},
		"the answer to it is lost":  {nil, link.LoseReply, 200 * ms},
		"the probe takes its time":  {nil, link.Slow(500 * ms), 500 * ms},
		"it has been asked to wait": {&qlock.LockOptions{MaxWait: time.Minute}, link.Pass, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				a, b := w.member(), w.member()
				l := b.take(nil)
				waits := a.queue(test.opts)
				w.Until(100 * ms)
				former := a.findDead()
				a.Once("swarm_probe", test.fate)
				require.Equal(t, 1, b.flush().Waiters)
				w.Advance(test.after)
				require.True(t, waits.Pending(), "%v", waits.Err)
				require.NotEqual(t, former, a.Node())
				w.Advance(ms)
				_, queued := w.held(b)
				require.Len(t, queued, 1)
				require.True(t, strings.HasPrefix(queued[0], a.Node()+"."))
				require.NoError(t, l.Release(context.Background()))
				require.Equal(t, queued[0], waits.Granted(w.Now()).ID())
			})
		})
	}
}

// It was granted at once, for longer than a first grant is for, and is flushed before
// its confirming call.
func TestAGrantThatIsFlushedBeforeItIsConfirmedIsAskedForAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.member(), w.member()
		w.Until(100 * ms)
		former := a.findDead()
		a.Once("lock_renew", link.LoseRequest)
		asks := a.queue(hour())
		require.Equal(t, 1, b.flush().Locks)
		asks.Returned(2 * time.Second)
		require.NoError(t, asks.Err)
		require.NotEqual(t, former, a.Node())
		require.True(t, strings.HasPrefix(asks.Got.ID(), a.Node()+"."))
		require.NoError(t, asks.Got.Err())
		entries, _ := w.held(b)
		require.Equal(t, []string{asks.Got.ID()}, entries)
	})
}

// Who was removed by an operator is told so, also in a swarm.
func TestAWaitThatAnOperatorEndsIsGone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.member(), w.member()
		b.take(nil)
		waits, node := a.queue(nil), a.Node()
		_, err := b.ForceReleaseNode(context.Background(), node)
		require.NoError(t, err)
		waits.Refused(0, berth.ReasonGone)
		require.Equal(t, node, a.Node())

		waits = a.queue(&qlock.LockOptions{MaxWait: time.Second})
		a.OnCommand(func(c link.Command) link.Fate {
			if c.Name == "swarm_probe" {
				return link.LoseRequest // nobody can tell why it was removed
			}
			return link.Pass
		})
		_, err = b.ForceReleaseNode(context.Background(), node)
		require.NoError(t, err)
		waits.Refused(time.Second, berth.ReasonTimedOut)
	})
}

func TestAWaitAcrossAReplacementHasItsBounds(t *testing.T) {
	attempts := &qlock.LockOptions{MaxAttempts: 3, RetryDelay: 10 * time.Second, RetryJitter: -1}
	for name, bound := range map[string]struct {
		opts   *qlock.LockOptions
		cut    bool
		reason berth.Reason
	}{
		"MaxWait":              {&qlock.LockOptions{MaxWait: 20 * time.Second}, false, berth.ReasonTimedOut},
		"MaxWait, cut off":     {&qlock.LockOptions{MaxWait: 20 * time.Second}, true, berth.ReasonFailed},
		"MaxAttempts":          {attempts, false, berth.ReasonAttempts},
		"MaxAttempts, cut off": {attempts, true, berth.ReasonFailed},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				a, b := w.member(), w.member()
				b.take(nil)
				waits := a.queue(bound.opts)
				w.Until(10 * ms)
				if bound.cut {
					a.Cut()
				} else {
					a.condemn()
				}
				refusal := waits.Refused(20*time.Second, bound.reason)
				require.True(t, strings.HasPrefix(refusal.Claim, a.Node()+"."))
				a.Mend()
				w.Advance(time.Minute)
				_, queued := w.held(b)
				require.Empty(t, queued)
			})
		})
	}
}

func TestACallerWhoLeavesAcrossAReplacementIsToldOfItsContext(t *testing.T) {
	errMine := errors.New("mine")
	for name, test := range map[string]struct {
		at     time.Duration
		reason berth.Reason // failed: the last answer is older than the wait lease
	}{
		"before":         {horizon - ms, berth.ReasonFailed},
		"in that moment": {horizon, ""},
		"after":          {horizon + ms, berth.ReasonFailed},
		"much later":     {time.Minute, berth.ReasonFailed},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				a, b := w.member(), w.member()
				b.take(nil)
				ctx, cancel := context.WithTimeout(context.Background(), test.at)
				defer cancel()
				timed, cancelled := a.queueOn(ctx, nil), a.queue(nil)
				a.Cut()
				w.Until(test.at)
				cancelled.Cancel(errMine)
				synctest.Wait()
				require.False(t, timed.Pending() || cancelled.Pending())
				require.ErrorIs(t, timed.Err, context.DeadlineExceeded)
				if test.reason != "" {
					timed.Refused(test.at, test.reason)
				}
				refusal := cancelled.Refused(test.at, berth.ReasonCancelled)
				require.ErrorIs(t, refusal, context.Canceled)
				require.ErrorIs(t, refusal, errMine)
				require.NotErrorIs(t, refusal, berth.ErrClosed)
			})
		})
	}
}

func TestACloseEndsWhatWaitsAcrossAReplacement(t *testing.T) {
	for name, at := range map[string]time.Duration{"before": horizon - ms, "after": horizon + ms, "later": time.Minute} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				a, b := w.member(), w.member()
				b.take(nil)
				waits := a.queue(nil)
				a.Cut()
				w.Until(at)
				a.Shut()
				require.ErrorIs(t, waits.Refused(at, berth.ReasonClosed), berth.ErrClosed)
				_, err := a.Lock(context.Background(), door, nil)
				require.ErrorIs(t, err, berth.ErrClosed)
				_, err = a.Resume(context.Background(), berth.Token{})
				require.Error(t, err)
			})
		})
	}
}

func TestNothingIsAskedForUnderANodeWhoseTimeHasPassed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		stands, goes := make(chan struct{}), make(chan struct{})
		var once bool
		a := w.member(watched(func(e observe.Event) {
			if e.Kind == observe.ProbeFailed && !once {
				once = true
				close(stands)
				<-goes // as a process does that is stopped
			}
		}))
		former, l := a.Node(), a.hold("mine", hour())
		a.Cut()
		<-stands
		a.Mend()
		w.Until(horizon)
		requireLost(t, l)
		require.Equal(t, former, a.Node(), "nobody could replace it yet")
		a.Reset()

		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err := a.TryLock(ctx, "other", nil)
		require.ErrorIs(t, err, berth.ErrNotAcquired)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, horizon+time.Second, w.Now())
		waits := a.queue(nil)
		var got *qlock.Lock
		tried := make(chan error, 1)
		go func() {
			var err error
			got, err = a.TryLock(context.Background(), "other", nil)
			tried <- err
		}()
		w.Advance(time.Minute)
		require.Zero(t, a.asked("acquire"))
		close(goes)
		require.NoError(t, <-tried)
		require.True(t, strings.HasPrefix(got.ID(), a.Node()+"."))
		require.NotEqual(t, former, a.Node())
		waits.Granted(horizon + time.Second + time.Minute)
	})
}

func TestLockAllAcrossAReplacementHoldsAllOrNone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.member(), w.member()
		all := func() (set *qlock.LockSet, err error) {
			done := make(chan struct{})
			go func() {
				defer close(done)
				set, err = a.LockAll(context.Background(), []string{"a", "b", "c"}, nil)
			}()
			w.Advance(time.Second)
			a.condemn()
			w.Advance(time.Second)
			_, _ = b.ReleaseAll(context.Background())
			<-done
			return set, err
		}
		b.hold("b", nil) // it has a by then, and loses it
		set, err := all()
		require.Nil(t, set)
		require.ErrorIs(t, err, berth.ErrNotAcquired)
		require.ErrorIs(t, err, berth.ErrLost)
		a.free("a", "b", "c")

		b.hold("a", nil) // it has none by then
		set, err = all()
		require.NoError(t, err)
		require.NoError(t, set.Err())
		require.Equal(t, set.Fences()["b"], a.Fence(set.Context(), "b"))
		a.condemn()
		require.ErrorIs(t, set.Err(), berth.ErrLost)
		require.ErrorIs(t, context.Cause(set.Context()), berth.ErrLost)
		a.free("a", "b", "c")
	})
}

// lateAt is when the node of late is replaced.
const lateAt = 2*time.Second + horizon

// late has a call sent whose answer comes 600 ms after the node was replaced for
// want of probes.
func (n *node) late(verb string, call func()) {
	n.w.T.Helper()
	n.w.Until(3 * time.Second)
	n.OnCommand(func(c link.Command) link.Fate {
		if c.Name == "swarm_probe" {
			return link.LoseRequest // the last that is confirmed began at 2 s
		}
		return link.Pass
	})
	n.w.Until(lateAt - 300*ms)
	n.OnCommand(func(c link.Command) link.Fate {
		if asks(c, verb) {
			return link.Slow(900 * ms)
		}
		return link.Pass
	})
	call()
	synctest.Wait()
	n.OnCommand(func(link.Command) link.Fate { return link.Pass })
	n.w.Until(lateAt)
	require.Len(n.w.T, n.Told(observe.NodeReplaced), 1)
}

func TestARenewalOfTheFormerNodeRevivesNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.member()
		l := a.take(nil)
		var renewed error
		a.late("renew", func() { go func() { renewed = l.Renew(context.Background()) }() })
		requireLost(t, l)
		w.Advance(time.Second)
		require.ErrorIs(t, renewed, berth.ErrLost)
		requireLost(t, l)
		require.Len(t, a.Told(observe.Lost), 1)
		w.RequireIdle()
	})
}

func TestAGrantToTheFormerNodeIsGivenBack(t *testing.T) {
	for script, opts := range map[string]*qlock.LockOptions{"thin_acquire": nil, "lock_acquire": hour()} {
		t.Run(script, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				a := w.member()
				var waits *wait
				a.late("acquire", func() { waits = a.queue(opts) })
				// The new node asks while the former's grant is given back: before that it has to wait.
				mine := waits.GrantedBy(lateAt + 600*ms)
				require.True(t, strings.HasPrefix(mine.ID(), a.Node()+"."))
				granted := a.Told(observe.Granted)
				require.Len(t, granted, 1)
				require.Equal(t, mine.ID(), granted[0].Claim)
				w.Advance(time.Minute)
				require.NoError(t, mine.Err())
				require.NoError(t, mine.Release(context.Background()))
				w.RequireIdle()
			})
		})
	}
}

func TestAPushForTheFormerNodeChangesNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.member(), w.member()
		l := b.take(nil)
		waits := a.queue(nil)
		former := a.Node()
		_, before := w.held(b)
		a.condemn()
		_, after := w.held(b)
		require.Len(t, after, 1)
		require.NotEqual(t, before, after)
		push := payload("granted", door, before[0], fmt.Sprint(l.Fence()+1))
		w.Do("PUBLISH", "berth:wake:"+former, push)
		w.Do("PUBLISH", "berth:wake:"+a.Node(), push)
		w.Advance(time.Second)
		require.True(t, waits.Pending())
		require.Empty(t, a.Told(observe.Granted))
		require.NoError(t, l.Release(context.Background()))
		require.Equal(t, after[0], waits.Granted(time.Second).ID())
	})
}

// payload is what a script publishes.
func payload(words ...string) string {
	var b strings.Builder
	for _, word := range words {
		fmt.Fprintf(&b, "%d:%s", len(word), word)
	}
	return b.String()
}

func TestACloseEndsWhatWaitsForAReplacement(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		stands, goes := make(chan struct{}), make(chan struct{})
		var once bool
		a := w.member(watched(func(e observe.Event) {
			if e.Kind == observe.ProbeFailed && !once {
				once = true
				close(stands)
				<-goes
			}
		}))
		a.Cut()
		<-stands
		a.Mend()
		w.Until(horizon)
		waits := a.queue(nil)
		go func() { _ = a.Client.Close(context.Background()) }()
		require.ErrorIs(t, waits.Refused(horizon, berth.ReasonClosed), berth.ErrClosed)
		close(goes)
	})
}

func TestACloseWaitsForWhatTheFormerNodeGivesBack(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.member()
		a.take(hour())
		a.Cut()
		w.Until(horizon)
		require.Empty(t, a.Told(observe.ReleaseFailed))
		a.Shut()
		require.Len(t, a.Told(observe.ReleaseFailed), 1)
	})
}

func TestWaitedCountsFromTheCallThroughAReplacement(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.member(), w.member()
		l := b.take(nil)
		waits, bound := a.queue(nil), a.queue(&qlock.LockOptions{MaxWait: 5 * time.Second})
		w.Until(3 * time.Second)
		a.condemn()
		require.Equal(t, 5*time.Second, bound.Refused(5*time.Second, berth.ReasonTimedOut).Waited)
		w.Until(10 * time.Second)
		require.NoError(t, l.Release(context.Background()))
		require.Equal(t, 10*time.Second, waits.Granted(10*time.Second).Waited())
	})
}

func TestAResumeThatAReplacementOvertakesGivesBack(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.member(), w.member()
		token := detach(t, b.take(hour()))
		var err error
		a.late("resume", func() { go func() { _, err = a.Resume(context.Background(), token) }() })
		w.Advance(time.Second)
		require.ErrorIs(t, err, berth.ErrLost)
		b.free(door)
	})
}
