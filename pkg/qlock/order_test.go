package qlock_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/qlock"
)

// grantedIn waits for the locks one after the other, and fails if another than the
// next one in that order is granted.
func (w *world) grantedIn(held *qlock.Lock, order ...*wait) {
	w.T.Helper()
	fence := held.Fence()
	for i, next := range order {
		w.requirePending(order[i:]...)
		w.Advance(time.Second)
		release(w.T, held)
		held = next.granted(w.Now())
		require.Greater(w.T, held.Fence(), fence)
		fence = held.Fence()
	}
	release(w.T, held)
	w.RequireIdle()
}

func TestQueuedClaimsAreServedInTheOrderInWhichTheyCame(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var nodes []*node
		for range 5 {
			nodes = append(nodes, w.node(qlock.Config{Lease: time.Minute}))
		}
		held := nodes[0].take(nil)
		var waits []*wait
		const waiters = 8
		for i := range waiters {
			waits = append(waits, nodes[i*7%5].queue(nil))
			if i%3 == 0 {
				w.Advance(ms) // others come in the same millisecond
			}
		}
		order := w.line(nodes[0])
		require.Len(t, order, waiters)
		fence, ticket := held.Fence(), int64(0)
		for i, next := range waits {
			w.Until(time.Duration(i+1) * 65 * time.Second) // longer than they live by themselves
			w.requirePending(waits[i:]...)
			require.NoError(t, held.Err())
			require.Equal(t, order[i:], w.line(nodes[0]), "heartbeats move nobody")
			release(t, held)
			held = next.granted(w.Now())
			require.Equal(t, order[i], held.ID())
			require.Greater(t, held.Fence(), fence)
			require.Greater(t, held.Ticket(), ticket)
			fence, ticket = held.Fence(), held.Ticket()
		}
		for _, n := range nodes {
			require.Greater(t, n.Count("lock_renew"), 12, "heartbeats have run all the time")
		}
		release(t, held)
		w.RequireIdle()
	})
}

func TestAnArrivalNeverPassesAWaiter(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		held := a.take(nil)
		waits := []*wait{b.queue(nil)}
		for range 20 {
			// Comes in the very moment of the release.
			waits = append(waits, a.queue(nil))
			release(t, held)
			arrival := b.queue(nil)
			held = waits[0].granted(w.Now())
			waits = append(waits[1:], arrival)
		}
		w.grantedIn(held, waits...)
	})
}

func TestAHigherPriorityStandsAheadAndEqualOnesGoByTicket(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		held := a.take(nil)
		at := func(priority int, n *node) *wait {
			w.Advance(ms)
			return n.queue(&qlock.LockOptions{Priority: priority})
		}
		low, zero, high := at(-128, a), at(0, b), at(127, a)
		zeroToo, one, highToo := at(0, a), at(1, b), at(127, b)
		w.grantedIn(held, high, highToo, one, zero, zeroToo, low)
	})
}

func TestLIFOClaimsAreServedLastComeFirstBehindTheOthersOfTheirPriority(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		held := a.take(nil)
		at := func(n *node, access qlock.Access, priority int) *wait {
			w.Advance(ms)
			return n.queue(&qlock.LockOptions{Access: access, Priority: priority})
		}
		old, newer := at(a, qlock.LIFO, 0), at(b, qlock.LIFO, 0)
		queued := at(a, qlock.Queued, 0)
		newest := at(b, qlock.LIFO, 0)
		queuedToo := at(b, qlock.Queued, 0)
		urgent := at(a, qlock.LIFO, 1)
		patient := at(a, qlock.Queued, -1)
		w.grantedIn(held, urgent, queued, queuedToo, newest, newer, old, patient)
	})
}

// Whatever is drawn, everybody who waits is served once.
func TestRandomClaimsAreAllServed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		held := a.take(nil)
		waits := make(map[string]*wait)
		for i := range 12 {
			w.Advance(10 * ms)
			q := []*node{a, b}[i%2].queue(&qlock.LockOptions{Access: qlock.Random})
			for _, id := range w.line(a) {
				if waits[id] == nil {
					waits[id] = q
				}
			}
		}
		order := w.line(a)
		require.Len(t, order, 12)
		for i, id := range order {
			require.Equal(t, order[i:], w.line(a), "a place is drawn once")
			w.Advance(time.Second)
			release(t, held)
			held = waits[id].granted(w.Now())
			require.Equal(t, id, held.ID())
		}
		release(t, held)
		w.RequireIdle()
	})
}

const mostDrawn = math.MaxUint32

// place is where a claim that waits stands in its priority, 0.
func (w *world) place(id string) int64 {
	w.T.Helper()
	score, err := w.Do("ZSCORE", lineKey, "q:"+id).AsFloat64()
	require.NoError(w.T, err)
	const width = 1 << 44
	return int64(score) - 2*width - 127*width
}

// ticket is when a claim that waits came.
func (w *world) ticket(id string) int64 {
	w.T.Helper()
	for _, q := range collect(w.T, w.node().Queue(context.Background(), door)) {
		if q.ID == id {
			return q.Since.UnixMilli()
		}
	}
	require.Fail(w.T, "it does not wait")
	return 0
}

func TestARandomPlaceIsDrawnBetweenTheFirstOfThePriorityAndTheEnd(t *testing.T) {
	for name, test := range map[string]struct {
		draw  uint32
		share float64 // of the way from the first to its own ticket
	}{
		"the first place": {0, 0}, "a quarter": {1 << 30, 0.25}, "the middle": {1 << 31, 0.5},
		"three quarters": {3 << 30, 0.75}, "the last place": {mostDrawn, 1},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.ask(claim{node: "h", id: "h.1", lease: time.Minute, wait: time.Minute})
				waits := func(id string, access qlock.Access, priority int) {
					w.Advance(time.Second)
					w.ask(claim{node: "q", id: id, access: access, priority: priority, wait: time.Minute})
				}
				waits("q.low", qlock.Queued, -1)
				waits("q.high", qlock.Queued, 1)
				waits("q.lifo", qlock.LIFO, 0)
				waits("q.1", qlock.Queued, 0)
				waits("q.2", qlock.Queued, 0)
				waits("q.3", qlock.Queued, 0)
				w.Advance(2 * time.Second)
				c := claim{node: "r", id: "r.1", access: qlock.Random, draw: test.draw, wait: time.Minute}
				r := w.ask(c)
				require.Equal(t, "queued", r.Status())
				least, own := w.place("q.1"), w.ticket("r.1")
				require.Equal(t, w.Began.Add(w.Now()).UnixMilli(), own)
				require.EqualValues(t, 4000, own-least)
				want := least + int64(math.Floor(float64(test.draw)/(1<<32)*float64(own-least+1)))
				require.Equal(t, want, w.place("r.1"))
				require.InDelta(t, float64(least)+test.share*4000, float64(w.place("r.1")), 1)

				// A replay answers the same, whatever has come since and whatever it draws.
				before := w.Dump()
				for _, draw := range []uint32{test.draw, 0, 12345, mostDrawn} {
					c.draw = draw
					again := w.ask(c)
					require.Equal(t, r.Int(1), again.Int(1), "its ticket")
					require.Equal(t, r.Int(7), again.Int(7), "its place")
				}
				require.Equal(t, before, w.Dump())
			})
		})
	}
}

func TestARandomClaimThatNobodyOfItsPriorityWaitsForStandsByItsTicket(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.ask(claim{node: "h", id: "h.1"})
		w.Advance(time.Second)
		w.ask(claim{node: "q", id: "q.1", priority: 5})
		w.ask(claim{node: "q", id: "q.2", access: qlock.LIFO})
		w.Advance(time.Second)
		w.ask(claim{node: "r", id: "r.1", access: qlock.Random})
		require.Equal(t, w.ticket("r.1"), w.place("r.1"))
	})
}

// serve releases until nobody waits, and returns who was granted.
func (w *world) serve(held string) (order []string) {
	w.T.Helper()
	for {
		reply := w.Call("lock_release", "60000", "berth:wake:", door, held[:1], held, "0")
		require.Equal(w.T, "released", reply.Status())
		fields, err := w.Do("ZRANGE", lineKey, "0", "0").AsStrSlice()
		require.NoError(w.T, err)
		if len(fields) == 0 {
			return order
		}
		held = fields[0][2:] // h:
		require.Equal(w.T, "h:", fields[0][:2])
		order = append(order, held)
	}
}

// One that came first and one that came later, of every access: who is served
// first. A Random one is drawn to the middle of what it may draw.
func TestAccessByPairs(t *testing.T) {
	for _, test := range []struct {
		first, later qlock.Access
		overtakes    bool
	}{
		{qlock.Queued, qlock.Queued, false},
		{qlock.Queued, qlock.Random, false}, // between the first and the end
		{qlock.Queued, qlock.LIFO, false},
		{qlock.Random, qlock.Queued, false},
		{qlock.Random, qlock.Random, false},
		{qlock.Random, qlock.LIFO, false},
		{qlock.LIFO, qlock.Queued, true},
		{qlock.LIFO, qlock.Random, true},
		{qlock.LIFO, qlock.LIFO, true},
	} {
		t.Run(fmt.Sprint(test.first, " then ", test.later), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.ask(claim{node: "h", id: "h.1", lease: time.Minute, wait: time.Minute})
				for _, c := range []claim{{id: "w.1", access: test.first}, {id: "w.2", access: test.later}} {
					w.Advance(time.Second)
					c.node, c.draw, c.wait = "w", 1<<31, time.Minute
					require.Equal(t, "queued", w.ask(c).Status())
				}
				want := []string{"w.1", "w.2"}
				if test.overtakes {
					slices.Reverse(want)
				}
				require.Equal(t, want, w.serve("h.1"))
			})
		})
	}
}

// Behind somebody who came first, a Random claim may pass any of the others.
func TestARandomClaimPassesWhoeverStandsBehindWhatItDrew(t *testing.T) {
	for draw, want := range map[uint32][]string{
		1 << 29:   {"w.1", "w.9", "w.2", "w.3", "w.4", "w.l"},
		1 << 31:   {"w.1", "w.2", "w.9", "w.3", "w.4", "w.l"},
		mostDrawn: {"w.1", "w.2", "w.3", "w.4", "w.9", "w.l"},
	} {
		t.Run(fmt.Sprint(draw), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.ask(claim{node: "h", id: "h.1", lease: time.Minute, wait: time.Minute})
				for _, c := range []claim{
					{id: "w.1", access: qlock.Queued},
					{id: "w.l", access: qlock.LIFO},
					{id: "w.2", access: qlock.Queued},
					{id: "w.3", access: qlock.Random, draw: mostDrawn},
					{id: "w.4", access: qlock.Queued},
					{id: "w.9", access: qlock.Random, draw: draw},
				} {
					w.Advance(time.Second)
					c.node, c.wait = "w", time.Minute
					require.Equal(t, "queued", w.ask(c).Status())
				}
				require.Equal(t, want, w.serve("h.1"))
			})
		})
	}
}

// A Random claim that is drawn to the front finds a free lock only when nobody
// waits: the draw never takes a lock from its holder.
func TestARandomClaimTakesAFreeLockAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		for _, access := range []qlock.Access{qlock.Queued, qlock.Random, qlock.LIFO} {
			l := n.take(&qlock.LockOptions{Access: access})
			_, err := n.TryLock(context.Background(), door, &qlock.LockOptions{Access: access, Priority: 127})
			require.Error(t, err)
			release(t, l)
		}
		w.RequireIdle()
	})
}
