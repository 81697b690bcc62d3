//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The recording has a package for each way in which one can fail.
func TestEveryWayToFailIsNamedWithItsCommand(t *testing.T) {
	t.Parallel()
	all, err := readEvents("testdata/events.json")
	require.NoError(t, err)
	s := &step{Vars: []string{"BERTH_A=b", "BERTH_NONE=", "PATH=x"}, Command: []string{"-race", "-cpu=1", "-p=2", "./..."}}
	var found [][3]string
	for _, f := range s.failures(all) {
		require.Empty(t, f.Late)
		found = append(found, [3]string{f.What, f.Why, f.Again})
	}
	const again = "BERTH_A=b go test -race -count=1 -cpu=1 "
	require.Equal(t, [][3]string{
		{"./x/a  TestOwn/s", "", again + "-run '^TestOwn$/^s$' ./x/a"},
		{"./x/a  TestParent/sub_x/y", "", again + "-run '^TestParent$/^sub_x$/^y$' ./x/a"},
		{"./x/b", "does not build", again + "./x/b"},
		{"./x/c  TestPanic", "panic: boom", again + "-run '^TestPanic$' ./x/c"},
		{"./x/c  TestWait", "did not end", again + "-run '^TestWait$' ./x/c"}, // with it
		{"./x/d  TestLong", "panic: test timed out after 3s", again + "-run '^TestLong$' ./x/d"},
		{"./x/d  TestLong2/in", "did not end", again + "-run '^TestLong2$/^in$' ./x/d"},
		{"./x/e", "WARNING: DATA RACE", again + "./x/e"},
		{"./x/f", "does not build", again + "./x/f"},
		{"./x/g  TestExit", "panic: unexpected call to os.Exit(0) during test [recovered, repanicked]", again + "-run '^TestExit$' ./x/g"},
		{"./x/h  TestPanicIn", "panic: inner [recovered, repanicked]", again + "-run '^TestPanicIn$' ./x/h"},
		{"./x/h  TestPanicIn/sub", "", again + "-run '^TestPanicIn$/^sub$' ./x/h"},
	}, found)
}

// What a program that a test has started says of its end is no failure.
func TestAPackageThatPassesHasNotFailed(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "events")
	require.NoError(t, os.WriteFile(file, []byte(`{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"panic: of a child\n"}
{"Action":"pass","Package":"p","Test":"TestA","Elapsed":1}
{"Action":"output","Package":"p","Output":"panic: of another\n"}
{"Action":"pass","Package":"p","Elapsed":1.25}
{"Action":"output","Package":"q","Output":"ok  \tq\t(cached)\n"}
{"Action":"skip","Package":"q","Test":"TestB","Elapsed":1}
{"Action":"pass","Package":"q","Elapsed":0}
`), 0o600))
	all, err := readEvents(file)
	require.NoError(t, err)
	require.Empty(t, new(step).failures(all))
	text, cached := all.result()
	require.True(t, cached)
	require.Equal(t, "1 tests passed, 0 failed, 1 skipped", text)
}

// The tests of a module that fail while the machine was late: as often as a file has lines, which is then a line shorter.
const lateTests = `package late

import (
	"os"
	"strings"
	"testing"
)

func fails(t *testing.T, what string, late bool) {
	text, err := os.ReadFile(what)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, more := strings.Cut(string(text), "\n")
	if more {
		if err := os.WriteFile(what, []byte(rest), 0o600); err != nil {
			t.Fatal(err)
		}
		if late && !strings.HasPrefix(string(text), "sharp") {
			t.Cleanup(func() { t.Log("inconclusive: the machine was late by 1s, and the test relies on 2s") })
		}
		t.Error("fails")
	}
}

func TestOnce(t *testing.T)   { fails(t, "once", true) }
func TestThrice(t *testing.T) { fails(t, "thrice", true) }
func TestSharp(t *testing.T)  { fails(t, "sharp", true) }

func TestParent(t *testing.T) {
	t.Cleanup(func() {
		if t.Failed() {
			t.Log("inconclusive: the machine was late by 3s, and the test relies on 4s")
		}
	})
	t.Run("a sub", func(t *testing.T) { fails(t, "sub", false) })
	t.Run("another", func(t *testing.T) {})
}

func TestFault(t *testing.T) { fails(t, "fault", false) }
func TestRace(t *testing.T) {
	fails(t, "race", true)
	n, done := 0, make(chan bool)
	go func() { n++; close(done) }()
	n++
	<-done
}
`

// lateRun runs a module whose tests fail as often as it says.
func lateRun(t *testing.T, only string, fails map[string]string) (code int, end string) {
	t.Helper()
	files := map[string]string{"go.mod": "module " + library + "\n\ngo 1.26\n", "late/late_test.go": lateTests}
	for _, what := range []string{"once", "thrice", "sharp", "sub", "fault", "race"} {
		files["late/"+what] = fails[what]
	}
	out, err := exec.Command("go", "env", "GOMOD").Output()
	require.NoError(t, err)
	tools := filepath.Join(filepath.Dir(string(out)), "tools")
	program := filepath.Join(t.TempDir(), "gotestsum")
	build := exec.Command("go", "-C", tools, "build", "-o", program, "gotest.tools/gotestsum")
	build.Env = append(os.Environ(), "GOWORK=off")
	said, err := build.CombinedOutput()
	require.NoError(t, err, "%s", said)
	code, _, end = try(t.Context(), t, "try", ".PHONY: late\nlate:\n\tmkdir -p .cache; ln -sf "+program+" "+gotestsum+"\n\t$(tests) -race -run="+only+" ./...\n", files, "late")
	return code, end
}

func TestWhatFailsOnALateMachineIsRunAgain(t *testing.T) {
	code, end := lateRun(t, "'Once|Parent'", map[string]string{"once": "x\n", "sub": "x\nx\n"})
	require.Equal(t, codePassed, code, end)
	require.Regexp(t, `^passed after`, end)
	require.Contains(t, end, `inconclusive, and run again alone:
  ./late  TestOnce: the machine was late by 1s, and the test relies on 2s; it passed when it ran again
  ./late  TestParent/a_sub: the machine was late by 3s, and the test relies on 4s
  ./late  TestParent/a_sub: the machine was late by 3s, and the test relies on 4s; it passed when it ran again
`)
	require.NotContains(t, end, "failed; ")
}

func TestWhatFailsOnAMachineThatIsAlwaysLate(t *testing.T) {
	code, end := lateRun(t, "Thrice", map[string]string{"thrice": "x\nx\nx\nx\n"})
	require.Equal(t, codeMachine, code, end)
	require.Regexp(t, `^FAILED, by the machine, after`, end)
	require.Contains(t, end, "TestThrice: the machine was late in each of 3 runs\n")
	require.Equal(t, 2, strings.Count(end, "late by 1s"))
}

func TestAFaultIsNotRunAgain(t *testing.T) {
	// TestSharp fails on a late machine first, and then on one that is on time.
	code, end := lateRun(t, "'Fault|Race|Sharp|Once'", map[string]string{"fault": "x\n", "race": "x\nx\nx\n", "sharp": "x\nsharp\n", "once": "x\n"})
	require.Equal(t, codeFailed, code, end)
	require.Regexp(t, `^FAILED after`, end)
	_, red, _ := strings.Cut(end, "failed; ")
	require.Contains(t, red, "TestFault\n")
	require.Contains(t, red, "TestRace: WARNING: DATA RACE\n")
	require.Contains(t, red, "TestSharp\n")
	require.NotContains(t, red, "TestOnce")
	require.NotContains(t, end, "TestRace: the machine")
	require.Contains(t, end, "TestOnce: the machine was late by 1s, and the test relies on 2s; it passed when it ran again\n")
}
