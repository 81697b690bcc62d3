//go:build unix

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/berth-go/berth/internal/testkit/lag"
)

// A failure is something that failed.
type failure struct {
	What          string // the step; of tests a package, and the test
	Why           string // "" of a test that failed by itself
	Again         string // the command that runs it again
	Late          string // by how much the machine was, in a test that failed by itself
	Package, Test string
}

// library is the module of the root. The others are named by their folders.
const library = "github.com/berth-go/berth"

// event is a line of `go test -json` (go doc test2json).
type event struct{ Action, Package, Test, Output, FailedBuild string }

// outcome is what is known of a test; that without a name is its package.
type outcome struct {
	output strings.Builder
	state  string // run, pause, cont, and as it ended: pass, skip, fail
	build  bool   // the package did not build
}

type outcomes map[string]map[string]*outcome // by package and test

const gotestsum = ".cache/gotestsum" // the Makefile builds it

// test runs tests by gotestsum, which tells a person about them, and returns what failed.
func (s *step) test(ctx context.Context, out io.Writer, args ...string) (all outcomes, failures []failure) {
	file := filepath.Join(s.dir, s.Name+".events")
	_ = os.Remove(file) // of a run before
	command := []string{gotestsum, "--format=pkgname", "--format-icons=text", "--format-hide-empty-pkg", "--jsonfile=" + file, "--"}
	err := s.execute(ctx, out, append(command, args...)...)
	all, readErr := readEvents(file)
	failures = s.failures(all)
	if err = cmp.Or(readErr, err); err != nil && (len(failures) == 0 || ctx.Err() != nil) {
		failures = append(failures, failure{What: s.Name, Why: err.Error(), Again: "go test -race " + strings.Join(args, " ")})
	}
	return all, failures
}

func readEvents(file string) (outcomes, error) {
	text, err := os.ReadFile(file)
	all := make(outcomes)
	for line := range strings.Lines(string(text)) {
		var e event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			return nil, err
		}
		if all[e.Package] == nil { // "" is what builds have said
			all[e.Package] = map[string]*outcome{"": {}}
		}
		o := all[e.Package][e.Test]
		if o == nil {
			o = new(outcome)
			all[e.Package][e.Test] = o
		}
		if e.Action == "output" {
			o.output.WriteString(e.Output)
		} else {
			o.state, o.build = e.Action, e.FailedBuild != ""
		}
	}
	return all, err
}

var (
	inconclusive = regexp.MustCompile(`(?m)^ +\S+\.go:\d+: ` + lag.Inconclusive + `(.*)$`)
	crash        = regexp.MustCompile(`(?m)^(panic: |fatal error: |unexpected fault |SIG[A-Z]+: |WARNING: DATA RACE).*`)
)

// failures returns what failed: of a test that has subtests those alone.
func (s *step) failures(all outcomes) (failures []failure) {
	add := func(path, test, why string) {
		f := failure{strings.TrimSpace(folder(path) + "  " + test), why, s.command(path, test), "", path, test}
		if why == "" {
			f.Late = late(all[path], test)
		}
		failures = append(failures, f)
	}
	delete(all, "")
	for _, path := range slices.Sorted(maps.Keys(all)) {
		tests, before := all[path], len(failures)
		bad := slices.DeleteFunc(slices.Sorted(maps.Keys(tests)), func(name string) bool {
			return name == "" || slices.Contains([]string{"pass", "skip", "pause"}, tests[name].state)
		})
		for i, name := range bad {
			o := tests[name]
			why := crash.FindString(o.output.String())
			switch {
			case why != "": // more than that it has failed
			case i+1 < len(bad) && strings.HasPrefix(bad[i+1], name+"/"):
				continue
			case o.state != "fail":
				why = "did not end"
			}
			add(path, name, why)
		}
		whole := tests[""]
		switch why := crash.FindString(whole.output.String()); {
		case whole.state == "pass", whole.state == "skip":
		case whole.build:
			add(path, "", "does not build")
		case why != "":
			add(path, "", why)
		case len(failures) == before:
			add(path, "", "failed outside of its tests")
		}
	}
	return failures
}

// late returns by how much the machine was late in a test, or in one that it is a part of.
func late(tests map[string]*outcome, name string) string {
	for ; name != ""; name = name[:max(0, strings.LastIndex(name, "/"))] {
		if o := tests[name]; o != nil && inconclusive.MatchString(o.output.String()) {
			return inconclusive.FindStringSubmatch(o.output.String())[1]
		}
	}
	return ""
}

// command returns what runs a test, or all of a package, again.
func (s *step) command(path, test string) string {
	words := slices.DeleteFunc(slices.Clone(s.Vars), func(v string) bool { return !strings.HasPrefix(v, "BERTH_") || strings.HasSuffix(v, "=") })
	words = append(words, "go", "test", "-race", "-count=1")
	words = append(words, slices.DeleteFunc(slices.Clone(s.Command), func(a string) bool { return !strings.HasPrefix(a, "-cpu=") })...)
	if test != "" {
		words = append(words, "-run", "'"+strings.ReplaceAll(pattern(test), "'", `'\''`)+"'")
	}
	return strings.Join(append(words, folder(path)), " ")
}

// folder returns a package as a person reads it, and as the go command takes it in the workspace's root.
func folder(path string) string {
	path, _, _ = strings.Cut(path, " ") // "p [p.test]": p built for the tests of p
	path = strings.TrimSuffix(strings.TrimSuffix(path, ".test"), "_test")
	if below, ok := strings.CutPrefix(path, library); ok {
		return "." + below
	}
	return path
}

// pattern matches one test.
func pattern(name string) string {
	return "^" + strings.ReplaceAll(regexp.QuoteMeta(name), "/", "$/^") + "$"
}

// result says how many tests there were, and whether some had passed before.
func (all outcomes) result() (text string, cached bool) {
	counts := map[string]int{}
	for _, of := range all {
		for name, o := range of {
			if name != "" {
				counts[o.state]++
			}
		}
		cached = cached || strings.Contains(of[""].output.String(), "\t(cached)")
	}
	return fmt.Sprintf("%d tests passed, %d failed, %d skipped", counts["pass"], counts["fail"], counts["skip"]), cached
}

const tries = 3 // of a test in which the machine was late each time

// again runs the tests again that failed while the machine was late, one at a time.
func (s *step) again(ctx context.Context, out io.Writer) {
	flags := slices.DeleteFunc(slices.Clone(s.Command), func(a string) bool { return !strings.HasPrefix(a, "-") })
	var left []failure
	for _, f := range s.Failures {
		for run := 2; f.Late != "" && run <= tries && ctx.Err() == nil; run++ {
			s.Late = append(s.Late, f.What+": "+f.Late)
			fmt.Fprintf(out, "again  %s, run %d of at most %d\n", f.What, run, tries)
			all, failures := s.test(ctx, out, append(flags, "-count=1", "-run="+pattern(f.Test), folder(f.Package))...)
			slices.SortStableFunc(failures, func(a, b failure) int { return strings.Compare(a.Late, b.Late) }) // a fault of the code comes first
			if o := all[f.Package][f.Test]; len(failures) > 0 {
				f = failures[0]
			} else if f.Late, f.Why = "", "did not run again"; o != nil && o.state == "pass" {
				f = failure{}
				s.Late[len(s.Late)-1] += "; it passed when it ran again"
			}
		}
		if f.Late != "" {
			f.Why = fmt.Sprintf("the machine was late in each of %d runs", tries)
		}
		if f != (failure{}) {
			left = append(left, f)
		}
	}
	s.Failures = left
}
