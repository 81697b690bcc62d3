package checker

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/berth-go/berth/test/torture/history"
)

// unserved is how long a resource may be free while somebody waits for it, and how long
// somebody may wait for what is not there. It takes the server no time where it has a call
// to do it in, and a timer of who waits makes such a call; a heartbeat, where the timer does
// not, comes after a third of a second.
const unserved = second

// idle: nobody waits for what is free.
//
// Whoever waits for any resource takes the first that is free, and one that is free is
// granted to who waits for it alone: in the call that frees it, or when it has rested. So
// as long as A certainly waits for a resource (see waitsFor), that is held or rests. It
// counts as held from its grant, which the fence shows, to the answer of its release, and
// rests for a cooldown after that. What nobody gave back lasts for a lease after the last
// that is known of it, and what a call that was cut off may still do comes on top. A claim
// that has no grant to show may have had one, of any resource that it would take.
//
// A stretch of the time in which there is room, and A waits, is one second long, and nothing
// was wrong in it or shortly before: no fault met anybody, not even one that nobody may
// notice, no process was silent or had its answers late, and nothing was paused.
func idle(c *check) {
	if c.skewed || c.stepped {
		return
	}
	for _, n := range c.names {
		if n.primitive != "pool" {
			continue
		}
		free := map[string][]stretch{}
		for _, a := range n.granted {
			if a.queued == nil || a.restored || !c.steady(a) {
				continue
			}
			c.count.Checked++
			until := c.granted(a)
			if until-a.queued.At < unserved {
				continue
			}
			for _, resource := range n.resources() {
				if _, known := free[resource]; !known {
					free[resource] = c.free(n, resource)
				}
				if at := c.idles(n, a, resource, until, free[resource]); at > 0 {
					c.broken(fmt.Sprintf("%s: %s was free for %d ms from CLOCK_MONOTONIC %d on, while %s waited for it",
						n, resource, unserved/ms, at, a.ok.Claim), a.invoke, a.queued, a.ok)
					break
				}
			}
		}
	}
}

// granted is when a claim was granted, at the earliest.
func (c *check) granted(a *claim) int64 {
	if early(a) {
		return a.invoke.At
	}
	return min(c.moment(a.fence()), a.ok.At) - edge
}

// resources are all that something is known of.
func (n *name) resources() []string {
	found := map[string]bool{}
	for _, a := range n.claims {
		found[a.invoke.Named] = true
		if a.ok != nil {
			found[a.ok.Resource] = true
		}
	}
	for r := range n.adds {
		found[r] = true
	}
	delete(found, "")
	all := make([]string, 0, len(found))
	for r := range found {
		all = append(all, r)
	}
	slices.Sort(all)
	return all
}

// idles returns when a stretch began in which the resource was free while the claim waited
// for it, 0 for none.
func (c *check) idles(n *name, a *claim, resource string, until int64, free []stretch) int64 {
	since := c.waitsFor(n, a, resource)
	for _, f := range free {
		for at := max(f.from, since); at < min(f.to, until)-unserved; at += unserved {
			if c.present(n, resource, at, at+unserved) && !n.haltedBetween(at, at+unserved) && c.undisturbed(at, at+unserved) {
				return at
			}
		}
	}
	return 0
}

// undisturbed says that nothing was wrong for anybody between the two, nor so shortly
// before that it could still be felt.
func (c *check) undisturbed(from, to int64) bool {
	for _, f := range c.run.Faults {
		lasts := resubscribed
		if f.Amnesia || f.Behind {
			lasts = rejoined
		}
		if f.From-edge <= to && f.To+lasts >= from {
			return false
		}
	}
	return !c.pausedBetween("", slow, from, to) && !c.answeredLate("", slow, from, to)
}

// free are the longer times in which there certainly was room in a resource.
func (c *check) free(n *name, resource string) []stretch {
	type step struct {
		at   int64
		more int
	}
	var steps []step
	for _, a := range n.claims {
		if a.mayGet(resource) && (a.ok == nil || a.ok.Resource == resource || c.unseen(a)) {
			if from, to := c.takes(n, a); from < to { // one that was refused at once takes nothing
				steps = append(steps, step{from, 1}, step{to, -1})
			}
		}
	}
	slices.SortFunc(steps, func(a, b step) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(b.more, a.more)) })
	var found []stretch
	held, since := 0, int64(0)
	for _, s := range steps {
		was := held
		held += s.more
		switch {
		case was < n.capacity && held >= n.capacity && s.at-since > unserved:
			found = append(found, stretch{since, s.at})
		case was >= n.capacity && held < n.capacity:
			since = s.at
		}
	}
	if held < n.capacity {
		found = append(found, stretch{since, never})
	}
	return found
}

// unseen says that the claim may have had a grant before the one that it was told of.
func (c *check) unseen(a *claim) bool {
	return a.restored || a.queued == nil && c.met(a.invoke.Process, a.invoke.At-late, a.ok.At)
}

// takes is the longest time in which the claim may have kept others from what it got, or
// may have got.
func (c *check) takes(n *name, a *claim) (from, to int64) {
	from = a.invoke.At
	if a.ok == nil {
		to = c.outlives(n, a)
	} else {
		if !c.unseen(a) {
			from = c.granted(a)
		}
		to = c.over(a)
	}
	if to > never-n.cooldown {
		return from, never
	}
	return from, to + n.cooldown
}

// over is by when a hold has ended on the server.
func (c *check) over(a *claim) int64 {
	if r := a.released(); r != nil {
		return r.outcome.At
	}
	if a.invoke.Lease == 0 {
		return never
	}
	last := a.ok.At
	for _, e := range append(slices.Clone(a.alive), a.ended) {
		if e != nil {
			last = max(last, e.At)
		}
	}
	for _, k := range slices.Concat(a.releases, a.extends) {
		if k.is(history.Unknown) || k.is(history.Fail) {
			last = max(last, k.outcome.At)
		}
	}
	return last + a.invoke.Lease*ms + late
}

// absent: who asks for what is not in the pool is told so, and nobody else is.
//
// A claim that names a resource is refused as absent only where that may have been out of
// the pool at some time of its acquire. And it does not wait for long for what certainly is
// not there: it is told at once, in the call that takes the resource out. After a loss of
// data a claim waits until the pool is filled again, so no fault may lie between that call
// and the end of the stretch.
func absent(c *check) {
	for _, n := range c.names {
		for _, a := range n.claims {
			if a.invoke.Named == "" || a.outcome == nil {
				continue
			}
			if a.is(history.Fail) && a.outcome.Reason == reasonAbsent {
				c.count.Checked++
				if c.present(n, a.invoke.Named, a.invoke.At, a.outcome.At) {
					c.broken(fmt.Sprintf("%s: %s was refused as absent, and it was in the pool all the time", n, a.invoke.Named),
						a.invoke, a.queued, a.outcome)
				}
			}
			if a.queued != nil {
				c.waitsForNothing(n, a)
			}
		}
	}
}

func (c *check) waitsForNothing(n *name, a *claim) {
	for _, k := range n.removes[a.invoke.Named] {
		if !k.is(history.OK) || k.outcome.At > a.outcome.At {
			continue
		}
		until := min(c.gone(n, k), a.outcome.At)
		for at := max(k.outcome.At, a.queued.At); at < until-unserved; at += unserved {
			if len(c.faultsBetween(k.invoke.At, at)) == 0 && !n.haltedBetween(k.invoke.At, at+unserved) && c.undisturbed(at, at+unserved) {
				c.broken(fmt.Sprintf("%s: %s was waited for though it was not in the pool any more", n, a.invoke.Named),
					a.invoke, a.queued, k.invoke, k.outcome, a.outcome)
				return
			}
		}
	}
}
