package qlock_test

import (
	"context"
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
		require.True(t, strings.HasPrefix(queued[0], a.ID()+"."))
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
		"at once":                  {nil, link.Pass, 0},
		"its grant needs a call":   {hour(), link.Pass, 0},
		"the answer to it is lost": {nil, link.LoseReply, 200 * ms},
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
				require.NotEqual(t, former, a.ID())
				w.Advance(ms)
				_, queued := w.held(b)
				require.Len(t, queued, 1)
				require.True(t, strings.HasPrefix(queued[0], a.ID()+"."))
				require.NoError(t, l.Release(context.Background()))
				require.Equal(t, queued[0], waits.Granted(w.Now()).ID())
			})
		})
	}
}

// Who was removed by an operator is told so, also in a swarm.
func TestAWaitThatAnOperatorEndsIsGone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.member(), w.member()
		b.take(nil)
		waits, node := a.queue(nil), a.ID()
		_, err := b.Operator().Release(context.Background(), berth.Target{Node: node})
		require.NoError(t, err)
		waits.Refused(0, berth.ReasonGone)
		require.Equal(t, node, a.ID())

		waits = a.queue(&qlock.LockOptions{MaxWait: time.Second})
		a.OnCommand(func(c link.Command) link.Fate {
			if c.Name == "swarm_probe" {
				return link.LoseRequest // nobody can tell why it was removed
			}
			return link.Pass
		})
		_, err = b.Operator().Release(context.Background(), berth.Target{Node: node})
		require.NoError(t, err)
		waits.Refused(time.Second, berth.ReasonTimedOut)
	})
}

func TestAWaitAcrossAReplacementHasItsBounds(t *testing.T) {
	attempts := &qlock.LockOptions{Attempts: qlock.Attempts{Max: 3, Delay: 10 * time.Second, Jitter: -1}}
	for name, bound := range map[string]struct {
		opts   *qlock.LockOptions
		cut    bool
		reason berth.Reason
	}{
		"MaxWait":           {&qlock.LockOptions{MaxWait: 20 * time.Second}, false, berth.ReasonTimedOut},
		"Attempts, cut off": {attempts, true, berth.ReasonFailed},
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
				require.True(t, strings.HasPrefix(refusal.Claim, a.ID()+"."))
				a.Mend()
				w.Advance(time.Minute)
				_, queued := w.held(b)
				require.Empty(t, queued)
			})
		})
	}
}

func TestACloseEndsWhatWaitsAcrossAReplacement(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.member(), w.member()
		b.take(nil)
		waits := a.queue(nil)
		a.Cut()
		w.Until(time.Minute)
		a.Shut()
		require.ErrorIs(t, waits.Refused(time.Minute, berth.ReasonClosed), berth.ErrClosed)
		_, err := a.Lock(context.Background(), door, nil)
		require.ErrorIs(t, err, berth.ErrClosed)
	})
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
		former, l := a.ID(), a.hold("mine", hour())
		a.Cut()
		<-stands
		a.Mend()
		w.Until(horizon)
		requireLost(t, l)
		require.Equal(t, former, a.ID(), "nobody could replace it yet")
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
		require.True(t, strings.HasPrefix(got.ID(), a.ID()+"."))
		require.NotEqual(t, former, a.ID())
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

// lateAt is when the node of lateAcquire is replaced.
const lateAt = 2*time.Second + horizon

// lateAcquire has an acquire sent whose answer comes 600 ms after the node was replaced for
// want of probes.
func (n *proc) lateAcquire(call func()) {
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
		if asks(c, "acquire") {
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

func TestAGrantToTheFormerNodeIsGivenBack(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.member()
		var waits *wait
		a.lateAcquire(func() { waits = a.queue(nil) })
		// The new node asks while the former's grant is given back: before that it has to wait.
		mine := waits.GrantedBy(lateAt + 600*ms)
		require.True(t, strings.HasPrefix(mine.ID(), a.ID()+"."))
		granted := a.Told(observe.Granted)
		require.Len(t, granted, 1)
		require.Equal(t, mine.ID(), granted[0].Claim)
		w.Advance(time.Minute)
		require.NoError(t, mine.Err())
		require.NoError(t, mine.Release(context.Background()))
		w.RequireIdle()
	})
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
		go func() { _ = a.Close(context.Background()) }()
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
