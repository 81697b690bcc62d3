package inspect

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/keyspace"
)

func TestWhatMends(t *testing.T) {
	t.Parallel()
	detached := func(left time.Duration) func(*reader.Held) {
		return func(h *reader.Held) { h.Record.Phase, h.Detached, h.Deadline = 'd', true, after(left) }
	}
	zombie := func(s *snapshot) {
		s.nodes = map[string]reader.Node{"n-omega": {ID: "n-omega", Ends: before(5 * time.Second), Limit: 15 * time.Second, Zombie: true}}
	}
	resting := func(ends time.Time) reader.Item { return stored(state.Item{Ends: ends.UnixMilli()}) }
	endlessly := stored(state.Item{Ends: state.Forever, Reason: "banned"})
	paused := func(s *snapshot) { s.Pause = &berth.Pause{Left: time.Hour} }
	nightly := func(verb string) Mend { return Mend{Verb: verb, Kind: keyspace.Lock, Name: "nightly"} }
	gpu := func(verb string) Mend { return Mend{Verb: verb, Kind: keyspace.Sem, Name: "gpu"} }
	proxies := func(verb, resource, condition string) []Mend {
		return []Mend{{Verb: verb, Kind: keyspace.Pool, Name: "proxies", Resource: resource, If: condition}}
	}
	release := func(m Mend, claim, condition string) Mend {
		m.Claim, m.If = claim, condition
		return m
	}
	const dead, fit = "the process of omega is dead", "it is fit for use"
	flush := Mend{Verb: "flush"}
	for name, test := range map[string]struct {
		s     *snapshot
		claim string
		want  []Mend
	}{
		"who renews is not in need of it": {lockOf(holds("alpha")).in(waits("beta")), "", nil},
		"a pause of its own": {
			lockOf(holds("alpha")).in(waits("beta")).with(paused).with(func(s *snapshot) { s.Own.Until = after(time.Hour).UnixMilli() }), "",
			[]Mend{nightly("unpause")},
		},
		"a pause of all names":      {lockOf(holds("alpha")).in(waits("beta")).with(paused), "", []Mend{{Verb: "unpause"}}},
		"nobody has looked":         {semOf(3, holds("alpha")).in(waits("beta")), "", []Mend{gpu("sweep")}},
		"dead for the swarm":        {lockOf(holds("omega", endless)).in(waits("beta")).with(zombie), "", []Mend{flush}},
		"likewise, for nobody":      {lockOf(holds("omega", endless)).with(zombie), "", []Mend{flush}},
		"without end":               {lockOf(holds("omega", endless)).in(waits("beta")), "", []Mend{release(nightly("release"), "n-omega.1", dead)}},
		"likewise, for nobody else": {lockOf(holds("omega", endless)), "", []Mend{release(nightly("release"), "n-omega.1", dead)}},
		"the claim that holds":      {lockOf(holds("omega", endless)).asked("omega"), "n-omega.1", []Mend{release(nightly("release"), "n-omega.1", dead)}},
		"without end, and its node lives": {lockOf(holds("omega", endless)).in(waits("beta")).with(func(s *snapshot) {
			s.nodes = map[string]reader.Node{"n-omega": {ID: "n-omega", Ends: after(10 * time.Second), Limit: 15 * time.Second}}
		}), "", nil},
		"left behind": {
			lockOf(holds("omega", detached(time.Hour))).in(waits("beta")), "",
			[]Mend{release(nightly("release"), "n-omega.1", "nobody is to resume the hold of omega")},
		},
		"left behind, for nobody else": {
			lockOf(holds("omega", detached(time.Hour))), "",
			[]Mend{release(nightly("release"), "n-omega.1", "nobody is to resume the hold of omega")},
		},
		"left behind, which a flush leaves": {
			lockOf(holds("omega", endless, func(h *reader.Held) { h.Record.Phase = 'd' })).in(waits("beta")).with(zombie), "",
			[]Mend{release(nightly("release"), "n-omega.1", "nobody is to resume the hold of omega")},
		},
		"left behind, and soon over": {lockOf(holds("omega", detached(time.Minute))).in(waits("beta")), "", nil},
		"overdue": {
			semOf(2, holds("alpha"), holds("omega", func(h *reader.Held) { h.Lease, h.Deadline = time.Hour, after(50*time.Minute) })), "",
			[]Mend{release(gpu("release"), "n-omega.1", dead)},
		},
		"overdue, and soon over": {semOf(1, holds("omega", silent(7*time.Second))).in(waits("beta")), "", nil},
		"an owner of several entries": {
			lockOf(holds("omega", endless, ownedBy("order-7")), holds("b", endless, ownedBy("order-7"))).in(waits("beta")), "",
			[]Mend{{Verb: "release", Kind: keyspace.Lock, Name: "nightly", Owner: "order-7", If: dead}},
		},
		"no more than three, and what the swarm does first": {
			semOf(5, holds("a", endless), holds("b", endless), holds("c", endless), holds("omega", endless)).in(waits("beta", heavy(2))).with(zombie), "",
			[]Mend{
				flush, release(gpu("release"), "n-a.1", "the process of a is dead"), release(gpu("release"), "n-b.1", "the process of b is dead"),
			},
		},
		"too heavy": {
			semOf(3, holds("alpha")).in(waits("beta", heavy(4))).asked("beta"), "n-beta.1",
			[]Mend{{Verb: "resize", Kind: keyspace.Sem, Name: "gpu", Capacity: 4, If: "so many may be held at once"}},
		},
		"all rest for ever":   {poolOf(nil, map[string]reader.Item{"a": endlessly, "b": endlessly}).in(waits("beta")), "", proxies("rest", "a", fit)},
		"all rest for a time": {poolOf(nil, map[string]reader.Item{"a": endlessly, "b": resting(after(time.Hour))}).in(waits("beta")), "", proxies("rest", "b", fit)},
		"one is soon fit":     {poolOf(nil, map[string]reader.Item{"a": endlessly, "b": resting(after(time.Minute))}).in(waits("beta")), "", nil},
		"the one rests":       {poolOf(nil, map[string]reader.Item{"a": endlessly, "b": {}}).in(waits("beta", only("a"))), "", proxies("rest", "a", fit)},
		"the one is absent":   {poolOf([]*reader.Held{holds("alpha", of("b"))}, nil).in(waits("beta", only("a"))), "", proxies("add", "a", "")},
		"what a replica tells may be over": {
			lockOf(holds("omega", endless)).in(waits("beta")).with(zombie).with(paused).with(func(s *snapshot) { s.Replica = true }), "", nil,
		},
	} {
		require.Equal(t, test.want, explain(test.s, test.claim).Mend, name)
		guarded(t, test.s, test.claim)
	}
}

// TestOfManyTheOneIsNamedThatHasHeldLongest: each renewal has the other one end first.
func TestOfManyTheOneIsNamedThatHasHeldLongest(t *testing.T) {
	t.Parallel()
	for n := range 10 {
		renewed := func(h *reader.Held) { h.Deadline = after(9 * time.Second) }
		all := []*reader.Held{holds("young", func(h *reader.Held) { h.Granted = before(time.Minute) }), holds("old")}
		renewed(all[n%2])
		e := explain(semOf(2, all...).in(waits("beta")), "")
		require.Contains(t, e.Why, "; old has held it for 3m40s and renews it")
		require.Contains(t, e.Then, ": old renews.")
		require.Equal(t, []string{"n-old.1", "n-young.1"}, []string{e.Blockers[0].ID(), e.Blockers[1].ID()})
	}
}
