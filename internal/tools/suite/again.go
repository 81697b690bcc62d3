//go:build unix

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// tries is how often a test is run in which the machine was late each time.
const tries = 3

// again runs the tests of a step again that failed while the machine was late, one at a time, when all else has ended.
func (s *suite) again(ctx context.Context, step step) {
	r := s.results[step.name]
	var left []failure
	for _, f := range r.failures {
		for run := 2; f.late != "" && run <= tries && ctx.Err() == nil; run++ {
			r.late = append(r.late, f.what+": "+f.late)
			s.console.line("again %s  run %d of at most %d", f.what, run, tries)
			f = s.alone(ctx, step, f)
		}
		switch {
		case f.what == "":
			r.late[len(r.late)-1] += "; it passed when it ran again"
			continue
		case f.late != "" && ctx.Err() == nil:
			f.why = fmt.Sprintf("the machine was late in each of %d runs", tries)
		}
		left = append(left, f)
	}
	s.set(func() {
		if r.failures = left; r.state == failed && len(left) == 0 {
			r.state = passed
		}
	})
}

// alone runs one test again. It returns the failure, a fault of the code before any other; none where the test has passed.
func (s *suite) alone(ctx context.Context, step step, f failure) failure {
	step.flags = append(slices.Clone(step.flags), "-count=1", "-run="+pattern(f.run.name))
	r := &result{}
	failures := s.tests(ctx, step, r, f.run.path)
	slices.SortFunc(failures, func(a, b failure) int { return strings.Compare(a.late, b.late) }) // none comes first
	switch {
	case len(failures) > 0:
		return failures[0]
	case !r.tests.finished[f.run.name]:
		f.late, f.why = "", "did not run again"
		return f
	}
	return failure{}
}
