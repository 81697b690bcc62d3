package top

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/berth-go/berth/cmd/berth/internal/apptest"
	"github.com/berth-go/berth/pkg/keyspace"
)

// atTerminal is a berth top at a terminal that the test types on.
type atTerminal struct {
	t      *testing.T
	cmd    *exec.Cmd
	master *os.File
	slave  *os.File
	errs   bytes.Buffer
	before *unix.Termios

	reading sync.WaitGroup
	mu      sync.Mutex
	said    []byte // guarded by mu
}

// atTop begins one. What is set for it is a flag, or a variable of its environment.
func atTop(t *testing.T, url string, set ...string) *atTerminal {
	t.Helper()
	a := &atTerminal{t: t}
	a.master, a.slave = apptest.OpenTerminal(t)
	require.NoError(t, unix.IoctlSetWinsize(int(a.slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}))
	var err error
	a.before, err = unix.IoctlGetTermios(int(a.slave.Fd()), unix.TCGETS)
	require.NoError(t, err)
	a.cmd = apptest.Command(t, url, "top")
	a.cmd.Env = append(a.cmd.Env, "TERM=xterm", "SSH_TTY=/dev/pts/1", "GORACE=atexit_sleep_ms=0 suppressions="+known(t))
	for _, s := range set {
		if strings.HasPrefix(s, "-") {
			a.cmd.Args = append(a.cmd.Args, s)
		} else {
			a.cmd.Env = append(a.cmd.Env, s)
		}
	}
	a.cmd.Stdin, a.cmd.Stdout, a.cmd.Stderr = a.slave, a.slave, &a.errs
	a.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, a.cmd.Start())
	a.reading.Go(func() {
		for chunk := make([]byte, 4096); ; {
			n, err := a.master.Read(chunk)
			a.mu.Lock()
			a.said = append(a.said, chunk[:n]...)
			a.mu.Unlock()
			if err != nil {
				return
			}
		}
	})
	t.Cleanup(func() {
		_ = a.cmd.Process.Kill()
		if a.cmd.ProcessState == nil {
			_ = a.cmd.Wait()
		}
		_ = a.slave.Close()
		_ = a.master.Close()
		a.reading.Wait()
	})
	return a
}

// known is a file of the data races that are not ours: at its end the library of the terminal waits for its reader for
// half a second, and closes it under it if the machine stands still for longer. The program reads nothing by then.
func known(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "races")
	require.NoError(t, os.WriteFile(file, []byte("race:github.com/muesli/cancelreader.(*epollCancelReader).Close\n"), 0o600))
	return file
}

func (a *atTerminal) screen() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return string(a.said)
}

// until waits until a text has come to the terminal.
func (a *atTerminal) until(text string) {
	a.t.Helper()
	require.Eventually(a.t, func() bool { return bytes.Contains([]byte(a.screen()), []byte(text)) }, apptest.Patience, 10*time.Millisecond,
		"%s: %q", text, a.screen())
}

func (a *atTerminal) press(keys string) {
	a.t.Helper()
	apptest.Got(io.WriteString(a.master, keys))(a.t)
}

// ends waits for the end, and looks whether the terminal is as it was.
func (a *atTerminal) ends(code int) {
	a.t.Helper()
	_ = a.cmd.Wait()
	require.Equal(a.t, code, a.cmd.ProcessState.ExitCode(), a.errs.String())
	require.Equal(a.t, a.before, apptest.Got(unix.IoctlGetTermios(int(a.slave.Fd()), unix.TCGETS))(a.t))
	a.until("\x1b[?1049l") // the other screen is left
	a.until("\x1b[?25h")   // the cursor is seen
}

func TestTopAtATerminal(t *testing.T) {
	t.Parallel()
	s := jam(t)
	for name, test := range map[string]struct {
		end  func(a *atTerminal)
		code int
		says string
	}{
		"q":       {func(a *atTerminal) { a.press("q") }, 0, ""},
		"ctrl-c":  {func(a *atTerminal) { a.press(apptest.CtrlC) }, 0, ""},
		"SIGTERM": {func(a *atTerminal) { _ = a.cmd.Process.Signal(syscall.SIGTERM) }, 143, "berth: ended by signal: terminated\n"},
		"SIGHUP":  {func(a *atTerminal) { _ = a.cmd.Process.Signal(syscall.SIGHUP) }, 129, "berth: ended by signal: hangup\n"},
		"SIGINT":  {func(a *atTerminal) { _ = a.cmd.Process.Signal(syscall.SIGINT) }, 130, "berth: ended by signal: interrupt\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := atTop(t, s.URL())
			a.until("gpu")
			test.end(a)
			a.ends(test.code)
			require.Equal(t, test.says, a.errs.String())
		})
	}
}

func TestATerminalThatGoesAwayEndsTop(t *testing.T) {
	t.Parallel()
	a := atTop(t, jam(t).URL())
	a.until("gpu")
	require.NoError(t, a.slave.Close())
	require.NoError(t, a.master.Close())
	_ = a.cmd.Wait()
	require.NotZero(t, a.cmd.ProcessState.ExitCode())
}

func TestADumbTerminalHasOnePage(t *testing.T) {
	t.Parallel()
	a := atTop(t, jam(t).URL(), "TERM=dumb")
	a.until("KIND")
	_ = a.cmd.Wait()
	require.Zero(t, a.cmd.ProcessState.ExitCode())
	require.NotContains(t, a.screen(), "\x1b")
}

func TestColorsAreSentUnlessSomebodyWantsNone(t *testing.T) {
	t.Parallel()
	for set, colors := range map[string]bool{"TERM=xterm": true, "NO_COLOR=": true, "NO_COLOR=1": false, "--no-color": false} {
		t.Run(set, func(t *testing.T) {
			t.Parallel()
			a := atTop(t, jam(t).URL(), set)
			a.until("gpu")
			a.press("r")
			a.until("select a claim")
			a.press("q")
			a.ends(0)
			require.Equal(t, colors, regexp.MustCompile(`\x1b\[[\d;]*3\dm`).MatchString(a.screen()))
		})
	}
}

// An action that is under way when somebody ends the program is done, and told.
func TestWhatIsUnderWayAtTheEndIsTold(t *testing.T) {
	t.Parallel()
	s := jam(t)
	w := apptest.WayTo(t, s)
	a := atTop(t, w.URL)
	a.until("gpu")
	a.press("G")
	a.press("p5m\rmore disks\r")
	a.until("Do this?")
	w.Hold()
	a.press("y")
	a.until("under way")
	a.press("q")
	w.Release()
	a.ends(0)
	me := regexp.QuoteMeta(strconv.Quote(apptest.Got(user.Current())(t).Username))
	require.Regexp(t, `^berth: \S+Z sem "gpu": pause for 5m00s by `+me+`: "more disks"\n(berth: pause gpu: paused for 5m00s\n)?$`, a.errs.String()) // else it was faster
	require.NotNil(t, apptest.NameOf(t, s, keyspace.Sem, "gpu").Pause)
}

// A server that comes back is read again.
func TestAServerThatIsAwayIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := jam(t)
	w := apptest.WayTo(t, s)
	a := atTop(t, w.URL)
	a.until("gpu")
	w.Hold()
	a.until("the server has not answered")
	w.Release()
	require.NoError(t, apptest.OpsOf(t, s).Pause(t.Context(), keyspace.Sem, "gpu", time.Hour, ""))
	a.until("paused")
	a.press("q")
	a.ends(0)
}
