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
	"github.com/berth-go/berth/pkg/scriptkit"
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

const mostDrawn = math.MaxUint32

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

// Each rank has as many of the draws as the others, the first and the last included.
func TestARandomClaimIsDrawnToOneOfTheRanksOfItsPriority(t *testing.T) {
	others := []string{"q.1", "q.2", "q.3", "q.4"}
	const ranks = 5
	for rank := range ranks {
		first := uint32((rank<<32 + ranks - 1) / ranks)
		last := uint32(((rank+1)<<32+ranks-1)/ranks - 1)
		for _, draw := range []uint32{first, last} {
			inWorldOf(t, fmt.Sprint(draw), func(t *testing.T, w *world) {
				w.ask(claim{node: "h", id: "h.1", lease: time.Minute, wait: time.Minute})
				waits := func(id string, access qlock.Access, priority int) {
					w.Advance(time.Second)
					w.ask(claim{node: "q", id: id, access: access, priority: priority, draw: mostDrawn, wait: time.Minute})
				}
				waits("q.low", qlock.Queued, -1)
				waits("q.lifo", qlock.LIFO, 0)
				waits("q.1", qlock.Queued, 0)
				waits("q.2", qlock.Random, 0)
				waits("q.3", qlock.Queued, 0)
				waits("q.4", qlock.Random, 0)
				waits("q.high", qlock.Queued, 1)
				w.Advance(2 * time.Second)
				c := claim{node: "r", id: "r.1", access: qlock.Random, draw: draw, wait: time.Minute}
				r := w.ask(c)
				require.Equal(t, "queued", r.Status())
				require.Equal(t, w.Began.Add(w.Now()).UnixMilli(), w.ticket("r.1"))
				require.EqualValues(t, rank+1, r.Int(8), "how many stand before it")

				// A replay answers the same, whatever has come since and whatever it draws.
				before := w.Dump()
				for _, draw := range []uint32{draw, 0, 12345, mostDrawn} {
					c.draw = draw
					again := w.ask(c)
					require.Equal(t, r.Int(1), again.Int(1), "its ticket")
					require.Equal(t, r.Str(7), again.Str(7), "its place")
				}
				require.Equal(t, before, w.Dump())
				drawn := slices.Insert(slices.Clone(others), rank, "r.1")
				require.Equal(t, slices.Concat([]string{"q.high"}, drawn, []string{"q.lifo", "q.low"}), w.serve("h.1"))
			})
		}
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
		require.Equal(t, fmt.Sprintf("%013d", w.ticket("r.1")), w.place("r.1"))
	})
}

// drawing are scripts that call what owner/place has, as the acquire does but many times.
var drawing = sync.OnceValue(func() *scriptkit.Library {
	files := compose.Sources()
	for name, text := range map[string]string{
		"draw.lua": `--[[
draw: where Random claims would stand.
KEYS[1] line (ZSET place-claim -> score)
ARGV[1] ticket    ARGV[2...] x1: draw
RETURNS {"drawn", draws, ...}
REPLAY reads only    COST O(draws)
]]
-- For each draw the place follows.
--- @include "owner/place"
local reply = { "drawn", #ARGV - 1 }
for i = 2, #ARGV do
  local _, place = place_access("254", tonumber(ARGV[1]), { line = KEYS[1] }, { access = "random", draw = tonumber(ARGV[i]) })
  reply[i + 1] = place
end
return reply
`,
		"between.lua": `--[[
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
`,
	} {
		files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return compose.MustParse(files).Library()
})

// draws runs one of those scripts on the line of the door, behind another text.
func (w *world) draws(before, script string, args ...string) []string {
	w.T.Helper()
	reply, err := w.Do(append([]string{"EVAL", before + drawing().Script(script).Source(), "1", lineKey}, args...)...).ToArray()
	require.NoError(w.T, err)
	var words []string
	for _, m := range reply[1:] {
		word, err := m.ToAny()
		require.NoError(w.T, err)
		words = append(words, fmt.Sprint(word))
	}
	return words
}

func TestARandomClaimIsDrawnEvenlyOverTheRanks(t *testing.T) {
	for made, access := range map[string][]qlock.Access{
		"queued": {qlock.Queued}, "random": {qlock.Random}, "both": {qlock.Queued, qlock.Random},
	} {
		for _, size := range []int{1, 2, 10, 100} {
			inWorldOf(t, fmt.Sprint(size, " ", made), func(t *testing.T, w *world) {
				dice := rand.New(rand.NewPCG(uint64(size), uint64(len(made))))
				waits := func(id string, access qlock.Access, priority int) {
					w.Advance(ms)
					w.ask(claim{node: "w", id: id, access: access, priority: priority, draw: dice.Uint32(), lease: time.Hour, wait: time.Hour})
				}
				waits("w.holds", qlock.Queued, 0)
				waits("w.low", qlock.Random, -1)
				waits("w.lifo", qlock.LIFO, 0)
				for i := range size {
					waits(fmt.Sprint("w.", i), access[i%len(access)], 0)
				}
				waits("w.high", qlock.Random, 1)
				w.Advance(ms)
				w.requireEven(dice, size)
				w.Advance(time.Minute)
				w.requireEven(dice, size)
			})
		}
	}
}

// requireEven draws where a Random claim of the priority 0, of whom so many wait, would stand if it
// came now, and fails where a rank comes up more than 4 standard deviations too often or too seldom.
func (w *world) requireEven(dice *rand.Rand, waiting int) {
	w.T.Helper()
	const lane, times = "254", 10_000
	draws, places := make([]uint32, times), make([]string, times)
	for i := range draws {
		draws[i] = dice.Uint32()
	}
	slices.Sort(draws)
	look := func(which []int) {
		args := []string{fmt.Sprint(w.Began.Add(w.Now()).UnixMilli())}
		for _, i := range which {
			args = append(args, fmt.Sprint(draws[i]))
		}
		for n, place := range w.draws(once, "draw", args...)[1:] {
			places[which[n]] = place
		}
	}
	// Each twentieth is looked at, and all between two that stand at different places: what lies between
	// two at the same one stands there too.
	var some, others []int
	for i := 0; i < times; i += 20 {
		some = append(some, i, min(i+19, times-1))
	}
	look(some)
	for i := range places {
		before, after := i/20*20, i/20*20+19
		if places[before] != places[after] {
			others = append(others, i)
		}
		places[i] = places[before]
	}
	look(others)

	members, err := w.Do("ZRANGEBYSCORE", lineKey, lane, lane).AsStrSlice()
	require.NoError(w.T, err)
	require.Len(w.T, members, waiting)
	counts, last := make([]float64, waiting+1), 0
	for _, place := range places {
		rank, _ := slices.BinarySearch(members, place+"-")
		require.False(w.T, rank < waiting && strings.HasPrefix(members[rank], place+"-"), "somebody stands at %s", place)
		require.GreaterOrEqual(w.T, rank, last, "a greater draw stands behind a lesser one")
		counts[rank]++
		last = rank
	}
	share := 1 / float64(waiting+1)
	for rank, n := range counts {
		require.InDelta(w.T, times*share, n, 4*math.Sqrt(times*share*(1-share)), "rank %d of %d", rank, waiting+1)
	}
}

// once stands before a script that only reads: what it asks for again has not changed, so that it is
// told what it was told before, in a tenth of the time.
const once = `local server, told = redis, {}
local redis = { call = function(...)
  local words = table.concat({ ... }, " ")
  told[words] = told[words] or server.call(...)
  return told[words]
end }
`

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
			w.draws("", "between", "0946684800000", "0946684800001", strings.Join(beside, ","))
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
		reply := w.Call("lock_release", "60000", "berth:wake:", door, held[:1], held, "0")
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
		late := a.queue(nil)
		before := w.line(a)
		require.Equal(t, id, before[1])
		w.Do("FLUSHALL")
		held := c.take(&qlock.LockOptions{NoRenew: true, Lease: time.Hour})
		w.Until(14 * time.Second)
		require.Equal(t, before, w.line(a))
		w.grantedIn(held, early, moves, late)
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
