// Package checker reads the histories of a torture round and says where the library
// has broken a promise. It is pure: a history in, a report out.
//
// A rule looks only at what the history proves. Where a fault, a missing outcome or
// an event that nobody could see leaves a lawful way to what it sees, it says
// nothing: a false alarm at night is as bad as a miss. Each rule has the argument
// for that beside it. All of them rest on how a history is written: a Real is read
// after its At and before the handle is asked or the call is sent; an outcome, and
// Ended, are stamped after the handle or the call has said so; one goroutine writes
// all Alive and Release events of a hold.
package checker

import (
	"cmp"
	"slices"

	"github.com/berth-go/berth/test/torture/history"
)

// The rules.
const (
	Capacity     = "capacity"
	Fence        = "fence"
	Order        = "order"
	HandOff      = "hand-off"
	Honesty      = "honesty"
	Agreement    = "agreement"
	Stuck        = "stuck"
	Left         = "left"
	Refused      = "refused"
	Leak         = "leak"
	Linearizable = "linearizable"
	Unharmed     = "unharmed"
	WakeUp       = "wake-up"
	Asked        = "asked"
	Idle         = "idle"
	Absent       = "absent"
	Paused       = "paused"
	Resumed      = "resumed"
	Wanted       = "wanted"
	Kept         = "kept"
	Outlasts     = "outlasts"
	Returned     = "returned"
	Drained      = "drained"
)

// RuleCount is how often a rule was looked at in a round.
type RuleCount struct {
	Rule    string
	Checked int // instances that the rule had something to say about
	// GaveUp counts instances that could not be decided: neither kept nor broken.
	GaveUp     int
	Violations int
}

// Report is what a round has shown. All rules are in it, also those that had nothing
// to look at.
type Report struct {
	Rules      []RuleCount
	Violations []Violation
}

// Violation is a promise that was broken.
type Violation struct {
	Rule string
	Text string
	// Events are the shortest part of the history that shows it, by At.
	Events []history.Event
	// Faults are those that were going on meanwhile.
	Faults []history.Fault
}

// Check applies all rules to a round.
func Check(run *history.Run) *Report {
	c := &check{round: read(run)}
	for _, rule := range []struct {
		name  string
		apply func(*check)
	}{
		{Capacity, capacity},
		{Fence, fences},
		{Order, order},
		{HandOff, handOff},
		{Honesty, honesty},
		{Agreement, agreement},
		{Stuck, stuck},
		{Left, left},
		{Refused, refused},
		{Leak, leak},
		{Linearizable, linearizable},
		{Unharmed, unharmed},
		{WakeUp, wakeUp},
		{Asked, asked},
		{Idle, idle},
		{Absent, absent},
		{Paused, paused},
		{Resumed, resumed},
		{Wanted, wanted},
		{Kept, kept},
		{Outlasts, outlasts},
		{Returned, returned},
		{Drained, drained},
	} {
		c.count = RuleCount{Rule: rule.name}
		rule.apply(c)
		c.report.Rules = append(c.report.Rules, c.count)
	}
	return &c.report
}

// check is a check under way.
type check struct {
	*round
	count  RuleCount // of the rule that is being applied
	report Report
}

// broken reports a violation of the rule that is being applied.
func (c *check) broken(text string, events ...*history.Event) {
	c.count.Violations++
	v := Violation{Rule: c.count.Rule, Text: text}
	for _, e := range events {
		if e != nil && !slices.ContainsFunc(v.Events, func(o history.Event) bool { return same(&o, e) }) {
			v.Events = append(v.Events, *e)
		}
	}
	slices.SortStableFunc(v.Events, func(a, b history.Event) int { return cmp.Compare(a.At, b.At) })
	if len(v.Events) > 0 {
		v.Faults = c.faultsBetween(v.Events[0].At, v.Events[len(v.Events)-1].At)
	}
	c.report.Violations = append(c.report.Violations, v)
}

func same(a, b *history.Event) bool {
	return a.At == b.At && a.Process == b.Process && a.Kind == b.Kind && a.Op == b.Op && a.Hold == b.Hold
}
