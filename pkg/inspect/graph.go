package inspect

import (
	"slices"
	"time"

	"github.com/berth-go/berth/internal/reader"
)

// level is by what claims are joined to one actor, which is taken to do one thing after another.
type level struct {
	by string // "owner", "node" or "label"
	// clocks is by how much the clocks of the servers that have the names may differ.
	clocks  time.Duration
	certain bool
}

// actor is whose claim it is at a level; a claim with an owner is that owner's at each.
func (l level) actor(owner, node, label, claim string) string {
	switch {
	case owner != "":
		return "owner " + owner
	case l.by == "node":
		return "node " + node
	case l.by == "label" && label != "":
		return "label " + label
	}
	return "claim " + claim
}

// waiting is a claim that waits, as a vertex of the graph.
type waiting struct {
	*reader.Place
	name  *snapshot
	actor string
	alone bool // its actor was seen with this wait only
	stuck bool
	gone  bool // taken to have left
}

// carried is a hold that a waiting claim carries: the flow that waits got it before.
type carried struct {
	*reader.Held
	name *snapshot
	by   []*waiting
	gone bool // taken to be given back
}

// graph is who waits while holding what, over all names.
type graph struct {
	names   []*snapshot
	waits   map[*snapshot][]*waiting // in the order of the line, then of the lanes
	holds   map[*snapshot][]*carried
	skipped int                     // actors with several waits
	to      map[*waiting][]*waiting // for whom each stuck claim waits, since it was reduced
}

// draw makes the graph of a level. An actor that was seen with several waits does several things at
// once: what it holds counts only if loose.
func draw(names []*snapshot, l level, several map[string]int, loose bool) *graph {
	g := &graph{names: names, waits: map[*snapshot][]*waiting{}, holds: map[*snapshot][]*carried{}}
	actors := map[string][]*waiting{}
	for _, s := range names {
		for _, w := range slices.Concat(s.Line, s.Lanes) {
			if !s.alive(w) {
				continue
			}
			v := &waiting{Place: w, name: s, actor: l.actor(w.Owner, w.Node, w.Label, w.ID)}
			g.waits[s] = append(g.waits[s], v)
			actors[v.actor] = append(actors[v.actor], v)
		}
	}
	for actor, waits := range actors {
		alone := max(several[actor], len(waits)) == 1
		for _, v := range waits {
			v.alone = alone
		}
		if !alone {
			g.skipped++
		}
	}
	for _, s := range names {
		for _, h := range s.Holds {
			c := &carried{Held: h, name: s}
			if h.Record.Phase == 'g' {
				continue // handed to a wait that may have been given up: then it goes back soon
			}
			for _, v := range actors[l.actor(h.Owner, h.Node, h.Label, h.ID)] {
				if (v.alone || loose) && !h.Granted.After(v.Since.Add(l.clocks)) {
					c.by = append(c.by, v)
				}
			}
			if len(c.by) > 0 {
				g.holds[s] = append(g.holds[s], c)
			}
		}
	}
	return g
}

// counted is how many living waits each actor has.
func counted(names []*snapshot, l level) map[string]int {
	several := map[string]int{}
	for _, s := range names {
		for _, w := range slices.Concat(s.Line, s.Lanes) {
			if s.alive(w) {
				several[l.actor(w.Owner, w.Node, w.Label, w.ID)]++
			}
		}
	}
	return several
}

// same keeps of a first reading only what a second one has found again: so it was there all the time
// between them. Of what bounds them it takes the larger.
func same(first, second *snapshot) *snapshot {
	s := *first
	keep := func(waits, again []*reader.Place) []*reader.Place {
		return slices.DeleteFunc(slices.Clone(waits), func(w *reader.Place) bool {
			return !slices.ContainsFunc(again, func(other *reader.Place) bool {
				return other.ID == w.ID && other.Since.Equal(w.Since) && other.Lane == w.Lane && other.Place == w.Place && second.alive(other)
			})
		})
	}
	s.Line, s.Lanes = keep(first.Line, second.Line), keep(first.Lanes, second.Lanes)
	s.Holds = slices.DeleteFunc(slices.Clone(first.Holds), func(h *reader.Held) bool {
		return !slices.ContainsFunc(second.Holds, func(other *reader.Held) bool {
			return other.ID == h.ID && other.Fence == h.Fence && other.Node == h.Node && other.Resource == h.Resource
		})
	})
	s.Capacity = max(first.Capacity, second.Capacity)
	if first.Pool == nil || second.Pool == nil {
		return &s
	}
	s.Items = map[string]reader.Item{}
	for key, i := range first.Items {
		if other, known := second.Items[key]; known {
			i.Max, i.Leaving, i.Damaged = max(i.Max, other.Max), i.Leaving || other.Leaving, i.Damaged || other.Damaged
			i.Claims = common(i.Claims, other.Claims)
			s.Items[key] = i
		}
	}
	return &s
}
