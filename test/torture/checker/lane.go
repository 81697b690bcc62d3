package checker

import (
	"slices"

	"github.com/berth-go/berth/test/torture/history"
)

const (
	// reasonAbsent is the berth.Reason of a claim for a resource that is not in its pool.
	reasonAbsent = "absent"
	// exact is by how much a claim may be late that stops waiting for its bound resource:
	// the server does that to the millisecond, in whatever it does next.
	exact = 5 * ms
)

// mayGet says that the claim may be granted the resource.
func (a *claim) mayGet(resource string) bool {
	return a.invoke.Named == "" || a.invoke.Named == resource
}

// waitsFor is since when the claim, which was granted after it stood in line, certainly
// waited for the resource; never where it may not have.
//
// A claim that names a resource waits for that alone, and one without a name or a binding
// for any. One with a binding that has a BindWait does as both: it waits for what it was
// bound to when it came, or for any if it was bound to nothing; and for any after its
// BindWait, or when its resource was taken out of the pool. So it has waited all the time
// for what it got before that, whichever it did. Its BindWait begins in its acquire,
// before it was known to stand in line.
func (c *check) waitsFor(n *name, a *claim, resource string) int64 {
	in := a.invoke
	switch {
	case in.Named != "" && in.Named != resource:
		return never
	case in.Named != "" || in.Bind == "" || in.BindWait == 0:
		return a.queued.At
	case a.ok.Resource == resource && a.waitedForBound() && !c.removing(n, in.At, a.ok.At):
		return a.queued.At
	case in.BindWait == history.Never:
		return never
	}
	return a.queued.At + in.BindWait*ms + exact
}

// waitsAt says that the claim waits for the resource at that moment, by the server's own doing
// or, once its BindWait is over, because its own call has told the server so: a release that
// comes before that call may leave alone who does not stand in the line yet.
func (c *check) waitsAt(n *name, a *claim, resource string, at int64) bool {
	since := c.waitsFor(n, a, resource)
	return since == a.queued.At && since < at || since < never-prompt && since+prompt < at
}

// waitedForBound says that the claim was granted before its BindWait ended, which the server counts in whole milliseconds.
func (a *claim) waitedForBound() bool {
	in := a.invoke
	return in.BindWait == history.Never || a.ok.At-in.At < (in.BindWait-1)*ms
}

// removing says that some resource may have been taken out of the pool between the two.
func (c *check) removing(n *name, from, to int64) bool {
	for _, removes := range n.removes {
		if slices.ContainsFunc(removes, func(k *call) bool { return k.invoke.At <= to && c.done(k) >= from }) {
			return true
		}
	}
	return false
}

// done is until when the call may have its effect.
func (c *check) done(k *call) int64 {
	switch {
	case k.outcome == nil:
		if at, killed := c.killed[k.invoke.Process]; killed {
			return at + late
		}
		return never
	case k.is(history.Unknown):
		return k.outcome.At + late
	}
	return k.outcome.At
}

// present says that the resource was certainly in the pool all the time between the two:
// each call that may have taken it out was over before another one, that has put it in,
// began; and no data was lost meanwhile. The driver puts back all that there was before a
// fault that loses data is over. What is no pool has all that it has.
func (c *check) present(n *name, resource string, from, to int64) bool {
	if n.primitive != "pool" {
		return true
	}
	if c.lossBetween(from, to) {
		return false
	}
	added := -never
	for _, k := range n.adds[resource] {
		if k.is(history.OK) && k.outcome.At <= from {
			added = max(added, k.invoke.At)
		}
	}
	for _, f := range c.run.Fills {
		if f.To <= from {
			added = max(added, f.From)
		}
	}
	return !slices.ContainsFunc(n.removes[resource], func(k *call) bool {
		return k.invoke.At <= to && c.done(k) >= added
	})
}

// gone is until when a resource, that the call has taken out of the pool, certainly was not
// in it: until another call may have put it in. That is before the answer to the call where
// the two may have run in either order.
func (c *check) gone(n *name, removed *call) int64 {
	until := never
	for _, k := range n.adds[removed.invoke.Resource] {
		if c.done(k) >= removed.invoke.At {
			until = min(until, k.invoke.At)
		}
	}
	for _, f := range c.run.Fills {
		if f.To >= removed.invoke.At {
			until = min(until, f.From)
		}
	}
	return until
}

// boundTo is the resource that the claim's binding was bound to when it came, "" where that
// is not known.
//
// Each grant to a claim of the binding binds it. So it is what the last one before the
// claim came has got, and all of those that may have come in between, by their fences. It
// is not known where a grant may be unseen, where data may have been lost, or where the
// resource may have been taken out of the pool.
func (c *check) boundTo(n *name, a *claim) string {
	came := a.ok
	if a.queued != nil {
		came = a.queued
	}
	var last *claim
	for _, x := range n.bound[a.invoke.Bind] {
		if x.ok != nil && x != a && !early(x) && x.fence() < a.invoke.Real-blur && (last == nil || x.fence() > last.fence()) {
			last = x
		}
	}
	if last == nil || !c.present(n, last.ok.Resource, last.invoke.At, a.ok.At) {
		return ""
	}
	for _, x := range n.bound[a.invoke.Bind] {
		if x == a || x.invoke.At > came.At {
			continue
		}
		switch {
		case x.ok == nil:
			if c.outlives(n, x) >= last.invoke.At {
				return ""
			}
		case x.ok.At < last.invoke.At:
		case x.restored || x.queued == nil && c.met(x.invoke.Process, x.invoke.At-late, came.At):
			return ""
		case x.fence() > last.fence() && x.fence() <= came.Real+blur && x.ok.Resource != last.ok.Resource:
			return ""
		}
	}
	return last.ok.Resource
}

// asked: who waits for one resource gets that one.
//
// A claim that names a resource never gets another, whatever happens. One with a binding
// waits for what it was bound to when it came, until its BindWait is over.
func asked(c *check) {
	for _, n := range c.names {
		for _, a := range n.granted {
			in := a.invoke
			if in.Named != "" {
				c.count.Checked++
				if a.ok.Resource != in.Named {
					c.broken(n.String()+": "+a.ok.Claim+" asked for "+in.Named+" alone, and got "+a.ok.Resource, in, a.ok)
				}
			}
			if in.BindWait == 0 || !a.waitedForBound() || a.restored || c.skewed || c.stepped || a.queued != nil && !c.steady(a) {
				continue
			}
			bound := c.boundTo(n, a)
			if bound == "" {
				continue
			}
			c.count.Checked++
			if a.ok.Resource != bound {
				c.broken(n.String()+": "+a.ok.Claim+" waited for "+bound+", which it was bound to, and got "+a.ok.Resource, in, a.queued, a.ok)
			}
		}
	}
}
