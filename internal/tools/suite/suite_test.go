//go:build unix

package main

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// sh returns a step that runs a script.
func sh(name, script string, after ...string) step {
	return step{name: name, command: []string{"sh", "-c", script}, after: after}
}

// patience bounds what must happen. Only what hangs meets it.
const patience = 3 * time.Minute

// try runs a plan and returns what it says.
func try(ctx context.Context, t *testing.T, steps ...step) (passed bool, said string) {
	t.Helper()
	var b strings.Builder
	s := newSuite("try", plan{does: "tries", steps: steps}, newConsole(&b))
	s.env = os.Environ()
	s.report = filepath.Join(t.TempDir(), "report")
	s.grace = patience
	for i := range s.plan.steps {
		s.plan.steps[i].env = append(s.plan.steps[i].env, "BERTH_TEST_REPORT="+s.report)
	}
	return s.run(ctx) == codePassed, b.String()
}

func TestAStepThatFailsHidesNothing(t *testing.T) {
	t.Parallel()
	passed, said := try(t.Context(), t,
		sh("first", "echo seen; exit 3"),
		sh("second", `echo "not run: the moon" >>"$BERTH_TEST_REPORT"`, "first"),
		sh("third", "exit 4", "second"),
	)
	require.False(t, passed)
	require.Contains(t, said, "first | seen\n")
	_, end, _ := strings.Cut(said, "make try FAILED")
	require.Regexp(t, `^ after .*:
  first +\S+ +\S+  FAILED .*
  second +\S+ +\S+  ok .*
  third +\S+ +\S+  FAILED .*
not run: the moon
failed; .*
  first: exit status 3
      sh -c 'echo seen; exit 3'
  third: exit status 4
      sh -c 'exit 4'
$`, end)
}

func TestAStepThatYieldsGivesWay(t *testing.T) {
	t.Parallel()
	yields := sh("yields", `until [ "$(nice)" -ge 10 ]; do sleep 0.01; done; echo behind`)
	yields.yields = true
	passed, said := try(t.Context(), t, yields)
	require.True(t, passed)
	require.Contains(t, said, "yields | behind\n")
}

func TestAllPassed(t *testing.T) {
	t.Parallel()
	passed, said := try(t.Context(), t, sh("first", "exit 0"), sh("second", "exit 0"))
	require.True(t, passed)
	require.Contains(t, said, "make try: tries.\n")
	require.Contains(t, said, "make try passed after")
	require.NotContains(t, said, "failed")
}

func TestWithoutAVitalStepNothingAfterItIsRun(t *testing.T) {
	t.Parallel()
	vital := sh("setup", "exit 1")
	vital.vital = true
	last := sh("stop", "echo stopped")
	last.always = true
	passed, said := try(t.Context(), t, vital, sh("build", "echo built", "setup"), sh("test", "echo tested", "build"), sh("docs", "echo read"), last)
	require.False(t, passed)
	require.NotContains(t, said, "built")
	require.NotContains(t, said, "tested")
	require.Contains(t, said, "read")
	require.Contains(t, said, "stopped")
	require.Regexp(t, `build +NOT RUN +setup failed`, said)
	require.Regexp(t, `test +NOT RUN +build was not run`, said)
}

func TestAStepTakesVariablesAway(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"AB=1", "B=3", "D=4"},
		environment([]string{"A=1", "AB=1", "B=2"}, []string{"A", "B=3", "C", "D=4"}))
}

// What a step has started ends with it, and what is to be done always is.
func TestAnInterruptEndsWhatRuns(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	pids := filepath.Join(t.TempDir(), "pids")
	last := sh("stop", "echo stopped")
	last.always = true
	go func() {
		for ctx.Err() == nil {
			if text, err := os.ReadFile(pids); err == nil && strings.HasSuffix(string(text), "\n") {
				cancel()
			}
		}
	}()
	script := `trap "echo asked; exit 1" TERM; sleep 1000 & echo $! >"` + pids + `"; wait`
	if runtime.GOOS == "linux" {
		script = "set -m; " + script // the child is a group of its own
	}
	long := step{name: "long", command: []string{"bash", "-c", script}}
	passed, said := try(ctx, t, long, sh("next", "echo next", "long"), last)
	require.False(t, passed)
	require.Regexp(t, `make try was interrupted after .*:\n  long +\S+ +\S+  FAILED`, said)
	require.Regexp(t, `next +NOT RUN +interrupted`, said)
	require.Contains(t, said, "stopped")
	require.Contains(t, said, "long | asked", "it could tidy up")

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

func TestSilenceIsBrokenByWhatRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var b strings.Builder
		s := newSuite("try", plan{steps: []step{sh("first", ""), sh("second", ""), sh("third", "")}}, newConsole(&b))
		s.results["first"].state = passed
		s.results["second"].state, s.results["second"].begun = runs, time.Now()
		s.results["third"].state, s.results["third"].tests = runs, newTests(".", "example.org", nil, s.console)
		ctx, cancel := context.WithTimeout(t.Context(), 45*time.Second)
		defer cancel()
		s.watch(ctx)
		require.Equal(t, "   20s  ...   second 20s; third builds\n   40s  ...   second 40s; third builds\n", b.String())
	})
}

// A module that nothing tests, or a step that waits for none, would not be missed.
func TestPlansAreWhole(t *testing.T) {
	t.Parallel()
	root := "../../.."
	var modules []string
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && (strings.HasPrefix(entry.Name(), ".") && path != root || entry.Name() == "testdata") {
			return fs.SkipDir
		}
		if err == nil && entry.Name() == "go.mod" {
			module, err := filepath.Rel(root, filepath.Dir(path))
			modules = append(modules, module)
			return err
		}
		return err
	}))
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	require.NoError(t, err)
	for name, p := range plans(places{"bare", "docker", "GOFLAGS=-p=2"}) {
		names, tested := make(map[string]bool), []string(nil)
		for _, step := range p.steps {
			for _, before := range step.after {
				require.True(t, names[before], "%s: %s comes after %s, which does not come before it", name, step.name, before)
			}
			names[step.name] = true
			if step.module != "" {
				tested = append(tested, step.module)
			}
			if len(step.command) > 0 && step.command[0] == "make" {
				require.Contains(t, string(makefile), "\n"+step.name+": ## ")
			}
		}
		switch name {
		case "check":
			require.Equal(t, []string{".", "cmd/berth"}, tested)
		case "test": // a browser is for CI alone
			require.ElementsMatch(t, modules, append(tested, "test/browser"), name)
		default:
			require.ElementsMatch(t, modules, tested, name)
		}
	}
}
