package semaphore_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/semaphore"
)

// heavy is a record's change to a weight.
func heavy(weight int) func(*engine.Record) {
	return func(r *engine.Record) { r.Weight = weight }
}

// lasting is a record's change to leases that outlast a test.
func lasting(r *engine.Record) { r.Lease, r.Wait = time.Hour, time.Hour }

func release(t *testing.T, p *semaphore.Permit) {
	t.Helper()
	require.NoError(t, p.Release(context.Background()))
}

// requireRefused compares what a call that does not wait says.
func requireRefused(t *testing.T, err error, want berth.AcquireError) {
	t.Helper()
	var refusal *berth.AcquireError
	require.ErrorAs(t, err, &refusal)
	require.ErrorIs(t, err, berth.ErrNotAcquired)
	require.ErrorIs(t, err, berth.ErrBusy)
	require.NotEmpty(t, refusal.Claim)
	want.Name, want.Claim, want.Waited = gpu, refusal.Claim, refusal.Waited
	require.Equal(t, want, *refusal)
}

func TestTryAcquireSaysWhatIsInTheWayAndLeavesNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.connect()
		try := func(weight int) error {
			_, err := n.gpu(4).TryAcquire(ctx, &semaphore.AcquireOptions{Weight: weight})
			return err
		}
		require.NoError(t, n.resize(4))
		w.acquireScript("a", "a.1", 4, semaphore.CapacityStored, heavy(2), lasting)
		w.acquireScript("dead", "dead.1", 4, semaphore.CapacityStored)
		w.acquireScript("dead", "dead.2", 4, semaphore.CapacityStored)
		before := w.Dump()
		n.Reset()
		requireRefused(t, try(1), berth.AcquireError{Reason: berth.ReasonFull, Capacity: 4, Held: 4})
		require.Equal(t, map[string]int{"semaphore_acquire": 1}, n.Counts())
		require.Zero(t, w.Now(), "it does not wait")
		require.Equal(t, before, w.Dump())

		w.Until(lease - ms)
		requireRefused(t, try(3), berth.AcquireError{Reason: berth.ReasonFull, Capacity: 4, Held: 4})
		w.Until(lease)
		requireRefused(t, try(3), berth.AcquireError{Reason: berth.ReasonFull, Capacity: 4, Held: 2, Swept: 2})
		requireRefused(t, try(3), berth.AcquireError{Reason: berth.ReasonFull, Capacity: 4, Held: 2})

		w.acquireScript("b", "b.1", 4, semaphore.CapacityStored, heavy(4))
		requireRefused(t, try(2), berth.AcquireError{Reason: berth.ReasonQueuedAhead, Capacity: 4, Held: 2, Waiting: 1})
		requireRefused(t, try(3), berth.AcquireError{Reason: berth.ReasonFull, Capacity: 4, Held: 2, Waiting: 1})
		w.Until(2 * lease)
		require.NoError(t, try(2), "nobody alive is ahead")
		require.Equal(t, counts{Held: 4, Holders: 2, Capacity: 4}, w.stats())
	})
}

// Those that died in line take a number of scripts to drop, and no time beyond
// that.
func TestMoreDeadWaitersThanOneScriptMayDropDelayNobody(t *testing.T) {
	const dead = 110 // more than one script may drop
	each(t, map[string]func(w *world, n *proc){
		"who waits behind them": func(w *world, n *proc) {
			n.queue(1, nil).GrantedWithin(lease, 50*ms)
			require.LessOrEqual(w.T, n.Count("semaphore_sweep"), dead/100+2)
		},
		"who comes then and does not wait": func(w *world, n *proc) {
			w.Until(lease)
			require.NoError(w.T, testkit.Second(n.gpu(1).TryAcquire(context.Background(), nil)))
			require.Equal(w.T, lease, w.Now())
		},
	}, func(t *testing.T, w *world, get func(w *world, n *proc)) {
		for i := range dead + 1 {
			w.acquireScript("dead", fmt.Sprint("dead.", i), 1, semaphore.CapacityStored)
		}
		require.Equal(t, dead, w.stats().Waiting)
		get(w, w.node())
		require.Equal(t, counts{Held: 1, Holders: 1, Capacity: 1}, w.stats())
	})
}

// Nobody comes to those that died in the middle of the line before it moves, but they are looked for.
func TestWhoDiedInTheMiddleOfTheLineIsMetByTheHeartbeatsOfTheOthers(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const dead = 150 // more than one script looks at
		a, b := w.node(), w.node()
		a.take(1, &semaphore.AcquireOptions{Lease: berth.Forever})
		first := a.queue(1, nil)
		for i := range dead {
			w.acquireScript("dead", fmt.Sprint("dead.", i), 1, semaphore.CapacityStored)
		}
		last := b.queue(1, nil)
		w.Until(lease - ms)
		require.EqualValues(t, dead+2, w.Field("waiting"))
		w.Until(lease * 4 / 3)
		require.EqualValues(t, 2, w.Field("waiting"))
		testkit.RequirePending(w.T, first, last)
	})
}

func TestTheStoredCapacityRulesAndADifferenceIsToldOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		a.take(2, nil)
		s, ctx := b.gpu(5), context.Background()
		require.NoError(t, testkit.Second(s.Acquire(ctx, nil)))
		err := testkit.Second(s.TryAcquire(ctx, nil))
		requireRefused(t, err, berth.AcquireError{Reason: berth.ReasonFull, Capacity: 2, Held: 2})
		b.queueOn(ctx, s, nil)
		require.Equal(t, 2, w.stats().Capacity)
		require.Empty(t, a.Told(observe.CapacityDiffers))
		require.Len(t, b.Told(observe.CapacityDiffers), 1)
		e := b.Told(observe.CapacityDiffers)[0]
		require.Equal(t, []any{gpu, 2, 5}, []any{e.Name, e.Capacity, e.Count})

		require.NoError(t, a.resize(3))
		b.queueOn(ctx, s, nil)
		b.queueOn(ctx, b.gpu(5), nil)
		require.Len(t, b.Told(observe.CapacityDiffers), 2, "another one is told again")
	})
}

func TestAStrictSemaphoreRefusesAnotherCapacity(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.with(semaphore.Config{CapacityPolicy: semaphore.CapacityStrict})
		a.take(2, nil)
		before := w.Dump()
		refusal := b.queue(3, nil).Refused(0, berth.ReasonCapacity)
		require.Equal(t, 2, refusal.Capacity)
		require.Equal(t, 1, refusal.Held)
		require.ErrorIs(t, refusal, berth.ErrInvalidConfig)
		require.NotErrorIs(t, refusal, berth.ErrBusy)
		require.Equal(t, before, w.Dump())
		b.take(2, nil)
	})
}

func TestAWaitThatAResizeMadeTooHeavyIsTold(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		held := a.take(4, &semaphore.AcquireOptions{Weight: 2})
		head := b.queue(4, &semaphore.AcquireOptions{Weight: 4})
		fits := a.queue(4, &semaphore.AcquireOptions{Weight: 2})
		behind := b.queue(4, &semaphore.AcquireOptions{Weight: 3})
		w.Advance(time.Second)
		require.NoError(t, a.resize(2))
		refusal := head.Refused(time.Second, berth.ReasonTooHeavy)
		require.NotErrorIs(t, refusal, berth.ErrBusy)
		require.Equal(t, []int{2, 2, 2}, []int{refusal.Capacity, refusal.Held, refusal.Waiting}, "as the server has it now")
		w.Advance(lease / 3) // its own heartbeat asks
		require.False(t, behind.Pending())
		require.ErrorAs(t, behind.Err, &refusal)
		require.Equal(t, berth.ReasonTooHeavy, refusal.Reason)
		testkit.RequirePending(w.T, fits)
		release(t, held)
		release(t, fits.Granted(time.Second+lease/3))
		w.RequireIdle()
	})
}

func TestTryAcquireSweepsEverythingInItsWay(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for i := range 250 {
			w.acquireScript("dead", fmt.Sprintf("dead.%d", i), 250, semaphore.CapacityStored)
		}
		w.Advance(lease)
		p := w.got(w.node().gpu(250).TryAcquire(context.Background(), &semaphore.AcquireOptions{Weight: 250}))
		require.Equal(t, 250, p.Weight())
	})
}

// The holder has a short fixed lease, which its waiters hear of through a push:
// their last reply said that the place would be held for long.
func TestAnEarlierEndIsPushedToTheFirstInLine(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		p := a.take(1, nil)
		short := a.queue(1, &semaphore.AcquireOptions{NoRenew: true, Lease: 300 * ms})
		q := b.queue(1, nil)
		w.Advance(500 * ms)
		require.NoError(t, p.Release(context.Background()))
		short.Granted(500 * ms)
		a.Die()
		q.Granted(800 * ms)
	})
}

// The same, where the one that is granted at once stands before the head.
func TestAnEarlierEndOfADirectGrantIsPushedToTheFirstInLine(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		a.take(2, nil)
		q := b.queue(2, &semaphore.AcquireOptions{Weight: 2})
		w.Advance(100 * ms)
		p := a.take(2, &semaphore.AcquireOptions{Priority: 1, NoRenew: true, Lease: 300 * ms})
		require.ErrorIs(t, (<-w.Watch(p)).Cause, berth.ErrExpired)
		w.Until(400 * ms)
		require.True(t, q.Pending())
		require.Equal(t, int64(1), w.Field("used"), "its node swept at that very instant")
	})
}

func TestAClaimThatCannotBeReadIsNobodysConcern(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		p := n.take(1, nil)
		w.acquireScript("dead", "dead.1", 1, semaphore.CapacityStored, func(r *engine.Record) { r.Wait = time.Hour })
		q := n.queue(1, nil)
		w.Do("HDEL", stateKey, "c:dead.1")
		require.NoError(t, p.Release(context.Background()))
		q.Granted(0)
	})
}

func TestAResizeUpGrantsToManyMoreThanOneScriptMay(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		fence, ticket := n.take(1, nil).Fence(), int64(0)
		waits := make([]*wait, 110)
		for i := range waits {
			waits[i] = n.queue(1, nil)
		}
		require.NoError(t, n.resize(111))
		for _, q := range waits {
			p := q.Granted(0)
			require.Greater(t, p.Ticket(), ticket)
			require.Greater(t, p.Fence(), fence, "in the order of the tickets")
			fence, ticket = p.Fence(), p.Ticket()
		}
		require.Equal(t, counts{Held: 111, Holders: 111, Capacity: 111}, w.stats())
	})
}

func TestAnOverridingSemaphoreStoresItsOwnCapacity(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, override := w.node(), w.with(semaphore.Config{CapacityPolicy: semaphore.CapacityOverride})
		a.take(1, nil)
		waits := []*wait{a.queue(1, nil), a.queue(1, nil)}
		override.take(4, nil)
		for _, q := range waits {
			q.Granted(0) // they came first
		}
		require.Empty(t, override.Told(observe.CapacityDiffers))
		require.Equal(t, counts{Held: 4, Holders: 4, Capacity: 4}, w.stats())
		_, err := override.gpu(1).TryAcquire(context.Background(), &semaphore.AcquireOptions{Weight: 2})
		var refusal *berth.AcquireError
		require.ErrorAs(t, err, &refusal)
		require.Equal(t, berth.ReasonTooHeavy, refusal.Reason)
		require.Equal(t, 4, w.stats().Capacity, "a refusal stores nothing")
	})
}

func TestAHigherPriorityStandsAheadAndEqualOnesGoByTicket(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		held := a.take(1, nil)
		at := func(priority int, n *proc) *wait {
			w.Advance(ms)
			return n.queue(1, &semaphore.AcquireOptions{Priority: priority})
		}
		low, zero, high := at(-128, a), at(0, b), at(127, a)
		zeroToo, one, highToo := at(0, a), at(1, b), at(127, b)
		line := []*wait{high, highToo, one, zero, zeroToo, low}
		for i, next := range line {
			testkit.RequirePending(w.T, line[i:]...)
			w.Advance(time.Second)
			release(t, held)
			granted := next.Granted(w.Now())
			require.Greater(t, granted.Fence(), held.Fence())
			held = granted
		}
	})
}

func TestAnArrivalNeverPassesAWaiter(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		held := a.take(3, &semaphore.AcquireOptions{Weight: 2})
		heavy := a.queue(3, &semaphore.AcquireOptions{Weight: 2})
		arrival := b.queue(3, nil) // one is free
		_, err := b.gpu(3).TryAcquire(context.Background(), nil)
		requireRefused(t, err, berth.AcquireError{Reason: berth.ReasonQueuedAhead, Capacity: 3, Held: 2, Waiting: 2})
		testkit.RequirePending(w.T, heavy, arrival)

		urgent := b.queue(3, &semaphore.AcquireOptions{Priority: 1})
		release(t, urgent.Granted(0)) // nobody of its priority is ahead
		testkit.RequirePending(w.T, heavy, arrival)
		release(t, held)
		heavy.Granted(0)
		arrival.Granted(0)
	})
}

func TestADeadWaiterAtTheHeadIsPassedWhenItExpires(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b, c := w.node(), w.node(), w.node()
		held := a.take(2, nil)
		dead := b.queue(2, &semaphore.AcquireOptions{Weight: 2})
		live := c.queue(2, nil)
		b.Die()
		w.Until(lease - ms)
		testkit.RequirePending(w.T, dead, live)
		// Its node is not that of the first in line, which it leaves some time.
		p := live.GrantedWithin(lease, 50*ms)
		release(t, p)
		release(t, held)
		b.Shut()
		w.RequireIdle()
	})
}
