package demo

import (
	"slices"
	"time"
)

// story is what has happened so far in an act: one turn for each worker. Its
// moments count from its begin. One goroutine owns it.
type story struct {
	begin    time.Time // by the machine's clock, which all workers share
	capacity int
	lease    time.Duration
	length   time.Duration // about how long it will be
	turns    []*turn
}

// turn is the one claim of a worker.
type turn struct {
	worker   int
	process  int
	customer string        // for whom it asks, "" where that is nothing to the act
	resource string        // what it got of a pool
	rest     time.Duration // how long that is to rest afterwards
	asked    moment
	queued   moment // unset if it was granted at once
	ahead    int
	granted  moment // the worker was inside, by its own clock
	handed   moment // the server granted, by the server's clock
	fence    int64
	told     bool   // to leave
	leaving  moment // the worker was about to give its place back
	gone     moment // it had done so
	killed   moment
	over     moment // the lease of a worker that was killed ended, not before this
	overBy   moment // and not after this
	exited   moment

	again      moment // it was inside a second time
	againFence int64
	once       moment // that entry was given back

	failure string // how the process ended, "" for well
}

// moment is a time in a story, nil when it has not come.
type moment *time.Duration

func newStory(p plan) *story {
	s := &story{capacity: p.capacity, lease: p.lease, length: p.length}
	for number := 1; number <= p.workers; number++ {
		t := &turn{worker: number}
		if p.order != nil {
			o := p.order(number)
			t.customer, t.rest = o.Bind, o.Rest
		}
		s.turns = append(s.turns, t)
	}
	return s
}

// at turns a time of the machine's clock into a moment.
func (s *story) at(t time.Time) moment {
	d := t.Round(0).Sub(s.begin.Round(0)) // the wall clock: processes share no other
	return &d
}

// turn returns the turn of a worker.
func (s *story) turn(worker int) *turn { return s.turns[worker-1] }

// left is when a worker was inside no more: it was about to give its place
// back, or was killed.
func (t *turn) left() moment {
	if t.leaving != nil {
		return t.leaving
	}
	return t.killed
}

// freed is when a worker's place could go to the next at the earliest: it began to
// give it back, or its lease ended.
func (t *turn) freed() moment {
	if t.leaving != nil {
		return t.leaving
	}
	return t.over
}

// freedBy is when a worker's place could go to the next at the latest: it had given
// it back, or its lease had ended. A busy machine may let much time pass in between.
func (t *turn) freedBy() moment {
	switch {
	case t.gone != nil:
		return t.gone
	case t.leaving != nil: // and it has ended without another word
		return t.leaving
	}
	return t.overBy
}

// inside returns the workers inside at a moment, in the order of their grants.
func (s *story) inside(at time.Duration) []int {
	var in []*turn
	for _, t := range s.turns {
		if t.granted != nil && *t.granted <= at && (t.left() == nil || at < *t.left()) {
			in = append(in, t)
		}
	}
	slices.SortFunc(in, func(a, b *turn) int { return int(a.fence - b.fence) })
	workers := make([]int, len(in))
	for i, t := range in {
		workers[i] = t.worker
	}
	return workers
}

// handOff is a place that came free, and who got it.
type handOff struct {
	from, to *turn
	took     time.Duration // until the next one was inside
}

// handOffs pairs the places that came free with those who waited: the first to
// come free with the first that was granted, and so on. With the earliest moments
// at which each came free, no grant may be earlier than its own; with the latest,
// none should be much later.
func (s *story) handOffs(freed func(*turn) moment) []handOff {
	var from, to []*turn
	for _, t := range s.turns {
		if freed(t) != nil {
			from = append(from, t)
		}
		if t.queued != nil && t.granted != nil {
			to = append(to, t)
		}
	}
	slices.SortFunc(from, func(a, b *turn) int { return int(*freed(a) - *freed(b)) })
	slices.SortFunc(to, func(a, b *turn) int { return int(a.fence - b.fence) })
	pairs := make([]handOff, min(len(from), len(to)))
	for i := range pairs {
		pairs[i] = handOff{from[i], to[i], *to[i].granted - *freed(from[i])}
	}
	return pairs
}
