package qlock_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/qlock"
)

// slowly sends f's call with its reply late by d, and leaves it on its way.
func slowly(n *node, script string, d time.Duration, f func()) (done chan struct{}) {
	n.Once(script, link.Slow(d))
	done = make(chan struct{})
	go func() { defer close(done); f() }()
	synctest.Wait()
	return done
}

func (w *world) requireHonest(l *qlock.Lock) {
	w.T.Helper()
	if l.Err() != nil {
		return
	}
	left, ok := w.LeftOf(l.ID())
	require.True(w.T, ok, "believes in %s", l.Left())
	require.Less(w.T, l.Left(), left)
}

func TestExtendReplyOvertaken(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.connect()
		w.Advance(ms)
		outer := n.takeFor("me", &qlock.LockOptions{Lease: 5 * time.Second, NoRenew: true})
		inner := n.takeFor("me", &qlock.LockOptions{Lease: 5 * time.Second, Conflict: qlock.ExtendAndWorkThrough})
		done := slowly(n, "lock_renew", time.Second, func() {
			// A call that is lost below takes its connection along, and the reply.
			_ = outer.Extend(context.Background(), time.Second)
		})
		w.Advance(ms)
		require.NoError(t, inner.Release(context.Background()))
		n.OnCommand(func(c link.Command) link.Fate {
			if c.Name == "lock_renew" {
				return link.LoseRequest
			}
			return link.Pass
		})
		<-done
		w.requireHonest(outer)
	})
}

func TestReentryReplyOvertaken(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.connect()
		w.Advance(ms)
		outer := n.takeFor("me", &qlock.LockOptions{Lease: 5 * time.Second, NoRenew: true})
		inner := n.takeFor("me", &qlock.LockOptions{Lease: 5 * time.Second, Conflict: qlock.ExtendAndWorkThrough})
		var late *qlock.Lock
		done := slowly(n, "lock_acquire", time.Second, func() {
			late = n.takeFor("me", &qlock.LockOptions{Conflict: qlock.WorkThrough})
		})
		require.NoError(t, inner.Release(context.Background()))
		<-done
		w.requireHonest(outer)
		w.requireHonest(late)
	})
}

func TestLateReleaseAfterANewEntry(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.connect()
		w.Advance(ms)
		outer := n.takeFor("me", &qlock.LockOptions{Lease: 5 * time.Second, NoRenew: true})
		inner := n.takeFor("me", &qlock.LockOptions{Lease: 40 * time.Second, Conflict: qlock.ExtendAndWorkThrough})
		n.OnCommand(func(c link.Command) link.Fate {
			if c.Name == "lock_release" {
				return link.Late
			}
			return link.Pass
		})
		require.Error(t, inner.Release(context.Background()))
		n.OnCommand(nil)
		late := n.takeFor("me", &qlock.LockOptions{Conflict: qlock.WorkThrough})
		_, err := n.DeliverLate()
		require.NoError(t, err)
		w.requireHonest(outer)
		w.requireHonest(late)
	})
}

func TestAnAnswerBetweenLoweringAndLifting(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.connect()
		w.Advance(ms)
		outer := n.takeFor("me", &qlock.LockOptions{Lease: 5 * time.Second, NoRenew: true})
		inner := n.takeFor("me", &qlock.LockOptions{Lease: 5 * time.Second, Conflict: qlock.ExtendAndWorkThrough})
		var down atomic.Bool
		n.OnCommand(func(c link.Command) link.Fate {
			switch {
			case c.Name == "lock_renew" && down.Load():
				return link.LoseRequest
			case c.Name == "lock_renew":
				return link.Slow(time.Second)
			case c.Name == "lock_release":
				return link.Slow(1500 * ms)
			}
			return link.Pass
		})
		done := make(chan struct{})
		go func() {
			defer close(done)
			// A call that is lost below may take its connection along, and the reply.
			_ = outer.Extend(context.Background(), time.Second)
		}()
		synctest.Wait()
		w.Advance(ms)
		down.Store(true)
		require.NoError(t, inner.Release(context.Background()))
		<-done
		w.requireHonest(outer)
	})
}

func TestWhatWasNotedBeforeAnotherWasGivenBack(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.connect()
		w.Advance(ms)
		outer := n.takeFor("me", &qlock.LockOptions{Lease: 5 * time.Second, NoRenew: true})
		inner := n.takeFor("me", &qlock.LockOptions{Lease: 5 * time.Second, Conflict: qlock.ExtendAndWorkThrough})
		var asked atomic.Bool
		n.OnCommand(func(c link.Command) link.Fate {
			switch {
			case c.Name == "lock_acquire" && asked.CompareAndSwap(false, true):
				return link.LoseReply
			case c.Name == "lock_acquire":
				return link.LoseRequest
			}
			return link.Pass
		})
		a := n.queueOn(berth.WithOwner(context.Background(), "me"), &qlock.LockOptions{Lease: 5 * time.Second, Conflict: qlock.ExtendAndWorkThrough})
		require.NoError(t, inner.Release(context.Background()))
		w.Advance(ms)
		n.OnCommand(func(c link.Command) link.Fate {
			switch c.Name {
			case "lock_release":
				return link.LoseReply
			case "lock_renew", "lock_acquire":
				return link.LoseRequest
			}
			return link.Pass
		})
		a.Cancel(nil)
		<-a.Done
		w.Advance(ms)
		w.requireHonest(outer)
	})
}

// An entry that is granted while the outermost one is provisional hears of no
// limit; the extension of a third then lengthens its handle beyond the MaxHold that
// the outermost one's first call has set for all.
func TestTheLimitOfAProvisionalOuter(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.connect()
		outer := slowly(n, "lock_acquire", time.Second, func() {
			n.takeFor("me", &qlock.LockOptions{Lease: 20 * time.Second, NoRenew: true, MaxHold: 3 * time.Second})
		})
		inner := n.takeFor("me", &qlock.LockOptions{Conflict: qlock.WorkThrough})
		<-outer
		n.OnCommand(nil)
		n.takeFor("me", &qlock.LockOptions{Lease: 4 * time.Second, Conflict: qlock.ExtendAndWorkThrough})
		left, ok := w.LeftOf(inner.ID())
		require.True(t, ok)
		require.Less(t, inner.Left(), left)
	})
}

// A waiter's beat that is on its way when the hand-off comes starts a lease that is
// shorter than the wait lease, while the push is believed (law 2; the same in
// pkg/semaphore).
func TestABeatOnItsWay(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, other := w.node(), w.node()
		l := other.take(nil)
		a := n.queue(&qlock.LockOptions{Lease: time.Second})
		w.Advance(10 * ms)
		n.Reset()
		n.OnCommand(func(c link.Command) link.Fate {
			if c.Name == "lock_renew" {
				time.Sleep(100 * ms) // on its way to the server
				return link.Slow(time.Second)
			}
			return link.Pass
		})
		for n.Count("lock_renew") == 0 {
			w.Advance(ms)
		}
		require.NoError(t, l.Release(context.Background()))
		for range 500 {
			w.Advance(ms)
			if !a.Pending() {
				require.NoError(t, a.Err)
				left, ok := w.LeftOf(a.Got.ID())
				if a.Got.Err() == nil {
					require.True(t, ok)
					require.Less(t, a.Got.Left(), left)
				}
			}
		}
		n.OnCommand(nil)
		<-a.Done
	})
}

// The first own call of a hold that a hand-off gave starts its lease, which may be
// shorter than the wait lease: Extend must lower the local deadline before it is
// sent (law 2).
func TestExtendIsTheFirstOwnCall(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, other := w.node(), w.node()
		l := other.take(nil)
		a := n.queue(&qlock.LockOptions{Lease: time.Second})
		require.NoError(t, l.Release(context.Background()))
		held := a.Granted(0)
		n.Once("lock_renew", link.Slow(500*ms))
		done := make(chan error, 1)
		go func() { done <- held.Extend(context.Background(), 200*ms) }()
		w.Advance(ms)
		left, ok := w.LeftOf(held.ID())
		require.True(t, ok)
		require.Less(t, held.Left(), left)
		require.NoError(t, <-done)
	})
}

// An answer from before an extension was taken back must not bring it back.
func TestAnAnswerFromBeforeAReleaseDoesNotLengthenWhatItLeft(t *testing.T) {
	for name, call := range map[string]func(context.Context, *qlock.Lock) error{
		"renew":  func(ctx context.Context, l *qlock.Lock) error { return l.Renew(ctx) },
		"extend": func(ctx context.Context, l *qlock.Lock) error { return l.Extend(ctx, time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n := w.node()
				n.connect()
				overtaken := 0
				for overtaken < 3 {
					outer := n.takeFor("me", &qlock.LockOptions{Lease: 5 * time.Second, NoRenew: true})
					inner := n.takeFor("me", &qlock.LockOptions{Lease: 30 * time.Second, Conflict: qlock.ExtendAndWorkThrough})
					began := w.Now()
					n.Once("lock_renew", link.Slow(500*time.Millisecond))
					done := make(chan error, 1)
					go func() { done <- call(context.Background(), outer) }()
					w.Advance(time.Millisecond) // the server has answered
					require.NoError(t, inner.Release(context.Background()))
					if w.Now() < began+500*time.Millisecond { // it went over another connection
						overtaken++
					}
					require.NoError(t, <-done)
					left, ok := w.LeftOf(outer.ID())
					require.True(t, ok)
					require.Less(t, outer.Left(), left)
					require.NoError(t, outer.Release(context.Background()))
				}
			})
		})
	}
}

// A release that is called again takes back nothing twice.
func TestAReleaseThatIsRepeatedLowersItsSiblingsOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.connect()
		outer := n.takeFor("me", &qlock.LockOptions{Lease: 4 * time.Second, NoRenew: true})
		inner := n.takeFor("me", &qlock.LockOptions{Lease: 30 * time.Second, Conflict: qlock.ExtendAndWorkThrough})
		began := w.Now()
		var released atomic.Bool
		n.OnCommand(func(c link.Command) link.Fate {
			switch {
			case c.Name == "lock_release" && w.Now() < began+2*time.Second:
				return link.LoseRequest // and it is repeated
			case c.Name == "lock_release":
				released.Store(true)
			case c.Name == "lock_renew" && released.Load():
				return link.LoseRequest // nothing corrects it
			}
			return link.Pass
		})
		for inner.Release(context.Background()) != nil {
			require.NoError(t, outer.Err())
			w.Advance(100 * time.Millisecond)
		}
		require.NoError(t, outer.Err())
		left, ok := w.LeftOf(outer.ID())
		require.True(t, ok)
		require.Less(t, outer.Left(), left)
	})
}

// While a release is on its way, heartbeats still tell of the extension.
func TestABeatDuringAReleaseDoesNotOutliveIt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.connect()
		for range 8 { // some of the beats go over another connection
			outer := n.takeFor("me", &qlock.LockOptions{Lease: 4 * time.Second, NoRenew: true})
			inner := n.takeFor("me", &qlock.LockOptions{Lease: 30 * time.Second, Conflict: qlock.ExtendAndWorkThrough})
			var released atomic.Bool
			n.OnCommand(func(c link.Command) link.Fate {
				switch {
				case c.Name == "lock_release" && !released.Load():
					time.Sleep(1500 * time.Millisecond) // on its way
					released.Store(true)
				case c.Name == "lock_renew" && released.Load():
					return link.LoseRequest // nothing corrects it
				}
				return link.Pass
			})
			require.NoError(t, inner.Release(context.Background()))
			left, ok := w.LeftOf(outer.ID())
			require.True(t, ok)
			require.Less(t, outer.Left(), left)
			n.OnCommand(nil)
			require.NoError(t, outer.Release(context.Background()))
		}
	})
}

// What the call has lowered already must not be lowered again by the release.
func TestARenewThatMeetsAReleaseEndsNoHold(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.connect()
		outer := n.takeFor("me", &qlock.LockOptions{Lease: 5 * time.Second, NoRenew: true})
		inner := n.takeFor("me", &qlock.LockOptions{Lease: 30 * time.Second, Conflict: qlock.ExtendAndWorkThrough})
		n.Once("lock_renew", link.Slow(500*time.Millisecond))
		done := make(chan error, 1)
		go func() { done <- outer.Renew(context.Background()) }()
		w.Advance(time.Millisecond)
		require.NoError(t, inner.Release(context.Background()))
		require.NoError(t, <-done)
		require.NoError(t, outer.Err())
	})
}

func TestAnEntryMayEndLongBeforeItsWaitLease(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		outer, inner := w.node(qlock.Config{Lease: time.Minute}), w.node(qlock.Config{Lease: time.Minute})
		outer.takeFor("me", &qlock.LockOptions{Lease: berth.Forever, NoRenew: true})
		entry := inner.takeFor("me", &qlock.LockOptions{
			Conflict: qlock.ExtendAndWorkThrough, Lease: 30 * time.Second, MaxHold: 400 * ms, NoRenew: true,
		})
		w.Advance(300 * ms)
		require.NoError(t, entry.Err())
		w.Advance(100 * ms)
		require.ErrorIs(t, entry.Err(), berth.ErrExpired)
	})
}
