package demo

import (
	"slices"
	"strings"
	"time"

	"github.com/berth-go/berth/pkg/allocator"
)

// poolFacts looks at the evidence of the pool. Each of them can be wrong.
func (e *evidence) poolFacts(found allocator.Inspection) []fact {
	return []fact{
		e.story.neverTwo(),
		e.story.inOrder(),
		e.story.keptProxy(),
		e.story.changedProxy(),
		e.story.letRest(e.late),
		e.story.cameBack(e.late),
		e.givenBack(),
		whole(found),
	}
}

// granted returns those that were granted something, in the order of their fences.
func (s *story) granted() []*turn {
	all := slices.DeleteFunc(slices.Clone(s.turns), func(t *turn) bool { return t.granted == nil })
	slices.SortFunc(all, func(a, b *turn) int { return int(a.fence - b.fence) })
	return all
}

// lastOf is who was granted something last for the same customer, before t.
func (s *story) lastOf(t *turn) *turn {
	var last *turn
	for _, other := range s.granted() {
		if other.fence < t.fence && other.customer == t.customer {
			last = other
		}
	}
	return last
}

// nextWith is who was granted the same resource next, after t.
func (s *story) nextWith(t *turn) *turn {
	for _, other := range s.granted() {
		if other.fence > t.fence && other.resource == t.resource {
			return other
		}
	}
	return nil
}

// freeSince is since when a resource had been free when t was granted, by what its
// last worker said; nil where it was not free, or was never used.
func (s *story) freeSince(resource string, t *turn) moment {
	var last *turn
	for _, other := range s.granted() {
		if other.fence < t.fence && other.resource == resource {
			last = other
		}
	}
	if last == nil || last.gone == nil || *last.gone+last.rest > *t.handed {
		return nil
	}
	since := *last.gone + last.rest
	return &since
}

// neverTwo looks at each resource when somebody got it, by what the workers
// themselves say.
func (s *story) neverTwo() fact {
	all := s.granted()
	most := 0
	for i, t := range all {
		most = max(most, len(s.inside(*t.granted)))
		for _, other := range all[:i] {
			if other.resource == t.resource && (other.left() == nil || *other.left() > *t.granted) {
				return right(false, "workers %d and %d had %s at once", other.worker, t.worker, t.resource)
			}
		}
	}
	if most != s.capacity {
		return right(false, "%d were at work at once, with %d proxies", most, s.capacity)
	}
	return right(true, "Never did two have the same proxy at once; up to %d were at work.", most)
}

// preferred looks whether a worker got the resource that its customer had before,
// and whether without a binding it would have been another one.
func (s *story) preferred(worker int) (before *turn, f fact) {
	t := s.turn(worker)
	if t.granted == nil {
		return nil, right(false, "worker %d was never granted a proxy", worker)
	}
	before = s.lastOf(t)
	if before == nil {
		return nil, right(false, "nobody came for %s before worker %d", t.customer, worker)
	}
	if t.resource != before.resource {
		return before, right(false, "worker %d got %s, and not the one that is bound to %s, %s", worker, t.resource, t.customer, before.resource)
	}
	since := s.freeSince(before.resource, t)
	if since == nil {
		return before, right(false, "worker %d got %s before it was free", worker, t.resource)
	}
	for _, key := range proxyKeys {
		if other := s.freeSince(key, t); key != t.resource && other != nil && *other < *since {
			return before, right(true, "though %s had been free for longer", key)
		}
	}
	return before, right(false, "no other proxy had been free for longer when worker %d got %s, so that shows nothing", worker, t.resource)
}

// keptProxy looks at the one that comes again.
func (s *story) keptProxy() fact {
	before, f := s.preferred(again)
	if !f.ok {
		return f
	}
	return right(true, "Worker %d came for %s, as worker %d before, and got the same proxy, %s.", again, before.customer, before.worker, f.text)
}

// changedProxy looks at the one whose proxy rested, and at the next of its customer.
func (s *story) changedProxy() fact {
	t := s.turn(moved)
	before := s.lastOf(t)
	switch {
	case t.granted == nil || before == nil:
		return right(false, "worker %d was never granted a proxy, or nobody came before", moved)
	case t.resource == before.resource:
		return right(false, "worker %d got %s, which rested", moved, t.resource)
	}
	last, f := s.preferred(returned)
	switch {
	case !f.ok:
		return f
	case last != t:
		return right(false, "worker %d did not come after worker %d", returned, moved)
	}
	return right(true, "Worker %d found that proxy in use and got another one; worker %d then got this one for %s, %s.",
		moved, returned, t.customer, f.text)
}

// letRest checks the proxy that should rest.
func (s *story) letRest(late time.Duration) fact {
	t := s.turn(again)
	if t.leaving == nil || t.gone == nil || t.rest == 0 {
		return right(false, "worker %d let nothing rest", again)
	}
	next := s.nextWith(t)
	if next == nil || next.queued == nil {
		return right(false, "nobody waited for %s, so its rest shows nothing", t.resource)
	}
	if early := *t.leaving + t.rest - *next.handed; early > blur {
		return right(false, "worker %d was granted %s %s before its rest was over", next.worker, t.resource, short(early))
	}
	after := *next.handed - *t.gone - t.rest
	if after > inTime+late {
		return right(false, "worker %d was granted %s %s after its rest was over: not within %s", next.worker, t.resource, short(after), inTime+late)
	}
	return right(true, "Worker %d was answered 429 and let its proxy rest for %s: nobody had it in that time, and %s after it worker %d had it.",
		again, short(t.rest), short(max(0, after)), next.worker)
}

// cameBack looks at the proxy of the worker that was killed.
func (s *story) cameBack(late time.Duration) fact {
	t := s.turn(dies)
	if t.killed == nil || t.over == nil || t.overBy == nil {
		return right(false, "worker %d was not killed while it had a proxy", dies)
	}
	next := s.nextWith(t)
	if next == nil || next.queued == nil {
		return right(false, "the proxy of the worker that was killed was never granted to one that waited")
	}
	lease, after := *t.over-*t.killed, *next.handed-*t.overBy
	switch early := *t.over - *next.handed; {
	case early > blur:
		return right(false, "worker %d was granted %s %s before the lease of worker %d ended", next.worker, t.resource, short(early), t.worker)
	case lease > s.lease:
		return right(false, "the lease of worker %d ended %s after it was killed: that is more than the lease, %s", t.worker, short(lease), s.lease)
	case after > inTime+late:
		return right(false, "worker %d was granted %s %s after the lease of worker %d had ended: not within %s",
			next.worker, t.resource, short(after), t.worker, inTime+late)
	}
	return right(true, "Worker %d was killed; its lease ended %s later, and %s after that worker %d had its proxy. Nobody had to clean up.",
		t.worker, short(lease), short(max(0, after)), next.worker)
}

// whole looks at what the server says of the pool after everything.
func whole(found allocator.Inspection) fact {
	n := found.Resources
	switch {
	case len(found.Problems) > 0:
		return right(false, "the pool is not whole: %s", strings.Join(found.Problems, "; "))
	case n != len(proxyKeys):
		return right(false, "the pool has %d proxies, and not %d", n, len(proxyKeys))
	case found.Free != n:
		return right(false, "of %d proxies only %d are free", n, found.Free)
	}
	return right(true, "The pool is whole, and its %d proxies are free.", n)
}
