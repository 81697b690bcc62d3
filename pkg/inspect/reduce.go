package inspect

import (
	"cmp"
	"slices"

	"github.com/berth-go/berth/pkg/keyspace"
)

// reduce finds the claims that cannot be served even if all others give back what they have: it begins
// with all that wait, and lets go whoever is served by what the others do not keep, again and again. A
// pause counts as over: it ends by itself, and gives nothing back.
func (g *graph) reduce() {
	g.to = map[*waiting][]*waiting{}
	for _, s := range g.names {
		for _, v := range g.waits[s] {
			v.stuck = !v.gone && (s.Kind == keyspace.Pool || v.Weight <= s.Capacity)
		}
	}
	for changed := true; changed; {
		changed = false
		for _, s := range g.names {
			if s.Kind == keyspace.Pool {
				changed = g.reducePool(s) || changed
			} else {
				changed = g.reduceLine(s) || changed
			}
		}
	}
}

// kept says whether a claim that is stuck keeps a hold.
func (c *carried) kept() bool {
	return !c.gone && slices.ContainsFunc(c.by, func(v *waiting) bool { return v.stuck })
}

// room is what of a name is not kept.
func (g *graph) room(s *snapshot) int {
	room := s.Capacity
	for _, c := range g.holds[s] {
		if c.kept() {
			room -= max(c.Weight, 1)
		}
	}
	return room
}

func (g *graph) reduceLine(s *snapshot) (changed bool) {
	room := g.room(s)
	for _, v := range g.waits[s] {
		if !v.stuck {
			continue // it gives back what it gets
		} else if v.Weight > room {
			break
		}
		v.stuck, changed = false, true
	}
	return changed
}

// taken says whether a resource is kept from all others. One that rests, leaves or cannot be read is
// nobody's fault.
func (g *graph) taken(s *snapshot, key string) bool {
	i, known := s.Items[key]
	n := 0
	for _, c := range g.holds[s] {
		if c.Resource == key && c.kept() && slices.Contains(i.Claims, c.ID) {
			n++
		}
	}
	return known && !i.Damaged && !i.Leaving && !i.Absent && n >= max(int(i.Max), 1)
}

func (g *graph) reducePool(s *snapshot) (changed bool) {
	all := 0
	for key := range s.Items {
		if g.taken(s, key) {
			all++
		}
	}
	for _, v := range g.waits[s] {
		only := v.Resource != "" && v.Until.IsZero()
		if v.stuck && (only && !g.taken(s, v.Resource) || !only && (s.Capacity == 0 || all < s.Capacity)) {
			v.stuck, changed = false, true
		}
	}
	return changed
}

// stuck are the claims that the reduction leaves, the one that waits longest first.
func (g *graph) stuck() (left []*waiting) {
	for _, s := range g.names {
		for _, v := range g.waits[s] {
			if v.stuck {
				left = append(left, v)
			}
		}
	}
	slices.SortFunc(left, func(a, b *waiting) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.ID, b.ID))
	})
	return left
}

// wants says whether a stuck claim waits for what a hold has.
func (g *graph) wants(v *waiting, c *carried) bool {
	switch {
	case v.name != c.name || !c.kept():
		return false
	case v.name.Kind != keyspace.Pool:
		return true
	}
	i := v.name.Items[c.Resource]
	return slices.Contains(i.Claims, c.ID) && (v.Resource == "" || !v.Until.IsZero() || v.Resource == c.Resource)
}

// arrows are for whom a stuck claim waits: for those that carry what it wants; and where its own weight
// is free, for those ahead of it.
func (g *graph) arrows(v *waiting) (to []*waiting) {
	to, known := g.to[v]
	if known {
		return to
	}
	defer func() { g.to[v] = to }()
	add := func(other *waiting) {
		if other.stuck && !slices.Contains(to, other) {
			to = append(to, other)
		}
	}
	for _, c := range g.holds[v.name] {
		if g.wants(v, c) {
			for _, by := range c.by {
				add(by)
			}
		}
	}
	if v.name.Kind == keyspace.Sem && v.Weight <= g.room(v.name) {
		for _, other := range g.waits[v.name] {
			if other == v {
				break
			}
			add(other)
		}
	}
	return to
}

// cycles are the sets of stuck claims that wait for each other, and for nobody else.
func (g *graph) cycles() (found [][]*waiting) {
	left := g.stuck()
	reach := map[*waiting]map[*waiting]bool{}
	for _, v := range left {
		reach[v] = g.reached(v)
	}
	done := map[*waiting]bool{}
	for _, v := range left {
		if done[v] || !reach[v][v] {
			continue
		}
		var cycle []*waiting
		sink := true
		for _, other := range left {
			back := reach[other] != nil && reach[other][v]
			if reach[v][other] && back {
				cycle = append(cycle, other)
				done[other] = true
			}
			sink = sink && (!reach[v][other] || back)
		}
		if sink {
			found = append(found, g.ordered(cycle))
		}
	}
	return found
}

// reached are all claims that one waits for, and that those wait for.
func (g *graph) reached(v *waiting) map[*waiting]bool {
	seen, todo := map[*waiting]bool{}, []*waiting{v}
	for len(todo) > 0 {
		next := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, other := range g.arrows(next) {
			if !seen[other] {
				seen[other] = true
				todo = append(todo, other)
			}
		}
	}
	return seen
}

// ordered has each claim of a cycle followed by one that it waits for, as far as there is one left.
func (g *graph) ordered(cycle []*waiting) (order []*waiting) {
	for len(order) < len(cycle) {
		next := cycle[slices.IndexFunc(cycle, func(v *waiting) bool { return !slices.Contains(order, v) })]
		for next != nil {
			order = append(order, next)
			to := g.arrows(next)
			i := slices.IndexFunc(to, func(v *waiting) bool { return slices.Contains(cycle, v) && !slices.Contains(order, v) })
			if next = nil; i >= 0 {
				next = to[i]
			}
		}
	}
	return order
}

// release are the holds whose end frees a cycle: the youngest single one that does, else the youngest
// ones until they do, in that order.
func (g *graph) release(cycle []*waiting) []*carried {
	var own []*carried
	for _, s := range g.names {
		for _, c := range g.holds[s] {
			if slices.ContainsFunc(c.by, func(v *waiting) bool { return slices.Contains(cycle, v) }) {
				own = append(own, c)
			}
		}
	}
	slices.SortFunc(own, func(a, b *carried) int {
		if a.name == b.name {
			return cmp.Compare(b.Fence, a.Fence)
		}
		return cmp.Or(b.Granted.Compare(a.Granted), cmp.Compare(a.ID, b.ID))
	})
	defer g.reduce() // the graph is again as it was
	for _, c := range own {
		if g.frees(cycle, c) {
			return []*carried{c}
		}
	}
	for n := range own {
		if g.frees(cycle, own[:n+1]...) {
			return own[:n+1]
		}
	}
	return own
}

// frees says whether a cycle is free once some holds are given back.
func (g *graph) frees(cycle []*waiting, without ...*carried) bool {
	for _, c := range without {
		c.gone = true
	}
	g.reduce()
	for _, c := range without {
		c.gone = false
	}
	return !slices.ContainsFunc(cycle, func(v *waiting) bool { return v.stuck })
}
