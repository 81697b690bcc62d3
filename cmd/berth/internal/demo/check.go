package demo

import (
	"fmt"
	"slices"
	"time"
)

const (
	// inTime is how long after the end of a dead worker's lease its place must be
	// granted at the latest, on a machine that has other things to do as well. The
	// heartbeat, which would find the place free in the end, takes twice as long.
	inTime = 250 * time.Millisecond
	// blur is how exactly times of two processes can be compared: the server
	// counts in whole milliseconds.
	blur = 2 * time.Millisecond
)

// evidence is what an act has at its end.
type evidence struct {
	story   *story
	holders int           // on the server, after everything
	waiting int           // the same
	late    time.Duration // how late this machine's own timers were, at worst
}

// facts looks at the evidence. Each of them can be wrong.
func (e *evidence) facts() []fact {
	return []fact{
		e.story.neverMoreThanCapacity(),
		e.story.inOrder(),
		e.story.handedOn(),
		e.story.recovered(e.late),
		e.givenBack(),
	}
}

func right(ok bool, format string, args ...any) fact {
	return fact{ok, fmt.Sprintf(format, args...)}
}

// neverMoreThanCapacity counts who was inside at every moment at which somebody
// came in, by what the workers themselves say.
func (s *story) neverMoreThanCapacity() fact {
	most := 0
	for _, t := range s.turns {
		if t.granted != nil {
			most = max(most, len(s.inside(*t.granted)))
		}
	}
	switch {
	case most > s.capacity:
		return right(false, "%d were inside at once, with a capacity of %d", most, s.capacity)
	case most < s.capacity:
		return right(false, "never more than %d were inside, with a capacity of %d", most, s.capacity)
	}
	if s.capacity == 1 {
		return right(true, "Never was more than one inside at once.")
	}
	return right(true, "Never more than %d were inside at once.", s.capacity)
}

// inOrder compares the order of the fences with that in which the workers asked:
// each asked only when the one before had its answer.
func (s *story) inOrder() fact {
	byFence := slices.Clone(s.turns)
	slices.SortFunc(byFence, func(a, b *turn) int { return int(a.fence - b.fence) })
	waited := 0
	for i, t := range byFence {
		switch {
		case t.granted == nil:
			return right(false, "worker %d asked and was never granted a place", t.worker)
		case t != s.turns[i]:
			return right(false, "worker %d was granted a place ahead of worker %d, who had asked before", t.worker, s.turns[i].worker)
		case i > 0 && t.fence == byFence[i-1].fence:
			return right(false, "workers %d and %d have the same fence, %d", byFence[i-1].worker, t.worker, t.fence)
		case t.queued != nil:
			waited++
		}
	}
	if waited < 2 {
		return right(false, "only %d had to wait, so the order shows nothing", waited)
	}
	return right(true, "All %d were granted a place in the order in which they asked; %d of them had to wait.", len(s.turns), waited)
}

// handedOn looks whether each that waited got in after a place had come free,
// and how soon.
func (s *story) handedOn() fact {
	var took []time.Duration
	for _, h := range s.handOffs((*turn).freed) {
		if *h.to.handed < *h.from.freed()-blur {
			return right(false, "worker %d was granted the place of worker %d %s too early",
				h.to.worker, h.from.worker, short(*h.from.freed()-*h.to.handed))
		}
		if h.from.leaving != nil {
			took = append(took, h.took)
		}
	}
	if len(took) == 0 {
		return right(false, "no place was handed on")
	}
	slices.Sort(took)
	return right(true, "A place that was given back went to the next in line: %s later it was inside (at most %s).",
		short(took[len(took)/2]), short(took[len(took)-1]))
}

// recovered looks when the place of the worker that was killed was granted; that it
// was not too early is for handedOn. A machine whose own timers are late may be late
// with this as well.
func (s *story) recovered(late time.Duration) fact {
	for _, h := range s.handOffs((*turn).freedBy) {
		if h.from.killed == nil {
			continue
		}
		dead, after := h.from, *h.to.handed-*h.from.overBy
		text := fmt.Sprintf("Worker %d was killed; its lease ended %s later, and %s after that worker %d had its place",
			dead.worker, short(*dead.over-*dead.killed), short(max(0, after)), h.to.worker)
		switch {
		case *dead.over-*dead.killed > s.lease:
			return right(false, "%s: that is more than the lease, %s", text, s.lease)
		case after > inTime+late:
			return right(false, "%s: not within %s", text, inTime+late)
		}
		return right(true, "%s. Nobody had to clean up.", text)
	}
	return right(false, "the place of the worker that was killed was never granted again")
}

// givenBack looks at how the processes ended and what the server still knows.
func (e *evidence) givenBack() fact {
	for _, t := range e.story.turns {
		switch {
		case t.exited == nil:
			return right(false, "worker %d has not ended", t.worker)
		case t.killed == nil && t.failure != "":
			return right(false, "worker %d: %s", t.worker, t.failure)
		case t.killed != nil && t.failure == "":
			return right(false, "worker %d was killed and ended well all the same", t.worker)
		}
	}
	if e.holders != 0 || e.waiting != 0 {
		return right(false, "left behind: %d held, %d waiting", e.holders, e.waiting)
	}
	return right(true, "Everything was given back: nothing is held, nobody waits.")
}

// short is a duration to three digits or so.
func short(d time.Duration) string {
	switch {
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	default:
		return fmt.Sprintf("%.2f s", d.Seconds())
	}
}
