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
		w.requireLeft(4*time.Second, outer, "8 s less the 2 s that were not used, at 2 s")
		w.Advance(0)
		require.Equal(t, 4*time.Second-52*ms, outer.Left())
		w.Until(6 * time.Second)
		require.ErrorIs(t, outer.Err(), berth.ErrExpired)
	})
}

// Any entry holds the lock, and a re-entry passes the line.
func TestTheInnerEntryGoesOnWhereTheOuterWasReleasedFirst(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, other := w.node(), w.node()
		outer := n.takeFor("me", nil)
		next := other.queue(&qlock.LockOptions{Priority: 127})
		inner := n.takeFor("me", &qlock.LockOptions{Conflict: qlock.WorkThrough, Priority: -128})
		release(t, outer)
		w.Advance(time.Minute)
		require.NoError(t, inner.Err(), "it renews as the outer did")
		require.True(t, next.Pending())
		release(t, inner)
		release(t, next.Granted(time.Minute))
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
	each(t, outers, func(t *testing.T, w *world, options qlock.LockOptions) {
		n, other := w.node(), w.node()
		for name, wait := range waits {
			outer := n.takeFor("me", &options)
			ahead := other.queue(&qlock.LockOptions{MaxWait: time.Hour})
			ctx, cancel := berth.WithOwner(context.Background(), "me"), context.CancelFunc(func() {})
			if wait.bound {
				ctx, cancel = context.WithTimeout(ctx, 2*time.Second)
			}
			wait.opts.Conflict = qlock.Wait
			own, waits := n.queueOn(ctx, &wait.opts), !stays(options) || wait.ends
			require.Equal(t, waits, own.Pending(), name)
			if !waits {
				require.Equal(t, 1, own.Refused(w.Now(), berth.ReasonDeadlock).Held, name)
				require.ErrorIs(t, own.Err, berth.ErrDeadlock, name)
			}
			release(t, outer)
			next := ahead.Granted(w.Now())
			require.Equal(t, waits, own.Pending(), "nobody passes: %s", name)
			release(t, next)
			if waits {
				got := own.Granted(w.Now())
				require.Equal(t, qlock.Granted, got.Via())
				require.Greater(t, got.Fence(), next.Fence())
				release(t, got)
			}
			cancel()
			w.RequireIdle()
		}
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
			refusal := refused(t, berth.ReasonTooManyEntries, err)
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

// endOf is when the server lets a hold end.
func (w *world) endOf(l *qlock.Lock) time.Time {
	w.T.Helper()
	left, ok := w.LeftOf(l.ID())
	require.True(w.T, ok, "it is held")
	return time.Now().Add(left)
}

func TestWhatAnExtensionLeaves(t *testing.T) {
	twoDeep := func(w *world, n *proc) (first, second *qlock.Lock) {
		first, second = n.takeFor("me", extend(2*time.Second)), n.takeFor("me", extend(3*time.Second))
		w.requireLeft(10*time.Second, first)
		w.Advance(time.Second)
		return first, second
	}
	each(t, map[string]func(w *world, n *proc, outer *qlock.Lock){
		"unused, two deep, inner first": func(w *world, n *proc, outer *qlock.Lock) {
			first, second := twoDeep(w, n)
			release(w.T, second)
			w.requireLeft(7*time.Second, first)
			release(w.T, first)
			w.requireLeft(6*time.Second, outer)
		},
		"unused, two deep, outer first": func(w *world, n *proc, outer *qlock.Lock) {
			first, second := twoDeep(w, n)
			release(w.T, first)
			w.requireLeft(8*time.Second, second)
			release(w.T, second)
			w.requireLeft(6*time.Second, outer)
		},
		"the outermost is released first": func(w *world, n *proc, outer *qlock.Lock) {
			inner := n.takeFor("me", extend(2*time.Second))
			release(w.T, outer)
			w.requireLeft(7*time.Second, inner)
			w.Until(7*time.Second - 50*ms)
			require.ErrorIs(w.T, inner.Err(), berth.ErrExpired)
		},
		"its maximum hold bounds it": func(w *world, n *proc, outer *qlock.Lock) {
			opts := extend(20 * time.Second)
			opts.MaxHold = 2 * time.Second
			inner := n.takeFor("me", opts)
			w.requireLeft(7*time.Second, outer)
			w.requireLeft(2*time.Second, inner)
			w.Until(2 * time.Second)
			require.ErrorIs(w.T, inner.Err(), berth.ErrExpired)
			require.Error(w.T, inner.Release(ctx))
			w.requireLeft(5*time.Second, outer)
			require.NoError(w.T, outer.Err())
		},
		"a renewing outer keeps what its beats give": func(w *world, n *proc, outer *qlock.Lock) {
			release(w.T, outer)
			outer = n.takeFor("me", nil)
			inner := n.takeFor("me", extend(4*time.Second))
			w.requireLeft(10*time.Second, outer)
			release(w.T, inner)
			w.Advance(0)
			w.honest(outer)
			left, _ := w.LeftOf(outer.ID())
			require.LessOrEqual(w.T, left, lease)
			w.Advance(time.Minute)
			release(w.T, outer)
			w.RequireIdle()
		},
		"longer than the wait lease": func(w *world, n *proc, outer *qlock.Lock) {
			var seen []time.Duration
			n.on("renew", func() link.Fate {
				if len(seen) == 0 {
					left, _ := w.LeftOf(outer.ID())
					seen = append(seen, left.Round(ms))
				}
				return link.Pass
			})
			inner := n.takeFor("me", extend(time.Minute))
			require.Equal(w.T, []time.Duration{11 * time.Second}, seen, "no more than the wait lease until it is confirmed")
			w.requireLeft(65*time.Second, outer)
			w.Advance(time.Second)
			release(w.T, inner)
			w.requireLeft(5*time.Second, outer)
		},
	}, func(_ *testing.T, w *world, play func(w *world, n *proc, outer *qlock.Lock)) {
		n := w.node()
		play(w, n, n.takeFor("me", &qlock.LockOptions{Lease: 5 * time.Second, NoRenew: true}))
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
