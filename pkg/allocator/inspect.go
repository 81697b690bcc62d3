package allocator

import (
	"context"
	"fmt"
	"iter"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/pkg/keyspace"
)

// Resource reads one resource and changes nothing. A resource that is not in the pool is
// Absent, which is not an error. Resource returns berth.ErrInvalidConfig for a bad name or key,
// berth.ErrIncompatible, or the server's error.
func (o *Operator) Resource(ctx context.Context, name, key string) (ResourceInfo, error) {
	if o.bad != nil {
		return ResourceInfo{}, o.bad
	}
	if err := checkResource(key); err != nil {
		return ResourceInfo{}, err
	}
	found, err := o.pools.look.Resources(ctx, name, key)
	if err != nil {
		return ResourceInfo{}, err
	}
	return infosOf(found)[0], nil
}

// Resources yields the resources of a pool, including leaving ones, in no order. As with SCAN,
// a resource that is in the pool from beginning to end is yielded, once. Resources ends after
// an error: berth.ErrInvalidConfig for a bad name, berth.ErrIncompatible, or the server's
// error.
func (o *Operator) Resources(ctx context.Context, name string) iter.Seq2[ResourceInfo, error] {
	if o.bad != nil {
		return failed[ResourceInfo](o.bad)
	}
	return o.pools.face().all(ctx, name)
}

// all goes through the resources of a pool; see Operator.Resources.
func (f face) all(ctx context.Context, name string) iter.Seq2[ResourceInfo, error] {
	return pages(name, func(cursor string) ([]ResourceInfo, string, error) {
		found, next, err := f.look.ResourcesPage(ctx, name, cursor)
		return infosOf(found), next, err
	}, func(info ResourceInfo) (key string, there bool) { return info.Resource, info.State != Absent })
}

// Bindings yields the bindings of a pool that have not ended, in no order. As with SCAN, a
// binding that lasts from beginning to end is yielded, once. Bindings ends after an error:
// berth.ErrInvalidConfig for a bad name, berth.ErrIncompatible, or the server's error.
func (o *Operator) Bindings(ctx context.Context, name string) iter.Seq2[berth.Binding, error] {
	if o.bad != nil {
		return failed[berth.Binding](o.bad)
	}
	return pages(name, func(cursor string) ([]berth.Binding, string, error) {
		return o.pools.look.BindingsPage(ctx, name, cursor)
	}, func(b berth.Binding) (key string, there bool) { return b.Name, true })
}

func infosOf(found []reader.Resource) (infos []ResourceInfo) {
	for _, r := range found {
		info := ResourceInfo{
			Resource: r.Key, State: State(r.Word), Left: r.Left, Reason: r.Reason, Expiry: r.Expiry, Leaving: r.Leaving,
			MaxSharers: r.Sharers, Holders: r.Holders,
		}
		if r.Own != nil {
			info.Own = settingsOf(*r.Own)
			info.Own.ByOperator = true
		}
		infos = append(infos, info)
	}
	return infos
}

// failed yields an error alone.
func failed[E any](err error) iter.Seq2[E, error] {
	return func(yield func(E, error) bool) {
		var none E
		yield(none, err)
	}
}

// pages goes through the pages of a pool's listing, and yields once what is there. The cursor is "0" to begin with, and when all
// have been seen.
func pages[E any](name string, read func(cursor string) (page []E, next string, err error), what func(E) (key string, there bool)) iter.Seq2[E, error] {
	return func(yield func(E, error) bool) {
		var none E
		if err := keyspace.CheckName(name); err != nil {
			yield(none, err)
			return
		}
		seen := make(map[string]bool)
		for cursor := "0"; ; {
			page, next, err := read(cursor)
			if err != nil {
				yield(none, err)
				return
			}
			for _, e := range page {
				key, there := what(e)
				if there && !seen[key] && !yield(e, nil) {
					return
				}
				seen[key] = true
			}
			if cursor = next; cursor == "0" {
				return
			}
		}
	}
}

// atOnce is up to how many resources Inspect reads in one step; tests set it lower.
const atOnce = 10_000

// page is about how many entries one step reads above that.
const page = 200

// Inspection is the result of Inspect.
type Inspection struct {
	// Resources is how many resources the pool has. Without sharing, Free, Leased and Resting add up
	// to Resources; with MaxSharers, a leased resource with room for more holders also counts as
	// Free, and a resting one may also be Leased. Leaving is how many leased resources leave when
	// they are given back. Expired entries that are still stored are included.
	Resources int `json:"capacity"`
	Free      int `json:"free"`
	Leased    int `json:"held"`
	Resting   int `json:"resting"`
	Leaving   int `json:"leaving"`
	// Holders is how many claims hold a resource, and Waiting how many wait in line.
	Holders int `json:"holders"`
	Waiting int `json:"waiting"`
	// Bindings is how many bindings are stored, including ended ones.
	Bindings int `json:"bindings"`
	// Moving says that the pool changed during the reading, so that the counts are not of one
	// moment, and were not compared with each other.
	Moving bool `json:"moving"`
	// Problems say which invariants are broken, and where. A sound pool has none. One step reports
	// up to 100.
	Problems []string `json:"problems"`
}

// problems are what the words of pool_inspect mean; each is about a resource, a
// binding, a claim or a member of the line.
var problems = map[string]string{
	"damaged":         "the item of the resource %q cannot be read: remove the resource, or add it again",
	"unlisted":        "the resource %q is free and not among the free",
	"listed":          "the resource %q is among the free and not free",
	"both":            "the resource %q is leased and among the free",
	"rest":            "the end of the rest of the resource %q is not in the line",
	"expiry":          "the expiry of the resource %q is not in the line",
	"left":            "the resource %q is leaving and nobody holds it",
	"binding":         "the end of the binding %q is not in the line",
	"holder":          "the claim %q is said to hold a resource and does not",
	"free_orphan":     "the resource %q is among the free and not in the pool",
	"line_orphan":     "the member %q of the line is about nothing",
	"claim_orphan":    "the claim %q neither holds nor waits",
	"revision_orphan": "what was changed last of %q, a resource or the pool, is never forgotten",
	"hold_orphan":     "the claim %q holds a resource that does not know it",
	"lane_empty":      "nobody stands in the lane of the resource %q",
	"lane_free":       "the resource %q is free and claims wait for it",
	"lane_absent":     "claims wait for the resource %q and nobody can get it",
	"lane_mark":       "when the lane of the resource %q is to be looked at is not in the line",
	"lane_member":     "the claim %q does not stand in the lane of the resource that it waits for",
	"settings":        "the settings of its own of the resource %q are not where they belong",
}

// sums are the counts of pool_inspect's steps together.
type sums struct {
	resources, free, leased, resting, leaving, bindings, listed, holds, places, parked int64
}

// add adds what a step has seen.
func (s *sums) add(seen sums) {
	s.resources += seen.resources
	s.free += seen.free
	s.leased += seen.leased
	s.resting += seen.resting
	s.leaving += seen.leaving
	s.bindings += seen.bindings
	s.listed += seen.listed
	s.holds += seen.holds
	s.places += seen.places
	s.parked += seen.parked
}

// inspectStep is what one step has read.
type inspectStep struct {
	part, cursor string // where the next one begins, "" after the last
	mark         string // another one once something was taken, given back or changed
	stored, seen sums
	problems     [][2]string // a word and what it is about
}

// Inspect counts all entries of a pool and checks that they are consistent. The free list must have exactly the
// free resources, and no resource may be both free and leased. Every hold, rest, expiry and binding must have
// its counterpart, and every record must be readable. Inspect changes nothing, and counts expired entries as
// they are stored. Up to 10 000 resources are read in one step, more in several short steps. Inspect returns
// berth.ErrInvalidConfig for a bad name, berth.ErrIncompatible, or the server's error.
func (o *Operator) Inspect(ctx context.Context, name string) (Inspection, error) {
	var found Inspection
	if o.bad != nil {
		return found, o.bad
	}
	if err := keyspace.CheckName(name); err != nil {
		return found, err
	}
	var sum, stored sums
	mark, damaged := "", false
	for part, cursor := "items", "0"; part != ""; {
		step, err := o.pools.face().inspectOnce(ctx, name, o.atOnce, part, cursor)
		if err != nil {
			return found, err
		}
		part, cursor = step.part, step.cursor
		found.Moving = found.Moving || mark != "" && mark != step.mark
		mark, stored = step.mark, step.stored
		sum.add(step.seen)
		for _, problem := range step.problems {
			found.Problems = append(found.Problems, fmt.Sprintf(problems[problem[0]], problem[1]))
			damaged = damaged || problem[0] == "damaged"
		}
	}
	if damaged {
		sum.leased = stored.leased // who holds it does not stand in what is there of it
	}
	found.Resources, found.Free, found.Leased = int(sum.resources), int(sum.free), int(sum.leased)
	found.Resting, found.Leaving, found.Bindings = int(sum.resting), int(sum.leaving), int(sum.bindings)
	found.Holders, found.Waiting = int(sum.holds), int(sum.places)
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
		{"claims waiting for one resource", stored.parked, sum.parked},
		{"members among the free", sum.free, sum.listed},
	} {
		if c.kept != c.seen {
			wrong = append(wrong, fmt.Sprintf("there should be %d %s, and are %d", c.kept, c.what, c.seen))
		}
	}
	return wrong
}
