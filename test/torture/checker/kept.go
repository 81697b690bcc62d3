package checker

import (
	"fmt"
	"slices"

	"github.com/berth-go/berth/test/torture/history"
)

// kept: a hold outlasts what its lease is long enough for.
//
// The fault says from which lease on (Keeps), and takes that back where the servers or the machine stood still
// meanwhile. The hold renews, it was there before the fault, and its process wrote all the time: so it ran, and so did the
// heartbeats. No other fault was near that the hold could have felt. A fault of one server of several meets the names that are
// on it: what the same nodes hold of other names, of whatever kind, is kept.
func kept(c *check) {
	for i := range c.run.Faults {
		f := &c.run.Faults[i]
		for _, n := range c.names {
			for _, h := range n.holds {
				lease, renews := h.renews()
				if f.Keeps == 0 || !renews || lease < f.Keeps*ms || slices.Contains(f.Names, n.key()) {
					continue
				}
				for _, a := range h.entries {
					c.keptThrough(f, n, a, lease)
				}
			}
		}
	}
}

func (c *check) keptThrough(f *history.Fault, n *name, a *claim, lease int64) {
	from, to := max(f.From-lease, a.invoke.At), f.To+lease
	if a.ok.At >= f.From || a.ended != nil && a.ended.At < f.From || len(a.releases) > 0 && a.releases[0].invoke.At <= f.From {
		return
	}
	if a.ended != nil {
		to = min(to, a.ended.At-1) // what it wrote next may be long after
	} else if len(a.releases) > 0 {
		to = min(to, a.releases[0].invoke.At)
	}
	other := func(o history.Fault) bool {
		return !o.Unseen && o.From != f.From && (o.Process == "" || o.Process == a.invoke.Process)
	}
	if slices.ContainsFunc(c.faultsBetween(from, to), other) || c.pausedBetween(a.invoke.Process, slow, from, to) {
		return
	}
	c.count.Checked++
	if a.ended != nil && a.ended.At <= f.To+lease && slices.Contains(a.ended.Is, "lost") && !slices.Contains(a.ended.Is, "closed") {
		c.broken(fmt.Sprintf("%s: the hold of %s has a lease of %d ms, and was lost all the same: %s", n, a.ok.Claim, lease/ms, a.ended.Err),
			a.invoke, a.ok, a.believed(), a.ended)
	}
}
