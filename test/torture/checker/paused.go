package checker

import (
	"fmt"
	"slices"

	"github.com/berth-go/berth/test/torture/history"
)

// readHalts finds the times in which names may have been paused. At the end of a pause those who wait come
// by their timers, so the time after it is one of them.
func (r *round) readHalts() {
	c := &check{round: r}
	for _, n := range r.names {
		for _, k := range n.decides {
			if k.invoke.Do == history.Pause {
				to := c.done(k)
				if to < never {
					to += k.invoke.Lasts*ms + unserved
				}
				n.halts = append(n.halts, stretch{k.invoke.At - edge, to})
			}
		}
	}
}

// haltedBetween says whether the name may have been paused at some time between the two, or just before.
func (n *name) haltedBetween(from, to int64) bool {
	return slices.ContainsFunc(n.halts, func(h stretch) bool { return h.from <= to && h.to >= from })
}

// paused: of a paused name nothing is granted.
//
// A pause that was answered is there from the answer on, and ends no sooner than Lasts after its call was
// begun; or with the next call that decides, from when that may have run. A fence tells when a grant was made,
// where clocks were not behind or ahead; one that goes on from there is no grant: a re-entry has the fence of its
// owner's. A pause may be lost with other data.
func paused(c *check) {
	if c.skewed || c.stepped {
		return
	}
	for _, n := range c.names {
		for _, k := range n.decides {
			if k.invoke.Do != history.Pause || !k.is(history.OK) {
				continue
			}
			from, until := k.outcome.Real+blur, k.invoke.Real+k.invoke.Lasts*1000-blur
			for _, next := range n.decides {
				if next != k && c.done(next) >= k.invoke.At {
					until = min(until, next.invoke.Real-blur)
				}
			}
			if from >= until {
				continue
			}
			c.count.Checked++
			for _, a := range n.granted {
				if a.invoke.Do != history.Reenter && a.fence() > from && a.fence() < until && !early(a) && !c.lossBetween(k.invoke.At, a.ok.At) {
					c.broken(fmt.Sprintf("%s: %s was granted %d ms before the end of a pause", n, a.ok.Claim, (until-a.fence())/1000),
						k.invoke, k.outcome, a.invoke, a.queued, a.ok)
				}
			}
		}
	}
}

// resumed: when a pause is over, who waits is served.
//
// A stood in line when the pause ended, for certain: by itself, or by a call that was answered, and nobody may
// have paused the name again. For a second from then on nobody held what A waited for, or could have, see idle;
// so A, or who was ahead of it, was to be granted that. Nothing was wrong meanwhile.
func resumed(c *check) {
	if c.skewed || c.stepped {
		return
	}
	for _, n := range c.names {
		if n.capacity != 1 && n.primitive != "pool" {
			continue
		}
		resources := n.resources()
		if n.primitive != "pool" {
			resources = []string{""}
		}
		free := map[string][]stretch{}
		for _, resource := range resources {
			if len(n.decides) > 0 {
				free[resource] = c.free(n, resource)
			}
		}
		for i, k := range n.decides {
			if !k.is(history.OK) {
				continue
			}
			from := k.outcome.At + k.invoke.Lasts*ms + edge
			again := func(next *call) bool {
				return next != k && next.invoke.At <= from+unserved && c.done(next) >= k.invoke.At
			}
			if slices.ContainsFunc(n.decides[:i], again) || slices.ContainsFunc(n.decides[i+1:], again) || !c.undisturbed(from, from+unserved) {
				continue
			}
			for _, a := range n.granted {
				if a.queued != nil && !a.restored && a.queued.At < k.invoke.At && c.granted(a) > k.outcome.At && c.steady(a) {
					c.count.Checked++
					c.resumes(n, a, k, free, from)
				}
			}
		}
	}
}

// resumes looks at a claim that waited when a pause ended.
func (c *check) resumes(n *name, a *claim, k *call, free map[string][]stretch, from int64) {
	to := from + unserved
	for resource, stretches := range free {
		covers := slices.ContainsFunc(stretches, func(f stretch) bool { return f.from <= from && f.to >= to })
		if covers && c.granted(a) > to && c.waitsFor(n, a, resource) <= from && c.present(n, resource, from, to) {
			c.broken(fmt.Sprintf("%s: a pause was over from CLOCK_MONOTONIC %d on, and %s, which had waited for %q, was not served for a second",
				n, from, a.ok.Claim, resource), k.invoke, k.outcome, a.invoke, a.queued, a.ok)
			return
		}
	}
}
