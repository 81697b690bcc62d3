package qlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/qlock"
)

func TestAnExtensionIsGivenBackExactly(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		outer := n.takeFor("me", &qlock.LockOptions{Lease: 5 * time.Second, NoRenew: true})
		require.Equal(t, 5*time.Second-52*ms, outer.Left())
		w.Advance(time.Second)
		inner := n.takeFor("me", &qlock.LockOptions{Lease: 3 * time.Second, Conflict: qlock.ExtendAndWorkThrough})
		require.Equal(t, qlock.ReenteredExtended, inner.Via())
		require.Equal(t, outer.Fence(), inner.Fence())
		require.Equal(t, 7*time.Second-52*ms, outer.Left(), "lengthened with the inner's confirmation")
		require.Equal(t, 7*time.Second-52*ms, inner.Left())
		w.Advance(time.Second)
		require.NoError(t, inner.Release(context.Background()))
		left, ok := w.LeftOf(outer.ID())
		require.True(t, ok)
		require.Equal(t, 4*time.Second, left, "8 s less the 2 s that were not used, at 2 s")
		w.Advance(0)
		require.Equal(t, 4*time.Second-52*ms, outer.Left())
		w.Until(6 * time.Second)
		require.ErrorIs(t, outer.Err(), berth.ErrExpired)
	})
}

func TestTheInnerEntryGoesOnWhereTheOuterWasReleasedFirst(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, other := w.node(), w.node()
		outer := n.takeFor("me", nil)
		inner := n.takeFor("me", &qlock.LockOptions{Conflict: qlock.WorkThrough})
		require.NoError(t, outer.Release(context.Background()))
		next := other.queue(nil)
		w.Advance(time.Minute)
		require.NoError(t, inner.Err(), "it renews as the outer did")
		require.True(t, next.Pending())
		require.NoError(t, inner.Release(context.Background()))
		require.NoError(t, next.Granted(time.Minute).Release(context.Background()))
		w.RequireIdle()
	})
}

func TestTheZeroConflictIsADeadlock(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		outer := n.take(nil)
		_, err := n.Lock(outer.Context(), door, nil)
		require.ErrorIs(t, err, berth.ErrDeadlock)
		require.ErrorIs(t, err, berth.ErrNotAcquired)
		require.NoError(t, outer.Release(context.Background()))
		w.RequireIdle()
	})
}

// outers are holds of every kind, and how long the wait lease lets each live.
var outers = map[string]qlock.LockOptions{
	"renewing":         {},
	"renewing bounded": {MaxHold: time.Minute},
	"fixed":            {NoRenew: true},
	"fixed bounded":    {NoRenew: true, MaxHold: 3 * time.Second},
	"forever":          {Lease: berth.Forever},
	"forever bounded":  {Lease: berth.Forever, MaxHold: time.Minute},
}

// stays says that nothing ends a hold of that kind but its owner.
func stays(o qlock.LockOptions) bool { return o.MaxHold == 0 && !o.NoRenew }

func TestEveryConflictStrategyMeetsEveryHold(t *testing.T) {
	for name, options := range outers {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				a, b := w.node(), w.node()
				outer := a.takeFor("me", &options)
				within, cancel := outer.Within(context.Background())
				defer cancel()
				for how, owned := range map[string]struct {
					ctx context.Context
					n   *proc
				}{
					"given": {berth.WithOwner(context.Background(), "me"), a}, "given elsewhere": {berth.WithOwner(context.Background(), "me"), b},
					"Context": {outer.Context(), b}, "Within": {within, a},
				} {
					ctx, n := owned.ctx, owned.n
					_, err := n.Lock(ctx, door, nil)
					require.ErrorIs(t, err, berth.ErrDeadlock, how)
					require.ErrorIs(t, err, berth.ErrNotAcquired)
					require.NotErrorIs(t, err, berth.ErrBusy)
					_, err = n.TryLock(ctx, door, &qlock.LockOptions{Conflict: qlock.Wait})
					var refusal *berth.AcquireError
					require.ErrorAs(t, err, &refusal)
					require.Equal(t, berth.ReasonHeld, refusal.Reason, how)

					inner, err := n.TryLock(ctx, door, &qlock.LockOptions{Conflict: qlock.WorkThrough})
					require.NoError(t, err, how)
					require.Equal(t, qlock.Reentered, inner.Via())
					require.Equal(t, outer.Fence(), inner.Fence())
					require.Equal(t, "me", inner.Owner())
					w.requireKept(time.Until(w.endOf(outer)), inner)
					require.NoError(t, inner.Release(context.Background()))

					extending, err := n.Lock(ctx, door, &qlock.LockOptions{Lease: time.Second, Conflict: qlock.ExtendAndWorkThrough})
					require.NoError(t, err, how)
					require.Equal(t, qlock.ReenteredExtended, extending.Via())
					require.Equal(t, outer.Fence(), extending.Fence())
					require.NoError(t, extending.Release(context.Background()))
					w.Advance(0)
					require.NoError(t, outer.Err())
					entries, waiters := w.held(a)
					require.Equal(t, []string{outer.ID()}, entries)
					require.Empty(t, waiters)
				}
				require.NoError(t, outer.Release(context.Background()))
				w.RequireIdle()
			})
		})
	}
}

func TestWaitForOneselfIsADeadlockOnlyWhereNothingEnds(t *testing.T) {
	waits := map[string]struct {
		opts  qlock.LockOptions
		bound bool // by ctx
		ends  bool
	}{
		"without end":         {},
		"to a deadline":       {bound: true, ends: true},
		"for MaxWait":         {opts: qlock.LockOptions{MaxWait: 2 * time.Second}, ends: true},
		"for Attempts":        {opts: qlock.LockOptions{Attempts: qlock.Attempts{Max: 11, Jitter: -1}}, ends: true},
		"with a RequeueEvery": {opts: qlock.LockOptions{RequeueEvery: time.Second}},
	}
	for held, options := range outers {
		t.Run(held, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n, other := w.node(), w.node()
				for name, wait := range waits {
					outer := n.takeFor("me", &options)
					ahead := other.queue(&qlock.LockOptions{MaxWait: time.Hour})
					ctx, cancel := berth.WithOwner(context.Background(), "me"), context.CancelFunc(func() {})
					if wait.bound {
						ctx, cancel = context.WithTimeout(ctx, 2*time.Second)
					}
					wait.opts.Conflict = qlock.Wait
					own := n.queueOn(ctx, &wait.opts)
					if stays(options) && !wait.ends {
						require.False(t, own.Pending(), name)
						require.Equal(t, 1, own.Refused(w.Now(), berth.ReasonDeadlock).Held, name)
						require.ErrorIs(t, own.Err, berth.ErrDeadlock, name)
					} else {
						require.True(t, own.Pending(), name)
						_, waiters := w.held(n)
						require.Len(t, waiters, 2, name)
					}
					require.NoError(t, outer.Release(context.Background()))
					w.Advance(0)
					require.False(t, ahead.Pending(), "nobody passes: %s", name)
					if !stays(options) || wait.ends {
						require.True(t, own.Pending(), name)
					}
					require.NoError(t, ahead.Got.Release(context.Background()))
					w.Advance(0)
					require.False(t, own.Pending(), name)
					if own.Err == nil {
						require.Equal(t, qlock.Granted, own.Got.Via())
						require.Greater(t, own.Got.Fence(), ahead.Got.Fence())
						require.NoError(t, own.Got.Release(context.Background()))
					}
					cancel()
					w.RequireIdle()
				}
			})
		})
	}
}

func TestAnotherOwnerIsNoConflict(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		outer := n.take(nil) // its own owner
		for _, conflict := range []qlock.Conflict{qlock.FailDeadlock, qlock.Wait, qlock.WorkThrough, qlock.ExtendAndWorkThrough} {
			for _, owner := range []string{"", "other"} {
				_, err := n.TryLock(berth.WithOwner(context.Background(), owner), door, &qlock.LockOptions{Conflict: conflict})
				require.ErrorIs(t, err, berth.ErrBusy)
				require.NotErrorIs(t, err, berth.ErrDeadlock)
			}
		}
		require.NoError(t, outer.Release(context.Background()))
		w.RequireIdle()
	})
}

func TestAReentryPassesTheLine(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, other := w.node(), w.node()
		outer := n.takeFor("me", nil)
		next := other.queue(&qlock.LockOptions{Priority: 127})
		inner := n.takeFor("me", &qlock.LockOptions{Conflict: qlock.WorkThrough, Priority: -128})
		require.NoError(t, outer.Release(context.Background()))
		w.Advance(0)
		require.True(t, next.Pending(), "any entry holds the lock")
		require.NoError(t, inner.Release(context.Background()))
		require.NoError(t, next.Granted(0).Release(context.Background()))
		w.RequireIdle()
	})
}

func TestDoCarriesTheOwnerThreeDeepAndToGoroutines(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		work := &qlock.LockOptions{Conflict: qlock.WorkThrough}
		var ran int
		err := a.Do(context.Background(), door, &qlock.LockOptions{Lease: 2 * time.Second}, func(ctx context.Context) error {
			fence := a.Fence(ctx, door)
			require.Positive(t, fence)
			return a.Do(ctx, door, work, func(ctx context.Context) error {
				require.Equal(t, fence, a.Fence(ctx, door))
				return b.Do(ctx, door, work, func(ctx context.Context) error {
					require.Equal(t, fence, b.Fence(ctx, door))
					done := make(chan error, 6)
					for i := range 6 {
						n := []*proc{a, b}[i%2]
						go func() {
							done <- n.Do(ctx, door, work, func(ctx context.Context) error {
								time.Sleep(time.Duration(i+1) * time.Second)
								return ctx.Err()
							})
						}()
					}
					w.Advance(ms)
					info, err := a.look(ctx, door)
					require.NoError(t, err)
					require.Len(t, info.entries, 9)
					require.Equal(t, 8, info.Reentries)
					require.Equal(t, fence, info.fence)
					for range 6 {
						require.NoError(t, <-done)
						ran++
					}
					return ctx.Err()
				})
			})
		})
		require.NoError(t, err)
		require.Equal(t, 6, ran)
		w.RequireIdle()
	})
}

func TestAHundredEntriesAreTheMost(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		work := &qlock.LockOptions{Conflict: qlock.WorkThrough}
		locks := []*qlock.Lock{n.takeFor("me", nil)}
		for range 99 {
			locks = append(locks, n.takeFor("me", work))
		}
		ctx := berth.WithOwner(context.Background(), "me")
		for _, conflict := range []qlock.Conflict{qlock.WorkThrough, qlock.ExtendAndWorkThrough} {
			n.Reset()
			_, err := n.Lock(ctx, door, &qlock.LockOptions{Conflict: conflict, DetailedErrors: true})
			require.ErrorIs(t, err, berth.ErrNotAcquired)
			require.ErrorIs(t, err, berth.ErrTooManyEntries)
			require.NotErrorIs(t, err, berth.ErrBusy, "nobody else is in the way")
			require.NotErrorIs(t, err, berth.ErrDeadlock)
			require.ErrorContains(t, err, `"door" not acquired: too many entries`)
			var refusal *berth.AcquireError
			require.ErrorAs(t, err, &refusal)
			require.Equal(t, berth.ReasonTooManyEntries, refusal.Reason)
			require.Equal(t, 100, refusal.Held)
			require.Len(t, refusal.Holders, 100)
			w.Advance(ms)
			require.Zero(t, n.asked("release"), "the server has nothing of that claim")
		}
		require.Len(t, n.Told(observe.Refused), 2)
		require.NoError(t, locks[50].Release(context.Background()))
		locks[50] = n.takeFor("me", work)
		w.Advance(lease + ms)
		for _, l := range locks {
			require.NoError(t, l.Err())
			require.NoError(t, l.Release(context.Background()))
		}
		w.RequireIdle()
	})
}

// extend is how an entry that extends by d is asked for.
func extend(d time.Duration) *qlock.LockOptions {
	return &qlock.LockOptions{Lease: d, Conflict: qlock.ExtendAndWorkThrough}
}

// requireKept says how long the server keeps a hold, to the millisecond.
func (w *world) requireKept(want time.Duration, l *qlock.Lock) {
	w.T.Helper()
	left, ok := w.LeftOf(l.ID())
	require.True(w.T, ok, "it is held")
	require.Equal(w.T, want, left.Round(ms))
}

// endOf is when the server lets a hold end.
func (w *world) endOf(l *qlock.Lock) time.Time {
	w.T.Helper()
	left, ok := w.LeftOf(l.ID())
	require.True(w.T, ok, "it is held")
	return time.Now().Add(left)
}

func TestWhatAnExtensionLeaves(t *testing.T) {
	fixed := &qlock.LockOptions{Lease: 5 * time.Second, NoRenew: true}
	t.Run("unused, two deep, inner first", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			n := w.node()
			outer := n.takeFor("me", fixed)
			first, second := n.takeFor("me", extend(2*time.Second)), n.takeFor("me", extend(3*time.Second))
			w.requireKept(10*time.Second, outer)
			w.Advance(time.Second)
			require.NoError(t, second.Release(context.Background()))
			w.requireKept(7*time.Second, first)
			require.NoError(t, first.Release(context.Background()))
			w.requireKept(6*time.Second, outer)
		})
	})
	t.Run("unused, two deep, outer first", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			n := w.node()
			outer := n.takeFor("me", fixed)
			first, second := n.takeFor("me", extend(2*time.Second)), n.takeFor("me", extend(3*time.Second))
			w.Advance(time.Second)
			require.NoError(t, first.Release(context.Background()))
			w.requireKept(8*time.Second, second)
			require.NoError(t, second.Release(context.Background()))
			w.requireKept(6*time.Second, outer)
		})
	})
	t.Run("used up", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			n := w.node()
			outer, inner := n.takeFor("me", fixed), n.takeFor("me", extend(2*time.Second))
			w.Advance(3 * time.Second)
			require.NoError(t, inner.Release(context.Background()))
			w.requireKept(4*time.Second, outer)
		})
	})
	t.Run("the outermost is released first", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			n := w.node()
			outer, inner := n.takeFor("me", fixed), n.takeFor("me", extend(2*time.Second))
			require.NoError(t, outer.Release(context.Background()))
			w.requireKept(7*time.Second, inner)
			w.Until(7*time.Second - 50*ms)
			require.ErrorIs(t, inner.Err(), berth.ErrExpired)
		})
	})
	t.Run("its maximum hold bounds it", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			n := w.node()
			outer := n.takeFor("me", fixed)
			inner := n.takeFor("me", &qlock.LockOptions{Lease: 20 * time.Second, MaxHold: 2 * time.Second, Conflict: qlock.ExtendAndWorkThrough})
			w.requireKept(7*time.Second, outer)
			w.requireKept(2*time.Second, inner)
			w.Until(2 * time.Second)
			require.ErrorIs(t, inner.Err(), berth.ErrExpired)
			require.Error(t, inner.Release(context.Background()))
			w.requireKept(5*time.Second, outer)
			require.NoError(t, outer.Err())
		})
	})
	t.Run("a renewing outer keeps what its beats give", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			n := w.node()
			outer := n.takeFor("me", nil)
			inner := n.takeFor("me", extend(4*time.Second))
			w.requireKept(10*time.Second, outer)
			require.NoError(t, inner.Release(context.Background()))
			w.Advance(0)
			left, ok := w.LeftOf(outer.ID())
			require.True(t, ok)
			require.LessOrEqual(t, left, lease)
			w.Advance(time.Minute)
			require.NoError(t, outer.Err())
			require.NoError(t, outer.Release(context.Background()))
			w.RequireIdle()
		})
	})
	t.Run("entries of another node keep it", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			a, b := w.node(), w.node()
			outer := a.takeFor("me", fixed)
			inner := b.takeFor("me", extend(3*time.Second))
			require.NoError(t, inner.Release(context.Background()))
			w.requireKept(8*time.Second, outer)
		})
	})
	t.Run("longer than the wait lease", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			n := w.node()
			outer := n.takeFor("me", fixed)
			var seen []time.Duration
			n.OnCommand(func(c link.Command) link.Fate {
				if c.Name == "lock_renew" && len(seen) == 0 {
					left, _ := w.LeftOf(outer.ID())
					seen = append(seen, left.Round(ms))
				}
				return link.Pass
			})
			inner := n.takeFor("me", extend(time.Minute))
			require.Equal(t, []time.Duration{11 * time.Second}, seen, "no more than the wait lease until it is confirmed")
			w.requireKept(65*time.Second, outer)
			w.Advance(time.Second)
			require.NoError(t, inner.Release(context.Background()))
			w.requireKept(5*time.Second, outer)
		})
	})
}

// Goroutines that share the context of a Do share its owner: the error says that it is their own process that holds, and the
// docs how each becomes its own owner. A program that is started again finds its former self by node and label.
func TestADeadlockNamesTheClaimThatHoldsForTheOwner(t *testing.T) {
	inWorld(t, func(_ *testing.T, w *world) {
		a, b := w.node(node.Config{Label: "host/one/1"}), w.node(node.Config{Label: "host/one/2"})
		held := a.takeFor("order 1", nil)
		w.Advance(3 * time.Second)
		ctx := berth.WithOwner(context.Background(), "order 1")
		says := `berth: "door" not acquired: deadlock: would wait for its own owner "order 1": claim ` + held.ID()
		_, err := a.Lock(ctx, door, nil)
		require.ErrorIs(w.T, err, berth.ErrDeadlock)
		require.EqualError(w.T, err, says+" of this process has held it for 3s, since 2026-01-01T00:00:00Z")
		_, err = b.Lock(ctx, door, nil)
		require.ErrorIs(w.T, err, berth.ErrDeadlock)
		require.EqualError(w.T, err, says+" of node "+held.Node()+" (host/one/1) has held it for 3s, since 2026-01-01T00:00:00Z, last heard of 1s ago")

		const five = 5
		inside := make(chan error, five)
		for range five { // by turns
			go func() {
				inside <- a.Do(berth.WithOwner(ctx, ""), "second", nil, func(context.Context) error { return nil })
			}()
		}
		for range five {
			require.NoError(w.T, <-inside)
		}
	})
}
