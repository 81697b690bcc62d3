package integration

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/test/harness"
)

// tutorial is the page whose blocks this test runs, in their order.
const tutorial = "../../docs/tutorial.md"

// fenced finds the blocks of a page: what language each has, and its text.
var fenced = regexp.MustCompile("(?ms)^```(sh|text|go)\n(.*?)^```$")

// varies are the parts of what commands print that differ from run to run, and what stands for each.
var varies = []struct {
	part *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`[\w.-]+/sleep/\d+`), "LABEL"},
	{regexp.MustCompile(`[0-9a-f]{16}(\.[0-9a-v]{20})?`), "ID"}, // fences too
	{regexp.MustCompile(`\b(\d+m)?\d+(\.\d+)?(s|ms)\b`), "TIME"},
	{regexp.MustCompile(`[ \t]+`), " "}, // columns are as wide as what is in them
}

func settled(text string) string {
	for _, v := range varies {
		text = v.part.ReplaceAllString(text, v.as)
	}
	return strings.TrimSpace(strings.ReplaceAll(text, " \n", "\n"))
}

// TestTheTutorialDoesWhatItSays runs the commands of the page in one shell on a server, and its Go test. A block that only
// looks is repeated until it prints what the page shows.
func TestTheTutorialDoesWhatItSays(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(tutorial)
	require.NoError(t, err)
	program, err := harness.Command()
	require.NoError(t, err)
	shell := beginShell(t, "PATH="+filepath.Dir(program)+":"+os.Getenv("PATH"), "BERTH_REDIS="+harness.Start(t).URL())
	blocks := fenced.FindAllStringSubmatch(string(page), -1)
	var shown, built int
	for i, block := range blocks {
		switch {
		case block[1] == "go":
			built++
			file := filepath.Join(t.TempDir(), "tutorial_test.go")
			require.NoError(t, os.WriteFile(file, []byte(block[2]), 0o600))
			said, err := exec.CommandContext(t.Context(), "go", "test", "-count=1", file).CombinedOutput()
			require.NoError(t, err, string(said))
		case block[1] == "sh" && strings.Contains(block[2], "go install"): // check-release installs; the server is there
		case block[1] == "sh":
			printed := shell.run(block[2])
			if i+1 == len(blocks) || blocks[i+1][1] != "text" {
				continue
			}
			shown++
			lines := strings.Split(strings.TrimSpace(block[2]), "\n")
			look := lines[len(lines)-1]
			assert.Eventually(t, func() bool {
				if settled(printed) != settled(blocks[i+1][2]) {
					printed = shell.run(look + "\n")
				}
				return settled(printed) == settled(blocks[i+1][2])
			}, patience, 100*time.Millisecond)
			require.Equal(t, settled(blocks[i+1][2]), settled(printed), block[2])
		}
	}
	require.Equal(t, []int{4, 1}, []int{shown, built}, "blocks with their output, and of Go")
}

// tutor is a shell that runs block after block.
type tutor struct {
	*testing.T
	to   *os.File
	from string // the file that has what the commands print
}

// done is what the shell prints behind a block.
const done = "the block is over"

func beginShell(t *testing.T, env ...string) *tutor {
	t.Helper()
	read, write, err := os.Pipe()
	require.NoError(t, err)
	s := &tutor{T: t, to: write, from: filepath.Join(t.TempDir(), "printed")}
	out, err := os.Create(s.from)
	require.NoError(t, err)
	shell := exec.CommandContext(t.Context(), "bash")
	shell.Env = append(os.Environ(), env...)
	shell.Stdin, shell.Stdout, shell.Stderr = read, out, nil
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, shell.Start())
	t.Cleanup(func() {
		_ = syscall.Kill(-shell.Process.Pid, syscall.SIGTERM) // what a failure has left
		_ = write.Close()
		_ = shell.Wait()
		_, _ = read.Close(), out.Close()
	})
	return s
}

// run runs a block, and returns what it printed on its standard output.
func (s *tutor) run(block string) string {
	s.Helper()
	before, err := os.ReadFile(s.from)
	require.NoError(s, err)
	_, err = s.to.WriteString(block + "echo " + done + "\n")
	require.NoError(s, err)
	var printed []byte
	require.Eventually(s, func() bool {
		all, err := os.ReadFile(s.from)
		printed = all[min(len(before), len(all)):]
		return err == nil && bytes.Contains(printed, []byte(done))
	}, patience, 20*time.Millisecond, block)
	return strings.TrimSuffix(strings.TrimSpace(string(printed)), done)
}
