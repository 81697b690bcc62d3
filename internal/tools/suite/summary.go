//go:build unix

package main

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// summary says how all ended, and how to run again what failed.
func (s *suite) summary(interrupted bool) (code int) {
	var b, late, failures strings.Builder
	var total time.Duration
	for _, step := range s.plan.steps {
		r := s.results[step.name]
		took, cpu, result := round(r.took), round(r.cpu), ""
		total += r.cpu
		if r.tests != nil {
			result = r.tests.result()
		}
		if r.state == notRun {
			took, cpu, result, code = "", "", r.failures[0].why, codeFailed
		} else {
			for _, f := range r.failures {
				fmt.Fprintf(&failures, "  %s\n", strings.TrimSuffix(f.what+": "+f.why, ": "))
				fmt.Fprintf(&failures, "      %s\n", f.again)
				if f.late == "" {
					code = codeFailed
				}
			}
		}
		for _, l := range r.late {
			fmt.Fprintf(&late, "  %s\n", l)
		}
		fmt.Fprintf(&b, "  %-15s %6s %6s  %-7s  %s\n", step.name, took, cpu, r.state, result)
	}
	if text, err := os.ReadFile(s.report); err == nil && len(text) > 0 {
		b.Write(text)
	}
	if late.Len() > 0 {
		fmt.Fprintf(&b, "inconclusive, and run again alone:\n%s", late.String())
	}
	if failures.Len() > 0 {
		fmt.Fprintf(&b, "failed; the command below each runs it again:\n%s", failures.String())
	}
	verdict := "passed"
	switch {
	case interrupted:
		verdict, code = "was interrupted", codeFailed
	case code == codeFailed:
		verdict = "FAILED"
	case failures.Len() > 0:
		verdict, code = "FAILED, by the machine,", codeMachine
	}
	s.console.print(fmt.Sprintf("\nmake %s %s after %s, with %s of processor time; each step's:\n%s",
		s.command, verdict, round(time.Since(s.console.begun)), round(total), b.String()))
	return code
}

// about returns a time that is only roughly known.
func about(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%ds", d/time.Second)
	}
	return fmt.Sprintf("%dm", (d+30*time.Second)/time.Minute)
}
