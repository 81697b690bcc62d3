package qlock_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/qlock"
)

// TestALostReplyChangesNothing plays the same with each reply lost, and compares what is left. What an owner's entries are
// believed in while others are given back is proved by internal/engine.
func TestALostReplyChangesNothing(t *testing.T) {
	play := func(w *world, n *proc) []time.Duration {
		var seen []time.Duration
		look := func(locks ...*qlock.Lock) {
			for _, l := range locks {
				seen = append(seen, w.endOf(l).Sub(w.Began).Round(time.Second))
			}
		}
		outer := n.takeFor("me", &qlock.LockOptions{Lease: 5 * time.Second, NoRenew: true})
		first := n.takeFor("me", extend(20*time.Second))
		second := n.again("me")
		look(outer, first, second)
		w.Advance(time.Second)
		require.NoError(w.T, outer.Extend(context.Background(), 2*time.Second))
		require.NoError(w.T, second.Renew(context.Background()))
		look(outer, first, second)
		require.NoError(w.T, first.Release(context.Background()))
		look(outer, second)
		require.NoError(w.T, outer.Release(context.Background()))
		look(second)
		require.NoError(w.T, second.Release(context.Background()))
		w.Advance(61 * time.Second)
		_, err := n.Operator().Sweep(context.Background(), keyspace.Lock) // the tombstones
		require.NoError(w.T, err)
		w.RequireIdle()
		return seen
	}
	want := []time.Duration{25, 25, 25, 27, 27, 27, 8, 8, 8}
	for i := range want {
		want[i] *= time.Second
	}
	for verb, last := range map[string]int{"acquire": 4, "renew": 3, "release": 3} {
		for nth := 1; nth <= last; nth++ {
			inWorldOf(t, fmt.Sprint(verb, " ", nth), func(t *testing.T, w *world) {
				n := w.node()
				calls := 0
				var mu sync.Mutex
				n.on(verb, func() link.Fate {
					mu.Lock()
					defer mu.Unlock()
					if calls++; calls == nth {
						return link.LoseReply
					}
					return link.Pass
				})
				require.Equal(t, want, play(w, n))
				require.GreaterOrEqual(t, calls, nth)
			})
		}
	}
}

func TestTheDeadlineIsWhatItWasWhereAnExtensionWasGivenUp(t *testing.T) {
	each(t, map[string]link.Fate{
		"it ran": link.LoseReply, "it did not": link.LoseRequest, "it comes late": link.Late,
	}, func(t *testing.T, w *world, fate link.Fate) {
		n := w.node()
		n.connect()
		outer := n.takeFor("me", &qlock.LockOptions{Lease: 5 * time.Second, NoRenew: true})
		n.meets("lock_acquire", fate)
		a := n.queueOn(berth.WithOwner(context.Background(), "me"), extend(20*time.Second))
		a.Cancel(nil)
		<-a.Done
		n.OnCommand(nil)
		w.Advance(10 * ms)
		require.NoError(t, testkit.Second(n.DeliverLate()))
		w.requireLeft(5*time.Second-10*ms, outer, "nothing but the time has passed")
		w.honest(outer)
		require.Greater(t, outer.Left(), 5*time.Second-210*ms)
		entries, _ := w.held(n)
		require.Equal(t, []string{outer.ID()}, entries)
		require.NoError(t, outer.Release(context.Background()))
	})
}

func TestALockThatRanOutIsNotReentered(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		outer := n.takeFor("me", &qlock.LockOptions{Lease: time.Second, NoRenew: true})
		n.OnCommand(func(c link.Command) link.Fate {
			if c.Name == "lock_acquire" {
				time.Sleep(1100 * ms) // it runs out on the way
			}
			return link.Pass
		})
		inner := n.again("me")
		require.Equal(t, qlock.Granted, inner.Via())
		require.Greater(t, inner.Fence(), outer.Fence())
		require.ErrorIs(t, outer.Err(), berth.ErrExpired)
		info := n.info()
		require.Zero(t, info.Reentries)
		n.OnCommand(nil)
		require.NoError(t, inner.Release(context.Background()))
		w.RequireIdle()
	})
}

// The server counts a maximum hold from the first attempt that it ran, answered or not.
func TestAMaximumHoldRunsFromTheAttemptThatWasNotAnswered(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.takeFor("another", nil) // the connection stands, and the script is known
		n.Once("lock_acquire", link.LoseReply)
		outer, err := n.Lock(berth.WithOwner(context.Background(), "me"), "other", &qlock.LockOptions{
			Lease: 100 * ms, MaxHold: lease, // a margin shorter than the pause before the next attempt
		})
		require.NoError(t, err)
		began := outer.Left()
		inner := w.got(n.Lock(berth.WithOwner(context.Background(), "me"), "other", extend(20*time.Second)))
		require.Greater(t, outer.Left(), began, "it was lengthened up to its maximum")
		left, ok := w.leftOf(outer)
		require.True(t, ok)
		for _, l := range []*qlock.Lock{outer, inner} {
			require.Less(t, l.Left(), left, "what the server gives it")
		}
	})
}

// A re-entry nobody has heard of keeps a lock without end after its outer hold
// was released.
func TestALostReentryIsNotForever(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, dead, other := w.node(), w.node(), w.node()
		outer := n.takeFor("me", &qlock.LockOptions{Lease: berth.Forever})
		dead.OnCommand(func(c link.Command) link.Fate {
			if c.Name == "lock_acquire" {
				go dead.Die()
				return link.LoseReply
			}
			return link.Pass
		})
		lost := dead.queueOn(berth.WithOwner(context.Background(), "me"), &qlock.LockOptions{Conflict: qlock.WorkThrough})
		lost.Cancel(nil)
		<-lost.Done
		require.NoError(t, outer.Release(context.Background()))
		next := other.queue(nil)
		w.Advance(time.Minute)
		require.False(t, next.Pending(), "an entry whose claimant never spoke holds on")
		next.Cancel(nil)
		<-next.Done
	})
}
