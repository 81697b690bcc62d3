package swarm

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/berth-go/berth"
)

// Node is a node of the swarm.
type Node struct {
	// ID is its id.
	ID string
	// Label is that of its process.
	Label string
	// ProbedAt is when its last probe came, or a flush missed it, by the server's
	// clock, to the ms.
	ProbedAt time.Time
	// ZombieAfter is the node's own, to the ms.
	ZombieAfter time.Duration
	// Zombie says whether ZombieAfter has passed since ProbedAt.
	Zombie bool
	// Condemned says whether it is flushed; it never probes again.
	Condemned bool
}

// Zombies is what dead nodes have left behind.
type Zombies struct {
	// Nodes are the ids of the dead nodes, sorted: those that are overdue, and those
	// that are condemned and of which something is left. Who was flushed is not one
	// any more, though it is remembered for a day.
	Nodes []string
	// Owners are the owners that hold or wait there, sorted; a claim without an owner
	// is its own.
	Owners []string
	// Holds are their holds, those that are detached left out.
	Holds []Held
	// Waiters are their waiting claims.
	Waiters []Waiting
}

// Held is a hold of a name.
type Held struct {
	berth.Ref
	berth.Holder
}

// Waiting is a claim that waits for a name.
type Waiting struct {
	berth.Ref
	berth.Waiter
}

// Info goes through the nodes of the swarm, in no order, whether this one runs or
// not. It promises what SCAN promises: who is there from beginning to end is there,
// once. It ends after an error: berth.ErrIncompatible or the server's.
func (s *Swarm) Info(ctx context.Context) iter.Seq2[Node, error] {
	return func(yield func(Node, error) bool) {
		seen := make(map[string]bool)
		cursor := "0"
		for {
			page, next, err := s.calls.Nodes(ctx, cursor)
			if err != nil {
				yield(Node{}, err)
				return
			}
			for _, n := range page {
				if !seen[n.ID] && !yield(n, nil) {
					return
				}
				seen[n.ID] = true
			}
			if cursor = next; cursor == "0" {
				return
			}
		}
	}
}

// Zombies finds what dead nodes have left behind, and changes nothing. An error with
// one name does not keep it from the others.
func (s *Swarm) Zombies(ctx context.Context) (Zombies, error) {
	dead, nodes := make(map[string]bool), make(map[string]bool)
	for n, err := range s.Info(ctx) {
		if err != nil {
			return Zombies{}, err
		}
		if n.Zombie || n.Condemned {
			dead[n.ID] = true
		}
		if n.Zombie && !n.Condemned {
			nodes[n.ID] = true
		}
	}
	if len(dead) == 0 {
		return Zombies{}, nil
	}
	var z Zombies
	owners := make(map[string]bool)
	found := func(node, owner, claim string) {
		nodes[node] = true
		owners[cmp.Or(owner, claim)] = true
	}
	var problems problems
	for name, err := range s.cfg.Line.Names(ctx) {
		if err != nil {
			problems.add(err)
			continue
		}
		left, err := s.leftBehind(ctx, name, dead)
		problems.add(err)
		for _, h := range left.holders {
			found(h.Node, h.Owner, h.ID)
			z.Holds = append(z.Holds, Held{name, h})
		}
		for _, w := range left.waiters {
			found(w.Node, w.Owner, w.ID)
			z.Waiters = append(z.Waiters, Waiting{name, w})
		}
	}
	z.Nodes, z.Owners = slices.Sorted(maps.Keys(nodes)), slices.Sorted(maps.Keys(owners))
	return z, problems.err()
}

// leavings are what some nodes have in one name.
type leavings struct {
	waiters []berth.Waiter
	holders []berth.Holder
	endless []berth.Holder // those without end of other nodes that are in a swarm by what they say
}

// leftBehind finds what the nodes have in a name. Waiters are read first: one that
// is granted in between is found as a holder as well, and not the other way round.
// Holds that are detached do not count: their node is not needed any more.
func (s *Swarm) leftBehind(ctx context.Context, name berth.Ref, nodes map[string]bool) (left leavings, err error) {
	var problems problems
	for w, err := range s.cfg.Line.Waiters(ctx, name) {
		if err != nil {
			problems.add(fmt.Errorf("%s %q: %w", name.Kind, name.Name, err))
		} else if nodes[w.Node] {
			left.waiters = append(left.waiters, w)
		}
	}
	for h, err := range s.cfg.Line.Holders(ctx, name) {
		switch {
		case err != nil:
			problems.add(fmt.Errorf("%s %q: %w", name.Kind, name.Name, err))
		case h.Detached:
		case nodes[h.Node]:
			left.holders = append(left.holders, h)
		case h.ZombieAfter > 0:
			left.endless = append(left.endless, h)
		}
	}
	return left, problems.err()
}
