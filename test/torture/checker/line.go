package checker

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/berth-go/berth/test/torture/history"
)

const (
	// brief is how long a fault may last that silences nobody for a wait lease, a
	// second in a torture run: the last heartbeat was up to a third of it before.
	brief = 500 * ms
	// pausing is how long a process that runs may write nothing, for the same reason.
	// A library that lets its callers wait for too long should not fall under it.
	pausing = 600 * ms
	// late is how long what a fault has delayed may still arrive: attempts and
	// clean-ups of the library are given up by then.
	late = 6 * second
	// A clean-up takes a few ms in truth. It may take atOnce where its process and the
	// server were seen to work all the time, tidied where the process was not, and soon is
	// how far a fault must be for it to be left alone.
	soon   = second
	tidied = 3 * second
	atOnce = 250 * ms
	// busy is how long a process that runs all the time may write nothing.
	busy = 40 * ms
	// around is how far a release must be from a fault, so that who was granted by it
	// would have heard of that: by the push, or by its heartbeat, after a third of the
	// wait lease.
	around = 500 * ms
	// blur is how far a fence may be from the moments around its grant, in us.
	blur = 1000
)

// order: first come, first served, and the higher priority before that.
//
// A stood in line, by the server's own word, before B asked; B's priority is no higher,
// and where it is the same neither has a drawn place. Then A's place is ahead of B's, and the first in line
// is granted first, whatever the weights: so A has the smaller fence. Where A's priority
// is the higher one, its place is ahead also of a B that came before it: then it is
// enough that B was granted after A was known to stand in line. A fence tells when that
// was, but for clocks that were behind or ahead. The one way past
// A is that the server has dropped it: not heard of for a wait lease (stopped, cut off,
// starved), or granted and expired unheard, or forgotten with the data. The library
// tells when it stands again (Restored, whenever that was written), or asks anew with another claim; but it does not
// where the answer to that call was lost, which takes a second mishap. So A is also left
// out where data was lost, where a fault of some length met it, or where two did, and
// where its process wrote nothing for a while, or had no answer: its heartbeats had none
// either.
//
// Of A without a grant nothing is said: one that was cancelled may have been granted
// before B, unseen.
//
// In a pool A may wait for one resource alone, and is passed only by who is granted that:
// see waitsFor.
func order(c *check) {
	for _, n := range c.names {
		for i, a := range n.granted {
			if a.queued == nil || a.restored || a.invoke.Do == history.Reenter || !c.steady(a) {
				continue
			}
			later := func(b *claim) bool { return c.behindInLine(n, a, b) }
			passed := slices.IndexFunc(n.granted[:i], later)
			if passed >= 0 && c.told(a, n.granted[passed]) {
				b := n.granted[passed]
				c.broken(fmt.Sprintf("%s: %s (priority %d) stood in line, and %s (priority %d) was granted before it", n,
					a.ok.Claim, a.invoke.Priority, b.ok.Claim, b.invoke.Priority), a.invoke, a.queued, b.invoke, b.ok, a.ok)
			}
			if passed >= 0 || slices.ContainsFunc(n.granted[i:], later) {
				c.count.Checked++
			}
		}
	}
}

// behindInLine says that A, which has stood in line since it was known to, was ahead of B
// when B was granted, and waited for what B got.
func (c *check) behindInLine(n *name, a, b *claim) bool {
	if b.invoke.Do == history.Reenter || b.fence() == a.fence() || b.invoke.Priority > a.invoke.Priority {
		return false
	}
	if (a.invoke.Unordered || b.invoke.Unordered) && b.invoke.Priority == a.invoke.Priority {
		return false
	}
	if b.invoke.At <= a.queued.At && b.invoke.Priority == a.invoke.Priority {
		return false
	}
	since := c.waitsFor(n, a, b.ok.Resource)
	if since == never || b.invoke.At > since {
		return since != never
	}
	return !c.skewed && !c.stepped && b.fence() > a.queued.Real+(since-a.queued.At)/1000+blur
}

// steady says that nothing met the claim, from when it stood in line until its grant
// was heard of, that could have it dropped from the line without a word.
func (c *check) steady(a *claim) bool {
	met := 0
	for _, f := range c.run.Faults {
		if f.Process != "" && f.Process != a.invoke.Process || f.From-edge > a.ok.At || f.To+soon < a.queued.At {
			continue
		}
		met++
		if f.Amnesia || f.Behind || f.To-f.From >= brief || met > 1 {
			return false
		}
	}
	return !c.pausedBetween(a.invoke.Process, pausing, a.queued.At, a.ok.At) &&
		!c.answeredLate(a.invoke.Process, pausing/2, a.queued.At, a.ok.At)
}

// handOff: what is given back is granted to the first in line in the same run.
//
// A waited before H was released, and was granted later; so in the moment of the
// release somebody stood in line: A, or who was ahead of it. H was held (its release
// was answered OK, and it had not ended before), with no other entry, and every claim
// weighs 1; so there was room for the first in line. Its grant then has the time of the
// release for its fence, and the release ran between its first Invoke and its OK.
//
// That fence may be unseen: where an acquire that may have stood in line then has no
// grant to show (cancelled, unknown, killed), or may show a later one than its first
// (restored; or its first attempt was never answered). It may lie elsewhere where the
// last fence is ahead of the clock, or the clock is behind; and A may have been out of
// the line for the reasons given at the order. All of these are left out; a cancelled
// acquire no longer once its process and the server were seen to work after it, or its
// node was closed.
//
// A resource of a pool is given back to who waits for it: for any, or for this one. It is
// not where it may have been taken out of the pool or the name have been paused, and where it rests
// first, the rule Idle looks at it. Where there are other resources, A may have been granted one of those, and
// has not waited until the end of the release: so its grant must have come after that.
func handOff(c *check) {
	for _, n := range c.names {
		if !n.handsOn() {
			continue
		}
		for _, holds := range n.byResource() {
			for _, h := range holds {
				from, to := h.givenBack()
				if from != nil && c.present(n, h.resource, from.At, to.At) && !n.haltedBetween(from.At, to.At) {
					c.handsOn(n, holds, h, from, to)
				}
			}
		}
	}
}

// handsOn says that each claim of the name takes one place, and that whoever is first in
// line may have it at once when it comes free.
func (n *name) handsOn() bool {
	return n.cooldown == 0 && !slices.ContainsFunc(n.claims, func(a *claim) bool { return a.weight() != 1 })
}

// givenBack returns the release that ended the hold, from its first Invoke to its OK,
// or nil where it may have ended otherwise.
func (h *hold) givenBack() (from, to *history.Event) {
	for _, a := range h.entries {
		r := a.released()
		if r == nil || a.ended != nil && a.ended.At <= r.outcome.At {
			return nil, nil
		}
		switch first := a.releases[0].invoke; {
		case from == nil || first.At > to.At:
			from, to = first, r.outcome
		case r.outcome.At >= from.At:
			return nil, nil // at one time with another one
		}
	}
	return from, to
}

// handsOn looks at one hold of those that share a capacity.
func (c *check) handsOn(n *name, holds []*hold, h *hold, from, to *history.Event) {
	first := max(from.Real-blur, h.fence+1) // it may have been held for next to no time
	i := sort.Search(len(holds), func(i int) bool { return holds[i].fence >= first })
	granted := i < len(holds) && holds[i].fence <= to.Real+blur
	after := to.Real + blur
	if granted {
		after = from.Real - blur
	}
	waits := slices.IndexFunc(n.granted, func(a *claim) bool {
		return a.queued != nil && a.queued.At < from.At && !a.restored && a.fence() > after &&
			a.fence() > h.fence && a.ok.At > from.At && c.waitsAt(n, a, h.resource, from.At) && c.steady(a)
	})
	if waits < 0 {
		return
	}
	if granted {
		c.count.Checked++
		return
	}
	a, next := n.granted[waits], "no other"
	if i < len(holds) {
		next = fmt.Sprintf("the next is fence %d", holds[i].fence)
	}
	if c.stepped || early(a) || i < len(holds) && early(holds[i].first()) || c.unclear(n, h.resource, from, to) {
		return
	}
	c.count.Checked++
	c.broken(fmt.Sprintf("%s: %s was given back while %s stood in line, and nobody was granted then (%s)",
		n, h.first().ok.Claim, a.ok.Claim, next), a.invoke, a.queued, h.first().ok, from, to, a.ok)
}

// early says that the fence of a claim was ahead of the clock.
func early(a *claim) bool { return a.fence() > a.ok.Real }

// unclear says that a grant of the resource in the time of a release may be unseen, or
// have a fence that does not show that time.
func (c *check) unclear(n *name, resource string, from, to *history.Event) bool {
	for _, f := range c.run.Faults {
		serious := f.Amnesia || f.Behind || f.To-f.From >= brief
		if serious && f.From-around <= to.At && f.To+around >= from.At {
			return true
		}
	}
	if c.pausedBetween("", pausing, from.At-around, to.At+around) {
		return true
	}
	for _, x := range n.claims {
		if x.invoke.At < to.At && x.mayGet(resource) && c.hides(n, x, from, to) {
			return true
		}
	}
	return false
}

// hides says that the claim may have had a grant in that time which its history does
// not show.
func (c *check) hides(n *name, x *claim, from, to *history.Event) bool {
	switch {
	case x.ok == nil:
		return c.outlives(n, x) >= from.At
	case x.ok.At < from.At:
		return c.skewed && x.fence() > from.Real // the last fence was ahead of the clock
	case x.restored:
		return true
	case x.queued == nil || x.queued.At > from.At:
		// Its first attempt may have gone unanswered.
		return c.met(x.invoke.Process, x.invoke.At-late, to.At)
	}
	return false
}

// outlives is until when a claim without a grant may have stood in line.
func (c *check) outlives(n *name, x *claim) int64 {
	switch {
	case x.outcome == nil:
		if at, killed := c.killed[x.invoke.Process]; killed {
			return at + late
		}
		return never
	case x.is(history.Fail) && (x.invoke.Do == history.Try || x.outcome.Reason == "deadlock"):
		return 0 // it was refused: it never stood in line
	case x.is(history.Fail) && x.outcome.Reason == reasonAbsent:
		return x.outcome.At // the server has ended it
	}
	return min(c.removed(n, x), c.closed(x))
}

// removed is when a claim that was given up has been removed from the server.
func (c *check) removed(n *name, x *claim) int64 {
	at := x.outcome.At
	switch {
	case x.is(history.Unknown) || c.met(x.invoke.Process, x.invoke.At-soon, at+tidied):
		return at + late
	case c.pausedBetween(x.invoke.Process, busy, at, at+atOnce):
		return at + tidied
	}
	// Its process ran, so the removal was sent; and a call on the same name that began
	// well after that was answered.
	i := sort.Search(len(n.calls), func(i int) bool { return n.calls[i].invoke.At >= at+atOnce/2 })
	for ; i < len(n.calls) && n.calls[i].invoke.At < at+tidied; i++ {
		if k := n.calls[i]; k.is(history.OK) || k.is(history.Fail) {
			return max(k.outcome.At, at+atOnce)
		}
	}
	return at + tidied
}

// closed is when the node of a claim was closed with all that it had to do done.
func (c *check) closed(x *claim) int64 {
	for _, e := range c.alone {
		if e.Kind == history.Closed && e.Err == "" && e.Node != "" && e.Node == x.invoke.Node && e.At > x.outcome.At &&
			!slices.Contains(e.Left, x.outcome.Claim) && !strings.Contains(e.Detail, x.outcome.Claim) && x.outcome.Claim != "" {
			return e.At
		}
	}
	return never
}

// met says that a fault met the process, or all, at some time between the two.
func (c *check) met(process string, from, to int64) bool {
	return slices.ContainsFunc(c.faultsBetween(from, to), func(f history.Fault) bool {
		return f.Process == "" || f.Process == process
	})
}
