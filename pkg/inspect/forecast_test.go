package inspect

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/internal/state"
)

// comes is what a forecast of the test says: what, after which time, and who is granted something.
type comes struct {
	what    What
	in      time.Duration
	grants  []string
	open    bool
	horizon time.Duration // 0: none
}

func TestForecast(t *testing.T) {
	t.Parallel()
	sec := time.Second
	dead := func(label string, left time.Duration, changes ...func(*reader.Held)) *reader.Held {
		return holds(label, append(changes, func(h *reader.Held) { h.Node, h.Deadline = "dead", after(left) })...)
	}
	passed := func(w *reader.Place) { w.Node, w.Record.Heard = "dead", before(7*sec) } // alive for 3 s more
	place := func(n string) func(*reader.Place) { return func(w *reader.Place) { w.Place = n } }
	at := func(what What, in time.Duration, grants ...string) *comes {
		return &comes{what: what, in: in, grants: grants}
	}
	ends := func(in time.Duration, grants ...string) *comes { return at(LeaseEnds, in, grants...) }
	lone := func(i reader.Item, entries ...*reader.Held) *snapshot {
		return poolOf(entries, map[string]reader.Item{"r": i})
	}
	unbegun := reader.Item{Item: state.Item{Ends: after(9 * sec).UnixMilli()}, Unbegun: true}
	dies := dead("a", 5*sec, of("r"))
	paused := func(left time.Duration) func(*snapshot) {
		return func(s *snapshot) { s.Pause = &berth.Pause{Left: left} }
	}
	third := func(h *reader.Held) { h.Fresh, h.Record.Phase = true, 'g' }
	for name, test := range map[string]struct {
		s    *snapshot
		want *comes
	}{
		"two ends that are needed": {
			semOf(3, dead("a", 5*sec), dead("b", 8*sec), holds("c")).in(waits("x", heavy(2))),
			ends(8*sec, "x"),
		},
		"ends of one moment count together": {
			semOf(3, dead("a", 5*sec), dead("b", 5*sec), holds("c")).in(waits("x"), waits("y"), waits("z")),
			ends(5*sec, "x", "y"),
		},
		"a heavy head is in the way": {semOf(3, dead("a", 5*sec), holds("b"), holds("c")).in(waits("x", heavy(2)), waits("y")), nil},
		"until it has died": {
			semOf(2, holds("a")).in(waits("x", heavy(2), passed), waits("y")), at(ClaimLeaves, 3*sec, "y"),
		},
		"one that is dead and still counts as alive is granted": {
			semOf(1, dead("a", 2*sec)).in(waits("x", passed), waits("y")), ends(2*sec, "x"),
		},
		"one that has died is not":  {semOf(1, dead("a", 4*sec)).in(waits("x", passed), waits("y")), ends(4*sec, "y")},
		"at its deadline it has":    {semOf(1, dead("a", 3*sec)).in(waits("x", passed), waits("y")), ends(3*sec, "y")},
		"too heavy ones are passed": {semOf(1, dead("a", 4*sec)).in(waits("x", heavy(2)), waits("y")), ends(4*sec, "y")},
		"a pause": {
			semOf(2, holds("a"), dead("b", 4*sec)).in(waits("x")).with(paused(9 * sec)), at(PauseEnds, 9*sec, "x"),
		},
		"a limit": {lockOf(holds("a", limited(20*sec))).in(waits("x")), at(MaxHoldEnds, 20*sec, "x")},
		"an entry's limit alone frees nothing": {
			lockOf(holds("a"), holds("b", limited(20*sec))).in(waits("x")), nil,
		},
		"the last entry of a dead owner frees": {
			lockOf(dead("a", 5*sec), dead("b", 3*sec, third)).in(waits("x")), ends(5*sec, "x"),
		},
		"a fresh entry is not the outermost": {lockOf(dead("b", 9*sec, third), holds("a")).in(waits("x")), nil},
		"entries that stay have another deadline by then": {
			lockOf(holds("a", limited(4*sec)), holds("b", fixed(9*sec))).in(waits("x")), &comes{horizon: 4 * sec},
		},
		"the outermost entry renews for all": {
			lockOf(holds("a", limited(20*sec)), holds("b")).in(waits("x")), &comes{horizon: 20 * sec},
		},
		"a cooldown counts from the end": {lone(reader.Item{Cooldown: 4000}, dies).in(waits("x")), at(RestEnds, 9*sec, "x")},
		"the claim's own if it is longer": {
			lone(reader.Item{Cooldown: 4000}, dead("a", 5*sec, of("r"), func(h *reader.Held) { h.Wants.Cooldown = 6000 })).in(waits("x")),
			at(RestEnds, 11*sec, "x"),
		},
		"none after a check": {
			lone(reader.Item{Cooldown: 4000}, dead("a", 5*sec, of("r"), func(h *reader.Held) { h.Wants.Alone = true })).in(waits("x")),
			ends(5*sec, "x"),
		},
		"a rest that was asked for meanwhile": {
			lone(stored(state.Item{Pending: 9000}), dies).in(waits("x")),
			at(RestEnds, 14*sec, "x"),
		},
		"during a pause nobody begins it": {
			lone(stored(state.Item{Pending: 9000}), dies).in(waits("x")).with(paused(6 * sec)), &comes{horizon: 5 * sec},
		},
		"one that is to begin by now may begin later": {
			lone(unbegun).in(waits("x")), &comes{horizon: 9*sec - time.Millisecond},
		},
		"what comes before it comes": {
			lone(unbegun, dead("a", 5*sec, of("s"))).in(waits("x")),
			&comes{what: LeaseEnds, in: 5 * sec, grants: []string{"x"}, horizon: 9*sec - time.Millisecond},
		},
		"one that has no end": {lone(stored(state.Item{Pending: state.Forever}), dies).in(waits("x")), nil},
		"a shared hold frees nothing": {
			poolOf([]*reader.Held{dies, holds("b", of("r"))}, nil).in(waits("x")).with(func(s *snapshot) {
				s.Items["r"] = stored(state.Item{Max: 1, Claims: []string{"n-b.1"}})
			}), nil,
		},
		"nor begins a rest": {
			poolOf([]*reader.Held{dies, dead("b", 6*sec, of("r"), func(h *reader.Held) { h.Wants.Alone = true })}, nil).in(waits("x")).with(func(s *snapshot) {
				s.Items["r"] = reader.Item{Item: state.Item{Max: 1, Claims: []string{"n-b.1"}}, Cooldown: 9000}
			}), ends(6*sec, "x"),
		},
		"a sharer frees a place": {
			lone(stored(state.Item{Max: 2}), dies, holds("b", of("r"))).in(waits("x"), waits("y")),
			ends(5*sec, "x"),
		},
		"a lane goes by the places of the line": {
			poolOf([]*reader.Held{dies}, nil).in(waits("x", place("1")), waits("y", only("r"), place("2"))),
			ends(5*sec, "x"),
		},
		"and comes first if it came first": {
			poolOf([]*reader.Held{dies}, nil).in(waits("x", place("2")), waits("y", only("r"), place("1"))),
			ends(5*sec, "y"),
		},
		"another resource does not serve a lane": {
			poolOf([]*reader.Held{dies, holds("b", of("s"))}, nil).in(waits("y", only("s"))), nil,
		},
		"which one the first gets decides about a lane": {
			poolOf([]*reader.Held{dies, dead("b", 5*sec, of("s"))}, nil).in(waits("x", place("1")), waits("y", only("s"), place("2"))),
			&comes{what: LeaseEnds, in: 5 * sec, grants: []string{"x"}, open: true},
		},
		"a bound one takes its own": {
			poolOf([]*reader.Held{dies, dead("b", 5*sec, of("s"))}, nil).
				in(waits("x", place("1"), func(w *reader.Place) { w.Wants.Bind = "customer-7" }), waits("y", only("s"), place("2"))).
				with(func(s *snapshot) {
					s.Bindings = map[string]state.Binding{"customer-7": {Resource: "r", Ends: state.Forever}}
				}),
			ends(5*sec, "x", "y"),
		},
		"one that was not read may have room for several": {
			poolOf(nil, nil).in(waits("x"), waits("y")).with(func(s *snapshot) {
				s.Capacity, s.Pool.Free, s.Pause = 1, 1, &berth.Pause{Left: 9 * sec}
			}), &comes{what: PauseEnds, in: 9 * sec, grants: []string{"x"}, open: true},
		},
		"and leave one that was for a lane": {
			poolOf(nil, map[string]reader.Item{"r": {}}).in(waits("x", place("1")), waits("y", place("2")), waits("z", only("r"), place("3"))).with(func(s *snapshot) {
				s.Capacity, s.Pool.Free, s.Pause = 2, 2, &berth.Pause{Left: 9 * sec}
			}), &comes{what: PauseEnds, in: 9 * sec, grants: []string{"x", "y"}, open: true},
		},
		"which does not matter to the last": {
			poolOf(nil, nil).in(waits("x")).with(func(s *snapshot) {
				s.Capacity, s.Pool.Free, s.Pause = 1, 1, &berth.Pause{Left: 9 * sec}
			}), at(PauseEnds, 9*sec, "x"),
		},
		"one that leaves comes never": {lone(stored(state.Item{Expiry: after(4 * sec).UnixMilli()}), dies).in(waits("x")), nil},
		"of a list that was cut": {
			semOf(3, dead("a", 5*sec)).in(waits("x")).with(func(s *snapshot) { s.Held, s.HoldsLeft = 3, 2 }), &comes{what: LeaseEnds, in: 5 * sec, grants: []string{"x"}, horizon: 5 * sec},
		},
	} {
		e, horizon := forecast(test.s, "", func(node string) bool { return node == "dead" })
		var got *comes
		if e != nil {
			got = &comes{what: e.What, in: e.In, open: e.Open}
			for _, id := range e.Grants {
				got.grants = append(got.grants, test.s.label(id))
			}
		}
		if !horizon.IsZero() {
			if got == nil {
				got = &comes{}
			}
			got.horizon = horizon.Sub(noon)
		}
		require.Equal(t, test.want, got, name)
	}
}

func TestHeardOf(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		h     *reader.Held
		ago   time.Duration // -1: nothing tells
		exact bool
	}{
		"renewed":            {holds("a"), 1200 * time.Millisecond, true},
		"granted":            {holds("a", func(h *reader.Held) { h.Record.Phase, h.Lease, h.Granted = 'g', time.Hour, before(time.Second) }), time.Second, true},
		"then extended":      {holds("a", func(h *reader.Held) { h.Record.Phase, h.Granted = 'g', before(time.Second) }), time.Second, true},
		"thin":               {holds("a", func(h *reader.Held) { h.Renewed = before(3 * time.Second) }), 3 * time.Second, true},
		"called meanwhile":   {holds("a", func(h *reader.Held) { h.Called, h.Lease = true, time.Hour }), 0, true},
		"behind the reading": {holds("a", func(h *reader.Held) { h.Deadline = after(11 * time.Second) }), 0, true},
		"at its limit":       {holds("a", func(h *reader.Held) { h.Record.Limit = h.Deadline }), 1200 * time.Millisecond, false},
		"a longer lease":     {holds("a", func(h *reader.Held) { h.Record.Reach = 20 * time.Second }), 11200 * time.Millisecond, false},
		"extended":           {holds("a"), 220 * time.Second, false},
		"fixed":              {holds("a", fixed(time.Second)), -1, false},
		"endless":            {holds("a", endless), -1, false},
		"detached":           {holds("a", func(h *reader.Held) { h.Record.Phase = 'd' }), -1, false},
	} {
		s := lockOf(test.h)
		if strings.HasSuffix(name, "extended") {
			s.Group = &state.Group{More: time.Hour.Milliseconds()}
		}
		heard := s.heardOf(test.h)
		require.Equal(t, test.exact, heard.Exact, name)
		if test.ago < 0 {
			require.Zero(t, heard.At, name)
		} else {
			require.Equal(t, test.ago, noon.Sub(heard.At), name)
		}
	}
	s := lockOf(holds("a"), holds("b"), holds("c", func(h *reader.Held) { h.Record.Phase = 'g' }), holds("d", func(h *reader.Held) { h.Fresh = true }))
	require.Zero(t, s.heardOf(s.Holds[1]).At, "an inner entry")
	require.Zero(t, s.heardOf(s.Holds[2]).At, "an inner entry that stays as it was granted")
	require.Equal(t, s.Holds[3].Granted, s.heardOf(s.Holds[3]).At, "an entry that has not called yet")
}

// TestOverdueGoesByThePaceOfTheCalls: of a node whose claims say different things the latest counts.
func TestOverdueGoesByThePaceOfTheCalls(t *testing.T) {
	t.Parallel()
	hour := func(h *reader.Held) { h.Lease, h.Deadline = time.Hour, before(5*time.Second).Add(time.Hour) }
	require.False(t, lockOf(holds("a", hour)).overdue("n-a"))
	require.True(t, lockOf(holds("a", hour, func(h *reader.Held) { h.Deadline = h.Deadline.Add(-1001 * time.Millisecond) })).overdue("n-a"), "not by its lease of an hour")
	short := holds("a", func(h *reader.Held) { h.Lease, h.Deadline = time.Second, after(300*time.Millisecond) })
	require.True(t, lockOf(short).overdue("n-a"))
	require.False(t, lockOf(short).in(waits("a")).overdue("n-a"), "another claim of it was heard of")
	require.True(t, lockOf(short).in(waits("a", quiet(7*time.Second))).overdue("n-a"))
	require.False(t, lockOf(holds("a", endless)).overdue("n-a"), "nothing tells")
}
