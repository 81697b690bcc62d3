package integration

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
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

// jam makes a semaphore that two hold and some wait for, a pool that is leased and waited for, and such a lock.
func (w *world) jam(waiting int) {
	w.Helper()
	for _, label := range []string{"host-1/first", "host-2/second"} {
		w.take(w.sem(w.node(node.Config{Label: label}), "gpu", 2), nil)
	}
	n := w.node(node.Config{Label: "host-3/waits"})
	for i := range waiting {
		w.queue(w.sem(n, "gpu", 2), nil, i+1)
	}
	locks := w.locker(node.Config{Label: "host-4/lock"})
	_, err := locks.Lock(w.Within(patience), "nightly", nil)
	require.NoError(w, err)
	testkit.Begin(w.Within(2*patience), func(ctx context.Context) (*qlock.Lock, error) {
		return locks.Lock(ctx, "nightly", nil)
	})
	pool := w.proxies(w.node(node.Config{Label: "host-5/pool"}), poolConfig{})
	w.add(pool, "p1", "p2")
	for range 2 {
		_, err = pool.Allocate(w.Within(patience), nil)
		require.NoError(w, err)
	}
	testkit.Begin(w.Within(2*patience), func(ctx context.Context) (*allocation, error) { return pool.Allocate(ctx, nil) })
}

// What each key does is tested in virtual time. Here are keys as a terminal sends them, and windows as it has them.
func TestTopInATerminal(t *testing.T) {
	w := private(t)
	program := w.berth()
	w.jam(5)
	term := w.runAt(80, 24, program, "top")
	t.Log(term.shows("The most contended names, the worst first", "> sem gpu full 2/2 5", "0 stuck", "/ 1 of 3/", "? help"))
	for _, shown := range []string{"semaphores", "locks", "pools", "names"} {
		term.press("Tab")
		term.shows("The most contended " + shown)
	}
	term.press("?")
	term.shows("r release the selected claim", "any key goes back")
	term.press("q")
	term.press("a")
	term.shows("All names in use, page 1", "/ 1 of 3/")
	for _, key := range [][2]string{{"Down", "2"}, {"Up", "1"}, {"NPage", "3"}, {"PPage", "1"}, {"G", "3"}, {"g", "1"}} {
		term.press(key[0])
		term.shows("/ " + key[1] + " of 3/")
	}
	term.press("a")
	term.shows("The most contended names", "> sem gpu full 2/2 5")
	term.press("Enter")
	t.Log(term.shows("semaphore gpu", "Held by 2 claims", "In line 5 claims", "host-1/first has held it for"))
	term.press("j", "Enter")
	term.shows("/claim [0-9a-f]{16}/", "host-2/second")
	term.press("Escape")
	term.shows("Held by 2 claims")

	term.press("p")
	term.types("soon")
	term.shows("! this is not a time")
	term.press("C-u")
	term.types("1h")
	term.types("deploy")
	term.confirms("Pause semaphore")
	term.shows("pause gpu: paused for 1h00m", `more: "deploy"`)
	require.Equal(t, "deploy", w.reader().Look(keyspace.Sem, "gpu").Pause.Reason)
	term.press("u", "Enter")
	term.confirms("End the pause of semaphore")
	term.shows("unpause gpu: no longer paused", "full: 2 of 2 held")
	term.press("Escape")
	term.shows("The most contended names")
	term.press("/")
	term.types(proxies)
	term.shows("> pool " + proxies)
	term.press("Enter")
	term.shows("Held by 2 claims") // a window that is too small takes no key

	term.resize(30, 8)
	term.shows("The window is too small: it has 30x8")
	term.resize(200, 50)
	term.shows("pool "+proxies, "Held by 2 claims", "Resources that are leased")
	term.press("Escape")
	term.shows("The most contended names")
	term.press("Escape") // drops the filter
	term.shows("sem gpu full 2/2 5")
	// A server that is away leaves the rows with their age; it is read again when it is back.
	w.server.Stop(t)
	term.shows("old: the server has not answered since", "sem gpu full 2/2 5")
	w.server.Cont(t)
	term.shows("/sem gpu full 2/2 5 .* [0-2]s/")
	w.server.Kill(t)
	term.shows("old, and cannot be read anew:", "sem gpu full 2/2 5")
	w.server.Restart(t)
	w.do("PING")
	term.press("a")
	term.shows("All names in use")
	term.press("q")
	term.shows("ended with 0", "the terminal is as it was")
}
