package torture

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/berth-go/berth/test/torture/checker"
	"github.com/berth-go/berth/test/torture/history"
)

// tally is what the tables at the end of a run say.
type tally struct {
	rounds, operations int
	topologies         map[string]int // rounds by topology
	faults             map[string]*struck
	rules              map[string]*checker.RuleCount
	order              []string // the rules, as they first came
}

// struck is what is known of one kind of fault.
type struck struct {
	times, operations, unknown, violations int
	on                                     []string
}

func newTally() *tally {
	return &tally{topologies: map[string]int{}, faults: map[string]*struck{}, rules: map[string]*checker.RuleCount{}}
}

func (t *tally) rule(name string) *checker.RuleCount {
	if t.rules[name] == nil {
		t.rules[name] = &checker.RuleCount{Rule: name}
		t.order = append(t.order, name)
	}
	return t.rules[name]
}

// expect notes the faults that can come.
func (t *tally) expect(faults []*fault) {
	for _, f := range faults {
		if t.faults[f.name] == nil {
			t.faults[f.name] = &struck{}
		}
	}
}

// check counts one look of the audit.
func (t *tally) check(rule string) { t.rule(rule).Checked++ }

// add counts a round.
func (t *tally) add(topology string, h *history.Run, report *checker.Report) {
	t.rounds++
	t.topologies[topology]++
	t.operations += count(h, history.Invoke, 0, math.MaxInt64)
	for _, c := range report.Rules {
		rule := t.rule(c.Rule)
		rule.Checked += c.Checked
		rule.GaveUp += c.GaveUp
	}
	for _, v := range report.Violations {
		t.rule(v.Rule).Violations++
	}
	for _, f := range h.Faults {
		s := t.faults[f.Name]
		if s == nil {
			s = &struck{}
			t.faults[f.Name] = s
		}
		s.times++
		s.operations += count(h, history.Invoke, f.From, f.To)
		s.unknown += count(h, history.Unknown, f.From, f.To)
		if !slices.Contains(s.on, topology) {
			s.on = append(s.on, topology)
		}
		for _, v := range report.Violations {
			if slices.ContainsFunc(v.Faults, func(other history.Fault) bool { return other.From == f.From }) {
				s.violations++
			}
		}
	}
}

// found is how many violations there were.
func (t *tally) found() int {
	n := 0
	for _, rule := range t.rules {
		n += rule.Violations
	}
	return n
}

// print writes both tables. A violation counts with each fault near which it
// happened.
func (t *tally) print(out io.Writer, took time.Duration) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(cells ...any) {
		for _, c := range cells {
			_, _ = fmt.Fprintf(w, "%v\t", c) // into memory
		}
		_, _ = fmt.Fprintln(w)
	}
	row("fault", "on", "times", "operations during it", "without an answer", "violations")
	faults := make([]string, 0, len(t.faults))
	for name := range t.faults {
		faults = append(faults, name)
	}
	slices.Sort(faults)
	for _, name := range faults {
		s := t.faults[name]
		row(name, strings.Join(s.on, ", "), s.times, s.operations, s.unknown, s.violations)
	}
	row()
	row("guarantee", "", "times checked", "given up", "violations")
	for _, name := range t.order {
		rule := t.rules[name]
		row(name, "", rule.Checked, rule.GaveUp, rule.Violations)
	}
	_ = w.Flush()
	var topologies []string
	for name, n := range t.topologies {
		topologies = append(topologies, fmt.Sprintf("%d on %s", n, name))
	}
	slices.Sort(topologies)
	_, _ = fmt.Fprintf(out, "\n%d rounds (%s), %d operations, %d violations in %s\n",
		t.rounds, strings.Join(topologies, ", "), t.operations, t.found(), took.Round(time.Second))
}
