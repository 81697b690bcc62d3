package qlock_test

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/heartbeat"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/qlock"
)

// handedOn is a lock that an owner got by a hand-off, and of which nothing has been
// said to the server since.
func (w *world) handedOn(n *node, owner string) *qlock.Lock {
	w.T.Helper()
	first := w.node().take(nil)
	q := n.queueOn(berth.WithOwner(context.Background(), owner), nil)
	w.Advance(300 * ms)
	require.NoError(w.T, first.Release(context.Background()))
	return q.Granted(w.Now())
}

// requireBelow fails where the handle has ended, or believes longer than the server.
func (w *world) requireBelow(l *qlock.Lock) {
	w.T.Helper()
	require.NoError(w.T, l.Err())
	left, ok := w.LeftOf(l.ID())
	require.True(w.T, ok)
	require.Less(w.T, l.Left(), left)
}

// The outer has not spoken when the inner entry is released: the extension, which is
// longer than all that is left, is none of what the outer believes in.
func TestAnExtensionThatTheOuterNeverHeardOfIsNotTakenFromIt(t *testing.T) {
	for name, leave := range map[string]func(n *node, outer *qlock.Lock){
		"released": func(n *node, _ *qlock.Lock) {
			require.NoError(t, n.takeFor("me", extend(20*time.Second)).Release(context.Background()))
		},
		"released, two deep": func(n *node, outer *qlock.Lock) {
			first, second := n.takeFor("me", extend(20*time.Second)), n.takeFor("me", extend(20*time.Second))
			require.NoError(t, second.Release(context.Background()))
			n.w.requireBelow(outer)
			n.w.requireBelow(first)
			require.NoError(t, first.Release(context.Background()))
		},
		"released, the outer one of two first": func(n *node, outer *qlock.Lock) {
			first, second := n.takeFor("me", extend(20*time.Second)), n.takeFor("me", extend(20*time.Second))
			require.NoError(t, first.Release(context.Background()))
			n.w.requireBelow(outer)
			n.w.requireBelow(second)
			require.NoError(t, second.Release(context.Background()))
		},
		"cancelled": func(n *node, _ *qlock.Lock) {
			n.OnCommand(func(c link.Command) link.Fate {
				if c.Name == "lock_renew" {
					return link.LoseRequest
				}
				return link.Pass
			})
			q := n.queueOn(berth.WithOwner(context.Background(), "me"), extend(20*time.Second))
			q.Cancel(nil)
			<-q.Done
			synctest.Wait()
			n.OnCommand(nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n := w.node()
				n.connect()
				outer := w.handedOn(n, "me")
				n.OnCommand(func(c link.Command) link.Fate {
					if c.Name == "lock_renew" && slices.Contains(c.Args, outer.ID()) {
						return link.Slow(900 * ms) // what it is told comes too late to help
					}
					return link.Pass
				})
				leave(n, outer)
				w.requireBelow(outer)
				w.Advance(20 * time.Second)
				w.requireBelow(outer)
				require.NoError(t, outer.Release(context.Background()))
			})
		})
	}
}

// Two entries are released at a time, and each takes back what it has not used.
func TestTwoReleasesAtATimeTakeBackTheSum(t *testing.T) {
	fixed := &qlock.LockOptions{Lease: 5 * time.Second, NoRenew: true}
	for name, fate := range map[string]link.Fate{"slow": link.Slow(500 * ms), "lost": link.LoseReply, "late": link.Late} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n := w.node(qlock.Config{Retry: berth.Retry{Base: 10 * time.Second, Jitter: -1}})
				n.connect()
				outer := n.takeFor("me", fixed)
				first, second := n.takeFor("me", extend(3*time.Second)), n.takeFor("me", extend(4*time.Second))
				w.requireBelow(outer)
				n.Once("lock_release", fate)
				released := make(chan error, 1)
				go func() { released <- first.Release(context.Background()) }()
				synctest.Wait()
				require.NoError(t, second.Release(context.Background()))
				w.requireBelow(outer)
				w.Advance(0)
				w.requireBelow(outer)
				_, err := n.DeliverLate()
				require.NoError(t, err)
				synctest.Wait()
				w.requireBelow(outer)
				w.Advance(time.Second)
				w.requireBelow(outer)
				require.NoError(t, <-released)
			})
		})
	}
}

// The one that was sent first has been answered; the other one runs after a heartbeat.
func TestARemovalThatRunsLateTakesBackItsPart(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node(qlock.Config{Retry: berth.Retry{Base: 10 * time.Second, Jitter: -1}})
		n.connect()
		outer := n.takeFor("me", &qlock.LockOptions{Lease: 5 * time.Second, NoRenew: true})
		first, second := n.takeFor("me", extend(3*time.Second)), n.takeFor("me", extend(4*time.Second))
		done := slowly(n, "lock_release", 500*ms, func() { _ = first.Release(context.Background()) })
		n.Once("lock_release", link.Late)
		released := make(chan error, 1)
		go func() { released <- second.Release(context.Background()) }()
		<-done
		w.Advance(ms)
		w.requireBelow(outer)
		count, err := n.DeliverLate()
		require.NoError(t, err)
		require.Equal(t, 1, count)
		w.requireBelow(outer)
		require.NoError(t, <-released)
	})
}

// An extension is given up of which nothing was heard, and which never ran. The outer
// was answered meanwhile, and had nothing to lose.
func TestAnExtensionThatNeverRanIsNotTakenBack(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.connect()
		outer := n.takeFor("me", &qlock.LockOptions{Lease: 5 * time.Second, NoRenew: true})
		n.OnCommand(func(c link.Command) link.Fate {
			if c.Name == "lock_acquire" {
				return link.LoseRequest
			}
			return link.Pass
		})
		q := n.queueOn(berth.WithOwner(context.Background(), "me"), extend(20*time.Second))
		w.Advance(2 * time.Second)
		require.NotZero(t, n.asked("renew"))
		q.Cancel(nil)
		<-q.Done
		w.Advance(ms)
		w.requireBelow(outer)
	})
}

// The answer to a call that was sent before a release, in the same moment, comes after
// the release has been answered: it is older than what was taken back.
func TestACallFromBeforeAReleaseIsTooOldInTheSameMoment(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.connect()
		outer := n.takeFor("me", &qlock.LockOptions{Lease: 5 * time.Second, NoRenew: true})
		inner := n.takeFor("me", extend(4*time.Second))
		w.Advance(100 * ms)
		done := slowly(n, "lock_renew", time.Second, func() { _ = outer.Extend(context.Background(), ms) })
		n.OnCommand(func(c link.Command) link.Fate {
			if c.Name == "lock_renew" {
				return link.Slow(1500 * ms) // what the server is asked then does not help
			}
			return link.Pass
		})
		require.NoError(t, inner.Release(context.Background()))
		for range 300 {
			w.Advance(10 * ms)
			w.requireBelow(outer)
		}
		<-done
	})
}

// A hold is taken up again by its own node; before the answer is read, an entry that
// lengthened it is released.
func TestAReleaseOvertakesTheAnswerToAResume(t *testing.T) {
	for name, fate := range map[string]link.Fate{"answered": link.Pass, "on its way": link.Slow(1500 * ms)} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n := w.node()
				n.connect()
				outer := n.takeFor("me", &qlock.LockOptions{Lease: 5 * time.Second, NoRenew: true})
				inner := n.takeFor("me", extend(4*time.Second))
				token := detach(t, outer)
				w.Advance(100 * ms)
				resumed := make(chan *qlock.Lock, 1)
				slowly(n, "lock_resume", time.Second, func() {
					l, _ := n.Resume(context.Background(), token)
					resumed <- l
				})
				n.OnCommand(func(c link.Command) link.Fate {
					if c.Name == "lock_release" {
						return fate
					}
					if c.Name == "lock_renew" {
						return link.Slow(500 * ms)
					}
					return link.Pass
				})
				released := make(chan error, 1)
				go func() { released <- inner.Release(context.Background()) }()
				again := <-resumed
				require.NotNil(t, again)
				for range 300 {
					w.requireBelow(again)
					w.Advance(10 * ms)
				}
				require.NoError(t, <-released)
			})
		})
	}
}

// Release was called twice: the second call failed before it was sent, which says
// nothing of the first one.
func TestAReleaseThatNeverRanLiftsNothingOfOneThatMay(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node(qlock.Config{Retry: berth.Retry{Attempts: 1}})
		n.connect()
		outer := n.takeFor("me", &qlock.LockOptions{Lease: 5 * time.Second, NoRenew: true})
		inner := n.takeFor("me", extend(4*time.Second))
		n.Once("lock_release", link.Late)
		require.Error(t, inner.Release(context.Background()))
		n.Cut()
		require.Error(t, inner.Release(context.Background()))
		n.Mend()
		w.Advance(500 * ms)
		w.requireBelow(outer)
		_, err := n.DeliverLate()
		require.NoError(t, err)
		w.requireHonest(outer)
	})
}

// The release of an inner entry is on its way for so long that the handle of the outer
// one has ended, and the outer one is taken up here anew.
func TestAReleaseIsOnItsWayWhileTheOuterIsTakenUpAnew(t *testing.T) {
	for name, leave := range map[string]func(w *world, there *node, token berth.Token) berth.Token{
		"after its end here": func(w *world, _ *node, token berth.Token) berth.Token {
			w.Advance(8500 * ms)
			return token
		},
		"there and back again": func(w *world, there *node, token berth.Token) berth.Token {
			l := there.resume(token)
			w.Advance(3 * time.Second)
			return detach(w.T, l)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n, there := w.node(qlock.Config{Retry: berth.Retry{Attempts: 1}}), w.node()
				n.connect()
				outer := n.takeFor("me", &qlock.LockOptions{Lease: 5 * time.Second, NoRenew: true})
				inner := n.takeFor("me", extend(20*time.Second))
				token := detach(t, outer)
				n.Once("lock_release", link.Late)
				released := make(chan error, 1)
				go func() { released <- inner.Release(context.Background()) }()
				synctest.Wait()
				token = leave(w, there, token)
				synctest.Wait()
				require.Error(t, outer.Err())
				again := n.resume(token)
				w.requireBelow(again)
				_, err := n.DeliverLate()
				require.NoError(t, err)
				w.requireBelow(again)
				w.Advance(time.Second)
				w.requireBelow(again)
				require.Error(t, <-released)
			})
		})
	}
}

// The release is answered at last: what was taken up while it was on its way is asked
// for again.
func TestTheAnswerToAReleaseLiftsWhatWasTakenUpMeanwhile(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, there := w.node(), w.node()
		n.connect()
		outer := n.takeFor("me", &qlock.LockOptions{Lease: 60 * time.Second, NoRenew: true})
		inner := n.takeFor("me", extend(20*time.Second))
		token := detach(t, outer)
		n.Once("lock_release", link.Slow(1500*ms))
		released := make(chan error, 1)
		go func() { released <- inner.Release(context.Background()) }()
		synctest.Wait()
		l := there.resume(token)
		w.Advance(500 * ms)
		again := n.resume(detach(t, l))
		w.requireBelow(again)
		require.NoError(t, <-released)
		w.requireBelow(again)
		w.Advance(time.Second)
		w.requireBelow(again)
		left, _ := w.LeftOf(again.ID())
		// An answer may be to a call that was sent a second before it, behind the release.
		require.GreaterOrEqual(t, again.Left(), left-time.Second-heartbeat.Margin(time.Minute))
	})
}

// A release is answered while the observer is told that the handle has ended whose
// hold is being taken up.
func TestAReleaseIsAnsweredWhileAHoldIsBeingTakenUp(t *testing.T) {
	for i := range 4 { // the end that the observer is told of may be found in two ways
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n := w.node(qlock.Config{Observer: observe.Func(func(e observe.Event) {
					if e.Kind == observe.ReleasedByOther {
						time.Sleep(400 * ms)
					}
				})})
				n.connect()
				outer := n.takeFor("me", &qlock.LockOptions{Lease: 5 * time.Second, NoRenew: true})
				inner := n.takeFor("me", extend(4*time.Second))
				token := detach(t, outer)
				w.Advance(100 * ms)
				resumed := make(chan *qlock.Lock, 1)
				slowly(n, "lock_resume", 300*ms, func() {
					l, _ := n.Resume(context.Background(), token)
					resumed <- l
				})
				n.OnCommand(func(c link.Command) link.Fate {
					if c.Name == "lock_release" {
						return link.Slow(500 * ms)
					}
					return link.Pass
				})
				released := make(chan error, 1)
				go func() { released <- inner.Release(context.Background()) }()
				again := <-resumed
				require.NotNil(t, again)
				w.requireHonest(again)
				require.NoError(t, <-released)
			})
		})
	}
}

// A deadline so far off that it is none here says nothing to a removal, which must take
// nothing back then.
func TestAnEndTooFarOffIsNotTakenBack(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const year = 365 * 24 * time.Hour
		n := w.node()
		n.connect()
		outer := n.takeFor("me", &qlock.LockOptions{Lease: 5 * time.Second, NoRenew: true})
		first, second := n.takeFor("me", extend(150*year)), n.takeFor("me", extend(150*year))
		w.Advance(time.Second)
		n.OnCommand(func(c link.Command) link.Fate {
			if c.Name == "lock_renew" {
				return link.Slow(900 * ms)
			}
			return link.Pass
		})
		for _, inner := range []*qlock.Lock{first, second} {
			require.NoError(t, inner.Release(context.Background()))
			left, ok := w.LeftOf(outer.ID())
			require.True(t, ok)
			require.LessOrEqual(t, outer.Left(), left)
		}
	})
}

// The outer was taken up elsewhere and here again since the extension was noted: what
// is known of it was counted anew, and contains the extension.
func TestAnExtensionIsOlderThanTheHandleThatItLengthens(t *testing.T) {
	for name, fate := range map[string]link.Fate{"slow": link.Slow(200 * ms), "lost": link.LoseReply} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n, there := w.node(qlock.Config{Retry: berth.Retry{Attempts: 1}}), w.node()
				n.connect()
				outer := n.takeFor("me", &qlock.LockOptions{Lease: 60 * time.Second, NoRenew: true})
				w.Advance(10 * time.Second) // some beats
				inner := n.takeFor("me", extend(20*time.Second))
				l := there.resume(detach(t, outer))
				w.Advance(3 * time.Second)
				again := n.resume(detach(t, l))
				n.Once("lock_release", fate)
				released := make(chan error, 1)
				go func() { released <- inner.Release(context.Background()) }()
				synctest.Wait()
				w.requireBelow(again)
				require.Equal(t, name == "lost", <-released != nil)
				w.requireBelow(again)
				w.Advance(time.Second)
				w.requireBelow(again)
			})
		})
	}
}
