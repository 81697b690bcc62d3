package inspect

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/internal/state"
)

// histories is how many random ones a test tries.
const histories = 1000

func idsOf(waits []*waiting) (ids []string) {
	for _, v := range waits {
		ids = append(ids, v.ID)
	}
	slices.Sort(ids)
	return ids
}

// TestCyclesAreWhatStays compares the reduction with what happens if all that do not wait give back what
// they have, and each cycle's release with what happens after it.
func TestCyclesAreWhatStays(t *testing.T) {
	t.Parallel()
	found, single := 0, 0
	for seed := range uint64(histories) {
		w := newTown(seed)
		for range 40 {
			p := w.folk[w.r.IntN(len(w.folk))]
			if p.waits != "" {
				continue
			}
			if held, _ := w.holdsOf(p); len(held) > 0 && w.r.IntN(4) == 0 {
				w.give(held[w.r.IntN(len(held))].ID)
				continue
			}
			w.ask(p, w.names[w.r.IntN(len(w.names))])
		}
		names := w.readAll()
		g := draw(names, levels(0)[0], nil, false)
		g.reduce()
		left := idsOf(g.stuck())
		require.Equal(t, w.copied().runOut(), left, "seed %d", seed)
		cycles, _ := cycles(names, w.readAll(), 0, false)
		require.Equal(t, len(left) > 0, len(cycles) > 0, "seed %d", seed)
		for _, c := range cycles {
			found++
			require.True(t, c.Certain)
			require.Equal(t, "owner", c.By)
			var members []string
			for _, link := range c.Links {
				require.Contains(t, left, link.Wait.ID())
				members = append(members, link.Wait.ID())
			}
			require.True(t, w.freed(members, c.Release), "seed %d", seed)
			if len(c.Release) == 1 {
				single++
				w.noYounger(t, members, c.Release[0])
			}
		}
	}
	t.Logf("%d cycles, %d with a single release", found, single)
	require.Greater(t, found, 100)
	require.Greater(t, single, 100)
}

// freed says whether all members of a cycle are served once some holds have ended by force.
func (w *town) freed(members []string, holds []Claim) bool {
	c := w.copied()
	for _, h := range holds {
		c.give(h.ID())
	}
	left := c.runOut()
	return !slices.ContainsFunc(members, func(id string) bool { return slices.Contains(left, id) })
}

// noYounger fails if a younger hold of a member of the cycle would free it as well.
func (w *town) noYounger(t *testing.T, members []string, release Claim) {
	t.Helper()
	for _, p := range w.folk {
		if !slices.Contains(members, p.waits) {
			continue
		}
		held, where := w.holdsOf(p)
		for i, h := range held {
			if h.Granted.After(release.Since()) {
				younger := []Claim{{Name: where[i].name, Hold: &h.Holder}}
				require.False(t, w.freed(members, younger), "%s is younger than %s", h.ID, release.ID())
			}
		}
	}
}

// step has somebody do something, in an order of names that makes a cycle impossible. A wait that is
// given up stays in line for a while: its cancel is under way.
func (w *town) step() {
	p := w.folk[w.r.IntN(len(w.folk))]
	held, _ := w.holdsOf(p)
	switch {
	case len(p.stale) > 0 && w.r.IntN(3) == 0:
		w.give(p.stale[0])
		p.stale = p.stale[1:]
	case p.waits != "" && w.r.IntN(4) == 0:
		p.stale, p.waits = append(p.stale, p.waits), ""
	case p.waits != "":
	case p.rank < len(w.names)-1 && w.r.IntN(3) > 0:
		p.rank += 1 + w.r.IntN(len(w.names)-1-p.rank)
		w.ask(p, w.names[p.rank])
	default:
		for _, h := range held {
			if !slices.Contains(p.stale, h.ID) {
				w.give(h.ID)
			}
		}
		p.rank = -1
	}
}

// torn reads names in random order, while others do something in between.
func (w *town) torn(shops []*shop) []*snapshot {
	all := make([]*snapshot, len(shops))
	for _, i := range w.r.Perm(len(shops)) {
		all[i] = w.read(shops[i])
		for range w.r.IntN(20) {
			w.step()
		}
	}
	return all
}

// again reads once more what a first reading leaves stuck.
func (w *town) again(first []*snapshot, loose bool) []*snapshot {
	var shops []*shop
	for _, s := range suspects(first, 0, loose) {
		shops = append(shops, w.names[slices.IndexFunc(w.names, func(other *shop) bool { return other.name == s.Name.Name })])
	}
	return w.torn(shops)
}

// TestNoFalseCycle: names are asked for in a fixed order, so that a cycle is not possible, whatever
// changes while they are read. In a third of the histories several flows have one label.
func TestNoFalseCycle(t *testing.T) {
	t.Parallel()
	first := 0
	for seed := range uint64(histories) {
		w := newTown(seed)
		shared := seed%3 == 0
		for i, p := range w.folk {
			if shared {
				p.owner, p.label, p.node = "", "label", fmt.Sprintf("node-%d", i/2)
			}
		}
		for range 5 {
			for range 20 {
				w.step()
			}
			loose := w.r.IntN(2) == 0
			read := w.torn(w.names)
			if len(suspects(read, 0, loose)) > 0 {
				first++
			}
			found, _ := cycles(read, w.again(read, loose), 0, loose)
			for _, c := range found {
				require.False(t, c.Certain, "seed %d: %+v", seed, c)
				require.True(t, shared || loose, "seed %d: %+v", seed, c)
				require.NotEqual(t, "owner", c.By, "seed %d: %+v", seed, c)
			}
		}
	}
	t.Logf("%d readings would have shown a cycle", first)
	require.Positive(t, first)
}

func lockNamed(name string, s *snapshot) *snapshot {
	s.Name.Name = name
	return s
}

func owned(owner string) func(*reader.Place) { return func(w *reader.Place) { w.Owner = owner } }

// TestReduce has the cases that random histories seldom meet.
func TestReduce(t *testing.T) {
	t.Parallel()
	long := func(h *reader.Held) { h.Granted = before(time.Minute) }
	a := func(owner string) *reader.Held { return holds(owner, ownedBy(owner), long) }
	q := func(owner string, changes ...func(*reader.Place)) *reader.Place {
		return waits(owner+"-w", append(changes, owned(owner))...)
	}
	held, one := holds("p", ownedBy("p"), long, of("r")), q("x", only("r"))
	shared := holds("p", ownedBy("p"), long, of("r"), func(h *reader.Held) { h.Wants.Shared = true })
	rests := stored(state.Item{Ends: after(time.Hour).UnixMilli()})
	// crosses has x wait for what p holds, and p for what x holds.
	crosses := func(s *snapshot) []*snapshot {
		return []*snapshot{lockNamed("a", s), lockNamed("b", lockOf(a("x")).in(q("p")))}
	}
	bound := func(w *reader.Place) { w.Wants, w.Until = state.Wants{Bind: "customer-7"}, after(15*time.Second) }
	for name, test := range map[string]struct {
		names []*snapshot
		left  []string // labels
	}{
		"nobody waits":   {[]*snapshot{lockOf(a("p"))}, nil},
		"a line":         {[]*snapshot{lockOf(a("p")).in(q("x"), q("y"))}, nil},
		"one's own lock": {[]*snapshot{lockOf(a("p")).in(q("p"), q("x"))}, []string{"p-w", "x-w"}},
		"two cross":      {crosses(lockOf(a("p")).in(q("x"))), []string{"p-w", "x-w"}},
		"one is dead":    {[]*snapshot{lockNamed("a", lockOf(a("p")).in(q("x"))), lockNamed("b", lockOf(a("x")).in(q("p", quiet(lease))))}, nil},
		"the other paused": {crosses(lockOf(a("p")).in(q("x")).with(func(s *snapshot) {
			s.Pause = &berth.Pause{Left: time.Second}
		})), []string{"p-w", "x-w"}},
		"granted later": {crosses(lockOf(holds("p", ownedBy("p"), func(h *reader.Held) {
			h.Granted = before(time.Second)
		})).in(q("x"))), nil},
		"the line is in the way": {
			[]*snapshot{semOf(2, a("p")).in(q("q", heavy(2)), q("r")), lockOf(a("r")).in(q("p"))}, []string{"p-w", "q-w", "r-w"},
		},
		"a shared hold takes nothing": {
			crosses(poolOf([]*reader.Held{shared}, nil).with(func(s *snapshot) {
				i := s.Items["r"]
				i.Claims = nil
				s.Items["r"] = i
			}).in(one)), nil,
		},
		"a sharer has room": {crosses(poolOf([]*reader.Held{held}, map[string]reader.Item{"r": stored(state.Item{Max: 2})}).in(one)), nil},
		"it takes any other in a while": {
			crosses(poolOf([]*reader.Held{held}, map[string]reader.Item{"s": {}}).in(q("x", only("r"), bound))), nil,
		},
		"all others are taken, too": {
			crosses(poolOf([]*reader.Held{held}, nil).in(q("x", only("r"), bound))), []string{"p-w", "x-w"},
		},
		"only one of two resources": {
			crosses(poolOf([]*reader.Held{held}, map[string]reader.Item{"s": rests}).in(one, q("y"))),
			[]string{"p-w", "x-w"},
		},
		"a resource that leaves is nobody's fault": {
			crosses(poolOf([]*reader.Held{held}, map[string]reader.Item{"r": stored(state.Item{Leaving: true})}).in(one)), nil,
		},
	} {
		g := draw(test.names, levels(0)[0], nil, false)
		g.reduce()
		var left []string
		for _, v := range g.stuck() {
			left = append(left, v.Label)
		}
		slices.Sort(left)
		require.Equal(t, test.left, left, name)
		found, _ := cycles(test.names, test.names, 0, false)
		require.Equal(t, len(test.left) > 0, len(found) > 0, name)
	}
}

func TestACycleNamesItsEnds(t *testing.T) {
	t.Parallel()
	long := func(h *reader.Held) { h.Granted = before(time.Minute) }
	names := []*snapshot{
		lockNamed("a", lockOf(holds("p", ownedBy("p"), long, limited(41*time.Second))).in(waits("x-w", owned("x")), waits("y-w", owned("y")))),
		lockNamed("b", lockOf(holds("x", ownedBy("x"), long, func(h *reader.Held) { h.Granted = before(30 * time.Second) })).in(waits("p-w", owned("p"), quiet(7*time.Second)))),
	}
	found, skipped := cycles(names, names, 0, false)
	require.Zero(t, skipped)
	require.Len(t, found, 1)
	c := found[0]
	require.Equal(t, 1, c.Behind)
	require.Len(t, c.Links, 2)
	require.ElementsMatch(t, []string{"p", "x"}, []string{c.Links[0].Actor, c.Links[1].Actor})
	require.Equal(t, "n-x.1", c.Release[0].ID(), "the youngest")
	require.Len(t, c.Ends, 2)
	require.Equal(t, ClaimLeaves, c.Ends[0].What)
	require.Equal(t, []string{"n-p-w"}, c.Ends[0].If)
	require.True(t, c.Ends[0].Frees)
	require.Equal(t, MaxHoldEnds, c.Ends[1].What)
	require.Equal(t, after(41*time.Second), c.Ends[1].At)
	require.True(t, c.Ends[1].Frees)
}

// TestClocksThatDiffer: a hold and a wait on servers whose clocks differ are joined if they may be, and
// the cycle is not certain.
func TestClocksThatDiffer(t *testing.T) {
	t.Parallel()
	late := func(h *reader.Held) { h.Granted = before(12*time.Second - 50*time.Millisecond) }
	names := []*snapshot{
		lockNamed("a", lockOf(holds("p", ownedBy("p"), late)).in(waits("x-w", owned("x")))),
		lockNamed("b", lockOf(holds("x", ownedBy("x"), late)).in(waits("p-w", owned("p")))),
	}
	found, _ := cycles(names, names, 0, false)
	require.Empty(t, found)
	found, _ = cycles(names, names, time.Second, false)
	require.Len(t, found, 1)
	require.Equal(t, "owner", found[0].By)
	require.False(t, found[0].Certain)
}

func TestOnlyWhatBothReadingsHaveCounts(t *testing.T) {
	t.Parallel()
	read := func() *snapshot { return lockOf(holds("p")).in(waits("x"), waits("y")) }
	for name, change := range map[string]func(*snapshot){
		"nothing":                   func(*snapshot) {},
		"a hold has ended":          func(s *snapshot) { s.Holds = nil },
		"it was granted anew":       func(s *snapshot) { s.Holds[0].Fence++ },
		"another node resumed it":   func(s *snapshot) { s.Holds[0].Node = "other" },
		"it has another resource":   func(s *snapshot) { s.Holds[0].Resource = "other" },
		"a wait has ended":          func(s *snapshot) { s.Line = s.Line[1:] },
		"it came anew":              func(s *snapshot) { s.Line[0].Since = noon },
		"it stands elsewhere":       func(s *snapshot) { s.Line[0].Place += "5" },
		"it stands in another lane": func(s *snapshot) { s.Line[0].Lane-- },
		"it has died":               func(s *snapshot) { s.At = s.Line[0].Record.Alive() },
	} {
		second := read()
		change(second)
		both := same(read(), second)
		require.Equal(t, name == "nothing", len(both.Holds)+len(both.Line) == 3, name)
	}
	second := semOf(3)
	require.Equal(t, 3, same(semOf(2), second).Capacity, "the larger")
	require.Equal(t, 3, same(second, semOf(2)).Capacity, "the larger")
}
