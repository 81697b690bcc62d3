package checker

import (
	"fmt"
	"slices"

	"github.com/berth-go/berth/test/torture/history"
)

// outlasts: a wait without a bound outlasts refusals that pass.
//
// Its caller did not bound it, and its node was answered before the fault began: a node that never was may
// have the wrong credentials. Repeating goes on until the server answers, however long that takes, so nothing but its own
// node's end, or that of a grant that it could not confirm in time, ends such a wait by an error. So does a drain, which ends the
// waits of a node that has not heard of it.
func outlasts(c *check) {
	served := c.servedSince()
	for _, k := range c.calls {
		if k.invoke.Do != history.Acquire || k.invoke.Bounded || k.outcome == nil {
			continue
		}
		refused := slices.ContainsFunc(c.faultsBetween(k.invoke.At, k.outcome.At), func(f history.Fault) bool {
			since, known := served[k.invoke.Node]
			return f.Passes && known && since < f.From && k.outcome.At <= f.To
		})
		if !refused {
			continue
		}
		c.count.Checked++
		ended := slices.ContainsFunc(k.outcome.Is, func(word string) bool {
			return slices.Contains([]string{"closed", "lost", "expired", "released"}, word)
		})
		drained := k.outcome.Reason == reasonGone && c.drainedBy(k.invoke, k.outcome.At)
		if k.is(history.Unknown) && !ended && !drained {
			c.broken(fmt.Sprintf("%s: a refusal that passes has ended the wait of operation %d for %s %s: %s", k.invoke.Process,
				k.invoke.Op, k.invoke.Primitive, k.invoke.Name, k.outcome.Err), k.invoke, k.outcome)
		}
	}
}

// servedSince is, by node, when the server had first answered it for certain.
func (c *check) servedSince() map[string]int64 {
	served := map[string]int64{}
	for _, k := range c.calls {
		if node := k.invoke.Node; node != "" && k.is(history.OK) && (served[node] == 0 || k.outcome.At < served[node]) {
			served[node] = k.outcome.At
		}
	}
	return served
}
