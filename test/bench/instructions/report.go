package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
)

// limit is how much more than the baseline a step may take, and repeats how often one that takes more, or
// that something has disturbed, is measured once more: its least round counts then. The rounds of a step differ
// by up to 2 %.
const (
	limit   = 1.02
	repeats = 3
)

// result is what a run found.
type result struct {
	// Server is the name of the server, with version and platform.
	Server   string  `json:"server"`
	Valgrind string  `json:"valgrind"`
	Revision string  `json:"revision,omitempty"`
	Date     string  `json:"date"`
	Rounds   int     `json:"rounds"`
	Steps    []found `json:"steps"`
}

// found is what was found for a step.
type found struct {
	Step string `json:"step"`
	Does string `json:"does"`
	// Thousands of instructions for one cycle, the median of the rounds, or the least of them where Least says so.
	Thousands float64 `json:"thousands"`
	Least     bool    `json:"least,omitempty"`
	// Rounds has the value of each round.
	Rounds []float64 `json:"rounds"`
	// Scripts is how many the server ran in one cycle, and Expected how many it should have, 0 for any number.
	Scripts  float64 `json:"scripts"`
	Expected float64 `json:"expected"`
	// Baseline is 0 for a step that has none, and so is Ratio.
	Baseline float64 `json:"baseline,omitempty"`
	Ratio    float64 `json:"ratio,omitempty"`
	// Budget is 0 for a step that has none.
	Budget float64 `json:"budget,omitempty"`
}

// add adds a round. Where the least counts, a disturbed round does not.
func (f *found) add(thousands, scripts float64) {
	if f.Least {
		if scripts != f.Expected {
			return
		}
		if f.Scripts != f.Expected { // so were those before
			f.Rounds, f.Scripts = nil, scripts
		}
		f.Rounds = append(f.Rounds, thousands)
		f.Thousands = slices.Min(f.Rounds)
		return
	}
	f.Rounds = append(f.Rounds, thousands)
	sorted := slices.Sorted(slices.Values(f.Rounds))
	middle := len(sorted) / 2
	f.Thousands = sorted[middle]
	if len(sorted)%2 == 0 {
		f.Thousands = (sorted[middle-1] + sorted[middle]) / 2
	}
	if len(f.Rounds) == 1 || scripts != f.Expected {
		f.Scripts = scripts
	}
}

// disturbed says that the server has not run the scripts that it should have.
func (f *found) disturbed() bool { return f.Expected != 0 && f.Scripts != f.Expected }

// spread is by how much the greatest of the rounds is above the least, as a part of it.
func (f *found) spread() float64 { return slices.Max(f.Rounds)/slices.Min(f.Rounds) - 1 }

// baseline is what a run is compared with.
type baseline struct {
	Server   string `json:"server"`
	Revision string `json:"revision"`
	Date     string `json:"date"`
	Rounds   int    `json:"rounds"`
	// Thousands of instructions by step.
	Thousands map[string]float64 `json:"thousands"`
}

// readBaseline reads a file. Without one it returns an empty baseline.
func readBaseline(file string) (baseline, error) {
	b := baseline{Thousands: map[string]float64{}}
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return b, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &b)
	}
	if err != nil {
		return b, fmt.Errorf("baseline: %w", err)
	}
	return b, nil
}

// update takes over the steps of a run. Other steps keep their numbers; a step that is not
// known any more is dropped.
func (b *baseline) update(r result, known []step) {
	for name := range b.Thousands {
		if !slices.ContainsFunc(known, func(s step) bool { return s.name == name }) {
			delete(b.Thousands, name)
		}
	}
	b.Server, b.Revision, b.Date, b.Rounds = r.Server, r.Revision, r.Date, r.Rounds
	for _, f := range r.Steps {
		b.Thousands[f.Step] = f.Thousands
	}
}

// compare fills in the ratios, and returns what is not as it should be.
func (r *result) compare(b baseline) []string {
	var wrong []string
	if b.Server != r.Server && len(b.Thousands) > 0 {
		wrong = append(wrong, fmt.Sprintf("the baseline is of %s, this is %s", b.Server, r.Server))
	}
	wrong = append(wrong, r.disturbed()...)
	for i := range r.Steps {
		f := &r.Steps[i]
		if f.Baseline = b.Thousands[f.Step]; f.Baseline > 0 {
			f.Ratio = f.Thousands / f.Baseline
		}
		if f.Ratio > limit {
			wrong = append(wrong, fmt.Sprintf("%s: %.2f of its baseline", f.Step, f.Ratio))
		}
	}
	return wrong
}

// again has those steps measured once more, a few times, that are not as they should be.
func (r *result) again(b baseline, measure func(these []int) error) error {
	for range repeats {
		var these []int
		for i := range r.Steps {
			f := &r.Steps[i]
			if f.Scripts == f.Expected && (b.Thousands[f.Step] == 0 || f.Thousands <= limit*b.Thousands[f.Step]) {
				continue
			}
			these, f.Least = append(these, i), true
		}
		if len(these) == 0 {
			return nil
		}
		if err := measure(these); err != nil {
			return err
		}
	}
	return nil
}

// disturbed returns a text for each step that was not the scripts that it should be.
func (r *result) disturbed() []string {
	var steps []string
	for _, f := range r.Steps {
		if f.disturbed() {
			steps = append(steps, fmt.Sprintf("%s: a cycle was %.4g scripts in place of %v", f.Step, f.Scripts, f.Expected))
		}
	}
	return steps
}

// text writes the table.
func (r *result) text(w io.Writer) error {
	fmt.Fprintf(w, "Thousands of instructions of the server for one cycle of each step. %s under callgrind %s; rounds: %d.\n\n",
		r.Server, r.Valgrind, r.Rounds)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "step\tnow\tbaseline\tratio\tbudget\tspread\tscripts\tone cycle")
	for _, f := range r.Steps {
		before, ratio, budget, spread, scripts := "-", "-", "-", "-", fmt.Sprintf("%.4g", f.Scripts)
		if f.Budget > 0 {
			budget = fmt.Sprintf("%v %s", f.Budget, f.verdict())
		}
		if f.Baseline > 0 {
			before, ratio = fmt.Sprintf("%.1f", f.Baseline), fmt.Sprintf("%.3f", f.Ratio)
		}
		if f.Ratio > limit {
			ratio += " !"
		}
		if len(f.Rounds) > 1 {
			spread = fmt.Sprintf("%.1f %%", 100*f.spread())
		}
		if f.Least {
			spread += ", least"
		}
		if f.disturbed() {
			scripts += fmt.Sprintf(" ! not %v", f.Expected)
		}
		fmt.Fprintln(table, strings.Join([]string{
			f.Step, fmt.Sprintf("%.1f", f.Thousands), before, ratio, budget, spread, scripts, f.Does,
		}, "\t"))
	}
	return table.Flush()
}

func (f *found) verdict() string {
	if f.Thousands > f.Budget {
		return "missed"
	}
	return "met"
}

// page is a part of docs/generated/benchmarks.md: the steps that have a budget, those of others, and how far
// the steps are from their baselines.
func (r *result) page() string {
	var page strings.Builder
	fmt.Fprintf(&page, "\nThousands of instructions of the server for one cycle: %s; %s. "+
		"[baseline.json](../../test/bench/baseline.json) has\nall steps. Those of others promise less.\n\n"+
		"| step | one cycle | found | budget | verdict |\n| --- | --- | --- | --- | --- |\n", r.Server, r.Date)
	most := found{Step: "none"}
	for _, f := range r.Steps {
		switch {
		case f.Budget > 0:
			fmt.Fprintf(&page, "| %s | %s | %v | ≤ %v | %s |\n", f.Step, f.Does, f.Thousands, f.Budget, f.verdict())
		case strings.HasPrefix(f.Step, "peer_"):
			fmt.Fprintf(&page, "| %s | %s | %v | | |\n", f.Step, f.Does, f.Thousands)
		}
		if f.Ratio > most.Ratio {
			most = f
		}
	}
	verdict := "met"
	if most.Ratio > limit {
		verdict = "missed"
	}
	fmt.Fprintf(&page, "| all | the greatest ratio to a baseline, of %s | %.3f | ≤ %v | %s |\n", most.Step, most.Ratio, limit, verdict)
	return page.String()
}
