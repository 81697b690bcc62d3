//go:build unix

package supervise

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		play(role)
		return
	}
	goleak.VerifyTestMain(m)
}

// patience bounds what must happen. Only what hangs meets it.
const patience = 3 * time.Minute

// roleVariable makes this test binary one of the processes below.
const roleVariable = "BERTH_SUPERVISE_ROLE"

// play is what the processes do. All say a line when they are ready, and one
// for each signal they get.
func play(role string) {
	signals := make(chan os.Signal, 10)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGINT)
	switch role {
	case "exit 7":
		os.Exit(7)
	case "parent":
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), roleVariable+"=child")
		child.Stdout = os.Stdout
		if child.Start() != nil {
			os.Exit(1)
		}
	}
	fmt.Println(role, os.Getpid(), "group", syscall.Getpgrp())
	for sig := range signals {
		fmt.Println(role, "got", sig)
	}
}

// start starts a command that plays a role, and reads what it and its children
// say. They are gone at the end of the test.
func start(t *testing.T, role string) (*Process, *bufio.Scanner) {
	t.Helper()
	read, write, err := os.Pipe()
	require.NoError(t, err)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	cmd.Stdout, cmd.Stderr = write, os.Stderr
	p, err := Start(cmd)
	require.NoError(t, err)
	require.NoError(t, write.Close())
	require.NoError(t, read.SetReadDeadline(time.Now().Add(patience)))
	t.Cleanup(func() {
		p.Kill()
		<-p.Exited()
		_, _ = io.Copy(io.Discard, read) // ends when the last writer has
		_ = read.Close()
	})
	return p, bufio.NewScanner(read)
}

// silent requires that nobody says anything more, and waits until all who could
// have ended.
func silent(t *testing.T, from *bufio.Scanner) {
	t.Helper()
	require.False(t, from.Scan(), "it said %q", from.Text())
	require.NoError(t, from.Err(), "somebody could still say something")
}

// line reads the next line that contains text.
func line(t *testing.T, from *bufio.Scanner, text string) string {
	t.Helper()
	for from.Scan() {
		if strings.Contains(from.Text(), text) {
			return from.Text()
		}
	}
	require.FailNow(t, "ended before it said "+text)
	return ""
}

func TestExitCodes(t *testing.T) {
	p, _ := start(t, "exit 7")
	<-p.Exited()
	require.Equal(t, 7, p.ExitCode())

	p, said := start(t, "child")
	line(t, said, "child")
	p.Kill()
	<-p.Exited()
	require.Equal(t, 128+9, p.ExitCode())
}

func TestACommandThatCannotStartIsAnError(t *testing.T) {
	_, err := Start(exec.Command("/nowhere/at/all"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestSignalsReachWhomTheyShould(t *testing.T) {
	p, said := start(t, "parent")
	line(t, said, "group")
	line(t, said, "group") // both are ready

	p.Pass(syscall.SIGUSR1)
	require.Equal(t, "parent got user defined signal 1", line(t, said, "got"))
	p.Pass(syscall.SIGINT)
	both := []string{line(t, said, "got"), line(t, said, "got")}
	require.ElementsMatch(t, []string{"parent got interrupt", "child got interrupt"}, both)
	p.Terminate()
	both = []string{line(t, said, "got"), line(t, said, "got")}
	require.ElementsMatch(t, []string{"parent got terminated", "child got terminated"}, both)
}

func TestTerminateReachesACommandThatIsStopped(t *testing.T) {
	p, said := start(t, "child")
	line(t, said, "child")
	require.NoError(t, p.group(syscall.SIGSTOP))
	p.Terminate()
	require.Equal(t, "child got terminated", line(t, said, "got"))
}

func TestKillReachesWhatTheCommandStarted(t *testing.T) {
	p, said := start(t, "parent")
	line(t, said, "group")
	line(t, said, "group")
	require.False(t, p.Gone())

	require.NoError(t, syscall.Kill(p.pid, syscall.SIGKILL))
	<-p.Exited()
	require.False(t, p.Gone(), "its child lives")
	p.Pass(syscall.SIGUSR1) // to nobody: the process is not there any more
	p.Kill()
	silent(t, said)
	require.Eventually(t, p.Gone, patience, time.Millisecond)
}

func TestTheCommandLeadsAGroupOfItsOwn(t *testing.T) {
	p, said := start(t, "child")
	require.Equal(t, fmt.Sprintf("child %d group %d", p.pid, p.pid), line(t, said, "group"))
}
