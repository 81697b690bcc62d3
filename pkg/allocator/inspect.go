package allocator

import (
	"context"
	"fmt"
)

// atOnce is up to how many resources Inspect reads in one step; tests set it lower.
const atOnce = 10_000

// page is about how many entries one step reads above that.
const page = 200

// Inspection is what Inspect found.
type Inspection struct {
	// Stats are the counts, those of what has expired included; Expired is 0.
	Stats Stats
	// Bindings is how many bindings are kept, those included that have ended.
	Bindings int
	// Moving says that the pool changed meanwhile, so that the counts are not
	// those of one moment, and were not compared with each other.
	Moving bool
	// Problems say which invariants do not hold, and where. None is right. One
	// step tells up to 100.
	Problems []string
}

// problems are what the words of pool_inspect mean; each is about a resource, a
// binding, a claim or a member of the line.
var problems = map[string]string{
	"damaged":      "the item of the resource %q cannot be read: remove the resource, or add it again",
	"unlisted":     "the resource %q is free and not in the list",
	"listed":       "the resource %q is in the list and not free",
	"both":         "the resource %q is leased and in the list",
	"link":         "the neighbours of the resource %q in the list do not know it",
	"circle":       "the list comes by the resource %q for ever",
	"rest":         "the end of the rest of the resource %q is not in the line",
	"expiry":       "the expiry of the resource %q is not in the line",
	"left":         "the resource %q is leaving and nobody holds it",
	"binding":      "the end of the binding %q is not in the line",
	"holder":       "the claim %q is said to hold a resource and does not",
	"link_orphan":  "the resource %q is in the list and not in the pool",
	"line_orphan":  "the member %q of the line is about nothing",
	"claim_orphan": "the claim %q neither holds nor waits",
	"hold_orphan":  "the claim %q holds a resource that does not know it",
}

// sums are the counts of pool_inspect's steps together.
type sums struct {
	resources, free, leased, resting, leaving, bindings, walked, linked, holds, places int64
}

// add adds what a step has seen.
func (s *sums) add(seen sums) {
	s.resources += seen.resources
	s.free += seen.free
	s.leased += seen.leased
	s.resting += seen.resting
	s.leaving += seen.leaving
	s.bindings += seen.bindings
	s.walked += seen.walked
	s.linked += seen.linked
	s.holds += seen.holds
	s.places += seen.places
}

// inspectStep is what one step has read.
type inspectStep struct {
	part, cursor string // where the next one begins, "" after the last
	moves        int64  // grows with every change of the pool
	stored, seen sums
	problems     [][2]string // a word and what it is about
}

// Inspect counts everything and checks that it fits together: the list of free
// resources runs the same forward and backward and has all that are free and no
// others, nothing is both free and leased, every hold, rest, expiry and binding has
// its counterpart, every item can be read. It changes nothing, what has expired and was not yet swept counts as
// it is stored. It is one step up to 10 000 resources, several short ones above. It
// returns berth.ErrIncompatible or the server's error.
func (p *Pool[T]) Inspect(ctx context.Context) (Inspection, error) { return p.core.inspect(ctx) }

func (p *core) inspect(ctx context.Context) (Inspection, error) {
	var found Inspection
	var sum, stored sums
	moves, damaged := int64(-1), false
	for part, cursor := "items", "0"; part != ""; {
		step, err := p.inspectOnce(ctx, part, cursor)
		if err != nil {
			return found, err
		}
		part, cursor = step.part, step.cursor
		found.Moving = found.Moving || moves >= 0 && moves != step.moves
		moves, stored = step.moves, step.stored
		sum.add(step.seen)
		for _, problem := range step.problems {
			found.Problems = append(found.Problems, fmt.Sprintf(problems[problem[0]], problem[1]))
			damaged = damaged || problem[0] == "damaged"
		}
		if sum.walked > sum.resources && part == "walk" {
			// More than there are, and still no end: it is another pool by now, or a circle.
			part, cursor = "links", "0"
		}
	}
	if damaged {
		sum.leased = stored.leased // who holds it does not stand in what is there of it
	}
	found.Stats = Stats{
		Name: p.name, Resources: int(sum.resources), Free: int(sum.free), Leased: int(sum.leased), Resting: int(sum.resting),
		Leaving: int(sum.leaving), Holders: int(sum.holds), Waiting: int(sum.places),
	}
	found.Bindings = int(sum.bindings)
	if !found.Moving {
		found.Problems = append(found.Problems, compare(stored, sum)...)
	}
	return found, nil
}

// compare says where the counts that are kept are not those that were found.
func compare(stored, sum sums) []string {
	var wrong []string
	for _, c := range []struct {
		what       string
		kept, seen int64
	}{
		{"resources", stored.resources, sum.resources},
		{"free ones", stored.free, sum.free},
		{"leased ones", stored.leased, sum.leased},
		{"leaving ones", stored.leaving, sum.leaving},
		{"holds", stored.holds, sum.holds},
		{"waiting claims", stored.places, sum.places},
		{"free ones in a walk through the list", sum.free, sum.walked},
		{"free ones among the links", sum.free, sum.linked},
	} {
		if c.kept != c.seen {
			wrong = append(wrong, fmt.Sprintf("there should be %d %s, and are %d", c.kept, c.what, c.seen))
		}
	}
	return wrong
}
