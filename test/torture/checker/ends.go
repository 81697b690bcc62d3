package checker

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-go/berth/test/torture/history"
)

// honesty: what has ended stays so, and a hold ends before its release is sent.
//
// The At of an Alive is read before the handle is asked. Ended is stamped after the
// handle has said so, and a Release is written by the goroutine that also writes the
// Alive events, before it calls. So an Alive that is later than one of those was asked
// later, however long the process was stopped in between. Whether the server had given
// the place away by then is the rule of the capacity.
func honesty(c *check) {
	for _, n := range c.names {
		for _, a := range n.granted {
			if len(a.alive) == 0 {
				continue
			}
			c.count.Checked++
			last := a.believed()
			if a.ended != nil && last.At > a.ended.At {
				c.broken(fmt.Sprintf("%s: the hold of %s was believed in again after it had ended (%s)",
					n, a.ok.Claim, a.ended.Err), a.ok, a.ended, last)
			}
			if len(a.releases) > 0 && last.At > a.releases[0].invoke.At {
				c.broken(fmt.Sprintf("%s: the hold of %s was believed in after its release had begun", n, a.ok.Claim),
					a.ok, a.releases[0].invoke, last)
			}
		}
	}
}

// stuck: everything that is called returns.
//
// A worker that was told to drain ends when all its operations have an outcome, or
// says what is stuck. Only a process that was killed leaves operations open.
func stuck(c *check) {
	for _, e := range c.alone {
		if e.Kind == history.Stuck {
			c.broken(fmt.Sprintf("%s: operation %d (%s %s %s) has not returned for %s after everything was healed",
				e.Process, e.Op, e.Do, e.Primitive, e.Name, e.Detail), c.invokeOf(e), e)
		}
	}
	for _, k := range c.calls {
		if _, killed := c.killed[k.invoke.Process]; killed {
			continue
		}
		c.count.Checked++
		if k.outcome == nil && !c.toldStuck(k) {
			c.broken(fmt.Sprintf("%s: operation %d (%s %s %s) has no outcome", k.invoke.Process, k.invoke.Op,
				k.invoke.Do, k.invoke.Primitive, k.invoke.Name), k.invoke)
		}
	}
}

func (c *check) invokeOf(e *history.Event) *history.Event {
	if k := c.byOp[opID{e.Process, e.Op}]; k != nil {
		return k.invoke
	}
	return nil
}

func (c *check) toldStuck(k *call) bool {
	return slices.ContainsFunc(c.alone, func(e *history.Event) bool {
		return e.Kind == history.Stuck && e.Process == k.invoke.Process && e.Op == k.invoke.Op
	})
}

// left: a node that was closed leaves nothing on the server.
//
// The worker does not name claims whose removal has failed, or whose end it does not
// know. Where data may have been lost since the claim came (or lately, if nobody knows
// the claim), its removal may have been lost, too, and a jump of the clock may have
// moved its deadline.
func left(c *check) {
	for _, e := range c.alone {
		if e.Kind != history.Closed || e.Err != "" {
			continue
		}
		c.count.Checked++
		var claims []string
		shown := []*history.Event{e}
		for _, id := range e.Left {
			since := e.At - 15*second
			a := c.claims[id]
			if a != nil {
				since = a.invoke.At
			}
			if c.lossBetween(since, e.At) {
				continue
			}
			claims = append(claims, id)
			if a != nil {
				shown = append(shown, a.invoke, a.outcome)
			}
		}
		if len(claims) > 0 {
			c.broken(fmt.Sprintf("%s: %s was closed, and the server still has %s",
				e.Process, e.Node, strings.Join(claims, ", ")), shown...)
		}
	}
}

// refused: nobody gives back what is not his any more.
//
// A release by the id of a claim whose own release was answered OK before must be
// refused: its record is gone. It may be there again only where data was lost. Of
// claims that ended by themselves nothing is said: their process gives up before the
// server does, and a renewal that was under way may have lengthened them there.
//
// A release of a hold that its process had given up as lost is answered OK if the
// server still has it. In a name of capacity 1 it has not once another grant was seen.
// An earlier release of the hold may have run unanswered: then OK is right.
func refused(c *check) {
	for _, n := range c.names {
		for _, a := range n.granted {
			if gave := a.released(); gave != nil {
				for _, f := range a.forced {
					c.refusedForce(n, a, gave, f)
				}
			}
			if n.capacity == 1 && n.primitive != "pool" {
				c.refusedRelease(n, a)
			}
		}
	}
}

func (c *check) refusedForce(n *name, a *claim, gave, f *call) {
	if f.outcome == nil || f.outcome.Kind == history.Unknown || gave.outcome.At > f.invoke.At ||
		c.lossBetween(a.invoke.At, f.outcome.At) {
		return
	}
	c.count.Checked++
	if f.is(history.OK) {
		c.broken(fmt.Sprintf("%s: %s was released by its id though it had been released before", n, a.ok.Claim),
			a.ok, gave.invoke, gave.outcome, f.invoke, f.outcome)
	}
}

func (c *check) refusedRelease(n *name, a *claim) {
	if len(a.releases) == 0 || a.ended == nil || !slices.Contains(a.ended.Is, "lost") {
		return
	}
	r := a.releases[0]
	if r.outcome == nil || r.outcome.Kind == history.Unknown || r.invoke.At < a.ended.At ||
		c.lossBetween(a.invoke.At, r.outcome.At) {
		return
	}
	for _, b := range n.granted {
		if b.fence() > a.fence() && b.ok.At < r.invoke.At {
			c.count.Checked++
			if r.is(history.OK) {
				c.broken(fmt.Sprintf("%s: %s was released with success though it was lost and %s had been granted since",
					n, a.ok.Claim, b.ok.Claim), a.ok, a.ended, b.ok, r.invoke, r.outcome)
			}
			return
		}
	}
}

// leak: a process that has closed its nodes has no goroutine of theirs. The worker
// looks after they have all returned from Close, and waits for a while.
func leak(c *check) {
	processes := map[string]bool{}
	for i := range c.run.Events {
		processes[c.run.Events[i].Process] = true
	}
	for p := range processes {
		if _, killed := c.killed[p]; !killed {
			c.count.Checked++
		}
	}
	for _, e := range c.alone {
		if e.Kind == history.Leak {
			c.broken(fmt.Sprintf("%s ended with goroutines that it did not begin with: %s", e.Process, e.Err), e)
		}
	}
}
