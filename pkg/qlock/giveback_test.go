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
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
)

// What an owner's entries are believed in while others are given back is proved by
// internal/engine; these show that calls, scripts and lost replies meet it.

// requireBelow fails where the handle has ended, or believes longer than the server.
func (w *world) requireBelow(l *qlock.Lock) {
	w.T.Helper()
	require.NoError(w.T, l.Err())
	left, ok := w.LeftOf(l.ID())
	require.True(w.T, ok)
	require.Less(w.T, l.Left(), left)
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

// While a release of an inner entry goes unanswered, a renewing outer hold ends,
// though its own renewals are answered.
func TestAnUnansweredReleaseEndsNoHoldThatRenews(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		outer := n.takeFor("me", &qlock.LockOptions{Lease: 5 * time.Second})
		inner := n.takeFor("me", &qlock.LockOptions{Lease: 30 * time.Second, Conflict: qlock.ExtendAndWorkThrough})
		w.Advance(100 * ms)
		n.OnCommand(func(c link.Command) link.Fate {
			if c.Name == "lock_release" {
				return link.LoseReply
			}
			return link.Pass
		})
		require.Error(t, inner.Release(context.Background()))
		w.Advance(time.Minute)
		require.NoError(t, outer.Err())
	})
}

// Release was called twice: the second call failed before it was sent, which says
// nothing of the first one.
func TestAReleaseThatNeverRanLiftsNothingOfOneThatMay(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node(node.Config{Retry: berth.Retry{Attempts: 1}})
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

// The outer was taken up elsewhere and here again since the extension was noted: what
// is known of it was counted anew, and contains the extension.
func TestAnExtensionIsOlderThanTheHandleThatItLengthens(t *testing.T) {
	for name, fate := range map[string]link.Fate{"slow": link.Slow(200 * ms), "lost": link.LoseReply} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n, there := w.node(node.Config{Retry: berth.Retry{Attempts: 1}}), w.node()
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
