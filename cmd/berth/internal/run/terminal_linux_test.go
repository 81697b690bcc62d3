package run

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/apptest"
)

const ctrlZ = "\x1a"

// atTerminal is a berth run at a terminal that the test types on, as the only
// job of a session.
type atTerminal struct {
	t      *testing.T
	cmd    *exec.Cmd
	master *os.File
	screen *bufio.Scanner
	role   int // the command's process id
}

func beginAtTerminal(t *testing.T, url string, flags ...string) *atTerminal {
	t.Helper()
	master, slave := apptest.OpenTerminal(t)
	cmd := apptest.Command(t, url, apptest.RunArgs("stubborn", flags...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, cmd.Start())
	require.NoError(t, slave.Close())
	a := &atTerminal{t: t, cmd: cmd, master: master, screen: bufio.NewScanner(master)}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		if a.role != 0 {
			_ = syscall.Kill(-a.role, syscall.SIGKILL)
		}
		if cmd.ProcessState == nil {
			_ = cmd.Wait()
		}
		_ = master.Close()
	})
	role := apptest.Got(strconv.Atoi(strings.Fields(a.until("ready"))[1]))(t)
	a.role = role
	return a
}

// until reads the screen up to a line that contains text.
func (a *atTerminal) until(text string) string {
	a.t.Helper()
	for a.screen.Scan() {
		if strings.Contains(a.screen.Text(), text) {
			return a.screen.Text()
		}
	}
	require.FailNow(a.t, "the terminal was closed before it showed "+text)
	return ""
}

func (a *atTerminal) press(key string) {
	a.t.Helper()
	apptest.Got(io.WriteString(a.master, key))(a.t)
}

// foreground is the process group that reads what is typed.
func (a *atTerminal) foreground() int {
	a.t.Helper()
	group := apptest.Got(unix.IoctlGetInt(int(a.master.Fd()), unix.TIOCGPGRP))(a.t)
	return group
}

// stopped waits until berth has stopped itself.
func (a *atTerminal) stopped() {
	a.t.Helper()
	var status unix.WaitStatus
	for {
		_, err := unix.Wait4(a.cmd.Process.Pid, &status, unix.WUNTRACED, nil)
		if !errors.Is(err, unix.EINTR) {
			require.NoError(a.t, err)
			break
		}
	}
	require.True(a.t, status.Stopped())
	require.Equal(a.t, a.cmd.Process.Pid, a.foreground(), "the shell is to see its own job in the foreground")
}

// state is the letter that the kernel has for the state of a process.
func state(t *testing.T, pid int) string {
	t.Helper()
	text := apptest.Got(os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)))(t)
	return string(bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])[0])
}

func TestAtATerminalTheCommandHasTheForeground(t *testing.T) {
	t.Parallel()
	a := beginAtTerminal(t, apptest.Server(t).URL())
	require.Equal(t, a.role, a.foreground())
	for range 3 {
		a.press(apptest.CtrlC)
		a.until("got interrupt")
	}
	require.NoError(t, syscall.Kill(a.role, syscall.SIGUSR1))
	require.Equal(t, "got user defined signal 1", a.until("got"), "and no interrupt came twice")
}

func TestAJobThatIsStoppedAndContinuedGoesOn(t *testing.T) {
	t.Parallel()
	a := beginAtTerminal(t, apptest.Server(t).URL(), "--lease", "1h")
	for range 2 {
		a.press(ctrlZ)
		a.stopped()
		require.Equal(t, "T", state(t, a.role))
		require.NoError(t, a.cmd.Process.Signal(syscall.SIGCONT))
		require.Eventually(t, func() bool { return a.foreground() == a.role }, apptest.Patience, 10*time.Millisecond)
		a.press(apptest.CtrlC)
		a.until("got interrupt")
	}
}

func TestInAPipelineStoppingBerthStopsTheCommand(t *testing.T) {
	t.Parallel()
	r := begin(t, apptest.Server(t).URL(), "stubborn", "--lease", "1h")
	r.signal(syscall.SIGTSTP) // as Ctrl-Z does where berth keeps the foreground
	require.Eventually(t, func() bool {
		return state(t, r.cmd.Process.Pid) == "T" && state(t, r.command) == "T"
	}, apptest.Patience, 10*time.Millisecond)
	r.signal(syscall.SIGCONT)
	r.signal(syscall.SIGINT)
	require.Equal(t, "got interrupt", r.line())
}

func TestWhoWaitsAtATerminalIsTold(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	permit := apptest.Got(apptest.SemOf(t, s, "gpu", 1).Acquire(context.Background(), nil))(t)
	resource := apptest.Got(apptest.Filled(t, s, "gpu", "a", "b").Allocate(context.Background(), nil))(t)
	for says, test := range map[string]struct {
		held berth.Handle
		args []string
	}{
		`berth: waiting for "gpu", 0 ahead in line`:               {permit, []string{"--sem", "gpu", "--capacity", "1"}},
		`berth: waiting for resource a of "gpu", 0 ahead in line`: {resource, []string{"--pool", "gpu", "--resource", "a"}},
	} {
		master, slave := apptest.OpenTerminal(t)
		defer func() { _ = master.Close() }()
		cmd := apptest.Command(t, s.URL(), append(append([]string{"run"}, test.args...), "true")...)
		cmd.Stdout, cmd.Stderr = slave, slave
		require.NoError(t, cmd.Start())
		require.NoError(t, slave.Close())
		screen := bufio.NewScanner(master)
		require.True(t, screen.Scan())
		require.Equal(t, says, screen.Text())
		require.NoError(t, test.held.Release(context.Background()))
		require.NoError(t, cmd.Wait())
	}
}

func TestTheCommandDoesNotOutliveBerth(t *testing.T) {
	t.Parallel()
	r := begin(t, apptest.Server(t).URL(), "stubborn")
	r.signal(syscall.SIGKILL)
	r.silent() // its output ends when it has
}
