//go:build unix

package main

import (
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// replay gives recorded lines of go test to the tests of a module, in no time.
func replay(t *testing.T, lines string) (found *tests, all string) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		var said strings.Builder
		found = newTests("some/module", "example.org/x", []string{"A=b"}, newConsole(&said))
		for line := range strings.Lines(lines) {
			found.line(strings.TrimSuffix(line, "\n"))
		}
		found.ended(errors.New("exit status 1"))
		all = said.String()
	})
	return found, all
}

// plainly are failures none of which is to be run again.
func plainly(failures []failure) (all [][3]string) {
	for _, f := range failures {
		if f.late != "" {
			f.why += f.late
		}
		all = append(all, [3]string{f.what, f.why, f.again})
	}
	return all
}

// The recording has a package for each way in which one can fail.
func TestEveryWayToFailIsNamedWithItsCommand(t *testing.T) {
	t.Parallel()
	recorded, err := os.ReadFile("testdata/events.json")
	require.NoError(t, err)
	found, said := replay(t, string(recorded))

	const again = "A=b go -C some/module test -race -count=1 "
	require.Equal(t, [][3]string{
		{"./some/module/f", "does not build", again + "./f"},
		{"./some/module/a  TestParent/sub_x/y", "", again + "-run '^TestParent$/^sub_x$/^y$' ./a"},
		{"./some/module/a  TestOwn/s", "", again + "-run '^TestOwn$/^s$' ./a"},
		{"./some/module/b", "does not build", again + "./b"},
		{"./some/module/c  TestPanic", "panic: boom", again + "-run '^TestPanic$' ./c"},
		{"./some/module/e", "data race outside of a test", again + "./e"},
		{"./some/module/d  TestLong", "test timed out after 3s", again + "-run '^TestLong$' ./d"},
		{"./some/module/d  TestLong2/in", "test timed out after 3s", again + "-run '^TestLong2$/^in$' ./d"},
		{
			"./some/module/g  TestExit", "panic: unexpected call to os.Exit(0) during test [recovered, repanicked]",
			again + "-run '^TestExit$' ./g",
		},
		{"./some/module/h  TestPanicIn/sub", "", again + "-run '^TestPanicIn$/^sub$' ./h"},
		{"./some/module/h  TestPanicIn", "panic: inner [recovered, repanicked]", again + "-run '^TestPanicIn$' ./h"},
	}, plainly(found.failures))
	require.Equal(t, "0 packages passed, 8 failed, with 7 tests; skipped in ./some/module/a: 1 test", found.result())

	for _, text := range []string{
		"    a_test.go:4: broken\n        two\n", "a_test.go:5: own too", // of tests that fail
		"FAIL  ./some/module/b  does not build\n", `cannot use "s"`, "package x/nothere is not in std",
		"panic: boom\n\ngoroutine 5 [running]", "\t\tTestLong2/in (3s)\n", "Previous write at",
	} {
		require.Contains(t, said, text)
	}
	for _, text := range []string{"quiet", "noise", "fine log", "=== RUN", "--- FAIL: TestE ", "--- FAIL: TestF "} {
		require.NotContains(t, said, text)
	}
}

func TestWhatPassesIsOneLineAPackage(t *testing.T) {
	t.Parallel()
	found, said := replay(t, `{"Action":"start","Package":"example.org/x"}
{"Action":"run","Package":"example.org/x","Test":"TestA"}
{"Action":"output","Package":"example.org/x","Test":"TestA","Output":"noise\n"}
{"Action":"pass","Package":"example.org/x","Test":"TestA","Elapsed":1}
{"Action":"output","Package":"example.org/x","Output":"PASS\n"}
{"Action":"pass","Package":"example.org/x","Elapsed":1.25}
{"Action":"start","Package":"example.org/x/again"}
{"Action":"output","Package":"example.org/x/again","Output":"ok  \texample.org/x/again\t(cached)\n"}
{"Action":"pass","Package":"example.org/x/again","Elapsed":0}
{"Action":"start","Package":"example.org/x/none"}
{"Action":"output","Package":"example.org/x/none","Output":"?   \texample.org/x/none\t[no test files]\n"}
{"Action":"skip","Package":"example.org/x/none","Elapsed":0}
`)
	require.Equal(t, "  0.0s  ok    ./some/module  1.2s\n"+
		"  0.0s  ok    ./some/module/again  has passed before, nothing has changed\n", said)
	require.Equal(t, "2 packages passed, with 1 test", found.result())
	require.Equal(t, [][3]string{{
		"module some/module", "exit status 1", "go -C some/module test -race ./...",
	}}, plainly(found.failures), "it ended with an error that no package explains")
}

func TestAFailureThatIsNoTestsIsThePackages(t *testing.T) {
	t.Parallel()
	const start = `{"Action":"start","Package":"example.org/x/p"}` + "\n"
	const test = `{"Action":"run","Package":"example.org/x/p","Test":"TestA"}` + "\n"
	const fail = `{"Action":"fail","Package":"example.org/x/p","Elapsed":1}` + "\n"
	output := func(text string) string {
		return `{"Action":"output","Package":"example.org/x/p","Output":"` + text + `\n"}` + "\n"
	}
	for name, c := range map[string]struct{ lines, why string }{
		"a leak":          {start + output("PASS") + output("goleak: Errors on successful test run: 1") + fail, "failed outside of its tests"},
		"an exit":         {start + test + output(`FAIL\texample.org/x/p\t1s`) + fail, "ended by itself while 1 test ran"},
		"a panic":         {start + output("panic: in TestMain") + output("goroutine 1 [running]:") + fail, "panic: in TestMain"},
		"a timeout":       {start + output("panic: test timed out after 30m0s") + output("") + fail, "test timed out after 30m0s"},
		"no end":          {start + test, "go test ended before its tests"},
		"a race, a crash": {start + output("WARNING: DATA RACE") + output("fatal error: all goroutines are asleep") + fail, "fatal error: all goroutines are asleep"},
	} {
		found, _ := replay(t, c.lines)
		require.Equal(t, [][3]string{{
			"./some/module/p", c.why, "A=b go -C some/module test -race -count=1 ./p",
		}}, plainly(found.failures), name)
	}
}

func TestAModuleThatGoDoesNotUnderstandIsNamed(t *testing.T) {
	t.Parallel()
	found, said := replay(t, "go: errors parsing go.mod:\ngo.mod:3: unknown directive: gone\n")
	require.Equal(t, [][3]string{{
		"module some/module", "go.mod:3: unknown directive: gone", "go -C some/module test -race ./...",
	}}, plainly(found.failures))
	require.Contains(t, said, "errors parsing go.mod")
}

func TestNamesThatMeanSomethingElsewhereAreQuoted(t *testing.T) {
	t.Parallel()
	root := newTests(".", "example.org", nil, nil)
	require.Equal(t, `go test -race -count=1 -run '^TestA$/^it'\''s_2\.5\$$' .`, root.again("example.org", "TestA/it's_2.5$"))
	require.Equal(t, "go test -race -count=1 ./pkg/a", root.again("example.org/pkg/a [example.org/pkg/a.test]", ""))
	require.Equal(t, "go test -race -count=1 ./pkg/a", root.again("example.org/pkg/a.test", ""))
	root.cpu = "1"
	require.Equal(t, "go test -race -count=1 -cpu=1 ./pkg/a", root.again("example.org/pkg/a", ""))
}

func TestWhatRunsIsToldWithItsTests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var said strings.Builder
		found := newTests("m", "example.org", nil, newConsole(&said))
		require.Empty(t, found.doing())
		for _, line := range []string{
			`{"Action":"run","Package":"example.org/a","Test":"TestWaits"}`,
			`{"Action":"pause","Package":"example.org/a","Test":"TestWaits"}`,
			`{"Action":"run","Package":"example.org/a","Test":"TestB"}`,
			`{"Action":"run","Package":"example.org/a","Test":"TestB/sub"}`,
			`{"Action":"run","Package":"example.org/a","Test":"TestC"}`,
			`{"Action":"start","Package":"example.org/b"}`,
		} {
			found.line(line)
			time.Sleep(time.Second)
		}
		require.Equal(t, "./m/a 6.0s (TestB/sub 3.0s, 1 more), ./m/b 1.0s", found.doing())
		require.Empty(t, said.String())
	})
}
