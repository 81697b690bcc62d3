package checker

import (
	"fmt"

	"github.com/berth-go/berth/test/torture/history"
)

// agreement: what a handle believes in is what the server has: this claim, with this
// fence and this resource.
//
// Of that a heartbeat would tell, and what does not renew ends by itself. So from a look
// that shows something else, or nothing, it takes a lease at the most until the handle
// ends: a heartbeat that was answered just before the look may have lengthened it. A
// listing shows one moment between the look's Invoke and its outcome. Where data was
// lost since the look began, the listing may be that of a server of before, or of a
// clock that jumped. Holds that were extended are left out: by how much is not in the
// history.
func agreement(c *check) {
	for _, n := range c.names {
		for _, h := range n.holds {
			lease := h.lease()
			for _, a := range h.entries {
				for _, look := range a.looks {
					if (look.is(history.OK) || look.is(history.Fail)) && !c.agrees(n, a, look, lease) {
						break // the later ones show the same
					}
				}
			}
		}
	}
}

func (c *check) agrees(n *name, a *claim, look *call, lease int64) bool {
	c.count.Checked++
	last := a.believed()
	if lease == never || last == nil || last.At <= look.outcome.At+edge+lease || c.forgets(look.invoke.At, last.At) {
		return true
	}
	shown := "no such hold"
	if look.is(history.OK) {
		if look.outcome.Fence == a.fence() && look.outcome.Resource == a.ok.Resource {
			return true
		}
		shown = fmt.Sprintf("fence %d", look.outcome.Fence)
		if look.outcome.Resource != "" {
			shown += ", resource " + look.outcome.Resource
		}
	}
	held := fmt.Sprintf("fence %d", a.fence())
	if a.ok.Resource != "" {
		held += ", resource " + a.ok.Resource
	}
	c.broken(fmt.Sprintf("%s: the hold of %s (%s) was believed in more than a lease after the server showed %s",
		n, a.ok.Claim, held, shown), a.invoke, a.ok, look.invoke, look.outcome, last)
	return false
}
