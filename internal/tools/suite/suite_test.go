//go:build unix

package main

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// asSuite has the test binary be the command.
const asSuite = "BERTH_TEST_AS_SUITE"

func TestMain(m *testing.M) {
	if os.Getenv(asSuite) != "" {
		main()
	}
	for _, of := range []string{dirVariable, ledgerVariable, commitVariable} { // of the run that these tests are a part of
		_ = os.Unsetenv(of)
	}
	os.Exit(m.Run())
}

// patience bounds what must happen. Only what hangs meets it.
const patience = 3 * time.Minute

// in makes a folder with files, in which the test goes on.
func in(t *testing.T, files map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	t.Chdir(dir)
	t.Setenv("GOWORK", "off")
	t.Setenv("MAKEFLAGS", "")
	t.Setenv(asSuite, "1")
}

// try runs a plan of the steps of a makefile. It returns what is said to the summary, and from there.
func try(ctx context.Context, t *testing.T, plan, makefile string, files map[string]string, steps ...string) (code int, said, end string) {
	t.Helper()
	program, err := os.Executable()
	require.NoError(t, err)
	all := map[string]string{"Makefile": ".SILENT:\nstep = '" + program + "' step $@\ntests = '" + program + "' tests $@\n" + makefile, costsFile: "{}"}
	maps.Copy(all, files)
	in(t, all)
	var b bytes.Buffer
	code, err = suite(ctx, append([]string{"run", plan}, steps...), &b)
	require.NoError(t, err)
	said, end, found := strings.Cut(b.String(), "\nmake "+plan+" ")
	require.True(t, found, b.String())
	return code, said, end
}

func TestAStepThatFailsHidesNothing(t *testing.T) {
	code, said, end := try(t.Context(), t, "try", `
first:
	$(step) sh -c 'echo seen; exit 3'
second: first
	$(step) A=moon sh -c 'echo "not run: the $$A" >>"$$BERTH_TEST_REPORT"'
third: second
	$(step) sh -c 'exit 4'
fourth:
	exit 5
fifth: fourth
	$(step) true
`, nil, "first", "second", "third", "fourth", "fifth")
	require.Equal(t, codeFailed, code)
	require.Contains(t, said, "seen\n")
	require.Regexp(t, `^FAILED after .*:
  first .*  FAILED .*
  second .*  ok .*
  third .*  FAILED .*
  fourth .*  NOT RUN .*
  fifth .*  NOT RUN .*
not run: the moon
failed; .*
  first: exit status 3
      sh -c echo seen; exit 3
  third: exit status 4
      sh -c exit 4
$`, end)
}

func TestAllPassed(t *testing.T) {
	t.Setenv(ledgerVariable, filepath.Join(t.TempDir(), "ledger"))
	t.Setenv(commitVariable, "abc")
	code, _, end := try(t.Context(), t, "ci", "first second:\n\t$(step) true\n", nil, "first", "second")
	require.Equal(t, codePassed, code)
	require.Regexp(t, `^passed after`, end)
	require.NotContains(t, end, "failed;")
	var l ledger
	require.NoError(t, fromJSON(os.Getenv(ledgerVariable), &l))
	require.Equal(t, ledger{Commit: "abc", CPUSeconds: map[string]float64{"first": 0, "second": 0}}, l)
}

func TestAShareThatDoublesIsAFailure(t *testing.T) {
	for name, c := range map[string]struct {
		plan            string
		was, now, other time.Duration
		cached, creeps  bool
	}{
		"more than doubled":       {"ci", 10, 25, 75, false, true},
		"doubled":                 {"ci", 10, 20, 80, false, false},
		"of little":               {"ci", 1, 3, 97, false, false},
		"of a bit more":           {"ci", 1, 4, 96, false, true},
		"of a slower machine":     {"ci", 10, 50, 450, false, false},
		"where others had passed": {"ci", 10, 25, 75, true, false},
		"of another plan":         {"test", 10, 25, 75, false, false},
	} {
		of := func(name string, cpu time.Duration) *step {
			return &step{Name: name, Took: 1, CPU: cpu * time.Second, Cached: c.cached}
		}
		r := summary{
			plan: c.plan, steps: []*step{of("this", c.now), of("other", c.other), of("new", 1000)},
			before: ledger{CPUSeconds: map[string]float64{"this": float64(c.was), "other": float64(100 - c.was), "gone": 1000}},
		}
		var b strings.Builder
		now := r.print(&b, 0, "")
		require.Contains(t, b.String(), fmt.Sprintf(" %4.1f %%  %4.1f %%", 100*float64(c.now)/float64(c.now+c.other), float64(c.was)), name)
		if !c.creeps {
			require.Zero(t, now.Code, name)
			continue
		}
		require.Equal(t, codeFailed, now.Code, name)
		require.Len(t, now.Failures, 1, name)
		require.Contains(t, now.Failures[0], "this: its share of the processor time has doubled: make it cheaper;", name)
	}
}

// What a run has started ends with it.
func TestAnInterruptEndsWhatRuns(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pids")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			if text, err := os.ReadFile(pids); err == nil && strings.HasSuffix(string(text), "\n") {
				cancel()
			}
		}
	}()
	code, said, end := try(ctx, t, "try", "long:\n\t$(step) bash -c 'trap \"echo asked; exit 1\" TERM; sleep 1000 & echo $$! >"+pids+"; wait'\nnext: long\n\t$(step) echo next\n",
		nil, "long", "next")
	require.Equal(t, codeFailed, code)
	require.Regexp(t, `^was interrupted after .*:\n  long .*  FAILED .*\n  next .*  NOT RUN`, end)
	require.Contains(t, said, "asked", "it could tidy up")
	text, err := os.ReadFile(pids)
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		// One that has ended and that nobody has waited for is there still.
		status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		return syscall.Kill(pid, 0) != nil || err == nil && strings.Contains(string(status), ") Z ")
	}, patience, time.Millisecond)
}

// A module that no plan tests would not be missed, nor would a step that make does not know.
func TestPlansAreWhole(t *testing.T) {
	t.Chdir("../../..")
	var modules []string
	require.NoError(t, filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && (strings.HasPrefix(entry.Name(), ".") && path != "." || entry.Name() == "testdata") {
			return fs.SkipDir
		}
		if err == nil && entry.Name() == "go.mod" && !strings.HasPrefix(path, "tools") { // they have no tests
			modules = append(modules, filepath.ToSlash(filepath.Dir(path)))
		}
		return err
	}))
	values := map[string][]string{}
	for _, name := range []string{"MODULES", "TESTS", "CI", "NIGHTLY"} {
		out, err := exec.Command("make", "--no-print-directory", "-f", "Makefile", "--eval", "print: ; @echo $("+name+")", "print").Output()
		require.NoError(t, err)
		values[name] = strings.Fields(string(out))
	}
	require.ElementsMatch(t, modules, values["MODULES"])
	require.Subset(t, values["CI"], values["TESTS"])
	require.Subset(t, values["NIGHTLY"], values["CI"])
	// What is run in a plan, with the order of its steps.
	cmd := exec.Command("make", append([]string{"--no-print-directory", "--dry-run", "MAKE=true"}, values["NIGHTLY"]...)...)
	cmd.Env = append(os.Environ(), dirVariable+"=x")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, step := range values["NIGHTLY"] {
		require.Regexp(t, `\.cache/suite (step|tests) `+step+" ", string(out))
	}
	require.NotContains(t, string(out), "Circular")
	for _, m := range modules {
		require.Contains(t, string(out), strings.Replace("./"+m+"/...", "././", "./", 1), "a plan tests it")
	}
}

var (
	testFunction = regexp.MustCompile(`(?ms)^func (Test\w+)\(.*?^}$`)
	goesOn       = regexp.MustCompile(`amount\.Times\(\)|rapid\.Check\(`)
	historiesAre = regexp.MustCompile(`(?m)^HISTORIES := (.+)\nRANDOM := (.+)$`)
)

// make nightly runs more of each test that could go on for ever.
func TestNoHistoryIsForgotten(t *testing.T) {
	root := os.DirFS("../../..")
	text, err := fs.ReadFile(root, "Makefile")
	require.NoError(t, err)
	list := historiesAre.FindSubmatch(text)
	named, found := regexp.MustCompile(string(list[1])), 0
	folders := strings.Fields(strings.NewReplacer("./", "", "/...", "").Replace(string(list[2])))
	require.NoError(t, fs.WalkDir(root, ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "internal/tools/suite") {
			return err
		}
		text, err := fs.ReadFile(root, path)
		for _, test := range testFunction.FindAllSubmatch(text, -1) {
			if goesOn.Match(test[0]) {
				found++
				require.Regexp(t, named, string(test[1]), path)
				require.True(t, slices.ContainsFunc(folders, func(f string) bool { return strings.HasPrefix(path, f+"/") }), "RANDOM lacks %s", path)
			}
		}
		return err
	}))
	require.Greater(t, found, 10)
}
