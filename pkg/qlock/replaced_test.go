package qlock_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/node"
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
		// A wait that goes on under the next node is another claim's: the former one's ends first.
		require.Equal(t, 1, a.Waiting())
		require.Len(t, a.Told(observe.Queued), 2)
		require.Len(t, a.Told(observe.Cancelled), 1)
		w.Until(30 * time.Second)
		require.NoError(t, l.Release(context.Background()))
		mine := waits.Granted(30 * time.Second)
		require.Equal(t, queued[0], mine.ID())
		require.Equal(t, 30*time.Second, mine.Waited(), "from the call")
		require.NoError(t, mine.Err())
		require.NoError(t, mine.Release(context.Background()))
		w.RequireIdle()
	})
}

// Its node is well, and hears of its condemnation only after what follows from that.
func TestAWaitThatIsFlushedBeforeTheNextProbeGoesOnUnderTheNewNode(t *testing.T) {
	type row struct {
		opts  *qlock.LockOptions
		fate  link.Fate // of the probe that tells
		after time.Duration
	}
	each(t, map[string]row{
		"at once":                  {nil, link.Pass, 0},
		"its grant needs a call":   {hour(), link.Pass, 0},
		"the answer to it is lost": {nil, link.LoseReply, 200 * ms},
	}, func(t *testing.T, w *world, test row) {
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
}

// Who was removed by an operator is told so, also in a swarm.
func TestAWaitThatAnOperatorEndsIsGone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.member(), w.member()
		b.take(nil)
		waits, node := a.queue(nil), a.ID()
		require.NoError(t, testkit.Second(b.Operator().Release(context.Background(), berth.Target{Node: node})))
		waits.Refused(0, berth.ReasonGone)
		require.Equal(t, node, a.ID())

		waits = a.queue(&qlock.LockOptions{MaxWait: time.Second})
		a.meets("swarm_probe", link.LoseRequest) // nobody can tell why it was removed
		require.NoError(t, testkit.Second(b.Operator().Release(context.Background(), berth.Target{Node: node})))
		waits.Refused(time.Second, berth.ReasonTimedOut)
	})
}

func TestAWaitAcrossAReplacementHasItsBounds(t *testing.T) {
	attempts := &qlock.LockOptions{Attempts: qlock.Attempts{Max: 3, Delay: 10 * time.Second, Jitter: -1}}
	type row struct {
		opts   *qlock.LockOptions
		cut    bool
		reason berth.Reason
	}
	each(t, map[string]row{
		"MaxWait":           {&qlock.LockOptions{MaxWait: 20 * time.Second}, false, berth.ReasonTimedOut},
		"Attempts, cut off": {attempts, true, berth.ReasonFailed},
	}, func(t *testing.T, w *world, bound row) {
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
		require.Equal(t, 20*time.Second, refusal.Waited)
		a.Mend()
		w.Advance(time.Minute)
		_, queued := w.held(b)
		require.Empty(t, queued)
	})
}

// stopped is a member whose process stands still from its first failed probe on, until it goes on. Its time passes
// meanwhile, and nobody can replace it.
func (w *world) stopped() (a *proc, l *qlock.Lock, goesOn func()) {
	w.T.Helper()
	stands, goes := make(chan struct{}), make(chan struct{})
	stand := sync.OnceFunc(func() {
		close(stands)
		<-goes
	})
	a = w.member(watched(func(e observe.Event) {
		if e.Kind == observe.ProbeFailed {
			stand()
		}
	}))
	former := a.ID()
	l = a.hold("mine", hour())
	a.Cut()
	<-stands
	a.Mend()
	w.Until(horizon)
	require.Equal(w.T, former, a.ID(), "nobody could replace it yet")
	return a, l, func() { close(goes) }
}

func TestNothingIsAskedForUnderANodeWhoseTimeHasPassed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, l, goesOn := w.stopped()
		require.ErrorIs(t, l.Err(), berth.ErrLost)
		require.ErrorIs(t, l.Renew(ctx), berth.ErrLost)
		require.ErrorIs(t, l.Extend(ctx, time.Second), berth.ErrLost)
		former := a.ID()
		a.Reset()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err := a.TryLock(ctx, "other", nil)
		require.ErrorIs(t, err, berth.ErrNotAcquired)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, horizon+time.Second, w.Now())
		waits := a.queue(nil)
		tries := testkit.Queue(context.Background(), w.World, func(ctx context.Context) (*qlock.Lock, error) {
			return a.TryLock(ctx, "other", nil)
		})
		w.Advance(time.Minute)
		require.Zero(t, a.asked("acquire"))
		goesOn()
		for _, q := range []*wait{tries, waits} {
			require.True(t, strings.HasPrefix(q.Granted(horizon+time.Second+time.Minute).ID(), a.ID()+"."))
		}
		require.NotEqual(t, former, a.ID())
	})
}

func TestACloseEndsWhatWaitsForAReplacement(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, _, goesOn := w.stopped()
		waits := a.queue(nil)
		go func() { _ = a.Close(context.Background()) }()
		require.ErrorIs(t, waits.Refused(horizon, berth.ReasonClosed), berth.ErrClosed)
		goesOn()
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

// The answer to an acquire comes 600 ms after its node was replaced for want of probes.
func TestAGrantToTheFormerNodeIsGivenBack(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const replaced = 2*time.Second + horizon
		a := w.member()
		w.Until(3 * time.Second)
		a.meets("swarm_probe", link.LoseRequest) // the last that is confirmed began at 2 s
		w.Until(replaced - 300*ms)
		a.meets("acquire", link.Slow(900*ms))
		waits := a.queue(nil)
		a.OnCommand(func(link.Command) link.Fate { return link.Pass })
		w.Until(replaced)
		require.Len(t, a.Told(observe.NodeReplaced), 1)
		// The new node asks while the former's grant is given back: before that it has to wait.
		mine := waits.GrantedBy(replaced + 600*ms)
		require.True(t, strings.HasPrefix(mine.ID(), a.ID()+"."))
		granted := a.Told(observe.Granted)
		require.Len(t, granted, 1)
		require.Equal(t, mine.ID(), granted[0].Claim)
		w.Advance(time.Minute)
		require.NoError(t, mine.Err())
		release(t, mine)
		w.RequireIdle()
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

// forget has the server lose the record of the swarm, and no lock: they lie elsewhere.
func (w *world) forget() {
	w.T.Helper()
	w.Do("DEL", swarmState, swarmProbes)
}

// endless is a lock without end.
func endless() *qlock.LockOptions { return &qlock.LockOptions{Lease: berth.Forever} }

// swarmOf is the ZombieAfter that the holds of a lock say of their nodes, the outermost
// first.
func (n *proc) swarmOf(name string) []time.Duration {
	n.w.T.Helper()
	info, err := n.look(context.Background(), name)
	require.NoError(n.w.T, err)
	limits := []time.Duration{}
	for _, h := range info.entries {
		limits = append(limits, h.ZombieAfter)
	}
	return limits
}

// Whatever brings a hold without end to a node says whether that is in a swarm.
func TestAHoldWithoutEndSaysThatItsNodeIsInASwarm(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.member(), w.node()
		beat := func() { w.Advance(lease/3 + ms) }
		yes, no := []time.Duration{zombie}, []time.Duration{0}
		l := a.take(endless())
		beat()
		require.Equal(t, yes, b.swarmOf(door))
		token := detach(t, l)
		l = b.resume(token)
		require.Equal(t, no, b.swarmOf(door), "its node is in none")
		beat()
		require.Equal(t, no, b.swarmOf(door))
		token = detach(t, l)
		l = a.resume(token)
		require.Equal(t, yes, b.swarmOf(door), "at once")

		require.NoError(t, b.Swarm().Start(ctx))
		other := b.hold("other", endless())
		beat()
		require.Equal(t, yes, a.swarmOf("other"))
		require.NoError(t, b.Swarm().Stop(ctx))
		require.Equal(t, no, a.swarmOf("other"), "before it is out")
		beat()
		require.Equal(t, no, a.swarmOf("other"))
		require.NoError(t, b.Swarm().Start(ctx))
		beat()
		require.Equal(t, yes, a.swarmOf("other"), "what was there before as well")
		require.NoError(t, other.Err())

		for name, opts := range map[string]*qlock.LockOptions{
			"fixed": hour(), "renews": nil, "bounded": {Lease: berth.Forever, MaxHold: time.Hour},
		} {
			a.hold(name, opts)
			beat()
			require.Equal(t, no, b.swarmOf(name), name)
		}
		a.hold("fixed for ever", &qlock.LockOptions{Lease: berth.Forever, NoRenew: true})
		beat()
		require.Equal(t, yes, b.swarmOf("fixed for ever"))
		require.NoError(t, l.Err())
	})
}

func TestEachEntryOfAHoldWithoutEndSaysItOfItsOwnNode(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.member()
		outer := a.takeFor("me", endless())
		w.Advance(lease)
		inner := b.again("me")
		w.Advance(lease)
		require.Equal(t, []time.Duration{0, zombie}, a.swarmOf(door))
		b.Cut()
		w.forget()
		c := w.member()
		require.Zero(t, c.flush())
		w.Advance(zombie)
		require.Equal(t, node.Flushed{Nodes: 1, Holds: 1}, c.flush())
		require.Error(t, inner.Err())
		require.NoError(t, outer.Err())
		require.Equal(t, []time.Duration{0}, a.swarmOf(door))
	})
}

// Nobody may take a node that has left for one that is lost.
func TestWhoHasLeftIsNotMissed(t *testing.T) {
	each(t, map[string]link.Fate{
		"at once": link.Pass, "a call is lost": link.LoseRequest, "an answer is lost": link.LoseReply,
	}, func(t *testing.T, w *world, fate link.Fate) {
		a, b := w.member(), w.member()
		held := []*qlock.Lock{a.hold("one", endless()), a.hold("two", endless()), a.hold("three", endless())}
		w.Advance(lease)
		a.Once("lock_renew", fate)
		require.NoError(t, a.Swarm().Stop(ctx))
		a.Cut() // from then on
		synctest.Wait()
		w.forget()
		for range 3 {
			require.Zero(t, b.flush())
			w.Advance(zombie)
		}
		require.Equal(t, []string{b.ID()}, w.members(b))
		for _, l := range held {
			require.NoError(t, l.Err())
		}
		a.Mend()
	})
}

// It gave back what it could, and has left: nothing that stayed is its any more.
func TestALockThatACloseCouldNotReleaseIsMissed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.member(), w.member()
		a.take(endless())
		w.Advance(lease)
		a.meets("lock_release", link.LoseRequest)
		require.Error(t, a.Close(context.Background()))
		require.Equal(t, []string{b.ID()}, w.members(b))
		require.Zero(t, b.flush())
		w.Advance(zombie)
		require.Equal(t, node.Flushed{Nodes: 1, Holds: 1}, b.flush())
		b.free(door)
	})
}
