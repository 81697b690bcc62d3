package qlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/model/link"
	"github.com/berth-go/berth/pkg/qlock"
)

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
					began := w.now()
					n.Once("lock_renew", link.Slow(500*time.Millisecond))
					done := make(chan error, 1)
					go func() { done <- call(context.Background(), outer) }()
					w.advance(time.Millisecond) // the server has answered
					require.NoError(t, inner.Release(context.Background()))
					if w.now() < began+500*time.Millisecond { // it went over another connection
						overtaken++
					}
					require.NoError(t, <-done)
					left, ok := w.leftOf(outer.ID())
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
		began, released := w.now(), false
		n.OnCommand(func(c link.Command) link.Fate {
			switch {
			case c.Name == "lock_release" && w.now() < began+2*time.Second:
				return link.LoseRequest // and it is repeated
			case c.Name == "lock_release":
				released = true
			case c.Name == "lock_renew" && released:
				return link.LoseRequest // nothing corrects it
			}
			return link.Pass
		})
		for inner.Release(context.Background()) != nil {
			require.NoError(t, outer.Err())
			w.advance(100 * time.Millisecond)
		}
		require.NoError(t, outer.Err())
		left, ok := w.leftOf(outer.ID())
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
			released := false
			n.OnCommand(func(c link.Command) link.Fate {
				switch {
				case c.Name == "lock_release" && !released:
					time.Sleep(1500 * time.Millisecond) // on its way
					released = true
				case c.Name == "lock_renew" && released:
					return link.LoseRequest // nothing corrects it
				}
				return link.Pass
			})
			require.NoError(t, inner.Release(context.Background()))
			left, ok := w.leftOf(outer.ID())
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
		w.advance(time.Millisecond)
		require.NoError(t, inner.Release(context.Background()))
		require.NoError(t, <-done)
		require.NoError(t, outer.Err())
	})
}
