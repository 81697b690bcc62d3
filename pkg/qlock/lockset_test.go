package qlock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/qlock"
)

// free fails unless nobody holds any of the names.
func (n *proc) free(names ...string) {
	n.w.T.Helper()
	n.w.Advance(0)
	for _, name := range names {
		locked, err := n.locked(context.Background(), name)
		require.NoError(n.w.T, err)
		require.False(n.w.T, locked, name)
	}
}

// hold takes a lock of another name than the door.
func (n *proc) hold(name string, opts *qlock.LockOptions) *qlock.Lock {
	n.w.T.Helper()
	l := n.w.got(n.Lock(context.Background(), name, opts))
	return l
}

func TestLockAllTakesEachNameOnceInOneOrder(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		var order, released []string
		n.OnCommand(func(c link.Command) link.Fate {
			if asks(c, "acquire") {
				order = append(order, nameOf(c))
			} else if asks(c, "release") {
				released = append(released, nameOf(c))
			}
			return link.Pass
		})
		set, err := n.LockAll(context.Background(), []string{"c", "a", "b", "a", "c"}, nil)
		require.NoError(t, err)
		require.Equal(t, []string{"a", "b", "c"}, order)
		require.Equal(t, order, set.Names())
		require.Len(t, set.Locks(), 3)
		require.Len(t, set.Fences(), 3)
		owner := set.Locks()[0].Owner()
		require.NotEmpty(t, owner)
		for _, l := range set.Locks() {
			require.Equal(t, l.Fence(), set.Fences()[l.Name()])
			require.Equal(t, owner, l.Owner())
			require.Equal(t, l.Fence(), n.Fence(set.Context(), l.Name()))
		}
		require.Equal(t, owner, berth.Owner(set.Context()))
		w.Advance(time.Minute)
		require.NoError(t, set.Err())
		require.NoError(t, set.Renew(context.Background()))
		require.NoError(t, set.Extend(context.Background(), time.Second))
		require.NoError(t, set.Release(context.Background()))
		require.NoError(t, set.Release(context.Background()))
		require.ErrorIs(t, set.Err(), berth.ErrReleased)
		<-set.Done()
		n.free("a", "b", "c")
		require.Equal(t, []string{"c", "b", "a"}, released, "the last one first")
		released = nil
		w.node().take(nil)
		require.ErrorIs(t, testkit.Second(n.TryLockAll(ctx, []string{"a", "b", door}, nil)), berth.ErrBusy)
		require.Equal(t, []string{"b", "a"}, released)
		order = nil
		for _, names := range [][]string{nil, {"ok", ""}, {"a", "{"}} {
			require.ErrorIs(t, testkit.Second(n.LockAll(ctx, names, nil)), berth.ErrInvalidConfig)
		}
		require.Empty(t, order, "all names are checked before any is asked for")
	})
}

func TestSetsThatShareNamesNeverWaitForEachOther(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		nodes := []*proc{w.node(), w.node()}
		names := []string{"a", "b", "c", "d"}
		inside := make(map[string]int)
		var mu sync.Mutex
		enter := func(names []string, by int) {
			mu.Lock()
			defer mu.Unlock()
			for _, name := range names {
				inside[name] += by
				require.Contains(t, []int{0, 1}, inside[name])
			}
		}
		var work sync.WaitGroup
		for i := range 40 {
			work.Go(func() {
				mine := append([]string(nil), names...)
				dice := rand.New(rand.NewPCG(uint64(i), 0))
				dice.Shuffle(len(mine), func(a, b int) { mine[a], mine[b] = mine[b], mine[a] })
				mine = mine[:2+i%3]
				err := nodes[i%2].DoAll(context.Background(), mine, nil, func(ctx context.Context) error {
					enter(mine, 1)
					defer enter(mine, -1)
					time.Sleep(10 * ms)
					return ctx.Err()
				})
				require.NoError(t, err)
			})
		}
		work.Wait()
		require.Less(t, w.Now(), time.Minute)
		nodes[0].free(names...)
	})
}

// all locks some names in the background, and lets everything settle.
func (n *proc) all(ctx context.Context, opts *qlock.LockOptions, names ...string) *testkit.Wait[*qlock.LockSet] {
	n.w.T.Helper()
	return testkit.Queue(ctx, n.w.World, func(ctx context.Context) (*qlock.LockSet, error) {
		return n.LockAll(ctx, names, opts)
	})
}

// The bounds count for all its waits together: that of the first name, where it has to be waited for, too.
func TestLockAllHoldsNoneWhereOneIsNotToBeHad(t *testing.T) {
	attempts := func(most int) qlock.LockOptions {
		return qlock.LockOptions{Attempts: qlock.Attempts{Max: most, Jitter: -1}}
	}
	maxWait := qlock.LockOptions{MaxWait: 2 * time.Second}
	type row struct {
		opts   qlock.LockOptions
		try    bool
		first  time.Duration // how long the first one is waited for
		reason berth.Reason
		at     time.Duration
	}
	each(t, map[string]row{
		"MaxWait":                {maxWait, false, 0, berth.ReasonTimedOut, 2 * time.Second},
		"MaxWait of two":         {maxWait, false, 1500 * ms, berth.ReasonTimedOut, 2 * time.Second},
		"Attempts":               {attempts(3), false, 0, berth.ReasonAttempts, 400 * ms},
		"Attempts for two":       {attempts(3), false, 300 * ms, berth.ReasonAttempts, 400 * ms},
		"one attempt":            {attempts(1), false, 0, berth.ReasonAttempts, 0},
		"a call that is no wait": {qlock.LockOptions{}, true, 0, berth.ReasonHeld, 0},
	}, func(t *testing.T, w *world, row row) {
		n, other := w.node(), w.node()
		other.take(nil)
		if row.first > 0 {
			first := other.hold("a", nil)
			time.AfterFunc(row.first, func() { _ = first.Release(ctx) })
		}
		lock := n.LockAll
		if row.try {
			lock = n.TryLockAll
		}
		set, err := lock(ctx, []string{"a", "b", door}, &row.opts)
		require.Nil(t, set)
		require.ErrorIs(t, err, berth.ErrBusy)
		require.Equal(t, door, refused(t, row.reason, err).Name)
		require.Equal(t, row.at, w.Now())
		n.free("a", "b")
	})
}

func TestLockAllReturnsAtOnceWhereItsCallerLeaves(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, other := w.node(), w.node()
		blocker := other.take(nil)
		q := n.all(ctx, nil, "a", "b", door)
		w.Advance(time.Second)
		n.Delay(func() time.Duration { return 100 * ms })
		q.Cancel(errMine)
		requireCallerLeft(t, q.Refused(time.Second, berth.ReasonCancelled))
		w.Advance(time.Second)
		n.Delay(nil)
		n.free("a", "b")
		require.Empty(t, w.line(other))
		release(t, blocker)
	})
}

func TestFixedLeasesOfASetAreCountedFromTheEnd(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, other := w.node(), w.node()
		blocker := other.take(nil)
		q := n.all(ctx, &qlock.LockOptions{Lease: 2 * time.Second, NoRenew: true}, "a", "b", door)
		w.Advance(10 * time.Second)
		require.True(t, q.Pending())
		for _, name := range []string{"a", "b"} {
			locked, err := n.locked(ctx, name)
			require.NoError(t, err)
			require.True(t, locked, "renewed while the rest is waited for")
		}
		release(t, blocker)
		set := q.Granted(10 * time.Second)
		require.Equal(t, 10*time.Second, set.Waited())
		for _, l := range set.Locks() {
			require.Equal(t, 2*time.Second-22*ms, l.Left())
		}
		w.Advance(2 * time.Second)
		require.ErrorIs(t, set.Err(), berth.ErrExpired, "and not any more")
		require.ErrorIs(t, context.Cause(set.Context()), berth.ErrExpired)
	})
}

func TestDoAllEndsWithTheFirstOfItsLocks(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, operator := w.node(), w.node()
		names := []string{"a", "b", "c"}
		err := n.DoAll(context.Background(), names, nil, func(ctx context.Context) error {
			for _, name := range names {
				require.Positive(t, n.Fence(ctx, name))
			}
			require.Zero(t, n.Fence(ctx, "d"))
			require.NoError(t, n.Do(ctx, "b", &qlock.LockOptions{Conflict: qlock.WorkThrough}, func(inner context.Context) error {
				require.Equal(t, n.Fence(ctx, "b"), n.Fence(inner, "b"))
				return nil
			}))
			require.NoError(t, operator.end(context.Background(), "b"))
			<-ctx.Done()
			require.ErrorIs(t, context.Cause(ctx), berth.ErrReleased)
			return errors.Join(ctx.Err(), errMine)
		})
		require.ErrorIs(t, err, errMine)
		require.ErrorIs(t, err, berth.ErrReleased)
		require.NotErrorIs(t, err, context.Canceled, "its caller has not left")
		end, ok := errors.AsType[*berth.EndError](err)
		require.True(t, ok)
		require.Equal(t, "b", end.Name)
		require.Equal(t, 1, strings.Count(err.Error(), `"b"`), "%v", err)
		n.free(names...)
		caller, leave := context.WithCancel(ctx)
		err = n.DoAll(caller, names, nil, func(ctx context.Context) error {
			leave()
			return ctx.Err()
		})
		require.ErrorIs(t, err, context.Canceled)
		require.NoError(t, n.TryDoAll(context.Background(), names, nil, func(context.Context) error { return nil }))
		n.hold("b", nil)
		err = n.TryDoAll(context.Background(), names, nil, func(context.Context) error { panic("it must not run") })
		require.ErrorIs(t, err, berth.ErrBusy)
		n.free("a", "c")
		require.Panics(t, func() {
			_ = n.DoAll(context.Background(), []string{"a", "c"}, nil, func(context.Context) error { panic("out") })
		})
		n.free("a", "c")
		require.ErrorIs(t, n.DoAll(ctx, []string{"a", "c"}, nil, func(context.Context) error {
			w.Do("FLUSHALL")
			return nil
		}), berth.ErrLost, "an end that nobody had heard of")
	})
}

func TestASetUnderALockOfTheSameOwner(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		outer := n.hold("b", nil)
		require.ErrorIs(t, testkit.Second(n.LockAll(outer.Context(), []string{"a", "b"}, nil)), berth.ErrDeadlock)
		n.free("a")
		set := w.gotAll(n.LockAll(outer.Context(), []string{"a", "b"}, &qlock.LockOptions{Conflict: qlock.WorkThrough}))
		require.Equal(t, outer.Fence(), set.Fences()["b"])
		require.Equal(t, []qlock.Via{qlock.Granted, qlock.Reentered}, []qlock.Via{set.Locks()[0].Via(), set.Locks()[1].Via()})
		require.NoError(t, set.Release(context.Background()))
		require.NoError(t, outer.Err())
		within, cancel := set.Within(context.Background())
		defer cancel()
		<-within.Done()
	})
}

func TestLockAllThatLosesALockMeanwhileHoldsNone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, other := w.node(), w.node()
		blocker := other.take(nil)
		q := n.all(ctx, nil, "a", "b", door)
		w.Advance(time.Second)
		require.NoError(t, other.end(ctx, "b"))
		q.Returned(time.Second + lease/3) // and does not wait for the rest, which is of no use any more
		require.ErrorIs(t, q.Err, berth.ErrReleased)
		require.NotErrorIs(t, q.Err, berth.ErrBusy)
		refusal := refused(t, berth.ReasonFailed, q.Err)
		require.Equal(t, "b", refusal.Name)
		require.NotEmpty(t, refusal.Claim)
		require.Equal(t, q.At, refusal.Waited)
		release(t, blocker)
		n.free("a", "b", door)
	})
}

func TestLockAllWhoseCallerLeavesWhileFixedLeasesBegin(t *testing.T) {
	type row struct {
		ctx    func() (context.Context, context.CancelFunc)
		reason berth.Reason
		end    error
	}
	each(t, map[string]row{
		"cancelled": {func() (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(ctx)
			time.AfterFunc(time.Second, func() { cancel(errMine) })
			return ctx, func() { cancel(nil) }
		}, berth.ReasonCancelled, context.Canceled},
		"timed out": {func() (context.Context, context.CancelFunc) {
			return context.WithTimeoutCause(ctx, time.Second, errMine)
		}, berth.ReasonTimedOut, context.DeadlineExceeded},
	}, func(t *testing.T, w *world, row row) {
		n := w.node()
		n.connect()
		n.Once("lock_renew", link.Slow(2*time.Second))
		ctx, cancel := row.ctx()
		defer cancel()
		_, err := n.LockAll(ctx, []string{"a", "b"}, &qlock.LockOptions{NoRenew: true})
		require.Equal(t, time.Second, w.Now())
		require.ErrorIs(t, err, row.end)
		require.ErrorIs(t, err, errMine)
		_ = refused(t, row.reason, err)
		w.Advance(2 * time.Second)
		n.free("a", "b")
	})
}

// nameOf is the name that a script is called for: its first key, behind the script and the number of
// its keys, is that of the name's state.
func nameOf(c link.Command) string {
	return strings.TrimSuffix(strings.TrimPrefix(c.Args[2], "berth:lock:{"), "}:state")
}

func TestTheContextOfASetOutlivesTheOneItWasAcquiredWith(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		type key struct{}
		n := w.node()
		ctx, cancel := context.WithCancel(context.WithValue(context.Background(), key{}, "kept"))
		set := w.gotAll(n.LockAll(ctx, []string{"a", "b"}, nil))
		cancel()
		w.Advance(0)
		require.NoError(t, set.Context().Err())
		require.Equal(t, "kept", set.Context().Value(key{}))
		within, stop := set.Within(context.WithValue(context.Background(), key{}, "own"))
		require.Equal(t, "own", within.Value(key{}))
		require.Equal(t, set.Locks()[1].Fence(), n.Fence(within, "b"))
		stop()
		require.ErrorIs(t, within.Err(), context.Canceled)
		set.Locks()[0] = nil // the caller's own slice
		require.NoError(t, set.Locks()[1].Release(context.Background()))
		<-set.Done()
		require.ErrorIs(t, set.Err(), berth.ErrReleased)
		require.ErrorIs(t, context.Cause(set.Context()), berth.ErrReleased)
		require.NoError(t, set.Release(context.Background()))
		n.free("a", "b")
	})
}

func TestASetRenewsAndExtendsAllAndTellsWhatItCannot(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, operator := w.node(), w.node()
		set := w.gotAll(n.LockAll(context.Background(), []string{"a", "b"}, &qlock.LockOptions{NoRenew: true}))
		left := func(want time.Duration) {
			for _, l := range set.Locks() {
				require.Equal(t, want, l.Left(), l.Name())
				info, err := operator.look(context.Background(), l.Name())
				require.NoError(t, err)
				require.Equal(t, want+margin, info.Left, l.Name())
			}
		}
		w.Advance(time.Second)
		left(lease - margin - time.Second)
		require.NoError(t, set.Renew(context.Background()))
		left(lease - margin)
		require.NoError(t, set.Extend(context.Background(), 2*time.Second))
		left(lease - margin + 2*time.Second)
		require.ErrorIs(t, set.Extend(context.Background(), 0), berth.ErrInvalidConfig)
		require.NoError(t, operator.end(context.Background(), "b"))
		require.ErrorIs(t, set.Renew(context.Background()), berth.ErrReleased)
		require.ErrorIs(t, set.Extend(context.Background(), time.Second), berth.ErrReleased)
		require.ErrorIs(t, set.Release(context.Background()), berth.ErrReleased)
		n.free("a", "b")
	})
}

// looksFor sleeps until a context has ended with a set. The set may not have ended before the context says so.
func looksFor(ctx context.Context, t *testing.T, set *qlock.LockSet) {
	t.Helper()
	for ctx.Err() == nil {
		require.NoError(t, set.Err(), "which the context had not seen")
		time.Sleep(set.Left()) // a heartbeat may move the deadline by less than 1 ms
	}
	require.ErrorIs(t, context.Cause(ctx), berth.ErrExpired)
}

// The moment of the deadline is the first one at which the clock says it. What ends a context on its own then takes two
// goroutines, which come after the test's own. A set under a set says so when the outer one ends.
func TestTheContextsOfASetLookAtTheClockThemselves(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, fixed := w.node(), &qlock.LockOptions{Lease: time.Second, NoRenew: true}
		for i := range 40 {
			set := w.gotAll(n.LockAll(ctx, []string{"a", "b"}, fixed))
			held := set.Context()
			within, cancel := set.Within(ctx)
			if i%2 == 0 {
				looksFor(within, t, set)
			} else {
				require.NoError(t, n.DoAll(within, []string{"c", "d"}, nil, func(inner context.Context) error {
					looksFor(inner, t, set)
					return nil
				}))
			}
			require.Error(t, held.Err())
			cancel()
			_ = set.Release(ctx)
		}
	})
}
