//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

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
	dir := t.TempDir()
	files := map[string]string{"go.mod": "module example.org/late\n\ngo 1.26\n", "late_test.go": lateTests}
	for _, what := range []string{"once", "thrice", "sharp", "sub", "fault", "race"} {
		files[what] = fails[what]
	}
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	var b strings.Builder
	s := newSuite("try", plan{steps: []step{{name: "tests", module: dir, flags: []string{"-run=" + only}}}}, newConsole(&b))
	s.env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	s.report, s.grace = filepath.Join(dir, "report"), patience
	code = s.run(t.Context())
	_, end, _ = strings.Cut(b.String(), "\nmake try ")
	return code, strings.ReplaceAll(end, dir, "late")
}

func TestWhatFailsOnALateMachineIsRunAgain(t *testing.T) {
	t.Parallel()
	code, end := lateRun(t, "Once|Parent", map[string]string{"once": "x\n", "sub": "x\nx\n"})
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
	t.Parallel()
	code, end := lateRun(t, "Thrice", map[string]string{"thrice": "x\nx\nx\nx\n"})
	require.Equal(t, codeMachine, code, end)
	require.Regexp(t, `^FAILED, by the machine, after`, end)
	require.Contains(t, end, "TestThrice: the machine was late in each of 3 runs\n")
	require.Equal(t, 2, strings.Count(end, "late by 1s"))
}

func TestAFaultIsNotRunAgain(t *testing.T) {
	t.Parallel()
	// TestSharp fails on a late machine first, and then on one that is on time.
	code, end := lateRun(t, "Fault|Race|Sharp|Once", map[string]string{"fault": "x\n", "race": "x\n", "sharp": "x\nsharp\n", "once": "x\n"})
	require.Equal(t, codeFailed, code, end)
	require.Regexp(t, `^FAILED after`, end)
	_, red, _ := strings.Cut(end, "failed; ")
	require.Contains(t, red, "TestFault\n")
	require.Contains(t, red, "TestRace: data race\n")
	require.Contains(t, red, "TestSharp\n")
	require.NotContains(t, red, "TestOnce")
	require.Contains(t, end, "TestOnce: the machine was late by 1s, and the test relies on 2s; it passed when it ran again\n")
}
