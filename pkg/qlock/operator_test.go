package qlock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/qlock"
)

func TestAForcedReleaseEndsAllEntriesAndHandsOn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b, operator := w.node(), w.node(), w.node()
		outer := a.takeFor("me", &qlock.LockOptions{Lease: time.Hour, NoRenew: true})
		inner := b.again("me")
		first, second := operator.queue(nil), operator.queue(nil)
		operator.Once("lock_force_hold", link.LoseReply)
		require.NoError(t, operator.end(ctx, door))
		require.Equal(t, 2, operator.Count("lock_force_hold"), "repeated, which leaves the successor alone")
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
		require.NoError(t, second.Granted(w.Now()).Release(ctx))
		require.ErrorIs(t, operator.end(context.Background(), door), berth.ErrNotHeld)
		require.ErrorIs(t, operator.end(context.Background(), "nobody's"), berth.ErrNotHeld)
		require.ErrorIs(t, operator.end(context.Background(), "{"), berth.ErrInvalidConfig)
		w.Advance(2 * time.Minute)
		w.RequireIdle()
	})
}

func TestReleaseOfANodeEndsWhatTheNodeHoldsAndAwaits(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		dead, b, operator := w.node(), w.node(), w.node()
		held := dead.takeFor("me", &qlock.LockOptions{Lease: time.Hour, NoRenew: true})
		inner := b.again("me")
		gone := dead.queue(nil)
		alive := b.queue(nil)
		detach(t, dead.hold("parked", nil))
		n, err := operator.Operator().Release(context.Background(), berth.Target{Node: dead.ID()})
		require.NoError(t, err)
		require.Equal(t, 3, n, "a hold, a detached one and a waiter")
		w.Advance(lease)
		require.ErrorIs(t, held.Err(), berth.ErrReleased)
		require.False(t, gone.Pending())
		require.ErrorIs(t, gone.Err, berth.ErrNotAcquired)
		require.NoError(t, inner.Err(), "another node's entry stays")
		operator.free("parked")
		release(t, inner)
		alive.Granted(lease)
		_, err = operator.Operator().Release(context.Background(), berth.Target{Node: ""})
		require.ErrorIs(t, err, berth.ErrInvalidConfig)
	})
}

// Whatever happens between the look and the call, the hold of a successor stays.
func TestForcedCallsMeanTheHoldThatTheyFound(t *testing.T) {
	each(t, map[string]func(operator *proc) error{
		"force_hold": func(n *proc) error { return n.end(ctx, door) },
		"extend":     func(n *proc) error { return n.extend(ctx, door, time.Minute) },
	}, func(t *testing.T, w *world, call func(operator *proc) error) {
		a, operator := w.node(), w.node()
		old := a.take(nil)
		q := a.queue(nil)
		operator.OnCommand(func(c link.Command) link.Fate {
			if asks(c, "force_hold") || asks(c, "extend") {
				assert.NoError(t, old.Release(ctx))
			}
			return link.Pass
		})
		require.ErrorIs(t, call(operator), berth.ErrNotHeld)
		next := q.Granted(0)
		require.NoError(t, next.Renew(ctx))
		w.requireLeft(lease, next)
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
		n, operator := w.node(), w.node()
		outer := n.takeFor("me", &qlock.LockOptions{Lease: 20 * time.Second, NoRenew: true})
		inner := n.takeFor("me", &qlock.LockOptions{Conflict: qlock.WorkThrough, MaxHold: 10 * time.Second})
		require.NoError(t, operator.extend(ctx, door, 5*time.Second))
		e := operator.Told(observe.Extended)[0]
		require.Equal(t, []any{5 * time.Second, 25 * time.Second, outer.Fence()}, []any{e.Lease, e.Left, e.Fence}, "of what lasts longest")
		w.requireLeft(25*time.Second, outer)
		w.requireLeft(10*time.Second, inner)
		entries := operator.info().entries
		require.Equal(t, []time.Duration{25 * time.Second, 10 * time.Second}, []time.Duration{entries[0].Left, entries[1].Left})
		release(t, inner)
		require.NoError(t, outer.Renew(ctx))
		w.requireLeft(25*time.Second, outer)
		inner = n.takeFor("me", extend(3*time.Second))
		require.NoError(t, operator.extend(ctx, door, 5*time.Second))
		w.requireLeft(33*time.Second, outer)
		release(t, inner)
		w.requireLeft(30*time.Second, outer, "what the operator gave stays when an entry gives back")
		release(t, outer)

		endless := n.take(&qlock.LockOptions{Lease: berth.Forever})
		before := w.Dump()
		require.NoError(t, operator.extend(ctx, door, 5*time.Second))
		require.Equal(t, berth.Forever, operator.Told(observe.Extended)[2].Left)
		require.Equal(t, before, w.Dump(), "nothing is further off")
		w.Advance(time.Minute)
		require.Equal(t, berth.Forever, operator.info().Left)
		release(t, endless)
		w.RequireIdle()
	})
}

func TestAForcedExtendIsReplayedThoughAnotherCameInBetween(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, operator, other := w.node(), w.node(), w.node()
		l := n.take(&qlock.LockOptions{NoRenew: true})
		sent := 0
		operator.on("extend", func() link.Fate {
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

func TestTheOperatorGoesOnUnderTheNextNode(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
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
		require.NoError(t, testkit.Second(ops.Sweep(ctx, keyspace.Lock, door)))
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
			`Drain: `:                  func() error { return testkit.Second(o.Drain(ctx, berth.DrainTarget{Node: "n"}, nil)) },
			`StopDrain: `:              func() error { return o.StopDrain(ctx, berth.DrainTarget{Node: "n"}) },
		} {
			err := call()
			require.ErrorIs(w.T, err, berth.ErrUnavailable, says)
			require.Regexp(w.T, "^berth: "+says+`no answer in time \(\d attempts\)$`, err.Error())
		}
		n.Flow()
	})
}
