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
	"github.com/berth-go/berth/pkg/node"
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

func TestPermitsAreGrantedInTheOrderInWhichTheClaimsCame(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		nodes := []*proc{w.node(), w.node(), w.node(), w.node()}
		held := nodes[0].take(1, nil)
		var line []*wait
		for i := range 12 {
			line = append(line, nodes[i*3%4].queue(1, nil))
			w.Advance(time.Duration(i%3) * 300 * ms) // some in one millisecond, some heartbeats apart
		}
		fence, ticket := held.Fence(), int64(0) // nobody queued before
		for i, next := range line {
			testkit.RequirePending(w.T, line[i:]...)
			w.Advance(time.Duration(i%5) * time.Second)
			release(t, held)
			held = next.Granted(w.Now())
			require.Greater(t, held.Ticket(), ticket)
			require.Greater(t, held.Fence(), fence)
			fence, ticket = held.Fence(), held.Ticket()
		}
		release(t, held)
		w.RequireIdle()
	})
}

func TestFencesRiseInTheOrderOfTheTicketsAlsoWithinOneHandOff(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		all := a.take(8, &semaphore.AcquireOptions{Weight: 8})
		var line []*wait
		for i := range 10 {
			line = append(line, []*proc{a, b}[i%2].queue(8, nil))
		}
		w.Advance(time.Second)
		release(t, all)
		fence, ticket := all.Fence(), int64(0)
		for _, next := range line[:8] {
			p := next.Granted(time.Second)
			require.Greater(t, p.Ticket(), ticket)
			require.Greater(t, p.Fence(), fence)
			fence, ticket = p.Fence(), p.Ticket()
		}
		testkit.RequirePending(w.T, line[8:]...)
	})
}

func TestAHeavyClaimAtTheHeadIsNotPassedByLighterOnes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		first, second := a.take(3, nil), a.take(3, nil)
		heavy := a.queue(3, &semaphore.AcquireOptions{Weight: 3})
		light := b.queue(3, nil) // would fit
		lighter := b.queue(3, nil)
		testkit.RequirePending(w.T, heavy, light, lighter)
		release(t, first)
		w.Advance(time.Minute)
		testkit.RequirePending(w.T, heavy, light, lighter)
		require.Equal(t, counts{Held: 1, Holders: 1, Waiting: 3, Capacity: 3}, w.stats())
		release(t, second)
		p := heavy.Granted(time.Minute)
		testkit.RequirePending(w.T, light, lighter)
		w.Advance(time.Second)
		release(t, p)
		light.Granted(time.Minute + time.Second)
		lighter.Granted(time.Minute + time.Second)
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
			held = next.Granted(w.Now())
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
		ctx := context.Background()
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

func TestAPlaceThatWasGrantedToADeadWaiterIsHandedOnWhenThatExpires(t *testing.T) {
	for name, short := range map[string]time.Duration{
		"its lease is the others'":                          lease,
		"its lease is shorter, and the next has to be told": 900 * ms,
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				a, b, c := w.node(), w.node(node.Config{Lease: short}), w.node()
				held := a.take(1, nil)
				b.queue(1, nil)
				live := c.queue(1, nil)
				b.Die()
				w.Advance(100 * ms)
				release(t, held) // to the dead one, that nobody knows to be dead
				require.Equal(t, counts{Held: 1, Holders: 1, Waiting: 1, Capacity: 1}, w.stats())
				live.GrantedWithin(short, ms)
			})
		})
	}
}

func TestADeadHoldersPlaceIsGrantedWhenItsLeaseEnds(t *testing.T) {
	for name, test := range map[string]struct {
		holder, waiter node.Config
		opts           semaphore.AcquireOptions
		alive          time.Duration // how long the holder lives
	}{
		"at once":                            {},
		"after some renewals":                {alive: 13 * time.Second},
		"with a short lease":                 {opts: semaphore.AcquireOptions{Lease: 200 * ms}, alive: 5 * time.Second},
		"with a long lease":                  {opts: semaphore.AcquireOptions{Lease: 20 * time.Second}, alive: 15 * time.Second},
		"of a node with a longer lease":      {holder: node.Config{Lease: 20 * time.Second}, alive: 5 * time.Second},
		"and the waiter's heartbeats rarely": {waiter: node.Config{Lease: time.Hour}, alive: 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				a, b := w.node(test.holder), w.node(test.waiter)
				p := a.take(1, &test.opts)
				next := b.queue(1, nil)
				w.Advance(test.alive)
				a.Die()
				left, ok := w.LeftOf(p.ID())
				require.True(t, ok)
				next.GrantedWithin(w.Now()+left, ms)
			})
		})
	}
}

func TestADeadHoldersPlaceIsGrantedThoughTheFirstInLineDiedToo(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b, c := w.node(), w.node(), w.node()
		a.take(1, nil)
		b.queue(1, nil)
		next := c.queue(1, nil)
		a.Die()
		b.Die()
		next.GrantedWithin(lease, 50*ms)
	})
}

// Those that died in line take a number of scripts to drop, and no time beyond
// that.
func TestMoreDeadWaitersThanOneScriptMayDropDelayNobody(t *testing.T) {
	const dead = 110 // more than one script may drop
	crowd := func(w *world) {
		w.acquireScript("dead", "dead.0", 1, semaphore.CapacityStored)
		for i := range dead {
			r := w.acquireScript("dead", fmt.Sprint("dead.", i+1), 1, semaphore.CapacityStored)
			require.Equal(w.T, "queued", r.Status())
		}
		require.Equal(w.T, dead, w.stats().Waiting)
	}
	t.Run("who waits behind them", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			crowd(w)
			n := w.node()
			live := n.queue(1, nil)
			live.GrantedWithin(lease, 50*ms)
			require.LessOrEqual(t, n.Count("semaphore_sweep"), dead/100+2)
			require.Equal(t, counts{Held: 1, Holders: 1, Capacity: 1}, w.stats())
		})
	})
	t.Run("who comes then and does not wait", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			crowd(w)
			n := w.node()
			w.Until(lease)
			_, err := n.gpu(1).TryAcquire(context.Background(), nil)
			require.NoError(t, err)
			require.Equal(t, lease, w.Now())
		})
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
		_, err := s.Acquire(ctx, nil)
		require.NoError(t, err)
		_, err = s.TryAcquire(ctx, nil)
		requireRefused(t, err, berth.AcquireError{Reason: berth.ReasonFull, Capacity: 2, Held: 2})
		b.queueOn(ctx, s, nil)
		require.Equal(t, 2, w.stats().Capacity)
		require.Empty(t, a.Told(observe.CapacityDiffers))
		require.Len(t, b.Told(observe.CapacityDiffers), 1)
		e := b.Told(observe.CapacityDiffers)[0]
		require.Equal(t, gpu, e.Name)
		require.Equal(t, 2, e.Capacity)
		require.Equal(t, 5, e.Count)

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

func TestAResizeUpGrantsAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		a.take(1, nil)
		first, second, third := b.queue(1, nil), b.queue(1, nil), b.queue(1, nil)
		w.Advance(time.Second)
		require.NoError(t, a.resize(3))
		first.Granted(time.Second)
		second.Granted(time.Second)
		testkit.RequirePending(w.T, third)
		require.Equal(t, counts{Held: 3, Holders: 3, Waiting: 1, Capacity: 3}, w.stats())
	})
}

func TestAResizeDownTakesNothingAwayAndPausesGrants(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		held := []*semaphore.Permit{a.take(3, nil), a.take(3, nil), a.take(3, nil)}
		next := b.queue(3, nil)
		require.NoError(t, a.resize(1))
		w.Advance(time.Minute)
		for i, p := range held {
			require.NoError(t, p.Err())
			testkit.RequirePending(w.T, next)
			require.Equal(t, counts{Held: 3 - i, Holders: 3 - i, Waiting: 1, Capacity: 1}, w.stats())
			release(t, p)
		}
		next.Granted(time.Minute)
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

func TestNodesWithOtherLeasesDoNotShortenEachOther(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		short, long := w.node(node.Config{Lease: 300 * ms}), w.node(node.Config{Lease: time.Minute})
		a := long.take(4, nil)
		b := short.take(4, nil)
		bound := short.take(4, &semaphore.AcquireOptions{MaxHold: time.Second})
		c := long.take(4, &semaphore.AcquireOptions{MaxHold: time.Hour})
		waits := long.queue(4, &semaphore.AcquireOptions{Weight: 4})
		impatient := short.queue(4, nil)
		left := func(p *semaphore.Permit) time.Duration {
			d, ok := w.LeftOf(p.ID())
			require.True(t, ok)
			return d
		}
		require.Equal(t, []time.Duration{time.Minute, 300 * ms, 300 * ms, time.Minute},
			[]time.Duration{left(a), left(b), left(bound), left(c)})
		short.Die()
		w.Until(300*ms - ms)
		require.Equal(t, counts{Held: 4, Holders: 4, Waiting: 2, Capacity: 4}, w.stats())
		w.Until(300 * ms)
		require.Equal(t, counts{Held: 2, Holders: 2, Waiting: 1, Capacity: 4}, w.stats())
		long.Die()
		w.Until(time.Minute - ms)
		require.Equal(t, counts{Held: 2, Holders: 2, Waiting: 1, Capacity: 4}, w.stats())
		testkit.RequirePending(w.T, waits, impatient)
		w.Until(time.Minute)
		require.Equal(t, counts{Capacity: 4}, w.stats())
		require.ErrorIs(t, a.Err(), berth.ErrLost)
		require.ErrorIs(t, b.Err(), berth.ErrLost)
	})
}
