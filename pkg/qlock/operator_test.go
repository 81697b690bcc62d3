package qlock_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/qlock"
)

func TestAForcedReleaseEndsAllEntriesAndHandsOn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b, operator := w.node(), w.node(), w.node()
		outer := a.takeFor("me", &qlock.LockOptions{Lease: time.Hour, NoRenew: true})
		inner := b.takeFor("me", &qlock.LockOptions{Conflict: qlock.WorkThrough})
		first, second := operator.queue(nil), operator.queue(nil)
		require.NoError(t, operator.end(context.Background(), door))
		next := first.Granted(0)
		require.True(t, second.Pending(), "the queue is kept")
		require.Greater(t, next.Fence(), outer.Fence())
		// The node of the outer one subscribes only once it waits: its beat tells it.
		w.Advance(lease / 3)
		for _, l := range []*qlock.Lock{outer, inner} {
			require.ErrorIs(t, l.Err(), berth.ErrReleased)
			require.ErrorIs(t, context.Cause(l.Context()), berth.ErrReleased)
			require.ErrorIs(t, l.Release(context.Background()), berth.ErrReleased)
		}
		require.NoError(t, next.Err(), "the successor's is untouched")
		require.NoError(t, next.Release(context.Background()))
		require.NoError(t, second.Granted(lease/3).Release(context.Background()))
		require.ErrorIs(t, operator.end(context.Background(), door), berth.ErrNotHeld)
		require.ErrorIs(t, operator.end(context.Background(), "nobody's"), berth.ErrNotHeld)
		require.ErrorIs(t, operator.end(context.Background(), "{"), berth.ErrInvalidConfig)
		w.Advance(2 * time.Minute)
		w.RequireIdle()
	})
}

func TestAForcedReleaseThatIsRepeatedLeavesTheSuccessorAlone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, operator := w.node(), w.node()
		a.take(nil)
		next := a.queue(nil)
		operator.Once("lock_force_hold", link.LoseReply)
		require.NoError(t, operator.end(context.Background(), door))
		require.Equal(t, 2, operator.Count("lock_force_hold"))
		w.Advance(time.Minute)
		require.False(t, next.Pending())
		require.NoError(t, next.Got.Err())
	})
}

func TestReleaseOfAllEndsEveryLockOfTheNamespace(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, operator := w.node(), w.node()
		elsewhere := w.node(node.Config{Namespace: "elsewhere"})
		other := elsewhere.take(nil)
		var locks []*qlock.Lock
		for _, name := range []string{"a", "b", "c"} {
			l, err := a.Lock(context.Background(), name, nil)
			require.NoError(t, err)
			locks = append(locks, l)
		}
		inner, err := a.Lock(locks[0].Context(), "a", &qlock.LockOptions{Conflict: qlock.WorkThrough})
		require.NoError(t, err)
		n, err := operator.Operator().Release(context.Background(), berth.Target{All: true})
		require.NoError(t, err)
		require.Equal(t, 4, n, "entries")
		w.Advance(lease)
		for _, l := range append(locks, inner) {
			require.ErrorIs(t, l.Err(), berth.ErrReleased)
		}
		require.NoError(t, other.Err())
		n, err = operator.Operator().Release(context.Background(), berth.Target{All: true})
		require.NoError(t, err)
		require.Zero(t, n)
	})
}

func TestReleaseOfANodeEndsWhatTheNodeHoldsAndAwaits(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		dead, b, operator := w.node(), w.node(), w.node()
		held := dead.takeFor("me", &qlock.LockOptions{Lease: time.Hour, NoRenew: true})
		inner := b.takeFor("me", &qlock.LockOptions{Conflict: qlock.WorkThrough})
		gone := dead.queue(nil)
		alive := b.queue(nil)
		parked, err := dead.Lock(context.Background(), "parked", nil)
		require.NoError(t, err)
		_, err = parked.Detach(context.Background())
		require.NoError(t, err)
		n, err := operator.Operator().Release(context.Background(), berth.Target{Node: dead.ID()})
		require.NoError(t, err)
		require.Equal(t, 3, n, "a hold, a detached one and a waiter")
		w.Advance(lease)
		require.ErrorIs(t, held.Err(), berth.ErrReleased)
		require.False(t, gone.Pending())
		require.ErrorIs(t, gone.Err, berth.ErrNotAcquired)
		require.NoError(t, inner.Err(), "another node's entry stays")
		require.True(t, alive.Pending())
		locked, err := operator.locked(context.Background(), "parked")
		require.NoError(t, err)
		require.False(t, locked)
		require.NoError(t, inner.Release(context.Background()))
		w.Advance(0)
		require.False(t, alive.Pending())
		_, err = operator.Operator().Release(context.Background(), berth.Target{Node: ""})
		require.ErrorIs(t, err, berth.ErrInvalidConfig)
	})
}

func TestAForcedExtendMovesTheDeadlineOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, operator := w.node(), w.node()
		l := a.take(&qlock.LockOptions{NoRenew: true, MaxHold: 20 * time.Second})
		operator.Once("lock_extend", link.LoseReply)
		require.NoError(t, operator.extend(context.Background(), door, 4*time.Second))
		require.Equal(t, 2, operator.Count("lock_extend"))
		require.Equal(t, 10*time.Second, w.endOf(l).Sub(w.Began), "once")
		w.Advance(lease / 3)
		require.Greater(t, l.Left(), 7*time.Second, "heard with the next beat")
		require.NoError(t, operator.extend(context.Background(), door, time.Hour))
		require.Equal(t, 20*time.Second, w.endOf(l).Sub(w.Began), "MaxHold bounds it")
		for _, by := range []time.Duration{0, -ms, ms / 2, berth.Forever} {
			require.ErrorIs(t, operator.extend(context.Background(), door, by), berth.ErrInvalidConfig)
		}
		require.ErrorIs(t, operator.extend(context.Background(), "free", time.Second), berth.ErrNotHeld)
		require.NoError(t, l.Release(context.Background()))
		w.RequireIdle()
	})
}

func TestReleaseAllLeavesWaitersAndDetachedHolds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, other := w.node(), w.node()
		outer := n.takeFor("me", nil)
		inner := n.takeFor("me", extend(time.Second))
		parked, err := n.Lock(context.Background(), "parked", nil)
		require.NoError(t, err)
		_, err = parked.Detach(context.Background())
		require.NoError(t, err)
		blocker, err := other.Lock(context.Background(), "busy", nil)
		require.NoError(t, err)
		waits := make(chan error, 1)
		go func() {
			_, err := n.Lock(context.Background(), "busy", nil)
			waits <- err
		}()
		w.Advance(0)
		count, err := n.ReleaseAll(context.Background())
		require.NoError(t, err)
		require.Equal(t, 2, count, "entries")
		require.ErrorIs(t, outer.Err(), berth.ErrReleased)
		require.ErrorIs(t, inner.Err(), berth.ErrReleased)
		locked, err := n.locked(context.Background(), "parked")
		require.NoError(t, err)
		require.True(t, locked)
		require.Empty(t, waits)
		require.NoError(t, blocker.Release(context.Background()))
		require.NoError(t, <-waits)
		w.RequireIdle()
		count, err = other.ReleaseAll(context.Background())
		require.NoError(t, err)
		require.Zero(t, count)
	})
}

func TestSweepDropsWhatHasExpired(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, dead := w.node(), w.node()
		dead.take(nil)
		dead.queue(&qlock.LockOptions{MaxWait: lease})
		dead.Cut()
		w.Advance(lease / 2)
		dropped, err := n.Operator().Sweep(context.Background(), keyspace.Lock)
		require.NoError(t, err)
		require.Zero(t, dropped)
		queued, err := n.queued(context.Background(), door)
		require.NoError(t, err)
		require.True(t, queued)
		w.Advance(lease)
		queued, err = n.queued(context.Background(), door)
		require.NoError(t, err)
		require.True(t, queued, "dead ones count until they are met")
		require.Empty(t, w.Waiters(), "what has expired is not shown")
		dropped, err = n.Operator().Sweep(context.Background(), keyspace.Lock)
		require.NoError(t, err)
		require.Equal(t, 2, dropped)
		require.Contains(t, n.Kinds(), observe.Swept)
		queued, err = n.queued(context.Background(), door)
		require.NoError(t, err)
		require.False(t, queued)
		w.RequireIdle()
	})
}

func TestOneLockThatCannotBeReadDoesNotKeepTheOthers(t *testing.T) {
	ctx := context.Background()
	for name, all := range map[string]struct {
		call  func(operator *proc, of string) (int, error)
		count int
	}{
		"Release all": {func(n *proc, _ string) (int, error) { return n.Operator().Release(ctx, berth.Target{All: true}) }, 8},
		"Release of a node": {func(n *proc, of string) (int, error) {
			return n.Operator().Release(ctx, berth.Target{Node: of})
		}, 16},
		"Sweep": {func(n *proc, _ string) (int, error) { return n.Operator().Sweep(ctx, keyspace.Lock) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n, operator := w.node(), w.node()
				for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
					n.hold(name, nil)
					go func() { _, _ = n.Lock(ctx, name, nil) }()
				}
				w.Advance(0)
				w.Do("HSET", stateKey, "v", "3 and more")
				count, err := all.call(operator, n.ID())
				require.ErrorIs(t, err, berth.ErrIncompatible)
				require.Equal(t, all.count, count)
			})
		})
	}
}

// Whatever happens between the look and the call, the hold of a successor stays.
func TestForcedCallsMeanTheHoldThatTheyFound(t *testing.T) {
	ctx := context.Background()
	for script, call := range map[string]func(operator *proc) error{
		"lock_force_hold": func(n *proc) error { return n.end(ctx, door) },
		"lock_extend":     func(n *proc) error { return n.extend(ctx, door, time.Minute) },
	} {
		t.Run(script, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				a, operator := w.node(), w.node()
				old := a.take(nil)
				q := a.queue(nil)
				operator.OnCommand(func(c link.Command) link.Fate {
					if c.Name == script {
						assert.NoError(t, old.Release(ctx))
					}
					return link.Pass
				})
				require.ErrorIs(t, call(operator), berth.ErrNotHeld)
				next := q.Granted(0)
				require.NoError(t, next.Renew(ctx))
				w.requireKept(lease, next)
			})
		})
	}
}

func TestReleaseOfANodeLeavesWhatAnotherNodeHasTakenUpMeanwhile(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b, operator := w.node(), w.node(), w.node()
		token := detach(t, a.take(nil))
		var l *qlock.Lock
		operator.OnCommand(func(c link.Command) link.Fate {
			if c.Name == "lock_force_release" && l == nil {
				l = b.resume(token)
			}
			return link.Pass
		})
		count, err := operator.Operator().Release(context.Background(), berth.Target{Node: a.ID()})
		require.NoError(t, err)
		require.Zero(t, count)
		require.NoError(t, l.Renew(context.Background()))
	})
}

func TestAForcedReleasePassesManyThatHaveDied(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, operator := w.node(), w.node()
		n.take(&qlock.LockOptions{Lease: time.Hour, NoRenew: true})
		for i := range 110 {
			w.ask(claim{node: "dead", id: fmt.Sprint("dead.", i), wait: time.Second})
		}
		next := n.queue(nil)
		w.Advance(1500 * ms)
		require.NoError(t, operator.end(context.Background(), door))
		release(t, next.Granted(1500*ms))
	})
}

func TestAForcedExtendOfEntriesAndOfHoldsWithoutAnEnd(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		n, operator := w.node(), w.node()
		outer := n.takeFor("me", &qlock.LockOptions{Lease: 20 * time.Second, NoRenew: true})
		inner := n.takeFor("me", &qlock.LockOptions{Conflict: qlock.WorkThrough, MaxHold: 10 * time.Second})
		require.NoError(t, operator.extend(ctx, door, 5*time.Second))
		require.Equal(t, 25*time.Second, operator.Told(observe.Extended)[0].Left, "of what lasts longest")
		w.requireKept(25*time.Second, outer)
		w.requireKept(10*time.Second, inner)
		entries := operator.info().entries
		require.Equal(t, []time.Duration{25 * time.Second, 10 * time.Second}, []time.Duration{entries[0].Left, entries[1].Left})
		release(t, inner)
		require.NoError(t, outer.Renew(ctx))
		w.requireKept(25*time.Second, outer)
		release(t, outer)

		endless := n.take(&qlock.LockOptions{Lease: berth.Forever})
		before := w.Dump()
		require.NoError(t, operator.extend(ctx, door, 5*time.Second))
		require.Equal(t, berth.Forever, operator.Told(observe.Extended)[1].Left)
		require.Equal(t, before, w.Dump(), "nothing is further off")
		w.Advance(time.Minute)
		require.Equal(t, berth.Forever, operator.info().Left)
		release(t, endless)
		w.RequireIdle()
	})
}

func TestAForcedExtendStaysWhenAnEntryGivesBack(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, operator := w.node(), w.node()
		outer := n.takeFor("me", &qlock.LockOptions{Lease: 20 * time.Second, NoRenew: true})
		inner := n.takeFor("me", extend(3*time.Second))
		require.NoError(t, operator.extend(context.Background(), door, 5*time.Second))
		w.requireKept(28*time.Second, outer)
		release(t, inner)
		w.requireKept(25*time.Second, outer)
	})
}

func TestAForcedExtendIsReplayedThoughAnotherCameInBetween(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		n, operator, other := w.node(), w.node(), w.node()
		l := n.take(&qlock.LockOptions{NoRenew: true})
		sent := 0
		operator.OnCommand(func(c link.Command) link.Fate {
			if c.Name != "lock_extend" {
				return link.Pass
			}
			if sent++; sent == 1 {
				return link.LoseReply
			}
			assert.NoError(t, other.extend(ctx, door, time.Second))
			return link.Pass
		})
		require.NoError(t, operator.extend(ctx, door, 4*time.Second))
		require.Equal(t, 2, sent)
		require.Equal(t, lease+5*time.Second, w.endOf(l).Sub(w.Began))
	})
}

func TestAForcedExtendOutlastsTheLingeringOfTheKeys(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, operator := w.node(), w.node()
		n.take(&qlock.LockOptions{NoRenew: true})
		n.Die()
		require.NoError(t, operator.extend(context.Background(), door, time.Hour))
		require.GreaterOrEqual(t, w.Expiry(), time.Hour+lease)
		w.Advance(time.Hour)
		require.Equal(t, lease, operator.info().Left)
	})
}

func TestANodeThatListensHearsOfAForcedReleaseAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, operator := w.node(), w.node()
		l := n.take(&qlock.LockOptions{Lease: time.Hour, NoRenew: true})
		n.queue(nil) // those that wait listen
		w.Until(100 * ms)
		require.NoError(t, operator.end(context.Background(), door))
		w.Advance(0)
		require.ErrorIs(t, context.Cause(l.Context()), berth.ErrReleased)
	})
}

func TestTwoForcedExtends(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		op1, op2 := w.node(node.Config{Retry: berth.Retry{Base: 500 * ms, Jitter: -1}}), w.node()
		l := w.node().take(&qlock.LockOptions{NoRenew: true})
		op1.Once("lock_extend", link.LoseReply)
		done := make(chan error, 1)
		go func() { done <- op1.extend(ctx, door, 10*time.Second) }()
		synctest.Wait()
		require.NoError(t, op2.extend(ctx, door, time.Second))
		require.NoError(t, <-done)
		w.requireLeft(17*time.Second-w.Now(), l, "once each")
	})
}

func TestTheOperatorGoesOnUnderTheNextNode(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		a, b := w.member(), w.node()
		ops, extends := a.Operator(), qlock.NewOperator(a.Node)
		b.take(&qlock.LockOptions{NoRenew: true})
		former := a.ID()
		a.condemn()
		require.Same(t, ops, a.Operator())
		require.NotEqual(t, former, a.ID())

		require.NoError(t, extends.Extend(ctx, door, time.Second))
		ended, err := ops.Release(ctx, berth.Target{Kind: keyspace.Lock, Name: door})
		require.NoError(t, err)
		require.Equal(t, 1, ended)
		require.Equal(t, a.ID(), a.Told(observe.ForceReleased)[0].Node)
		b.take(nil)
		b.Cut()
		b.queue(nil)
		w.Advance(lease)
		_, err = ops.Sweep(ctx, keyspace.Lock, door)
		require.NoError(t, err)
	})
}

// A name alone takes one script, however many entries there are;
// what an owner or a node has takes one script for each claim.
func TestANameAloneIsEndedInOneStep(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		a, b, operator := w.node(), w.node(), w.node()
		enter := func() {
			a.takeFor("me", nil)
			a.takeFor("me", &qlock.LockOptions{Conflict: qlock.WorkThrough})
			b.takeFor("me", &qlock.LockOptions{Conflict: qlock.WorkThrough})
		}
		enter()
		operator.Fresh()
		ended, err := operator.Operator().Release(ctx, berth.Target{Kind: keyspace.Lock, Name: door})
		require.NoError(t, err)
		require.Equal(t, 3, ended)
		require.Equal(t, map[string]int{"lock_force_hold": 1}, operator.Scripts())

		w.Advance(lease)
		enter()
		next := b.queue(nil)
		ended, err = operator.Operator().Release(ctx, berth.Target{Kind: keyspace.Lock, Name: door, Owner: "me"})
		require.NoError(t, err)
		require.Equal(t, 3, ended)
		require.Equal(t, 3, operator.Count("lock_force_release"))
		w.Advance(0)
		require.False(t, next.Pending(), "with the last entry it is handed on")
	})
}

// A call that reads first says which call it is, and of which lock: the read is nothing to its caller.
func TestAnOperatorsErrorNamesTheCallAndTheLock(t *testing.T) {
	inWorld(t, func(_ *testing.T, w *world) {
		n := w.node()
		n.take(nil)
		ctx, o := context.Background(), n.Operator()
		n.Stall()
		for says, call := range map[string]func() error{
			`Pause of lock "door": `:   func() error { return o.Pause(ctx, keyspace.Lock, door, time.Minute, "") },
			`Unpause of lock "door": `: func() error { return o.Unpause(ctx, keyspace.Lock, door) },
			`Extend of lock "door": `:  func() error { return n.extend(ctx, door, time.Second) },
			`Release of lock "door": `: func() error { return testkit.Second(o.Release(ctx, berth.Target{Kind: keyspace.Lock, Name: door})) },
			`Want of lock "door": `:    func() error { return testkit.Second(o.Want(ctx, berth.Target{Kind: keyspace.Lock, Name: door})) },
			`Release of locks: `:       func() error { return testkit.Second(o.Release(ctx, berth.Target{Kind: keyspace.Lock, All: true})) },
			`Sweep of locks: `:         func() error { return testkit.Second(o.Sweep(ctx, keyspace.Lock)) },
			`PauseAll of locks: `:      func() error { return testkit.Second(o.PauseAll(ctx, time.Minute, "", keyspace.Lock)) },
			`UnpauseAll of locks: `:    func() error { return testkit.Second(o.UnpauseAll(ctx, keyspace.Lock)) },
			`Drain: `:                  func() error { return testkit.Second(o.Drain(ctx, berth.DrainTarget{Node: "n"}, 0)) },
			`StopDrain: `:              func() error { return o.StopDrain(ctx, berth.DrainTarget{Node: "n"}) },
		} {
			err := call()
			require.ErrorIs(w.T, err, berth.ErrUnavailable, says)
			require.Regexp(w.T, "^berth: "+says+`no answer in time \(\d attempts\)$`, err.Error())
		}
		n.Flow()
	})
}
