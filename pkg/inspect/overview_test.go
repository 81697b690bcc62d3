package inspect_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	stored "github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
)

func (w *world) overview(look *inspect.Reader, f inspect.NameFilter) func() inspect.Page[berth.Name] {
	w.T.Helper()
	return w.passes(testkit.Must(look.Overview(f)).In(w.T))
}

func (w *world) passes(o *inspect.Overview) func() inspect.Page[berth.Name] {
	return func() inspect.Page[berth.Name] {
		w.T.Helper()
		page := testkit.Must(o.Read(ctx)).In(w.T)
		require.Empty(w.T, page.Problems)
		require.True(w.T, slices.IsSortedFunc(page.Items, func(a, b berth.Name) int {
			return cmp.Or(a.Trouble.Level.Compare(b.Trouble.Level), b.Live()-a.Live())
		}))
		return page
	}
}

// crowds has claims wait for a semaphore, and the registry know that.
func (w *world) crowds(name string, claims ...string) {
	w.T.Helper()
	w.crowdsFor(name, time.Hour, claims...)
}

// crowdsFor has the claims live for so long.
func (w *world) crowdsFor(name string, wait time.Duration, claims ...string) {
	w.T.Helper()
	space := testkit.Must(keyspace.New("berth")).In(w.T)
	w.State, w.Line = space.State(keyspace.Sem, name), space.Line(keyspace.Sem, name)
	for _, claim := range claims {
		r := stored.Record{Weight: 1, Wait: wait, Lease: time.Hour, Phase: 'w', Node: "node"}
		w.Name = name
		w.Acquires("semaphore", r.Node, claim, &r, "1", "stored", stored.Calm(1))
	}
	member := stored.Member(string(keyspace.Sem), name)
	shard := space.Key(keyspace.Waits, strconv.Itoa(stored.Shard(member)), keyspace.NamesPart)
	w.Do("ZADD", shard, strconv.FormatInt(time.Now().Add(time.Hour).UnixMilli(), 10), member)
}

// leaves has a claim give back.
func (w *world) leaves(name, claim string) {
	w.T.Helper()
	space := testkit.Must(keyspace.New("berth")).In(w.T)
	w.State, w.Line = space.State(keyspace.Sem, name), space.Line(keyspace.Sem, name)
	w.Name = name
	w.Releases("semaphore", "node", claim, 0)
}

func TestAnOverviewOfManyNamesHasTheFirstTwoHundred(t *testing.T) {
	inWorld(t, func(w *world) {
		const all, heavy = 600, 120
		for n := range all {
			claims := []string{"a.1", "b.1"}
			if n%(all/heavy) == 0 && n/(all/heavy) < heavy {
				claims = append(claims, "c.1")
			}
			w.crowds(fmt.Sprintf("n%04d", n), claims...)
		}
		look, sent := w.counted()
		read := w.overview(look, inspect.NameFilter{})
		pass := func() inspect.Page[berth.Name] {
			w.Advance(2 * time.Second)
			sent()
			page := read()
			require.True(w.T, page.Partial, "there are more")
			require.Empty(w.T, page.Next)
			require.LessOrEqual(w.T, len(page.Items), 200)
			commands := map[string]int{}
			for _, c := range sent() {
				commands[c]++
			}
			commands["MGET"] -= commands["SCAN"] // a walk asks for all that it has met
			require.Equal(w.T, 16, commands["ZRANGE"]-commands["MGET"], "beside the first of each line")
			require.LessOrEqual(w.T, commands["MGET"], 200)
			return page
		}
		waiting := func(page inspect.Page[berth.Name], n int) (of int) {
			for _, name := range page.Items {
				if name.Waiting == n {
					of++
				}
			}
			return of
		}
		passes := 1
		for ; waiting(pass(), 2) < heavy; passes++ {
			require.LessOrEqual(w.T, passes, 20)
		}
		page := pass()
		require.Equal(w.T, []int{heavy, 200 - heavy}, []int{waiting(page, 2), waiting(page, 1)})
		w.crowds("new", "a.1", "b.1", "c.1", "d.1", "e.1")
		for n := 0; pass().Items[0].Name != "new"; n++ {
			require.Less(w.T, n, 2, "a name that begins to contend is read soon")
		}
		w.leaves("new", "a.1")
		require.Equal(w.T, 3, pass().Items[0].Waiting, "the first ones are read each time")
		for _, claim := range []string{"b.1", "c.1", "d.1", "e.1"} {
			w.leaves("new", claim)
		}
		require.NotEqual(w.T, "new", pass().Items[0].Name)
		for n := range heavy { // those behind them are told again, as they are now
			w.leaves(fmt.Sprintf("n%04d", n*(all/heavy)), "a.1")
		}
		for n := 0; page.Items[199].Name != "n0199" || waiting(page, 1) < 200; n++ {
			require.Less(w.T, n, 4)
			page = pass()
		}
	})
}

func TestAnOverviewAsksForLessOfNamesThatItKnows(t *testing.T) {
	for what, want := range map[string]struct{ claims, most int }{
		"short lines": {2, 850}, "long lines": {60, 1050},
	} {
		inWorldOf(t, what, func(w *world) {
			var claims []string
			for n := range want.claims {
				claims = append(claims, fmt.Sprintf("%d.1", n))
			}
			for n := range 200 {
				w.crowds(fmt.Sprintf("n%04d", n), claims...)
			}
			look, sent := w.counted()
			read := w.overview(look, inspect.NameFilter{})
			require.Len(w.T, read().Items, 200)
			require.Greater(w.T, len(sent()), 2000, "nothing is known yet")
			for range 2 { // of which one walks
				w.Advance(2 * time.Second)
				sent()
				read()
			}
			require.LessOrEqual(w.T, len(sent()), want.most)
		})
	}
}

func TestAnOverviewOfAVeryLargeRegistryRemembersOnlySoMuchAndSeesWhatIsNew(t *testing.T) {
	inWorld(t, func(w *world) {
		space := testkit.Must(keyspace.New("berth")).In(w.T)
		until := strconv.FormatInt(time.Now().Add(time.Minute).UnixMilli(), 10)
		shards := map[int][]string{}
		for n := range 4000 { // that nobody waits for any more
			member := stored.Member(string(keyspace.Sem), fmt.Sprintf("old%05d", n))
			shards[stored.Shard(member)] = append(shards[stored.Shard(member)], until, member)
		}
		for shard, members := range shards {
			w.Do(append([]string{"ZADD", space.Key(keyspace.Waits, strconv.Itoa(shard), keyspace.NamesPart)}, members...)...)
		}
		o := testkit.Must(w.look.Overview(inspect.NameFilter{})).In(w.T)
		pass := func() inspect.Page[berth.Name] {
			return testkit.Must(o.Read(ctx)).In(w.T)
		}
		for range 5 {
			pass()
		}
		require.Greater(w.T, inspect.Known(o), 1000)
		for n := range 10 {
			w.crowds(fmt.Sprintf("new%d", n), "a.1", "b.1")
		}
		for range 2 {
			pass()
		}
		require.Len(w.T, pass().Items, 10, "they are not behind all those that were never read")
		inspect.Remember(o, 8000)
		for range 9 {
			pass()
			require.LessOrEqual(w.T, inspect.Known(o), 10_000)
		}
		require.Equal(w.T, 10_000, inspect.Known(o))
		require.Len(w.T, pass().Items, 10, "those of the lowest rank are forgotten")
	})
}

func TestAnOverviewOfAQuietSystemHasWhatIsInUse(t *testing.T) {
	inWorld(t, func(w *world) {
		alpha, beta := w.process("alpha"), w.process("beta")
		for n := range 30 {
			alpha.lock(fmt.Sprintf("x%02d", n), "", nil)
		}
		alpha.filled("a")
		look, sent := w.counted()
		read := w.overview(look, inspect.NameFilter{})
		names := func() (all []string) {
			for _, n := range read().Items {
				all = append(all, fmt.Sprintf("%s %s %d", n.Kind, n.Name, n.Waiting))
			}
			return all
		}
		require.Len(w.T, names(), 31)
		beta.awaitLock("x20", "", nil)
		late := beta.lock("late", "", nil)
		w.Advance(2 * time.Second)
		sent()
		got := names()
		require.NotContains(w.T, sent(), "SCAN", "once in 30 s")
		require.Equal(w.T, []string{"lock x20 1", "lock x00 0"}, got[:2])
		require.Len(w.T, got, 31)
		w.Advance(28 * time.Second)
		require.Contains(w.T, names(), "lock late 0")
		require.Contains(w.T, sent(), "SCAN")
		require.NoError(w.T, late.Release(ctx))
		require.NotContains(w.T, names(), "lock late 0", "nobody uses it any more")

		for n := range 19 {
			w.crowds(fmt.Sprintf("n%02d", n), "a.1", "b.1")
		}
		require.Len(w.T, names(), 20, "so many are waited for")
		w.leaves("n00", "a.1")
		require.Len(w.T, names(), 19)
		require.Contains(w.T, names(), "sem n00 0", "it is in use, and few are waited for")
		w.leaves("n00", "b.1")
		require.NotContains(w.T, names(), "sem n00 0")
		w.Advance(30 * time.Second)
		require.Len(w.T, names(), 19+30, "with those that are in use")
	})
}

func TestAnOverviewIsOfWhatItsFilterMeans(t *testing.T) {
	inWorld(t, func(w *world) {
		alpha, beta := w.process("alpha"), w.process("beta")
		for _, name := range []string{"a", "ab", "b"} {
			alpha.lock(name, "", nil)
			beta.awaitLock(name, "", nil)
			alpha.permit("", name, 1, nil)
		}
		w.Advance(time.Second)
		only := w.overview(w.look, inspect.NameFilter{Kinds: []keyspace.Kind{keyspace.Lock}, Prefix: "a", Idle: true})
		for range 3 {
			page := only()
			require.Len(w.T, page.Items, 2)
			require.False(w.T, page.Partial)
			require.Equal(w.T, []string{"a", "ab"}, []string{page.Items[0].Name, page.Items[1].Name})
			require.Equal(w.T, "alpha", page.Items[0].Longest.Label)
			require.Equal(w.T, "beta", page.Items[0].First[0].Label)
		}
		require.Error(w.T, testkit.Second(w.look.Overview(inspect.NameFilter{Kinds: []keyspace.Kind{"x"}})))
		w.Do("HSET", "berth:lock:{a}:state", "v", "9 words of a release to come")
		page := only()
		require.ErrorIs(w.T, page.Items[0].Err, berth.ErrIncompatible)
		require.Equal(w.T, []any{"a", 1}, []any{page.Items[0].Name, page.Stuck})
		ended, cancel := context.WithCancel(ctx)
		cancel()
		o := testkit.Must(w.look.Overview(inspect.NameFilter{})).In(w.T)
		require.ErrorIs(w.T, testkit.Second(o.Read(ended)), context.Canceled)
	})
}

func TestANameInABadStateComesFirstEvenIfNobodyWaitsForIt(t *testing.T) {
	inWorld(t, func(w *world) {
		w.endless()
		for n := range 210 {
			w.crowds(fmt.Sprintf("n%04d", n), "a.1", "b.1")
		}
		look, sent := w.counted()
		o := testkit.Must(look.Overview(inspect.NameFilter{})).In(w.T)
		read := w.passes(o)
		page := read()
		require.Len(w.T, page.Items, 200)
		require.Equal(w.T, 10, page.Unread)
		for n := 0; page.Items[0].Name != "nightly"; n++ {
			require.Less(w.T, n, 7, "a walk meets it")
			w.Advance(30 * time.Second)
			page = read()
		}
		require.Equal(w.T, string(inspect.DeadHold), page.Items[0].Trouble.Why)
		require.Equal(w.T, []int{1, 0, 200}, []int{page.Stuck, page.Unread, len(page.Items)})
		scores := func() (n int) {
			sent()
			page = read()
			for _, c := range sent() {
				if c == "ZMSCORE" {
					n++
				}
			}
			return n
		}
		w.Advance(4 * time.Second)
		before := scores()
		w.Advance(time.Second)
		require.Equal(w.T, before+1, scores(), "the swarm is asked once in 5 s")
		last := inspect.Claim{Kind: keyspace.Sem, Name: "n0209", Wait: &berth.Waiter{ID: "b.1"}}
		require.NotContains(w.T, fmt.Sprint(page.Items), last.Name)
		o.Mark(&inspect.Cycles{Cycles: []inspect.Cycle{{Certain: true, Links: []inspect.Link{{Wait: last}}}}})
		page = read()
		require.Equal(w.T, []any{last.Name, 2}, []any{page.Items[0].Name, page.Stuck}, "it is in a cycle")
		o.Mark(nil)
		w.Do("DEL", "berth:lock:{nightly}:state", "berth:lock:{nightly}:line")
		require.NotEqual(w.T, "nightly", read().Items[0].Name)
		require.Zero(w.T, read().Stuck)
	})
}

func TestAWholeOverviewHasTheFirstNamesOfAll(t *testing.T) {
	inWorld(t, func(w *world) {
		for n := range 150 {
			w.crowds(fmt.Sprintf("n%04d", n), "a.1", "b.1")
		}
		w.crowds("n0000", "c.1")
		whole := func() inspect.Page[berth.Name] {
			w.T.Helper()
			page := testkit.Must(testkit.Must(w.look.Overview(inspect.NameFilter{})).In(w.T).Whole(ctx, time.Minute)).In(w.T)
			require.Empty(w.T, page.Problems)
			return page
		}
		page := whole()
		require.Equal(w.T, []any{150, "n0000", false, 0}, []any{len(page.Items), page.Items[0].Name, page.Partial, page.Unread})
		for n := range 230 {
			w.crowdsFor(fmt.Sprintf("d%04d", n), time.Second, "a.1", "b.1")
		}
		w.Advance(2 * time.Second)
		page = whole()
		require.Equal(w.T, []any{150, "n0000", false, 0}, []any{len(page.Items), page.Items[0].Name, page.Partial, page.Unread})
		for n := range 80 {
			w.crowds(fmt.Sprintf("n%04d", 150+n), "a.1", "b.1")
		}
		w.crowds("n0229", "c.1", "d.1")
		page = whole()
		require.Equal(w.T, []any{200, "n0229", true, 30}, []any{len(page.Items), page.Items[0].Name, page.Partial, page.Unread})

		ended, cancel := context.WithCancel(ctx)
		cancel()
		o := testkit.Must(w.look.Overview(inspect.NameFilter{})).In(w.T)
		require.ErrorIs(w.T, testkit.Second(o.Whole(ended, time.Minute)), context.Canceled)
		require.ErrorIs(w.T, testkit.Second(o.Whole(ctx, 0)), berth.ErrInvalidConfig)
	})
}

// A killed process has waited for many names, that nobody holds any more.
func TestAnOverviewLeavesOutNamesThatOnlyTheDeadWaitFor(t *testing.T) {
	inWorld(t, func(w *world) {
		for n := range 50 {
			w.crowdsFor(fmt.Sprintf("d%04d", n), time.Second, "a.1", "b.1")
		}
		read := w.overview(w.look, inspect.NameFilter{})
		require.Len(w.T, read().Items, 50)
		w.Advance(time.Second)
		for range 2 {
			require.Zero(w.T, read().Items)
		}
	})
}

func TestAnOverviewTellsOfCycles(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"owner", "label"} {
		inWorldOf(t, by, func(w *world) {
			cycle(w, by)
			w.process("delta").awaitLock("other", "", nil)
			w.process("delta").permit("", "gpus", 2, nil)
			w.Advance(500 * ms)
			marked := func(page inspect.Page[berth.Name]) {
				w.T.Helper()
				in := 0
				for _, n := range page.Items {
					if n.Trouble.Why == string(inspect.InCycle) {
						require.Equal(w.T, by != "owner", n.Trouble.Possible)
						require.Equal(w.T, n.First[0].ID, n.Trouble.Claim)
						in++
					}
				}
				require.Equal(w.T, []int{3, map[string]int{"owner": 3}[by]}, []int{in, page.Stuck}, "a possible one is no trouble yet")
			}
			o := testkit.Must(w.look.Overview(inspect.NameFilter{})).In(w.T)
			marked(testkit.Must(o.Whole(ctx, time.Minute)).In(w.T))

			found := testkit.Must(w.look.Cycles(ctx, &inspect.CycleOptions{Line: 20})).In(w.T)
			o = testkit.Must(w.look.Overview(inspect.NameFilter{})).In(w.T)
			require.Zero(w.T, testkit.Must(o.Read(ctx)).In(w.T).Stuck)
			o.Mark(&found)
			marked(testkit.Must(o.Read(ctx)).In(w.T))
			o.Mark(nil)
			require.Zero(w.T, testkit.Must(o.Read(ctx)).In(w.T).Stuck)

			page := testkit.Must(w.look.Names(ctx, inspect.NameFilter{}, "", 0)).In(w.T)
			inspect.Marked(&page, nil)
			require.Zero(w.T, page.Stuck)
			inspect.Marked(&page, &found)
			marked(page)
			inspect.Marked(&page, &found)
			marked(page)
		})
	}
}
