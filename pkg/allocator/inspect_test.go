package allocator_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/allocator"
)

// furnish gives a pool one of everything: free are a and b, leased are c, d (by two)
// and e, which is leaving; f rests; three are bound. It returns the claim of c.
func (w *world) furnish() string {
	w.T.Helper()
	ctx := context.Background()
	n := w.node()
	w.add("c")
	c := n.takes("c", &allocator.AllocateOptions{Bind: "for an hour"})
	w.addFor(2, "d")
	n.takes("d", &allocator.AllocateOptions{Bind: "for ever", BindFor: berth.Forever, Lease: berth.Forever})
	n.takes("d", nil)
	w.add("e")
	n.takes("e", &allocator.AllocateOptions{Bind: "to what leaves"})
	require.NoError(w.T, change(n.Remove(ctx, []string{"e"})))
	require.NoError(w.T, change(w.pool.Add(ctx, []string{"a", "b", "f"}, &allocator.AddOptions{Expiry: time.Hour})))
	require.NoError(w.T, n.Rest(ctx, "f", time.Minute, "mine", nil))
	w.Advance(ms)
	return c.ID()
}

// inspection is what Inspect finds, which must change nothing.
func (w *world) inspection() allocator.Inspection {
	w.T.Helper()
	before, expiry := w.Dump(), w.Expiry()
	found, err := w.ops().Inspect(context.Background(), proxies)
	require.NoError(w.T, err)
	require.Equal(w.T, before, w.Dump(), "it only reads")
	require.Equal(w.T, expiry, w.Expiry())
	return found
}

func TestAWholePoolIsCountedAndHasNoProblems(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		require.Equal(t, allocator.Inspection{}, w.inspection(), "not known")
		require.Empty(t, w.Keys())
		w.furnish()
		w.node().queue(&allocator.AllocateOptions{Resource: "c"})
		require.Equal(t, allocator.Inspection{
			Resources: 6, Free: 2, Leased: 3, Resting: 1, Leaving: 1, Holders: 4, Waiting: 1, Bindings: 3,
		}, w.inspection())
		require.Equal(t, countsOf(w.inspection()), w.stats())

		w.SetCount("fmt", 4) // by a newer release
		require.ErrorIs(t, second(w.ops().Inspect(context.Background(), proxies)), berth.ErrIncompatible)
	})
}

func TestWhatHasExpiredCountsAsItIsStored(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		require.NoError(t, change(w.pool.Add(ctx, []string{"a", "b", "c"}, &allocator.AddOptions{Expiry: time.Minute})))
		w.add("stays")
		require.NoError(t, w.pool.Bind(ctx, "me", "stays", &allocator.BindOptions{BindFor: time.Second}))
		require.NoError(t, w.pool.Rest(ctx, "stays", time.Second, "", nil))
		w.acquireScript("dead", "dead.1")
		w.Advance(time.Hour)
		require.Equal(t, allocator.Inspection{
			Resources: 4, Free: 2, Leased: 1, Resting: 1, Holders: 1, Bindings: 1,
		}, w.inspection())
		require.Equal(t, counts{Resources: 1, Free: 1, Expired: 4}, w.stats())
		require.NoError(t, second(w.ops().Sweep(ctx, proxies)))
		require.Equal(t, allocator.Inspection{Resources: 1, Free: 1}, w.inspection())
	})
}

// field reads a field of a hash.
func (w *world) field(key, name string) string {
	w.T.Helper()
	text, err := w.Do("HGET", key, name).ToString()
	require.NoError(w.T, err)
	return text
}

// by is what one command makes.
func by(words ...string) func(w *world, claim string) {
	return func(w *world, _ string) { w.Do(words...) }
}

// laneOf is a claim that waits for a resource.
func laneOf(resource string) func(w *world, claim string) {
	return func(w *world, _ string) { w.lane(resource) }
}

// damages make each problem by hand, in a pool as furnish leaves it, and say what is
// told of it.
var damages = map[string]struct {
	do   func(w *world, claim string)
	want string
}{
	"damaged":  {func(w *world, _ string) { w.damage("a", "c", "d", "e", "f") }, isDamaged("a")},
	"unlisted": {by("ZREM", freeKey, "b"), `the resource "b" is free and not among the free`},
	"listed":   {by("ZADD", freeKey, "5", "f"), `the resource "f" is among the free and not free`},
	"both":     {by("ZADD", freeKey, "5", "c"), `the resource "c" is leased and among the free`},
	"rest":     {by("ZREM", lineKey, "e:f"), `the end of the rest of the resource "f" is not in the line`},
	"expiry": {
		by("ZADD", lineKey, millis(264*state.Width+5), "x:a"),
		`the expiry of the resource "a" is not in the line`,
	},
	"left":    {by("HSET", itemsKey, "ib", "1 0 0 0 0 1 0 "), `the resource "b" is leaving and nobody holds it`},
	"binding": {by("ZREM", lineKey, "u:for an hour"), `the end of the binding "for an hour" is not in the line`},
	"holder": {
		by("HSET", itemsKey, "ic", "1 0 0 0 0 0 1 nobody.1 "),
		`the claim "nobody.1" is said to hold a resource and does not`,
	},
	"free_orphan": {by("HDEL", itemsKey, "ib"), `the resource "b" is among the free and not in the pool`},
	"line_orphan": {
		by("ZADD", lineKey, millis(262*state.Width+5), "e:ghost"),
		`the member "e:ghost" of the line is about nothing`,
	},
	"revision_orphan": {
		by("ZREM", lineKey, "o:f"),
		`what was changed last of "f", a resource or the pool, is never forgotten`,
	},
	"claim_orphan": {func(w *world, claim string) {
		w.Do("HSET", stateKey, "c:ghost", w.field(stateKey, "c:"+claim))
	}, `the claim "ghost" neither holds nor waits`},
	"hold_orphan": {func(w *world, claim string) {
		w.Do("HSET", stateKey, "c:ghost", w.field(stateKey, "c:"+claim), "r:ghost", "a")
		w.Do("ZADD", lineKey, millis(state.Width+time.Now().Add(time.Hour).UnixMilli()), "h:ghost")
	}, `the claim "ghost" holds a resource that does not know it`},
	"lane_empty":  {by("HSET", stateKey, "l:ghost", "600"), `nobody stands in the lane of the resource "ghost"`},
	"lane_free":   {laneOf("a"), `the resource "a" is free and claims wait for it`},
	"lane_absent": {laneOf("ghost"), `claims wait for the resource "ghost" and nobody can get it`},
	"lane_mark":   {laneOf("f"), `when the lane of the resource "f" is to be looked at is not in the line`},
	"lane_member": {func(w *world, _ string) {
		w.lane("c")
		w.Do("HSET", stateKey, "l:c", "700")
	}, `the claim "x.1" does not stand in the lane of the resource that it waits for`},
	"settings": {
		by("HSET", stateKey, "s:a", "- 2 -"),
		`the settings of its own of the resource "a" are not where they belong`,
	},
}

// lane has a claim wait for a resource, as nothing but a lost script would leave it.
func (w *world) lane(resource string) {
	w.T.Helper()
	r, place := record("x"), "2540000000000600"
	text := fmt.Sprintf("p %d 0 600 %s x %s", time.Now().Add(r.Wait).UnixMilli(), place, state.FixedTerms(&r))
	w.Do("HSET", stateKey, "l:"+resource, "600", "q:x.1", "- "+resource, "c:x.1", text)
	w.Do("ZADD", lineKey, "600", place+"-x.1")
}

func TestEachProblemIsFound(t *testing.T) {
	require.Equal(t, problemWords(t), slices.Sorted(maps.Keys(damages)))
	inWorld(t, func(t *testing.T, w *world) {
		claim := w.furnish()
		mend := w.Snapshot()
		for word, damage := range damages {
			w.inspect()
			damage.do(w, claim)
			found := w.inspection()
			require.Contains(t, found.Problems, damage.want, word)
			require.False(t, found.Moving, word)
			require.LessOrEqual(t, len(found.Problems), 8, "%s: it tells of little else: %q", word, found.Problems)
			mend()
		}
	})
}

// What cannot belong to anything is told of, whatever it is.
func TestEveryOrphanInTheLineIsFound(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.furnish()
		members := []string{"0946684800000-ghost", "2540946684800000-ghost"} // it waits
		for _, kind := range []string{"h", "t", "e", "x", "d", "u", "w", "p"} {
			members = append(members, kind+":ghost")
		}
		for _, member := range members {
			w.Do("ZADD", lineKey, millis(time.Now().UnixMilli()), member)
		}
		found := w.inspection()
		for _, member := range members {
			require.Contains(t, found.Problems, fmt.Sprintf("the member %q of the line is about nothing", member))
		}
	})
}

func TestCountsThatAreNotThoseOfTheRecordsAreFound(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.furnish()
		w.Do("HSET", stateKey, "pool", "1000000000000016 0000000000000 1999999999999990 1999999999999991 1000000000000009 1000000000000011 1 - - - - - - -")
		w.SetCount("used", 14)
		w.SetCount("waiting", 10)
		require.Equal(t, []string{
			"there should be 16 resources, and are 6",
			"there should be 12 free ones, and are 2",
			"there should be 13 leased ones, and are 3",
			"there should be 11 leaving ones, and are 1",
			"there should be 14 holds, and are 4",
			"there should be 10 waiting claims, and are 0",
			"there should be 9 claims waiting for one resource, and are 0",
		}, w.inspection().Problems)
	})
}

// Above 10 000 resources it is several short steps.
func TestALargePoolIsInspectedInSteps(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		n := w.node()
		n.connect()
		w.furnish()
		w.add(many("x", 294)...)
		n.Fresh()
		var args []string
		n.OnCommand(func(c link.Command) link.Fate {
			args = c.Args
			return link.Pass
		})
		require.NoError(t, second(n.ops().Inspect(ctx, proxies)))
		require.Equal(t, "10000", args[len(args)-1], "as many are read in one step")
		n.OnCommand(nil)

		n.ops().InspectAtOnce(300)
		n.Fresh()
		found, err := n.ops().Inspect(ctx, proxies)
		require.NoError(t, err)
		require.Equal(t, 300, found.Resources)
		require.Equal(t, map[string]int{"pool_inspect": 1}, n.Counts(), "one step")

		w.add("one more")
		n.Fresh()
		found, err = n.ops().Inspect(ctx, proxies)
		require.NoError(t, err)
		require.Greater(t, n.Count("pool_inspect"), 5, "a part of it at a time, and those that are large in pages")
		require.Equal(t, allocator.Inspection{
			Resources: 301, Free: 297, Leased: 3, Resting: 1, Leaving: 1, Holders: 4, Bindings: 3,
		}, found)

		// It changes on the way: the counts are no longer those of one moment.
		var once sync.Once
		n.OnCommand(func(c link.Command) link.Fate {
			if c.Name == "pool_inspect" && slices.Contains(c.Args, "free") {
				once.Do(func() { w.add("another one") })
			}
			return link.Pass
		})
		found, err = n.ops().Inspect(ctx, proxies)
		require.NoError(t, err)
		require.True(t, found.Moving)
		require.Empty(t, found.Problems)
		n.OnCommand(nil)

		// The problems are found.
		for _, word := range []string{"both", "rest", "holder", "line_orphan"} {
			damages[word].do(w, "")
		}
		before := w.Dump()
		found, err = n.ops().Inspect(ctx, proxies)
		require.NoError(t, err)
		require.Equal(t, before, w.Dump())
		require.False(t, found.Moving)
		for _, word := range []string{"rest", "holder", "line_orphan"} {
			require.Contains(t, found.Problems, damages[word].want)
		}
	})
}
