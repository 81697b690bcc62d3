package inspect

import (
	"slices"
	"strings"
	"time"

	"github.com/berth-go/berth/pkg/keyspace"
)

// Cycle is a set of claims that wait for what the others of the set hold: none of them gets it, even
// if everybody else gives back all.
type Cycle struct {
	// By is what joins a wait with the holds of the same flow: "owner", "node" or "label".
	By string `json:"by"`
	// Certain says that it is a cycle as far as each owner does one thing after another. Others are
	// possible: a process may wait in one goroutine and hold in another.
	Certain bool `json:"certain"`
	// Links are the claims that wait, each before one that has what it waits for.
	Links []Link `json:"links"`
	// Ends are what of it ends by itself, the soonest first.
	Ends []End `json:"ends"`
	// Release is the youngest hold whose end frees all; where no single one does, the youngest ones
	// that do together.
	Release []Claim `json:"release"`
	// Behind is how many other claims wait for it.
	Behind int `json:"behind"`
}

// Link is a claim of a cycle.
type Link struct {
	// Actor is who waits: an owner, or a claim, a node or a label.
	Actor string `json:"actor"`
	Wait  Claim  `json:"wait"`
	// For are the holds that it waits for, Holds those that it has, and others of the cycle wait for.
	For   []Claim `json:"for"`
	Holds []Claim `json:"holds"`
}

// End is an end that comes by itself, and whether it frees the cycle.
type End struct {
	Event
	Kind  keyspace.Kind `json:"kind"`
	Name  string        `json:"name"`
	Frees bool          `json:"frees"`
}

// levels are by what claims are joined. clocks is by how much the clocks of the servers may differ:
// what only that makes a cycle is not certain.
func levels(clocks time.Duration) []level {
	all := []level{{by: "owner", certain: true}}
	if clocks > 0 {
		all = append(all, level{by: "owner", clocks: clocks})
	}
	return append(all, level{by: "node", clocks: clocks}, level{by: "label", clocks: clocks})
}

// suspects are the names of claims that one reading leaves stuck, at any level.
func suspects(names []*snapshot, clocks time.Duration, loose bool) (found []*snapshot) {
	for _, l := range levels(clocks) {
		g := draw(names, l, nil, loose)
		g.reduce()
		for _, v := range g.stuck() {
			if !slices.Contains(found, v.name) {
				found = append(found, v.name)
			}
		}
	}
	return found
}

// cycles are those of two readings: again has the names that were suspects, in the order of first. It
// also returns how many actors with several waits were left out.
func cycles(first, again []*snapshot, clocks time.Duration, loose bool) (found []Cycle, skipped int) {
	names := make([]*snapshot, 0, len(again))
	for _, second := range again {
		i := slices.IndexFunc(first, func(s *snapshot) bool { return s.Kind == second.Kind && s.Name.Name == second.Name.Name })
		if i >= 0 && second.Known && second.newer() == 0 {
			names = append(names, same(first[i], second))
		}
	}
	seen := map[string]bool{}
	for _, l := range levels(clocks) {
		several := counted(first, l)
		for actor, n := range counted(again, l) {
			several[actor] = max(several[actor], n)
		}
		g := draw(names, l, several, loose)
		g.reduce()
		if l.certain {
			skipped = 0
			for _, n := range several {
				if n > 1 {
					skipped++
				}
			}
		}
		for _, cycle := range g.cycles() {
			if slices.ContainsFunc(cycle, func(v *waiting) bool { return !seen[v.ID] }) {
				found = append(found, g.tell(l, cycle))
			}
			for _, v := range cycle {
				seen[v.ID] = true
			}
		}
	}
	return found, skipped
}

// tell says all of a cycle.
func (g *graph) tell(l level, cycle []*waiting) Cycle {
	c := Cycle{By: l.by, Certain: l.certain}
	for _, v := range cycle {
		c.Certain = c.Certain && v.alone
		_, actor, _ := strings.Cut(v.actor, " ") // what it is stands before it
		link := Link{Actor: actor, Wait: v.name.waiter(v.Place)}
		for _, s := range g.names {
			for _, h := range g.holds[s] {
				if g.wants(v, h) {
					link.For = append(link.For, h.tell())
				}
				if slices.Contains(h.by, v) && slices.ContainsFunc(cycle, func(other *waiting) bool { return g.wants(other, h) }) {
					link.Holds = append(link.Holds, h.tell())
				}
			}
		}
		c.Links = append(c.Links, link)
	}
	for _, v := range g.stuck() {
		if !slices.Contains(cycle, v) && g.reached(v)[cycle[0]] {
			c.Behind++
		}
	}
	c.Ends = g.ends(cycle)
	for _, h := range g.release(cycle) {
		c.Release = append(c.Release, h.tell())
	}
	return c
}

func (c *carried) tell() Claim { return c.name.holding(c.Held) }

// ends are what of a cycle ends by itself.
func (g *graph) ends(cycle []*waiting) (ends []End) {
	add := func(s *snapshot, what What, at time.Time, claim, unless string, frees bool) {
		e := End{Event: Event{What: what, At: at, In: s.left(at), Claim: claim}, Kind: s.Kind, Name: s.Name.Name, Frees: frees}
		if unless != "" {
			e.If = []string{unless}
		}
		ends = append(ends, e)
	}
	for _, s := range g.names {
		f := begin(s, "", func(node string) bool { return !s.Replica && s.silent(node) })
		for _, c := range g.holds[s] {
			if !slices.ContainsFunc(c.by, func(v *waiting) bool { return slices.Contains(cycle, v) }) {
				continue
			}
			if end, unless := f.ends(c.Held); !end.IsZero() {
				what := LeaseEnds
				if end.Equal(c.Record.Limit) {
					what = MaxHoldEnds
				}
				add(s, what, end, c.ID, unless, g.frees(cycle, c))
			}
		}
	}
	g.reduce()
	for _, v := range cycle {
		if v.name.Replica || !v.name.silent(v.Node) {
			continue
		}
		v.gone = true
		g.reduce()
		frees := !slices.ContainsFunc(cycle, func(v *waiting) bool { return v.stuck })
		v.gone = false
		add(v.name, ClaimLeaves, v.Record.Alive(), v.ID, v.Node, frees)
	}
	g.reduce()
	slices.SortStableFunc(ends, func(a, b End) int { return a.At.Compare(b.At) })
	return ends
}
