package qlock_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/tools/compose"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/qlock"
)

// grantedIn waits for the locks one after the other, and fails if another than the
// next one in that order is granted.
func (w *world) grantedIn(held *qlock.Lock, order ...*wait) {
	w.T.Helper()
	fence := held.Fence()
	for i, next := range order {
		testkit.RequirePending(w.T, order[i:]...)
		w.Advance(time.Second)
		release(w.T, held)
		held = next.Granted(w.Now())
		require.Greater(w.T, held.Fence(), fence)
		fence = held.Fence()
	}
	release(w.T, held)
	w.RequireIdle()
}

func TestLIFOClaimsAreServedLastComeFirstBehindTheOthersOfTheirPriority(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		held := a.take(nil)
		at := func(n *proc, access qlock.Access, priority int) *wait {
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

// place is where a claim that waits stands among those of its priority.
func (w *world) place(id string) string {
	w.T.Helper()
	members, err := w.Do("ZRANGE", lineKey, "0", "-1").AsStrSlice()
	require.NoError(w.T, err)
	for _, member := range members {
		if place, claim, _ := strings.Cut(member, "-"); claim == id {
			return place
		}
	}
	require.Fail(w.T, "it does not wait")
	return ""
}

// ticket is when a claim that waits came.
func (w *world) ticket(id string) int64 {
	w.T.Helper()
	for _, q := range w.Waiters() {
		if q.ID == id {
			return q.Since.UnixMilli()
		}
	}
	require.Fail(w.T, "it does not wait")
	return 0
}

// Each rank has as many of the draws as the others, the first and the last included, however those came to stand there who wait.
func TestARandomClaimIsDrawnToOneOfTheRanksOfItsPriority(t *testing.T) {
	for _, size := range []int{1, 4, 12} {
		ranks := size + 1
		for draw, rank := range edges(ranks) {
			inWorldOf(t, fmt.Sprint(size, " ", draw), func(t *testing.T, w *world) {
				dice := rand.New(rand.NewPCG(uint64(size), uint64(draw)))
				w.ask(claim{node: "h", id: "h.1", lease: time.Minute, wait: time.Minute})
				waits := func(id string, access qlock.Access, priority int) {
					w.Advance(ms)
					w.ask(claim{node: "q", id: id, access: access, priority: priority, draw: dice.Uint32(), wait: time.Minute})
				}
				waits("q.low", qlock.Random, -1)
				waits("q.lifo", qlock.LIFO, 0)
				for i := range size {
					waits(fmt.Sprint("q.", i), []qlock.Access{qlock.Queued, qlock.Random}[i%2], 0)
				}
				waits("q.high", qlock.Random, 1)
				var line []string
				for _, q := range w.Waiters() {
					line = append(line, q.ID)
				}
				w.Advance(2 * time.Second)
				c := claim{node: "r", id: "r.1", access: qlock.Random, draw: draw, wait: time.Minute}
				r := w.ask(c)
				require.Equal(t, "queued", r.Status())
				require.Equal(t, w.Began.Add(w.Now()).UnixMilli(), w.ticket("r.1"))
				require.EqualValues(t, rank+1, r.Int(8), "how many stand before it")

				// A replay answers the same, whatever has come since and whatever it draws.
				before := w.Dump()
				for _, draw := range []uint32{draw, 0, 12345, math.MaxUint32} {
					c.draw = draw
					again := w.ask(c)
					require.Equal(t, r.Int(1), again.Int(1), "its ticket")
					require.Equal(t, r.Str(7), again.Str(7), "its place")
				}
				require.Equal(t, before, w.Dump())
				require.Equal(t, []string{"q.high", "q.lifo", "q.low"}, []string{line[0], line[ranks], line[ranks+1]})
				require.Equal(t, slices.Insert(line, 1+rank, "r.1"), w.serve("h.1"))
			})
		}
	}
}

// edges are the least and the greatest draw of each rank.
func edges(ranks int) map[uint32]int {
	draws := make(map[uint32]int)
	for rank := range ranks {
		draws[uint32((rank<<32+ranks-1)/ranks)] = rank
		draws[uint32(((rank+1)<<32+ranks-1)/ranks-1)] = rank
	}
	return draws
}

func TestARandomClaimThatNobodyOfItsPriorityWaitsForStandsByItsTicket(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.ask(claim{node: "h", id: "h.1"})
		w.Advance(time.Second)
		w.ask(claim{node: "q", id: "q.1", priority: 5})
		w.ask(claim{node: "q", id: "q.2", access: qlock.LIFO})
		w.Advance(time.Second)
		w.ask(claim{node: "r", id: "r.1", access: qlock.Random})
		require.Equal(t, fmt.Sprintf("%013d", w.ticket("r.1")), w.place("r.1"))
	})
}

// standBetween is a script that calls what owner/place has, as the acquire does but many times.
var standBetween = sync.OnceValue(func() string {
	files := compose.Sources()
	files["between.lua"] = &fstest.MapFile{Data: []byte(`--[[
between: have claims stand between two others.
KEYS[1] line (ZSET place-claim -> score)
ARGV[1] place of the one    ARGV[2] place of the other
ARGV[3] of each that comes who stands beside it, by when those came
RETURNS {"between", claims}
REPLAY they stand already    COST O(claims)
]]
-- The claims are the numbers by when they came.
--- @include "owner/place"
--- @include "line/place"
local places = { [0] = ARGV[1], ARGV[2] }
for left, right in string.gmatch(ARGV[3], "(%d+) (%d+)") do
  places[#places + 1] = place_between(places[tonumber(left)], places[tonumber(right)])
end
for claim = 0, #places do
  redis.call("ZADD", KEYS[1], "254", places[claim] .. place_mark .. claim)
end
return { "between", #places + 1 }
`)}
	return compose.MustParse(files).Library().Script("between").Source()
})

// Between two who came one after the other there is room for all who are drawn there.
func TestPlacesStayInOrderHoweverManyAreDrawnIntoOneGap(t *testing.T) {
	dice := rand.New(rand.NewPCG(1, 2))
	for name, order := range map[string][]int{ // when they came, in the order in which they stand
		"anywhere":         dice.Perm(100_000),
		"always the first": backward(250, 1),
		"always the last":  slices.Sorted(slices.Values(backward(250, 1))),
		"in the middle":    slices.Concat(slices.Sorted(slices.Values(backward(249, 2))), backward(250, 2)),
	} {
		inWorldOf(t, name, func(t *testing.T, w *world) {
			// Who stands beside whom at the end; then each is taken away again, the last one first,
			// and so shows who stood beside it when it came. The two who came first are 0 and 1.
			all := []int{0}
			for _, n := range order {
				all = append(all, n+2)
			}
			all = append(all, 1)
			left, right := make([]int, len(all)), make([]int, len(all))
			for i := range all[1:] {
				right[all[i]], left[all[i+1]] = all[i+1], all[i]
			}
			beside := make([]string, len(order))
			for n := len(all) - 1; n > 1; n-- {
				beside[n-2] = fmt.Sprint(left[n], " ", right[n])
				right[left[n]], left[right[n]] = right[n], left[n]
			}
			w.Do("EVAL", standBetween(), "1", lineKey, "0946684800000", "0946684800001", strings.Join(beside, ","))
			members, err := w.Do("ZRANGE", lineKey, "0", "-1").AsStrSlice()
			require.NoError(t, err)
			require.Len(t, members, len(all))
			places := map[string]bool{}
			for i, member := range members {
				place, claim, _ := strings.Cut(member, "-")
				require.Equal(t, strconv.Itoa(all[i]), claim)
				places[place] = true
			}
			require.Len(t, places, len(all), "each has a place of its own")
		})
	}
}

// backward are the numbers below n from the last one on, or each other of them.
func backward(n, step int) []int {
	var numbers []int
	for i := n - 1; i >= 0; i -= step {
		numbers = append(numbers, i)
	}
	return numbers
}

// serve releases until nobody waits, and returns who was granted.
func (w *world) serve(held string) (order []string) {
	w.T.Helper()
	for {
		reply := w.Releases("lock", held[:1], held, 0)
		require.Equal(w.T, "released", reply.Status())
		n, err := w.Look()
		require.NoError(w.T, err)
		if n.Lock == nil {
			return order
		}
		held = n.Lock.Owner
		order = append(order, held)
	}
}

func TestAClaimGoesToTheEndOfTheLineOnceEachPeriod(t *testing.T) {
	each(t, map[string]qlock.Access{
		"queued": qlock.Queued, "random": qlock.Random,
	}, func(t *testing.T, w *world, access qlock.Access) {
		a, b := w.node(), w.node()
		held := a.take(nil)
		moves := b.queue(&qlock.LockOptions{RequeueEvery: 10 * time.Second, Access: access})
		id := w.line(a)[0]
		second, third := a.queue(nil), a.queue(nil)
		others := w.line(a)[1:]
		w.Until(10*time.Second - ms)
		require.Equal(t, 0, slices.Index(w.line(a), id))
		require.Empty(t, b.Told(observe.Requeued))
		w.Until(10 * time.Second)
		require.Equal(t, append(slices.Clone(others), id), w.line(a))
		require.Equal(t, 1, b.Count("lock_requeue"))
		w.Until(20*time.Second - ms)
		require.Equal(t, 1, b.Count("lock_requeue"), "once each period")
		fourth := a.queue(nil)
		require.Equal(t, 2, slices.Index(w.line(a), id))
		w.Until(20 * time.Second)
		require.Equal(t, 3, slices.Index(w.line(a), id))
		events := b.Told(observe.Requeued)
		require.Len(t, events, 2)
		for i, e := range events {
			require.Equal(t, id, e.Claim)
			require.Equal(t, door, e.Name)
			require.Equal(t, 2+i, e.Ahead)
			require.Equal(t, time.Duration(i+1)*10*time.Second, e.Waited)
		}
		w.Until(29 * time.Second)
		fence := held.Fence()
		for _, next := range []*wait{second, third, fourth, moves} {
			release(t, held)
			held = next.Granted(29 * time.Second)
			require.Greater(t, held.Fence(), fence)
			fence = held.Fence()
		}
		w.Until(time.Minute)
		require.Equal(t, 2, b.Count("lock_requeue"), "not once it is granted")
		require.NoError(t, held.Err())
		release(t, held)
		w.RequireIdle()
	})
}

func TestAClaimGoesToTheEndOfItsPriority(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		held := a.take(nil)
		moves := b.queue(&qlock.LockOptions{RequeueEvery: 10 * time.Second, Priority: 5})
		high := a.queue(&qlock.LockOptions{Priority: 5})
		low := a.queue(nil)
		lifo := a.queue(&qlock.LockOptions{Access: qlock.LIFO, Priority: 5})
		w.Until(15 * time.Second)
		w.grantedIn(held, high, moves, lifo, low)
	})
}

func TestAClaimThatWaitsAloneKeepsItsTurn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		held := a.take(nil)
		q := b.queue(&qlock.LockOptions{RequeueEvery: 20 * ms})
		w.Until(time.Second + 10*ms)
		require.Equal(t, 50, b.Count("lock_requeue"))
		require.Len(t, w.line(a), 1)
		release(t, held)
		release(t, q.Granted(time.Second+10*ms))
		w.RequireIdle()
	})
}

// The script alone: a call moves the claim only from the ticket that it names.
func TestARequeueIsReplayedByTheTicketItNames(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.ask(claim{node: "h", id: "h.1", lease: time.Minute, wait: time.Minute})
		queued := w.ask(claim{node: "q", id: "q.1", wait: time.Minute})
		w.ask(claim{node: "q", id: "q.2", wait: time.Minute})
		w.Advance(time.Second)
		requeue := func(id, node, ticket string) (status string, newTicket int64, place string) {
			r := w.Call("lock_requeue", "60000", "berth:wake:", door, node, id, ticket, line.Lane(0))
			if r.Len() < 3 {
				return r.Status(), 0, ""
			}
			return r.Status(), r.Int(1), r.Str(7)
		}
		status, ticket, place := requeue("q.1", "q", queued.Str(1))
		require.Equal(t, "queued", status)
		require.Equal(t, w.Began.Add(time.Second).UnixMilli(), ticket)
		require.Equal(t, fmt.Sprintf("%013d", ticket), w.place("q.1"))
		require.Equal(t, "254 "+w.place("q.1"), place)
		for range 3 {
			again, sameTicket, samePlace := requeue("q.1", "q", queued.Str(1))
			require.Equal(t, []any{"queued", ticket, place}, []any{again, sameTicket, samePlace})
		}
		before := w.Dump()
		for _, test := range [][2]string{{"q.1", "another"}, {"q.9", "q"}, {"h.1", "h"}} {
			status, _, _ := requeue(test[0], test[1], queued.Str(1))
			require.Equal(t, "not_waiting", status, test)
		}
		require.Equal(t, before, w.Dump())
		w.Advance(time.Minute)
		before = w.Dump()
		status, _, _ = requeue("q.1", "q", queued.Str(1))
		require.Equal(t, "not_waiting", status, "what has expired is not revived")
		require.Equal(t, before, w.Dump())
	})
}

// The place that a claim has since it was requeued is the one that it has again
// after a flush.
func TestAfterAFlushARequeuedClaimStandsWhereItStood(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b, c := w.node(), w.node(), w.node()
		a.take(nil)
		moves := b.queue(&qlock.LockOptions{RequeueEvery: 10 * time.Second})
		id := w.line(a)[0]
		early := a.queue(nil)
		w.Until(11 * time.Second)
		late := a.queue(&qlock.LockOptions{Access: qlock.LIFO})
		drawn := a.queue(&qlock.LockOptions{Access: qlock.Random, Priority: 1})
		before := w.line(a)
		require.Equal(t, id, before[2])
		w.Do("FLUSHALL")
		held := c.take(&qlock.LockOptions{NoRenew: true, Lease: time.Hour})
		w.Until(14 * time.Second)
		require.Equal(t, before, w.line(a))
		w.grantedIn(held, drawn, early, moves, late)
	})
}

// The holder has died, and nobody sweeps: the requeue itself finds the lock free,
// and hands it to whoever is first by then.
func TestARequeueHandsOnWhatHasExpired(t *testing.T) {
	type row struct {
		others int
		want   string
	}
	each(t, map[string]row{
		"to the one that waits behind": {1, "q.2"}, "to the claim itself where nobody does": {0, "q.1"},
	}, func(t *testing.T, w *world, row row) {
		w.ask(claim{node: "h", id: "h.1", lease: time.Second})
		queued := w.ask(claim{node: "q", id: "q.1", wait: time.Minute})
		for range row.others {
			w.ask(claim{node: "q", id: "q.2", wait: time.Minute})
		}
		w.Advance(2 * time.Second)
		r := w.Call("lock_requeue", "60000", "berth:wake:", door, "q", "q.1", queued.Str(1), line.Lane(0))
		require.Equal(t, "queued", r.Status())
		info := w.node().info()
		require.Equal(t, row.want, info.entries[0].ID)
		require.Equal(t, row.others, info.waiting)
	})
}
