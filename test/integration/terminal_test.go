package integration

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/test/harness"
)

// tmuxVariable is "required" where no tmux is a failure, and no reason to skip.
const tmuxVariable = "BERTH_TEST_TMUX"

// terminal is a program in a tmux of its own, on which a test types and looks.
type terminal struct {
	*world
	socket string

	seen, missing string // what was seen last, and what is not there
}

// needs skips a test without one of these programs or files, or fails it where the variable says that they are required.
func (w *world) needs(variable, setup string, programs ...string) {
	w.Helper()
	for _, program := range programs {
		if _, err := exec.LookPath(program); errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
			if os.Getenv(variable) == "required" {
				require.NoError(w, err, "this test needs %s: tools/setup.sh %s", program, setup)
			}
			w.Skipf("no %s: tools/setup.sh %s", program, setup)
		}
	}
}

// berth builds the program, and needs tmux.
func (w *world) berth() (program string) {
	w.Helper()
	w.needs(tmuxVariable, "tmux", "tmux")
	program, err := harness.Command()
	require.NoError(w, err)
	return program
}

// runAt begins a program in a window of this size. When it has ended, its exit code and whether the terminal is as it was
// are shown.
func (w *world) runAt(width, height int, program string, args ...string) *terminal {
	w.Helper()
	folder, err := os.MkdirTemp("", "tmux") // the path of a socket must be short
	require.NoError(w, err)
	t := &terminal{world: w, socket: filepath.Join(folder, "socket")}
	config := filepath.Join(folder, "config")
	require.NoError(w, os.WriteFile(config, []byte("set -g status off\nset -g remain-on-exit on\nset -s escape-time 0\n"), 0o600))
	script := `before=$(stty -g); "$@"; echo "ended with $?"; if [ "$before" = "$(stty -g)" ]; then echo "the terminal is as it was"; fi; read -r line`
	cmd := exec.CommandContext(w.Within(patience), "tmux", append([]string{
		"-S", t.socket, "-f", config, "new-session", "-d", "-x", strconv.Itoa(width), "-y", strconv.Itoa(height),
		"sh", "-c", script, "sh", program,
	}, args...)...)
	cmd.Env = append(os.Environ(), "BERTH_REDIS=redis://"+w.server.Addr, "BERTH_NAMESPACE="+w.ns, "LC_ALL=C.UTF-8", "TMUX=")
	out, err := cmd.CombinedOutput()
	require.NoError(w, err, "%s", out)
	w.Cleanup(func() {
		if t.Failed() {
			t.Logf("%q is not in\n%s", t.missing, t.seen)
		}
		_ = exec.Command("tmux", "-S", t.socket, "kill-server").Run() // it may have ended
		_ = os.RemoveAll(folder)
	})
	return t
}

func (t *terminal) tmux(words ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Within(patience), "tmux", append([]string{"-S", t.socket}, words...)...).CombinedOutput()
	require.NoError(t, err, "tmux %q: %s", words, out)
	return string(out)
}

// press presses keys, by tmux's names.
func (t *terminal) press(keys ...string) {
	t.Helper()
	t.tmux(append([]string{"send-keys"}, keys...)...)
}

// types types a text, and Enter.
func (t *terminal) types(text string) {
	t.Helper()
	t.tmux("send-keys", "-l", text)
	t.press("Enter")
}

// shows waits until all of this is seen, blanks and line ends aside. What is between slashes is a regular expression.
func (t *terminal) shows(what ...string) string {
	t.Helper()
	patterns := make([]*regexp.Regexp, len(what))
	for i, text := range what {
		if pattern, ok := strings.CutPrefix(text, "/"); ok {
			patterns[i] = regexp.MustCompile(strings.TrimSuffix(pattern, "/"))
		} else {
			patterns[i] = regexp.MustCompile(regexp.QuoteMeta(text))
		}
	}
	t.Await(fmt.Sprintf("%q is shown", what), func() bool {
		t.seen = t.tmux("capture-pane", "-p")
		flat := strings.Join(strings.Fields(t.seen), " ")
		for i, pattern := range patterns {
			if t.missing = what[i]; !pattern.MatchString(flat) {
				return false
			}
		}
		return true
	})
	return t.seen
}

// confirms waits for the confirmation that says this, and types y.
func (t *terminal) confirms(what ...string) {
	t.Helper()
	t.shows(append(what, "Do this? Type y to do it.")...)
	t.press("y")
}

// resize gives the window another size.
func (t *terminal) resize(width, height int) {
	t.Helper()
	t.tmux("resize-window", "-x", strconv.Itoa(width), "-y", strconv.Itoa(height))
}
