package checker

import (
	"cmp"
	"fmt"
	"slices"
	"sort"

	"github.com/anishathalye/porcupine"

	"github.com/berth-go/berth/test/torture/history"
)

// effort bounds the search for an order, of one name or resource: in steps, so that what is
// given up is the same on every machine. Where there is an order, a few for each grant
// and each end find it.
const effort = 300_000

// linearizable: there is an order of all grants and ends, each within the time of its
// call, in which fences rise and never more is held than the capacity.
//
// A grant lies between the Invoke and the OK of its acquire. An end lies after the last
// moment at which the hold was believed in; nothing says by when, and an end that comes
// early harms nobody, so it may. Holds of which nobody knows are left out: without them
// less is held. No wall clock is in it. A round in which data may have been lost is not
// looked at: two may hold then.
func linearizable(c *check) {
	if len(c.losses) > 0 {
		return
	}
	for _, n := range c.names {
		if n.capacity == 0 {
			continue
		}
		for resource, holds := range n.byResource() {
			switch search(n.capacity, holds) {
			case porcupine.Unknown:
				c.count.GaveUp++
				continue
			case porcupine.Illegal:
				c.notLinear(n, resource, holds)
			}
			c.count.Checked++
		}
	}
}

// step is a grant, or the end of one.
type step struct {
	fence  int64
	weight int
	end    bool
}

// state is what the model remembers: the last fence, and how much is held.
type state struct {
	fence int64
	held  int
}

// search looks for an order of the grants and ends.
func search(capacity int, holds []*hold) porcupine.CheckResult {
	left := effort
	found := porcupine.CheckEventsTimeout(model(capacity, &left), steps(holds), 0)
	if left < 0 && found == porcupine.Illegal {
		return porcupine.Unknown
	}
	return found
}

// model allows nothing any more once no steps are left.
func model(capacity int, left *int) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return state{} },
		Step: func(was, input, _ any) (bool, any) {
			s, in := was.(state), input.(step)
			if *left--; *left < 0 {
				return false, s
			}
			if in.end {
				s.held -= in.weight
				return in.fence <= s.fence, s
			}
			legal := in.fence > s.fence && s.held+in.weight <= capacity
			return legal, state{in.fence, s.held + in.weight}
		},
	}
}

// times are those between which a step was made.
type times struct {
	step
	from, to int64
}

// timesOf are the grants and ends of holds, by fence. As fences rise, a grant comes
// after those of smaller fences began and before those of larger ones ended: said so,
// the search has no choice among grants. It is not said where that fits no time: the
// search is to find that out.
func timesOf(holds []*hold) (grants, ends []times) {
	for _, h := range holds {
		a := h.first()
		end := a.invoke.At
		for _, e := range h.entries {
			if last := e.believed(); last != nil {
				end = max(end, last.At)
			}
		}
		grants = append(grants, times{step{h.fence, h.weight, false}, a.invoke.At, a.ok.At})
		ends = append(ends, times{step{h.fence, h.weight, true}, end, never})
	}
	narrow := slices.Clone(grants)
	for i := 1; i < len(narrow); i++ {
		narrow[i].from = max(narrow[i].from, narrow[i-1].from)
	}
	for i := len(narrow) - 2; i >= 0; i-- {
		narrow[i].to = min(narrow[i].to, narrow[i+1].to)
	}
	if slices.ContainsFunc(narrow, func(t times) bool { return t.from > t.to }) {
		return grants, ends
	}
	return narrow, ends
}

// steps are the same for porcupine: calls and returns by time. At one time the calls
// come first, those of ends before those of grants.
func steps(holds []*hold) []porcupine.Event {
	grants, ends := timesOf(holds)
	type mark struct {
		at    int64
		rank  int
		event porcupine.Event
	}
	var marks []mark
	for i, t := range slices.Concat(ends, grants) {
		rank := 0
		if !t.end {
			rank = 1
		}
		marks = append(marks,
			mark{t.from, rank, porcupine.Event{Kind: porcupine.CallEvent, Value: t.step, Id: i}},
			mark{t.to, 2, porcupine.Event{Kind: porcupine.ReturnEvent, Id: i}})
	}
	slices.SortStableFunc(marks, func(a, b mark) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.rank, b.rank))
	})
	events := make([]porcupine.Event, 0, len(marks))
	for _, m := range marks {
		events = append(events, m.event)
	}
	return events
}

// notLinear finds the first part of a history that has no order, to show it.
func (c *check) notLinear(n *name, resource string, holds []*hold) {
	var shown []*history.Event
	// What is added to a part that has no order does not give it one.
	first := sort.Search(len(holds)-1, func(k int) bool {
		return search(n.capacity, holds[:k+1]) == porcupine.Illegal
	})
	holds = holds[:first+1]
	// The last of those is granted where there is no room, or out of time.
	b := holds[len(holds)-1].first()
	for _, h := range holds[:len(holds)-1] {
		for _, a := range h.entries {
			if last := a.believed(); last != nil && last.At > b.invoke.At || a.ok.At > b.invoke.At && a.invoke.At > b.ok.At {
				shown = append(shown, a.invoke, a.ok, last)
			}
		}
	}
	where := n.String()
	if resource != "" {
		where += "/" + resource
	}
	c.broken(fmt.Sprintf("%s: its grants and ends are in no order that a capacity of %d allows; the first that does not fit is %s",
		where, n.capacity, b.ok.Claim), append(shown, b.invoke, b.ok)...)
}
