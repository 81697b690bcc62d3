package checker

import (
	"fmt"
	"slices"

	"github.com/berth-go/berth/test/torture/history"
)

// returned: a hold without end whose release the server lost does not stay.
//
// Its release was answered, and the server has lost that since. Its node lives: the process runs, and the node is not
// closed. Shown are the holds that a listing still had long after the loss. So nobody but the node could end
// this one, and it had all the time for that.
func returned(c *check) {
	for _, f := range c.run.Faults {
		if !f.Amnesia {
			continue
		}
		for _, n := range c.names {
			for _, a := range n.granted {
				gave := a.released()
				if a.invoke.Lease != 0 || gave == nil || gave.outcome.At < f.From || gave.invoke.At > f.LostBy() || !c.lives(a.invoke, f.To) {
					continue
				}
				c.count.Checked++
				if slices.Contains(f.Shown, a.ok.Claim) {
					c.broken(fmt.Sprintf("%s: the server lost the release of %s, a hold without end, and has it %d ms later, though its node lives",
						n, a.ok.Claim, (f.To-f.LostBy())/ms), a.invoke, a.ok, gave.invoke, gave.outcome)
				}
			}
		}
	}
}

// lives says that the node of an operation was there until then.
func (c *check) lives(invoke *history.Event, until int64) bool {
	if _, killed := c.killed[invoke.Process]; killed {
		return false
	}
	return !slices.ContainsFunc(c.alone, func(e *history.Event) bool {
		return e.Kind == history.Closed && e.Node == invoke.Node && e.At <= until
	})
}
