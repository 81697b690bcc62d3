//go:build unix

package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// costsFile is the ledger of the last `make nightly` that passed. It ran with an empty build cache.
const costsFile = "internal/tools/suite/costs.json"

// A share of the run's processor time has crept up if it is above enough, and more than crept times what it was.
const (
	enough = 0.03
	crept  = 2
)

// A ledger says what the steps of a run have cost.
type ledger struct {
	Commit     string             `json:"commit"` // of `make nightly`
	Code       int                `json:"code"`   // the exit code
	CPUSeconds map[string]float64 `json:"cpuSeconds"`
	Failures   []string           `json:"failures"`
}

// A summary is of one run.
type summary struct {
	plan        string
	steps       []*step
	before      ledger
	interrupted bool
}

// share returns which part of the processor time a step is, and was, among the steps whose cost before is known.
func (r summary) share(s *step) (now, was float64) {
	var sum, before float64
	for _, other := range r.steps {
		if cost := r.before.CPUSeconds[other.Name]; cost > 0 {
			sum, before = sum+other.CPU.Seconds(), before+cost
		}
	}
	if cost := r.before.CPUSeconds[s.Name]; cost > 0 {
		return s.CPU.Seconds() / sum, cost / before
	}
	return 0, 0
}

// print says how all ended, and how to run again what failed.
func (r summary) print(out io.Writer, took time.Duration, skipped string) (now ledger) {
	var rows, failures strings.Builder
	var late []string
	var total time.Duration
	now = ledger{Commit: os.Getenv(commitVariable), CPUSeconds: make(map[string]float64)}
	// Where some tests had passed before, or were not run, the others' shares say nothing.
	judged := r.plan == "ci" && !slices.ContainsFunc(r.steps, func(s *step) bool { return s.Cached || s.Took == 0 })
	for _, s := range r.steps {
		share, was := r.share(s)
		if judged && was > 0 && share > enough && share > crept*was {
			s.Failures = append(s.Failures, failure{What: s.Name, Why: "its share of the processor time has doubled: make it cheaper; if it is worth that, say why " +
				"in a commit of the " + costsFile + " that `make nightly` writes", Again: "make ci"})
		}
		if s.Took == 0 {
			now.Code = codeFailed
		}
		total, now.CPUSeconds[s.Name] = total+s.CPU, s.CPU.Round(time.Second).Seconds()
		fmt.Fprintf(&rows, "  %-12s %7s %7s %5.1f %% %5.1f %%  %-7s  %s\n", s.Name, round(s.Took), round(s.CPU), 100*share, 100*was, s.state(), s.Result)
		for _, f := range s.Failures {
			text := strings.TrimSuffix(f.What+": "+f.Why, ": ")
			now.Failures = append(now.Failures, text)
			fmt.Fprintf(&failures, "  %s\n      %s\n", text, f.Again)
			if f.Late == "" {
				now.Code = codeFailed
			}
		}
		late = append(late, s.Late...)
	}
	rows.WriteString(skipped)
	if len(late) > 0 {
		fmt.Fprintf(&rows, "inconclusive, and run again alone:\n  %s\n", strings.Join(late, "\n  "))
	}
	if failures.Len() > 0 {
		fmt.Fprintf(&rows, "failed; the command below each runs it again:\n%s", failures.String())
	}
	verdict := "passed"
	switch {
	case r.interrupted:
		verdict, now.Code = "was interrupted", codeFailed
	case now.Code == codeFailed:
		verdict = "FAILED"
	case failures.Len() > 0:
		verdict, now.Code = "FAILED, by the machine,", codeMachine
	}
	fmt.Fprintf(out, "\nmake %s %s after %s, with %s of processor time; each step's, with its share and that before:\n%s",
		r.plan, verdict, round(took), round(total), rows.String())
	return now
}

// round returns a time as a person reads it.
func round(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	d = d.Round(time.Second)
	return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
}
