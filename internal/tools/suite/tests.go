//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/berth-go/berth/internal/testkit/lag"
)

// event is a line of `go test -json`: of a test binary (go doc test2json), or of a build
// (go help buildjson).
type event struct {
	Action      string
	Package     string
	ImportPath  string
	Test        string
	Output      string
	Elapsed     float64
	FailedBuild string
}

// failure is something that failed, with the command that runs it again.
type failure struct {
	what  string // step or module, package, test
	why   string // "" for a test that failed by itself
	again string
	run   *single // of a test that failed by itself
	late  string  // and while the machine was late: by how much
}

// single is a test of a package, as the go command takes both in the module's folder.
type single struct{ path, name string }

// tests is what is known of the tests of one module while they run.
type tests struct {
	module  string   // its folder
	path    string   // its import path
	env     []string // what the command needs that runs a test again
	cpu     string   // likewise, -cpu
	console *console

	mu       sync.Mutex
	packages map[string]*pkg    // guarded by mu; those that run
	builds   map[string]*string // guarded by mu; what the builder said, by package
	failures []failure          // guarded by mu
	stray    string             // guarded by mu; what is no event
	passed   int                // guarded by mu; packages
	failed   int                // guarded by mu; packages
	ran      int                // guarded by mu; tests, without subtests
	skipped  []string           // guarded by mu
	finished map[string]bool    // guarded by mu: the tests that passed
}

// pkg is a package whose tests run.
type pkg struct {
	begun  time.Time
	output strings.Builder // what belongs to no test
	tests  map[string]*test
	failed []string
	ran    int
	skips  int
}

// test is one that has not ended.
type test struct {
	begun  time.Time
	paused bool
	output strings.Builder
}

func newTests(module, path string, env []string, c *console) *tests {
	return &tests{
		module: module, path: path, env: env, console: c,
		packages: make(map[string]*pkg), builds: make(map[string]*string), finished: make(map[string]bool),
	}
}

// line takes one line of the output of go test.
func (t *tests) line(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var e event
	if err := json.Unmarshal([]byte(text), &e); err != nil || e.Action == "" {
		t.stray += text + "\n"
		t.console.line("%s", text)
		return
	}
	switch {
	case e.Action == "build-output":
		if t.builds[e.ImportPath] == nil {
			t.builds[e.ImportPath] = new(string)
		}
		*t.builds[e.ImportPath] += e.Output
	case e.Action == "build-fail":
		if said := t.builds[e.ImportPath]; said != nil {
			t.console.block(fmt.Sprintf("FAIL  %s  does not build", t.short(e.ImportPath)), *said)
		}
	case e.Package == "": // build events of a later Go
	case e.Test == "":
		t.ofPackage(e)
	default:
		t.ofTest(e)
	}
}

func (t *tests) get(path string) *pkg {
	p := t.packages[path]
	if p == nil {
		p = &pkg{begun: time.Now(), tests: make(map[string]*test)}
		t.packages[path] = p
	}
	return p
}

func (t *tests) ofTest(e event) {
	p := t.get(e.Package)
	x := p.tests[e.Test]
	if x == nil {
		x = &test{begun: time.Now()}
		p.tests[e.Test] = x
	}
	switch e.Action {
	case "pause":
		x.paused = true
	case "cont":
		x.paused = false
	case "output":
		if !strings.HasPrefix(e.Output, "=== ") {
			x.output.WriteString(e.Output)
		}
	case "pass", "skip", "fail":
		delete(p.tests, e.Test)
		if !strings.Contains(e.Test, "/") {
			p.ran++
		}
		switch e.Action {
		case "skip":
			p.skips++
		case "pass":
			t.finished[e.Test] = true
		}
		if e.Action == "fail" {
			t.failedTest(e, p, x.output.String())
		}
	}
}

// failedTest says what a test has printed, and remembers it unless it failed through one
// of its subtests.
func (t *tests) failedTest(e event, p *pkg, output string) {
	through := slices.ContainsFunc(p.failed, func(name string) bool { return strings.HasPrefix(name, e.Test+"/") })
	p.failed = append(p.failed, e.Test)
	if through && strings.Count(strings.TrimSpace(output), "\n") == 0 {
		return // it has only its result to say
	}
	t.console.block(fmt.Sprintf("FAIL  %s  %s", t.short(e.Package), e.Test), output)
	why := fatal.FindString(output)
	if why == "" && strings.Contains(output, "race detected during execution of test") {
		why = "data race"
	}
	if why != "" || !through {
		t.fail(e.Package, e.Test, why)
	}
	late := inconclusive.FindStringSubmatch(output)
	if late == nil {
		return
	}
	for i := range t.failures { // its own, or those of its subtests
		f := &t.failures[i]
		if f.run != nil && f.run.path == t.relative(e.Package) && strings.HasPrefix(f.run.name+"/", e.Test+"/") {
			f.late = late[1]
		}
	}
}

func (t *tests) ofPackage(e event) {
	p := t.get(e.Package)
	if e.Action == "output" {
		p.output.WriteString(e.Output)
		return
	}
	if e.Action != "pass" && e.Action != "fail" && e.Action != "skip" {
		return
	}
	delete(t.packages, e.Package)
	t.ran += p.ran
	if e.Action == "skip" && p.ran == 0 {
		return // it has no tests
	}
	if p.skips > 0 {
		t.skipped = append(t.skipped, fmt.Sprintf("%s: %s", t.short(e.Package), count(p.skips, "test")))
	}
	took := round(time.Duration(e.Elapsed * float64(time.Second)))
	if e.Action != "fail" {
		t.passed++
		if strings.Contains(p.output.String(), "\t(cached)") {
			took = "has passed before, nothing has changed"
		}
		t.console.line("ok    %s  %s", t.short(e.Package), took)
		return
	}
	t.failed++
	if e.FailedBuild != "" {
		t.fail(e.Package, "", "does not build")
		return
	}
	t.brokenOff(e.Package, p)
	t.console.line("FAIL  %s  %s", t.short(e.Package), took)
}

var (
	inconclusive = regexp.MustCompile(`(?m)^ +\S+\.go:\d+: ` + lag.Inconclusive + `(.*)$`)

	fatal    = regexp.MustCompile(`(?m)^(panic: |fatal error: |unexpected fault |SIG[A-Z]+: ).*`)
	timedOut = regexp.MustCompile(`(?m)^panic: (test timed out after \S+)(?:\n\trunning tests:\n((?:\t\t.*\n)*))?`)
	running  = regexp.MustCompile(`(?m)^\t\t(.*) \([^()]*\)$`)
	traced   = regexp.MustCompile(`\.((?:Test|Fuzz|Example)\w*)[.(]`)
	usual    = regexp.MustCompile(`(?m)^(PASS|FAIL|FAIL\t.*|exit status \d+|coverage: .*)\n`)
)

// brokenOff says why a package failed beyond tests that failed by themselves: a panic, a
// timeout, a data race or a leak after the last test.
func (t *tests) brokenOff(path string, p *pkg) {
	rest := usual.ReplaceAllString(p.output.String(), "")
	if strings.TrimSpace(rest) != "" {
		t.console.block(fmt.Sprintf("FAIL  %s  outside of its tests", t.short(path)), rest)
	}
	told := len(p.failed) > 0
	for _, name := range slices.Sorted(maps.Keys(p.tests)) {
		output := p.tests[name].output.String()
		if strings.TrimSpace(output) != "" {
			t.console.block(fmt.Sprintf("FAIL  %s  %s  did not end", t.short(path), name), output)
		}
		told = t.crashed(path, p, output) || told
	}
	switch {
	case t.crashed(path, p, rest):
	case strings.Contains(rest, "WARNING: DATA RACE"):
		t.fail(path, "", "data race outside of a test")
	case !told && len(p.tests) > 0:
		t.fail(path, "", "ended by itself while "+count(len(p.tests), "test")+" ran")
	case !told:
		t.fail(path, "", "failed outside of its tests")
	}
}

// crashed finds in output what ended a test binary.
func (t *tests) crashed(path string, p *pkg, output string) bool {
	if m := timedOut.FindStringSubmatch(output); m != nil {
		names := running.FindAllStringSubmatch(m[2], -1)
		for i, n := range names {
			if i+1 < len(names) && strings.HasPrefix(names[i+1][1], n[1]+"/") {
				continue // its subtest says more
			}
			t.fail(path, n[1], m[1])
		}
		if len(names) == 0 {
			t.fail(path, "", m[1])
		}
		return true
	}
	why := fatal.FindString(output)
	if why == "" {
		return false
	}
	// The output is that of the test which was the last to say something. The test that
	// crashed is the one that the trace names; a goroutine without a test is the package's.
	name := ""
	for _, m := range traced.FindAllStringSubmatch(output, -1) {
		if p.tests[m[1]] != nil {
			name = m[1]
			break
		}
	}
	t.fail(path, name, why)
	return true
}

// fail remembers a failure; without a test it is the package's.
func (t *tests) fail(path, name, why string) {
	f := failure{what: t.short(path), why: why, again: t.again(path, name)}
	if name != "" {
		f.what += "  " + name
	}
	if name != "" && why == "" {
		f.run = &single{t.relative(path), name}
	}
	t.failures = append(t.failures, f)
}

// ended is told when go test has ended. What it did not say of a package is a failure of
// the module.
func (t *tests) ended(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, path := range slices.Sorted(maps.Keys(t.packages)) {
		t.fail(path, "", "go test ended before its tests")
	}
	if err == nil || len(t.failures) > 0 {
		return
	}
	why := err.Error()
	if t.stray != "" {
		lines := strings.Split(strings.TrimSpace(t.stray), "\n")
		why = lines[len(lines)-1]
	}
	what := "module " + t.module
	words := []string{"go", "test", "-race", "./..."}
	if t.module != "." {
		words = slices.Insert(words, 1, "-C", t.module)
	}
	t.failures = append(t.failures, failure{what: what, why: why, again: strings.Join(words, " ")})
}

// doing returns what runs, the longest first: nothing while all that runs is a build.
func (t *tests) doing() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	type one struct {
		name  string
		begun time.Time
	}
	var all []string
	for _, path := range slices.SortedFunc(maps.Keys(t.packages), func(a, b string) int {
		return t.packages[a].begun.Compare(t.packages[b].begun)
	}) {
		p := t.packages[path]
		var leaves []one
		for name, x := range p.tests {
			if !x.paused {
				leaves = append(leaves, one{name, x.begun})
			}
		}
		leaves = slices.DeleteFunc(leaves, func(x one) bool {
			return slices.ContainsFunc(leaves, func(y one) bool { return strings.HasPrefix(y.name, x.name+"/") })
		})
		slices.SortFunc(leaves, func(a, b one) int { return a.begun.Compare(b.begun) })
		text := fmt.Sprintf("%s %s", t.short(path), round(time.Since(p.begun)))
		if len(leaves) > 0 {
			text += fmt.Sprintf(" (%s %s", leaves[0].name, round(time.Since(leaves[0].begun)))
			if more := len(leaves) - 1; more > 0 {
				text += fmt.Sprintf(", %d more", more)
			}
			text += ")"
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

// result returns what was run, for the summary.
func (t *tests) result() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := count(t.passed, "package") + " passed"
	if t.failed > 0 {
		text += fmt.Sprintf(", %d failed", t.failed)
	}
	text += ", with " + count(t.ran, "test")
	if len(t.skipped) > 0 {
		text += "; skipped in " + strings.Join(t.skipped, ", ")
	}
	return text
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
